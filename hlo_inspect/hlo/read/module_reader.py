"""Reader of one module: tables and computations, as far as they are wanted.

`selective` skips unwanted text. `native_runs` reads many computations and `fast_path` many lines as printers write them, and
`parser` reads the next item otherwise. A `ModuleBuilder` receives the results. If all fail on a line, it is counted and becomes
a problem with its location.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import CUT_ROW, UNREADABLE, Module, Problem
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.cursor import Cursor, Span
from hlo_inspect.hlo.read.fast_path import CLOSER, find_rows, of_row
from hlo_inspect.hlo.read.module_builder import ModuleBuilder
from hlo_inspect.hlo.read.open_computation import OpenComputation
from hlo_inspect.hlo.read.parser import MAX_DEPTH, NestedComputation, nested_computations, with_names, with_nested_operands
from hlo_inspect.hlo.read.selective import Selection
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.op_names import TABLE
from hlo_inspect.hlo.values.shape_text import ShapeError, parse_shape
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from hlo_inspect.hlo.read.native_runs import NativeRuns

MAX_UNREADABLE_RUN = 20
"""Consecutive lines without HLO after which the module counts as truncated before them."""

MIN_RUN_CHARS = 1 << 6
MAX_RUN_CHARS = 1 << 17
MIN_LOADED_CHARS = 1 << 15  # most computations are shorter; the text after them shows if they are wanted

HEADER = lazy_pattern(r"[ \t]*+HloModule(?![\w.\-])", re.ASCII)
LINE_END = lazy_pattern(r"[ \t]*+\n")
_REST_IS_BLANK = lazy_pattern(r"\s*+\Z")
_DOTS = r"[ \t]*+(?:[\[(<]?+(?:\.\.\.|\u2026)|[\[(<](?:output )?(?:truncated|omitted|elided|snip)\b)"
_ELISION = lazy_pattern(rf"{_DOTS}[^\n={{}}]*+(?:\n|\Z)")
"""Pattern of a line that stands for lines left out."""
_ELISION_AHEAD = lazy_pattern(rf"\n{_DOTS}")
_OF_LEFT_OUT_LINES = frozenset({"HI008", "HI009"})
"""Faults that lines which somebody left out explain."""
_ENDS = lazy_pattern(rf"[ \t]*+(?:\}}|HloModule)|{_DOTS}")
_STOP = lazy_pattern(rf"\n(?:(?<=[={{]\n)|(\}})|{_ENDS.pattern})")
"""Pattern of a line end after which a computation may start or end.

