"""Computations that the native reader reads, many at a time.

It reads whole computations as XLA's printers write them, up to the end of the entry. What it refuses is left to the readers in
Python, which say what is wrong with it. After a refused computation it is tried again.
"""

from __future__ import annotations

from hlo_inspect.hlo.columns import Columns
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.column_builder import ColumnBuilder
from hlo_inspect.hlo.read.cursor import Cursor
from hlo_inspect.hlo.read.module_builder import ModuleBuilder
from hlo_inspect.native import library as native

_LITERALS = tuple(sorted(LITERAL_OPCODES))
_LEFT_OUT = ("channel_id", "control-predecessors")
"""Attributes whose values tell instructions apart that are equal otherwise."""

_FIRST_CHARS = 1 << 17
"""Length of the first text that the reader gets."""

_GROWTH = 4
"""Factor by which the text grows while a computation is incomplete."""

_ENOUGH_CHARS = 1 << 20
"""Length of computations that are handed on before others are read, if their rows are not kept."""

_MOST_CHARS = 1 << 28
"""Length of the longest computation that is read at once, if rows are not kept. Readers in Python read longer ones in parts."""

_LITTLE_CHARS = 1 << 12
_MAX_PAUSE = 64
"""Most computations that are left to others after one of which little could be read."""


class NativeRuns:
    """Native reading at the cursor of a module."""

    def __init__(self, cursor: Cursor, builder: ModuleBuilder) -> None:
        self._cursor = cursor
        self._builder = builder
        self._keeps_rows = builder.module.wants.graph
        self._most = native.MAX_CHARS if self._keeps_rows else _MOST_CHARS
        self._limit = self._most
        self._pause = 0  # tries to let pass
        self._next_pause = 1

    def take(self) -> bool:
        """Add the computations at the cursor to the module, and move past them. Return False if none was read."""
        if self._pause:
            self._pause -= 1
            return False
        if not self._may_take():
            return False
        columns = self._read()
        read = columns.count if columns is not None else 0
        if columns is not None:
            columns = self._take(columns)
        end, lines = columns.end() if columns is not None else (0, 0)
        is_cut = columns is None or columns.count < read
        if is_cut or end < _LITTLE_CHARS:  # else a text of which little can be read would cost much
            self._pause, self._next_pause = self._next_pause, min(_MAX_PAUSE, 2 * self._next_pause)
            self._limit = _FIRST_CHARS
        else:
            self._next_pause, self._limit = 1, min(self._most, _GROWTH * self._limit)
        self._cursor.advance(self._cursor.position + end, lines)
        return columns is not None

    def _may_take(self) -> bool:
        """Return True if a computation starts at the cursor, and the module is worth it."""
        cursor, position = self._cursor, self._cursor.position
        if self._builder.has_unmarked_roots or not parser.starts_computation(cursor.text, position):
            return False
        return native.library() is not None

    def _read(self) -> Columns | None:
        """Read computations. Return None if the first one is refused."""
        library, cursor = native.library(), self._cursor
        if library is None:
            return None
        size = min(_FIRST_CHARS, len(cursor.text) - cursor.position)  # at first nothing is loaded
        result = native.Reading.INCOMPLETE
        with native.NativeReader(library, _LITERALS, _LEFT_OUT, CALLEE_ATTRIBUTES) as reader:
            while result == native.Reading.INCOMPLETE and size <= self._limit:
                cursor.load(size)
                end = min(cursor.position + size, len(cursor.text))
                is_final = cursor.is_final and end == len(cursor.text)
                result = reader.read(cursor.text, cursor.position, end, is_final=is_final)
                is_enough = reader.computations > 1 and reader.position >= _ENOUGH_CHARS
                if is_final or (is_enough and not self._keeps_rows):
                    break
                size = _GROWTH * size if size >= _FIRST_CHARS else _FIRST_CHARS
            if not reader.position or result == native.Reading.NO_MEMORY:
                return None
            text, start = cursor.text, cursor.position
            if len(text) > 2 * reader.position:  # rows should not keep the text of other modules in memory
                text, start = text[start : start + reader.position], 0
            columns = Columns(reader.take_columns(start), text, start, cursor.line)
        if result != native.Reading.ENTRY_READ:  # the last computation counts as the entry if no other follows
            columns.cut(columns.count - 1)
        return columns

    def _take(self, columns: Columns) -> Columns | None:
        """Add computations to the module. Return None if there is none, as before one with a wrong shape."""
        built = ColumnBuilder(self._builder, columns)
        if not columns.count:
            return None
        self._builder.module.device_marks.note(columns.text, columns.start, columns.start + columns.end()[0])
        built.take()
        return columns
