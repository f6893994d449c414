"""Pieces of text -> modules, by what is wanted of them.

The reader finds modules in whatever surrounds them; what follows a module's header is a `ModuleReader`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlo_inspect.hlo import grammar, scan
from hlo_inspect.hlo.collect_regions import RegionCollector
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.header import Header, scan_header
from hlo_inspect.hlo.module import Module, Wants
from hlo_inspect.hlo.module_reader import LINE_END, MAX_ITEM_CHARS, MODULE, ModuleReader
from hlo_inspect.hlo.source import Source

_BLANK = r"(?:[ \t]++|/\*(?:[^*\n]++|\*(?!/))*+\*/)*+"
_START = re.compile(
    rf"\n[ \t]*+(?:(HloModule)(?=(?:[ \t]{_BLANK}%?[A-Za-z_][\w.\-]*+:?+)?{_BLANK}(?:,|\n|//|ENTRY[ \t]))"
    r"|(ENTRY[ \t]++%?[\w.\-]++[ \t]*+[({])|%?[A-Za-z_][\w.\-]*+[ \t](?:\([^\n]*\)[ \t]->[^\n]*)?\{[ \t]*\n)",
    re.ASCII,
)


class Reader:
    """Reads one input once."""

    def __init__(self, source: Source, wants: Wants) -> None:
        self._source = source
        self._cursor = Cursor(source.pieces)
        self._wants = wants

    def modules(self) -> Iterator[Module]:
        """Every module of the input, in order."""
        while self._find_module():
            module = self._module()
            if module is not None:
                yield module

    def _module(self) -> Module | None:
        """The module that starts at the cursor; `None` where there is nothing but a word that could be a header."""
        cursor = self._cursor
        first_line, begin = cursor.line, cursor.bytes_before
        header = self._header()
        module = Module(header, self._source.name, first_line, self._wants)
        collector = RegionCollector(module)
        for fault in header.faults:
            collector.problem("HI003", fault, first_line)
        body = ModuleReader(cursor, collector)
        body.read()
        module.lines = body.last_line - first_line + 1
        module.bytes = body.end_bytes - begin
        collector.finish()
        if not module.computation_count and not header.attributes:
            return None
        self._note_invalid_bytes(collector)
        return module

    def _find_module(self) -> bool:
        """Moves to the next line that starts a module; computations without a header start one too."""
        cursor = self._cursor
        while True:
            match = _START.search(cursor.text, cursor.position - 1)
            if match is None:
                cursor.advance(len(cursor.text))
                if not cursor.more():
                    return False
                continue
            cursor.advance(match.start() + 1)
            if match[1] or self._starts_computation():
                return True
            cursor.next_line()

    def _starts_computation(self) -> bool:
        """Whether the line at the cursor is a computation's: an instruction has to follow it."""
        cursor = self._cursor
        while True:
            try:
                start = scan.skip_space(cursor.text, cursor.position)
                _, _, end = grammar.scan_computation(cursor.text, start)
                grammar.scan_instruction(cursor.text, scan.skip_space(cursor.text, end))
            except scan.IncompleteError:
                if cursor.remaining() > MAX_ITEM_CHARS or not cursor.more():
                    return False
            except scan.ScanError:
                return False
            else:
                return True

    def _header(self) -> Header:
        cursor = self._cursor
        if not MODULE.match(cursor.text, cursor.position):
            return Header("", printed=False)
        final = False
        while True:
            try:
                header, end = scan_header(cursor.text, cursor.text.index("HloModule", cursor.position), final=final)
                break
            except scan.IncompleteError:
                final = cursor.remaining() > MAX_ITEM_CHARS or not cursor.more()
        line_end = LINE_END.match(cursor.text, end)
        cursor.advance(line_end.end() if line_end else end)
        if header.fault:
            cursor.next_line()
        return header

    def _note_invalid_bytes(self, collector: RegionCollector) -> None:
        if self._source.invalid_lines:
            message = f"{self._source.invalid_lines} lines hold bytes that are not UTF-8; they are shown as \\xNN"
            collector.problem("HI005", message, self._source.first_invalid_line)


def read_modules(source: Source, wants: Wants) -> Iterator[Module]:
    """Every module of `source`. `InputError` for what cannot be read."""
    return Reader(source, wants).modules()