The group is a closing brace as printers write it.
"""
_WORD = lazy_pattern(r" ([a-z][a-z0-9_\-]*+)[(=]", re.ASCII)
"""Pattern of an opcode, or of the name of an attribute, in a line that cannot be read."""
_WITHOUT_OPCODE = lazy_pattern(
    r"[ \t]*+(?:ROOT[ \t]++)?+(?:%[A-Za-z_][\w.\-]*+|[A-Za-z_][\w.\-]*+[ \t]*+=(?!=))"
    r"(?![^\n]* [a-z][a-z0-9_\-]*+[(=])",
    re.ASCII,
)
"""Pattern of the start of an instruction that ends before its opcode."""
_CUT_FIRST_LINE = lazy_pattern(r"(?:ENTRY|%)[^\n]*+\n\Z")


class ModuleReader:
    """Reader of the text after a header: tables and computations, up to other text.

    The module ends at `last_line` and `end_bytes`.
    """

    def __init__(self, cursor: Cursor, module: Module) -> None:
        self._cursor = cursor
        self._module = module
        self._builder = ModuleBuilder(module)
        self._selection = Selection(module, self._builder.holders)
        self._native: NativeRuns | None = None
        self._reads_every_line = module.wants.reads_every_line
        self._open: OpenComputation | None = None
        self._seen_entry = False
        self._unreadable_run = 0
        self._run_mark: tuple[int, int, dict[str, int]] = (0, 0, {})
        self._run_chars = MAX_RUN_CHARS
        self._read_up_to = 0  # nothing is skipped before this line
        self._in_place: dict[str, int] = {}  # number of computations in place, by name
        self._is_elided = False
        self._mark_end()

    def _mark_end(self) -> None:
        cursor = self._cursor
        self.last_line = max(1, cursor.line - (cursor.text[cursor.position - 1] == "\n"))
        self.end_bytes = cursor.bytes_before

    def read(self) -> None:
        while self._skip_blank():
            if not (self._lines() or self._item()):
                break
        else:
            if self._open is not None:
                name = self._open.computation.name
                self._module.note("HI002", f"the text ends inside computation {name}", self._cursor.line - 1, name)
        if self._open is not None:
            self._open.computation.is_truncated = True
            self._close(self._open)
        self._builder.finish(self.last_line)
        if self._is_elided:
            self._module.problems.drop(_OF_LEFT_OUT_LINES)

    def _close(self, opened: OpenComputation) -> None:
        self._builder.end(opened)
        self._open = None
        self._mark_end()

    def _skip_blank(self) -> bool:
        """Move past blank lines and comments, but not past a line's indentation. Return False at the end."""
        cursor = self._cursor
        if len(cursor.text) - cursor.position < MIN_LOADED_CHARS:
            cursor.more()
        while True:
            try:
                end = tokens.skip_space(cursor.text, cursor.position)
            except tokens.IncompleteError:
                if cursor.twice_as_much():
                    continue
                return True
            if end == len(cursor.text):
                cursor.advance(end)
                if cursor.more():
                    continue
                return False
            line_start = max(cursor.text.rfind("\n", 0, end) + 1, cursor.position)
            cursor.advance(line_start if cursor.text[line_start:end].isspace() else end)
            return True

    # -- the three ways -------------------------------------------------------------------------------------------------

    def _lines(self) -> bool:
        """Skip, pick or read whole lines. Return False if the next line is left to the grammar."""
        cursor, opened = self._cursor, self._open
        if cursor.text[cursor.position - 1] != "\n":
            return False
        if opened is not None:
            return (not self._reads_every_line and self._pick(opened)) or self._rows(opened)
        if self._seen_entry:
            return False
        if self._reads_every_line:
            return self._columns()
        end, line = self._selection.skip(cursor.text, cursor.position, cursor.line)
        if end == cursor.position or _ELISION_AHEAD.search(cursor.text, cursor.position - 1, end):
            return False
        cursor.advance(end, line - cursor.line)
        self._mark_end()
        return True

    def _columns(self) -> bool:
        """Read computations up to the end of the entry natively. Return False if the next one is left to the other ways."""
        if self._native is None:
            from hlo_inspect.hlo.read.native_runs import NativeRuns  # selective reading needs none of it

            self._native = NativeRuns(self._cursor, self._builder)
        taken = self._native.take()
        if taken:
            self._seen_entry = self._module.entry is not None and self._module.entry.is_entry
            self._unreadable_run = 0
            self._mark_end()
        return taken

    def _pick(self, opened: OpenComputation) -> bool:
        """Keep the wanted rows of the loaded lines of a computation. Return False if that is not possible."""
        cursor, builder = self._cursor, self._builder
        if cursor.line < self._read_up_to or opened.reads_all or _ENDS.match(cursor.text, cursor.position):
            return False
        stop = _STOP.search(cursor.text, cursor.position)
        closer = CLOSER.match(cursor.text, stop.end() - 1) if stop is not None and stop[1] else None
        if stop is not None:
            end = stop.start() + 1
        else:
            end = len(cursor.text) if cursor.is_final else cursor.text.rfind("\n", cursor.position, len(cursor.text) - 1) + 1
        lines = Span(cursor.text, cursor.position, end, cursor.line)
        is_clear = stop is None or closer is not None
        picked = self._selection.pick(lines) if is_clear and end > cursor.position else None
        if picked is None:
            self._read_up_to = cursor.line + max(1, cursor.text.count("\n", cursor.position, end))
            return False
        self._selection.note(opened.computation.name, *lines[:3])
        cursor.advance(end, builder.take_picked(opened, picked, lines))
        if closer is not None:
            cursor.advance(closer.end())
            self._close(opened)
        return True

    def _rows(self, opened: OpenComputation) -> bool:
        """Read the lines at the cursor that are as printers write them. Return False if the next line is not.

        Lines that fail are tried again with fewer of them.
        """
        cursor = self._cursor
        if cursor.text.startswith("}", cursor.position):
            return False
        while True:
            rows = find_rows(cursor.text, cursor.position, cursor.position + self._run_chars, is_final=cursor.is_final)
            if rows is not None and self._builder.take_rows(opened, rows, cursor.line, is_printed=True):
                break
            if self._run_chars <= MIN_RUN_CHARS:
                return False
            self._run_chars = max(MIN_RUN_CHARS, self._run_chars // 8)
        self._run_chars = min(MAX_RUN_CHARS, 2 * self._run_chars)
        self._unreadable_run = 0
        cursor.advance(rows.end, len(rows.names))
        self._mark_end()
        return True

    def _item(self) -> bool:
        """Read the next item by the grammar. Return False if the module ends before it."""
        cursor = self._cursor
        elision = _ELISION.match(cursor.text, cursor.position)
        if elision is not None and not (self._seen_entry and self._open is None):
            return self._pass_elision(elision.end())
        while True:
            try:
                return self._read_between_computations() if self._open is None else self._read_in_computation(self._open)
            except tokens.IncompleteError as error:
                if not cursor.is_final and (cursor.twice_as_much() or cursor.is_final):
                    continue
                fault: tokens.ScanError = error
            except tokens.ScanError as error:
                fault = error
            if self._open is not None:
                return self._pass_unreadable(fault.message, max(fault.position, cursor.position))
            return not self._seen_entry and (
                self._ends_here() or self._pass_unreadable("expected a computation", cursor.position)
            )

    def _pass_elision(self, end: int) -> bool:
        """Move past a line of dots, which stands for lines left out: the module is truncated there."""
        cursor, name = self._cursor, None
        if self._open is not None:
            self._open.computation.is_truncated = True
            name = self._open.computation.name
        self._is_elided = True
        self._module.note("HI002", "dots stand for lines that are left out", cursor.line, name)
        cursor.advance(end)
        return True

    # -- items ----------------------------------------------------------------------------------------------------------

    def _read_between_computations(self) -> bool:
        """Read a table or the first line of a computation. Raise ScanError if there is neither."""
        cursor = self._cursor
        table = TABLE.match(cursor.text, cursor.position)
        if table is not None:
            if _REST_IS_BLANK.match(cursor.text, table.end()) and cursor.twice_as_much(sys.maxsize):
                return True
            self._module.frames.add(table[0])
            cursor.advance(table.end())
            self._mark_end()
            return True
        if HEADER.match(cursor.text, cursor.position):
            return False
        start = tokens.skip_space(cursor.text, cursor.position)
        name, is_entry, end = parser.parse_first_line(cursor.text, start)
        signature = cursor.text[start:end]
        if self._seen_entry or not name:  # other text may follow the entry: an instruction has to be there
            parser.parse_instruction(cursor.text, tokens.skip_space(cursor.text, end))
        line = cursor.line
        line_end = LINE_END.match(cursor.text, end)
        cursor.advance(line_end.end() if line_end else end)
        self._seen_entry = self._seen_entry or is_entry
        self._unreadable_run = 0
        self._open = self._builder.begin(name or f"(line {line})", line, is_entry=is_entry, signature=signature)
        return True

    def _read_in_computation(self, opened: OpenComputation) -> bool:
        """Read an instruction or the end of a computation. Raise ScanError if there is neither."""
        cursor = self._cursor
        cursor.advance(tokens.skip_space(cursor.text, cursor.position))
        start = cursor.position
        if cursor.text[start] == "}":
            closer = CLOSER.match(cursor.text, start)
            cursor.advance(closer.end() if closer is not None else parser.closer_end(cursor.text, start))
            self._close(opened)
            return True
        if HEADER.match(cursor.text, start) or parser.starts_computation(cursor.text, start):
            name = opened.computation.name
            self._module.note("HI002", f"computation {name} is not closed", cursor.line, name)
            self._close(opened)
            return True
        parsed = parser.parse_instruction(cursor.text, start, is_final=cursor.is_final)
        while tokens.skip_space(cursor.text, parsed.end) == len(cursor.text) and cursor.twice_as_much():
            # an attribute may follow
            start = cursor.position
            parsed = parser.parse_instruction(cursor.text, start, is_final=cursor.is_final)
        if self._module.heads.find(parsed.row[2]) is None:
            raise _shape_fault(cursor.text, start, parsed.row)
        for row in with_nested_operands(self._read_nested(parsed.row, cursor.line)):
            if not self._builder.take_rows(opened, of_row(row), cursor.line):
                raise _shape_fault(cursor.text, start, row)
        self._unreadable_run = 0
        cursor.advance(parsed.end)
        if parsed.fault is not None:
            self._pass_unreadable(parsed.fault.message, max(parsed.fault.position, parsed.end), is_kept=True)
        return True

    def _read_nested(self, row: Row, line: int, depth: int = 0) -> Row:
        """Read the computations in place in a row, and return the row with their names.

        They are read before the row, as callees precede callers elsewhere. `depth` computations in place enclose the row.
        """
        nested = list(nested_computations(row, line))
        if depth <= MAX_DEPTH:
            names = [self._read_in_place(computation, depth + 1) for computation in nested]
            return with_names(row, nested, names) if nested else row
        for computation in nested:
            message = f"{computation.name} is nested in more than {MAX_DEPTH} computations"
            self._note_unreadable(message, computation.line, None, computation.text.count("\n") + 1)
            self._note_unread(computation.text, computation.line)
        return row

    def _read_in_place(self, nested: NestedComputation, depth: int) -> str:
        """Read a computation in place and return its name."""
        name, text, line, _, _ = nested
        count = self._in_place[name] = self._in_place.get(name, 0) + 1
        if count > 1 or name in self._module.computations:  # instructions of two computations may have one name
            name = f"{name}-{count}"
        opened = self._builder.begin(name, line, is_entry=False, in_place=True)
        position = tokens.skip_space(text, 0)
        item_line, counted = line, 0
        while position < len(text):
            item_line, counted = item_line + text.count("\n", counted, position), position
            try:
                parsed = parser.parse_instruction(text, position)
            except tokens.ScanError as error:
                self._note_unreadable(error.message, item_line, None, text.count("\n", position) + 1)
                self._note_unread(text[position:], item_line)
                break
            for row in with_nested_operands(self._read_nested(parsed.row, item_line, depth)):
                if not self._builder.take_rows(opened, of_row(row), item_line):
                    self._note_unreadable(_shape_fault(text, position, row).message, item_line, None, 1)
                    self._note_unread(f" {row[2]}({row[3]}", item_line)
            position = tokens.skip_space(text, parsed.end)
        self._builder.end(opened)
        return name

    def _ends_here(self) -> bool:
        """Return True, and move past it, if the text ends in the first line of a computation."""
        cursor = self._cursor
        if not _CUT_FIRST_LINE.match(cursor.text, cursor.position) or cursor.more():
            return False
        self._module.note("HI002", "the text ends in the first line of a computation", cursor.line)
        cursor.advance(len(cursor.text))
        return True

    def _pass_unreadable(self, message: str, position: int, *, is_kept: bool = False) -> bool:
        """Pass and count the line at `position` and the lines that only continue it.

        Return False if the module counts as truncated before them. If the instruction `is_kept`, only its attributes are
        unreadable.
        """
        cursor, module = self._cursor, self._module
        start_line = cursor.line
        if self._unreadable_run == 0:
            self._run_mark = (start_line, module.unparsed_lines, dict(module.unread))
        if position >= len(cursor.text):  # the end of the text, not the line after it
            position = max(cursor.position, len(cursor.text.rstrip()))
        if not is_kept:
            self._note_unread(cursor.text[cursor.position : position], start_line)
        cursor.advance(position)
        line, column = cursor.line, cursor.column()
        is_end = False
        while not is_end:
            line_start, line_number = cursor.text.rfind("\n", 0, cursor.position) + 1, cursor.line
            cursor.next_line()
            is_cut = not is_kept and _WITHOUT_OPCODE.match(cursor.text, line_start) is not None
            if not is_kept:
                self._note_unread(cursor.text[line_start : cursor.position], line_number)
            is_end = cursor.position >= len(cursor.text) and not cursor.more()
            if is_cut and not is_end:  # at its end the text is truncated
                module.unread.setdefault(CUT_ROW, line_number)
            is_end = is_end or cursor.text[cursor.position] in "}\n"
            is_end = is_end or tokens.FRESH_LINE.match(cursor.text, cursor.position) is not None
        passed = cursor.line - start_line
        self._note_unreadable(message, line, column, passed)
        self._unreadable_run += 0 if is_kept else passed
        if self._unreadable_run < MAX_UNREADABLE_RUN:
            return True
        first, module.unparsed_lines, module.unread = self._run_mark
        module.problems.drop_from(UNREADABLE, first)
        inside = self._open.computation.name if self._open is not None else None
        module.note("HI002", "the module is truncated here: the next text is not HLO", first, inside)
        return False

    def _note_unread(self, text: str, line: int) -> None:
        """Note the words of text, from `line` on, of which no instruction is kept."""
        unread = self._module.unread
        unread.setdefault("", line)
        if self._open is not None and self._open.computation.reads is not None:
            self._open.computation.reads.known = False  # the line may read any parameter
        for word in _WORD.finditer(text):
            unread.setdefault(word[1], line + text.count("\n", 0, word.start()))

    def _note_unreadable(self, message: str, line: int, column: int | None, lines: int) -> None:
        self._module.unparsed_lines += lines
        self._module.problems.add(Problem(UNREADABLE, message, self._module.location(line, column)))


def _shape_fault(text: str, start: int, row: Row) -> tokens.ScanError:
    """Return the fault in the shape of the instruction at `start`."""
    shape = row[2].rpartition(" ")[0]
    try:
        parse_shape(shape)
    except ShapeError as error:
        shape_start = text.find(shape, text.index("=", start))
        return tokens.ScanError(str(error), shape_start + error.position if shape_start >= 0 else start)
    return tokens.ScanError("expected a shape", start)
