"""From text to workload: header, number of rows, rows.

Text that a client misreads becomes a problem with its place.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from functools import cached_property

from hlo_inspect.errors import InputError, Location
from hlo_inspect.figure import Quantity, unknown
from hlo_inspect.hlo.input.source import Source
from hlo_inspect.hlo.module import TRUNCATED, Problem, Problems
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.workloads.row import CUSTOMIZED, FIELDS, WorkloadRow, field_column, placed_fields, read_row
from hlo_inspect.workloads.workload_header import WorkloadHeader, parse_header

ROW_COUNT, MALFORMED_ROW, HEADER = "HI601", "HI602", "HI605"

_KEPT_LINES = 1 << 16
"""The largest number of different lines that are cached; most files have some twenty."""
_COUNT = lazy_pattern(r"[0-9]{1,18}", re.ASCII)
_INVALID_UTF8 = "HI005"


@dataclass(slots=True)
class EqualRows:
    """The count of equal rows, and the line of the first."""

    count: int
    line: int

    def sum_of(self, number: int | None) -> Quantity:
        """Return the sum of a field of these rows; unknown if it cannot be read."""
        return unknown(unreadable_row(self.line)) if number is None else number * self.count


def unreadable_row(line: int) -> str:
    """Return why a sum over rows is unknown."""
    return f"the row on line {line} cannot be read whole"


@dataclass
class Workload:
    """The content of a workload file.

    `stated_rows` is the number on its second line. Equal rows are one object; `lines_of_rows` has the line of each. `lines` and
    `bytes` are those of the file. `known_lines` are rows by their text, of large files the first.
    """

    path: str
    header: WorkloadHeader
    stated_rows: int | None = None
    rows: list[WorkloadRow] = field(default_factory=list)
    lines_of_rows: array[int] = field(default_factory=lambda: array("Q"))
    problems: Problems = field(default_factory=Problems)
    known_lines: dict[str, WorkloadRow] = field(default_factory=dict)
    lines: int = 0
    bytes: int = 0

    @cached_property
    def distinct(self) -> dict[WorkloadRow, EqualRows]:
        """The different rows, in the order of their first places."""
        rows: dict[WorkloadRow, EqualRows] = {}
        for row, line in zip(self.rows, self.lines_of_rows, strict=True):
            equal = rows.get(row)
            if equal is None:
                rows[row] = EqualRows(1, line)
            else:
                equal.count += 1
        return rows

    def column_of(self, row: WorkloadRow, field_index: int) -> int | None:
        """Return the 1-based column of a field of a row, None if its text is not cached."""
        text = next((text for text, cached in self.known_lines.items() if cached == row), None)
        return field_column(text, field_index) if text is not None else None

    def note(self, code: str, message: str, line: int | None, column: int | None = None, subject: str | None = None) -> None:
        self.problems.add(Problem(code, message, Location(self.path, line, column), subject))


def read_workload(source: Source) -> Workload:
    """Read a source that is a workload (`foreign_text.is_workload`). Raise InputError if it cannot be read."""
    reader = _Reader(source)
    for piece in source.pieces(lambda: reader.line + 1):
        for text in piece[:-1].split("\n"):
            reader.take(text)
    return reader.finish()


class _Reader:
    """Reader of the lines in order; `line` counts them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._workload: Workload | None = None
        self._seen_count = False
        self._with_policy = False
        self._short: tuple[int, str] | None = None  # line and name of the last row that ends too early
        self._after_rows: int | None = None
        self.line = 0

    def take(self, text: str) -> None:
        self.line += 1
        row = self._workload.known_lines.get(text) if self._workload is not None else None
        if self._workload is None:
            self._take_header(text)
        elif row is not None:
            self._keep(self._workload, row)
        elif text.isspace() or not text:
            self._note_blank(self._workload)
        elif not self._seen_count:
            self._take_count(self._workload, text)
        else:
            self._take_row(self._workload, text)

    def _take_header(self, text: str) -> None:
        if not text or text.isspace():
            return
        header = parse_header(self.line, text)
        self._workload = workload = Workload(self._source.name, header)
        self._with_policy = header.policy == CUSTOMIZED
        for fault in header.faults:
            workload.note(HEADER, fault.message, self.line, fault.column)
        if self.line > 1:
            workload.note(HEADER, "there are blank lines before the first line: SimAI reads no policy", 1)

    def _note_blank(self, workload: Workload) -> None:
        if not self._seen_count and workload.header.dialect == "simai":
            workload.note(HEADER, "there is a blank line where SimAI reads the number of rows", self.line)

    def _take_count(self, workload: Workload, text: str) -> None:
        self._seen_count = True
        fields = placed_fields(text)
        if len(fields) == 1 and _COUNT.fullmatch(fields[0][0]):
            workload.stated_rows = int(fields[0][0])
            return
        workload.note(ROW_COUNT, "the number of rows is missing: clients read it from this line", self.line, 1)
        if len(fields) > 1:
            self._take_row(workload, text)

    def _take_row(self, workload: Workload, text: str) -> None:
        row_and_faults = read_row(text, with_policy=self._with_policy)
        if row_and_faults is None and workload.stated_rows is not None and len(workload.rows) >= workload.stated_rows:
            self._after_rows = self._after_rows or self.line  # lines after the rows are not read
            return
        if row_and_faults is None:
            workload.note(MALFORMED_ROW, "no row: a name, a number and ten more fields", self.line, 1)
            self._keep(workload, _UNREADABLE)
            self._short = (self.line, _UNREADABLE.name)
            return
        row, faults = row_and_faults
        if not faults and len(workload.known_lines) < _KEPT_LINES:
            workload.known_lines[text] = row
        for fault in faults:
            workload.note(MALFORMED_ROW, fault.message, self.line, fault.column, row.name)
        self._keep(workload, row)
        if row.update_time is None:
            self._short = (self.line, row.name)

    def _keep(self, workload: Workload, row: WorkloadRow) -> None:
        workload.rows.append(row)
        workload.lines_of_rows.append(self.line)

    def finish(self) -> Workload:
        """Return the workload with `lines` and `bytes`, and note the problems that only its end shows."""
        workload, source = self._workload, self._source
        if workload is None:
            raise InputError("is empty", Location(source.name))
        workload.lines, workload.bytes = self.line, source.bytes_read
        if not self._seen_count:
            workload.note(TRUNCATED, "the file ends before the number of rows", self.line)
        elif self._short is not None and self._short[0] == self.line and not source.ends_with_line:
            workload.note(TRUNCATED, "the file ends inside a row", self.line, None, self._short[1])
        if source.invalid_lines:
            workload.note(_INVALID_UTF8, source.invalid_message, source.first_invalid_line)
        self._note_rows(workload)
        return workload

    def _note_rows(self, workload: Workload) -> None:
        stated, rows = workload.stated_rows, len(workload.rows)
        if stated is not None and rows < stated:
            message = f"{rows:,} of {stated:,} rows: clients repeat the numbers of the last one {stated - rows:,} times"
            workload.note(ROW_COUNT, message, self.line, 1)
        elif stated is not None and rows > stated:
            message = f"{rows:,} rows instead of {stated:,}: clients leave out the last {rows - stated:,}"
            workload.note(ROW_COUNT, message, workload.lines_of_rows[stated], 1)
        if self._after_rows is not None:
            workload.note(MALFORMED_ROW, "the rows end here; no client reads the rest", self._after_rows, 1)


_UNREADABLE = WorkloadRow("(unreadable)", *[None] * (FIELDS - 1))
