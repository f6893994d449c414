"""The text behind a module's header -> tables and computations.

The lines of each computation are handed to a `RegionCollector`. As XLA prints them they are read many at a time (`regions`,
`rows`), all others one by one (`grammar`); a line that neither can read is counted and becomes a problem with its place.
"""

from __future__ import annotations

import re

from hlo_inspect.hlo import grammar, rows, scan
from hlo_inspect.hlo.collect_regions import RegionCollector
from hlo_inspect.hlo.cursor import Cursor
from hlo_inspect.hlo.header import TABLE
from hlo_inspect.hlo.inline import Body, bodies, read_bodies
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.regions import MAX_CHARS, MIN_CHARS, find_region
from hlo_inspect.hlo.shape_text import ShapeError, parse_shape

MAX_UNREADABLE_RUN = 20
"""So many lines in a row that are no HLO: the module was cut off before them."""

MAX_ITEM_CHARS = 1 << 26

MODULE = re.compile(r"[ \t]*+HloModule(?![\w.\-])", re.ASCII)
LINE_END = re.compile(r"[ \t]*+\n")
_CLOSE = re.compile(r"\n\}")  # found twice as fast as with `str.find`
_CUT_START = re.compile(r"(?:ENTRY|%)[^\n]*+\n\Z")


class ModuleReader:
    """Reads what follows one header: tables and computations, up to what belongs to it no more."""

    def __init__(self, cursor: Cursor, collector: RegionCollector) -> None:
        self._cursor = cursor
        self._collector = collector
        self._seen_entry = False
        self._unreadable_run = 0
        self._run_mark = (0, 0)
        self._region_chars = MAX_CHARS
        self._inline: list[Body] = []
        self._mark_end()

    def _mark_end(self) -> None:
        self.last_line = max(1, self._cursor.line - (self._cursor.at_line_start()))
        self.end_bytes = self._cursor.bytes_before

    def read(self) -> None:
        cursor = self._cursor
        while self._skip_blank():
            if self._region():
                continue
            table = self._table()
            if table is not None:
                self._collector.module.frames.add(table)
                self._mark_end()
                continue
            skippable = 0 if self._seen_entry else self._collector.skippable(cursor.text, cursor.position, cursor.line)
            if skippable > cursor.position:
                cursor.advance(skippable)
                self._mark_end()
            elif MODULE.match(cursor.text, cursor.position) or (not self._computation() and not self._foreign_line()):
                return

    def _region(self) -> bool:
        """Reads the computations at the cursor that are as printers write them; false where there are none.

        Where they are not, it is tried again with fewer.
        """
        cursor, collector = self._cursor, self._collector
        if not collector.module.wants.reads_every_line or not cursor.at_line_start():
            return False
        if cursor.text.find("\n}", cursor.position) < 0:
            return False
        region = find_region(cursor.text, cursor.position, cursor.position + self._region_chars)
        while region is None and self._region_chars > MIN_CHARS:
            self._region_chars = max(MIN_CHARS, self._region_chars // 8)
            region = find_region(cursor.text, cursor.position, cursor.position + self._region_chars)
        if region is None or not collector.region(region, cursor.line, cursor.text):
            return False
        self._region_chars = min(MAX_CHARS, 2 * self._region_chars)
        self._seen_entry = self._seen_entry or region.has_entry
        cursor.advance(region.end, region.lines)
        self._unreadable_run = 0
        self._mark_end()
        return True

    def _skip_blank(self) -> bool:
        """Moves past blank lines and comments; false at the end of the input."""
        cursor = self._cursor
        while True:
            try:
                end = scan.skip_space(cursor.text, cursor.position)
            except scan.IncompleteError:
                if cursor.remaining() <= MAX_ITEM_CHARS and cursor.more():
                    continue
                return True
            cursor.advance(end)
            if end < len(cursor.text):
                return True
            if not cursor.more():
                return False

    def _table(self) -> str | None:
        cursor = self._cursor
        while match := TABLE.match(cursor.text, cursor.position):
            if match.end() == len(cursor.text) and cursor.more():
                continue
            cursor.advance(match.end())
            return match[0]
        return None

    def _foreign_line(self) -> bool:
        """Passes a line between computations that is none of the module's; false once the module has ended before it."""
        if self._seen_entry:
            return False
        return self._unreadable("expected a computation", self._cursor.position)

    def _unreadable(self, message: str, position: int) -> bool:
        """Counts the line at `position` and the lines that only continue it; false when the module is taken to end before
        them.
        """
        cursor, collector = self._cursor, self._collector
        start_line = cursor.line
        if self._unreadable_run == 0:
            self._run_mark = (start_line, collector.module.unparsed_lines)
        if position >= len(cursor.text):  # the end of what stands there, not the line after it
            position = max(cursor.position, len(cursor.text.rstrip()))
        cursor.advance(position)
        location = collector.module.location(cursor.line, cursor.column())
        cursor.next_line()
        while cursor.remaining() or cursor.more():
            if cursor.text[cursor.position] in "}\n" or scan.FRESH_LINE.match(cursor.text, cursor.position):
                break
            cursor.next_line()
        passed = cursor.line - start_line
        self._unreadable_run += passed
        collector.unreadable(message, location, passed)
        if self._unreadable_run < MAX_UNREADABLE_RUN:
            return True
        first, collector.module.unparsed_lines = self._run_mark
        collector.drop_unreadable(first)
        collector.problem("HI002", "the module is cut off here: what follows is no HLO", first)
        return False

    def _computation(self) -> bool:
        """Reads the computation at the cursor, if there is one."""
        cursor = self._cursor
        line = cursor.line
        while True:
            try:
                name, is_entry, end = self._computation_start()
                break
            except scan.ScanError as error:
                if isinstance(error, scan.IncompleteError) and cursor.remaining() <= MAX_ITEM_CHARS and cursor.more():
                    continue
                if self._seen_entry or not _CUT_START.match(cursor.text, cursor.position) or cursor.more():
                    return False
                self._collector.problem("HI002", "the text ends at the start of a computation", line)
                cursor.advance(len(cursor.text))
                return True
        line_end = LINE_END.match(cursor.text, end)
        cursor.advance(line_end.end() if line_end else end)
        self._seen_entry = self._seen_entry or is_entry
        self._unreadable_run = 0
        computation = self._collector.begin(name or f"(line {line})", line, is_entry=is_entry)
        closed = self._body(computation)
        computation.is_cut_off = not closed
        self._collector.end(computation)
        read_bodies(self._inline, self._collector)
        self._mark_end()
        if not closed:
            self._seen_entry = True  # nothing after a cut belongs to the module
        return True

    def _computation_start(self) -> tuple[str, bool, int]:
        """Name of the computation at the cursor, whether it is the entry, and the index of its first instruction.

        Behind the entry stands other text too: there, and where the name is missing, an instruction has to follow.
        """
        text, position = self._cursor.text, self._cursor.position
        fast = rows.COMPUTATION.match(text, position)
        start = (fast[2], bool(fast[1]), fast.end()) if fast else grammar.scan_computation(text, position)
        if self._seen_entry or not start[0]:
            grammar.scan_instruction(text, scan.skip_space(text, start[2]))
        return start

    def _body(self, computation: Computation) -> bool:
        """Reads up to the closing brace; false when the text ends or turns into something else before it."""
        cursor, collector = self._cursor, self._collector
        while True:
            found = _CLOSE.search(cursor.text, cursor.position - 1)
            close = found.start() + 1 if found else 0
            closer = rows.CLOSER.match(cursor.text, close) if close else None
            end = close or self._last_instruction()
            if not close and end == cursor.position:
                if cursor.more():
                    continue
                end = len(cursor.text)
            if close and not closer:
                end = cursor.text.find("\n", close) + 1
            if (close and not closer) or not cursor.at_line_start() or not collector.lines(computation, cursor, end):
                outcome = self._one_by_one(computation, end)
                if outcome is not None:
                    return outcome
            elif closer:
                cursor.advance(closer.end())
                return True
            if cursor.position >= len(cursor.text) and not cursor.more():
                return self._cut_off(computation)

    def _last_instruction(self) -> int:
        """The start of the last instruction at hand, which may go on behind the text; the text's end where it is far off."""
        cursor = self._cursor
        line_end = len(cursor.text) - 1
        for _ in range(MAX_UNREADABLE_RUN):
            line_end = cursor.text.rfind("\n", cursor.position - 1, line_end)
            if line_end < 0:
                break
            if scan.FRESH_LINE.match(cursor.text, line_end + 1):
                return line_end + 1
        return len(cursor.text)

    def _cut_off(self, computation: Computation) -> bool:
        self._collector.problem("HI002", f"the text ends inside computation {computation.name}", self._cursor.line - 1)
        return False

    def _one_by_one(self, computation: Computation, end: int) -> bool | None:
        """Reads item by item up to `end`, or further where an item reaches further.

        True: the computation is closed; false: it is cut off; `None`: `end` is reached.
        """
        cursor = self._cursor
        end_line = cursor.line + cursor.text.count("\n", cursor.position, end)
        while cursor.line < end_line or not cursor.at_line_start():
            try:
                outcome = self._item(computation)
            except scan.IncompleteError as error:
                if cursor.remaining() <= MAX_ITEM_CHARS and cursor.more():
                    continue
                outcome = None if self._unreadable(error.message, error.position) else False
            except scan.ScanError as error:
                outcome = None if self._unreadable(error.message, max(error.position, cursor.position)) else False
            if outcome is not None:
                return outcome
            if cursor.position >= len(cursor.text) and not cursor.more():
                return None
        return None

    def _item(self, computation: Computation) -> bool | None:
        cursor = self._cursor
        row = rows.find_row(cursor.text, cursor.position) if cursor.at_line_start() else None
        if row is not None and self._collector.row(computation, row[0], cursor.line):
            cursor.advance(row[1] + 1)
            self._unreadable_run = 0
            return None
        start = scan.skip_space(cursor.text, cursor.position)
        cursor.advance(start)
        if start == len(cursor.text):
            return None
        if cursor.text[start] == "}":
            cursor.advance(grammar.closer_end(cursor.text, start))
            return True
        if MODULE.match(cursor.text, start) or rows.COMPUTATION.match(cursor.text, start):
            self._collector.problem("HI002", f"computation {computation.name} is not closed", cursor.line)
            return True
        found, end = grammar.scan_instruction(cursor.text, start)
        while scan.skip_space(cursor.text, end) == len(cursor.text) and cursor.more():  # an attribute may follow
            found, end = grammar.scan_instruction(cursor.text, cursor.position)
        if not self._collector.row(computation, found, cursor.line):
            raise _shape_fault(cursor.text, cursor.position, found)
        self._inline += bodies(found, cursor.line)
        cursor.advance(end)
        self._unreadable_run = 0
        return None


def _shape_fault(text: str, start: int, row: rows.Row) -> scan.ScanError:
    """What is wrong with the shape of the instruction at `start`."""
    shape = row[2].rpartition(" ")[0]
    try:
        parse_shape(shape)
    except ShapeError as error:
        return scan.ScanError(str(error), text.index(shape, text.index("=", start)) + error.position)
    return scan.ScanError("expected a shape", start)
