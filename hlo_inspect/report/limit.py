"""Output of at most a number of characters: the option --max-chars, in all formats.

The output ends at a whole row, table, finding or module, so that it stays valid for the readers of its format. Rows of a table
that is cut are summed in `[N more]`. The last line says what is left out and which command shows it. Renderers get it
as `RenderOptions.left_out`; they write it in the way of their format.

Reports are read to the end, since the last line counts them. Those that surely have no room are not kept.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from typing import NamedTuple, TextIO

from hlo_inspect.errors import UsageError, printable
from hlo_inspect.report.cuts import Portion, ReportCuts
from hlo_inspect.report.faults import answers
from hlo_inspect.report.formats import ALL_FORMATS, CI_FORMATS, FORMATS
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import number_of

_LONGEST_COMMAND = 200
_NAMED_TABLES = 4
"""Tables that the last line names."""


class Limit(NamedTuple):
    """The most characters of an output, and the command line that prints it without a limit."""

    characters: int
    command: str

    @property
    def all(self) -> str:
        """The command in a last line, without control characters; words in place of a long one."""
        return printable(self.command) if len(self.command) <= _LONGEST_COMMAND else "the same command without --max-chars"

    def too_small(self, least: int) -> UsageError:
        """Return the error of a limit below the length of the shortest answer."""
        return UsageError(f"--max-chars {self.characters:,} is too small: the shortest answer has {least:,} characters")


class _FullError(OSError):
    """The limit of a stream is reached."""


class _LimitedStream(StringIO):
    """Stream that holds a number of characters and raises `_FullError` for more."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self._room = characters

    def write(self, text: str) -> int:
        self._room -= len(text)
        if self._room < 0:
            raise _FullError
        return super().write(text)


def render_limited(form: str, reports: Iterable[Report], stream: TextIO, options: RenderOptions, limit: Limit) -> None:
    """Write the reports in a format. Raise UsageError if even the shortest output is longer than the limit."""
    limited = _LimitedOutput(form, options, limit)
    limited.read(reports)
    stream.write(limited.text())


def limited_lines(lines: Iterable[str], limit: Limit, mark: str) -> list[str]:
    """Return the lines that have room; if others do not, the last one says so behind `mark`, which begins a comment.

    Raise UsageError if that line alone is longer than the limit.
    """
    kept: list[str] = []
    room, more = limit.characters, 0
    for line in chain.from_iterable(map(StringIO, lines)):  # of pieces with several lines too
        if more or len(line) > room:
            more += 1
        else:
            kept.append(line)
            room -= len(line)
    while more:
        last = f"{mark}left out: {number_of(more, 'line')}. All: {limit.all}\n"
        if len(last) <= room:
            return [*kept, last]
        if not kept:
            raise limit.too_small(len(last))
        room += len(kept.pop())
        more += 1
    return kept


class _LimitedOutput:
    """The reports that may have room, and the number of those `beyond` them."""

    def __init__(self, form: str, options: RenderOptions, limit: Limit) -> None:
        self._cuts = ReportCuts(form, options._replace(failed=self._note_failure))
        self._limit = limit
        self._failed = options.failed
        self._failures: set[tuple[object, str]] = set()
        self._kept: list[Report] = []
        self._beyond = 0

    def read(self, reports: Iterable[Report]) -> None:
        """Keep the reports until they are longer than the limit. Formats of CI put the worst findings of all reports first."""
        due, is_full = 1, False
        for report in answers(reports, self._cuts.prepared, self._note_failure):
            if is_full:
                self._beyond += 1
                continue
            self._kept.append(report)
            if len(self._kept) == due and self._cuts.form not in CI_FORMATS:
                due *= 2
                is_full = self._rendered(self._kept) is None

    def text(self) -> str:
        """Return the whole output if it has room, else its longest beginning that has, with the last line."""
        whole = self._rendered(self._kept) if not self._beyond else None
        if whole is not None:
            return whole
        portions = list(self._cuts.portions(self._kept))
        shortest = self._cut(portions, 0)
        if shortest is None:
            whole = self._cut(portions, 0, characters=sys.maxsize) or ""
            raise self._limit.too_small(len(whole))
        fits, too_many, text = 0, sum(portion.size for portion in portions) + 1, shortest
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            longer = self._cut(portions, middle)
            if longer is None:
                too_many = middle
            else:
                fits, text = middle, longer
        return text

    def _cut(self, portions: Sequence[Portion], items: int, characters: int | None = None) -> str | None:
        """Return the output with the first items of the portions."""
        counts = _distributed(portions, items)
        tables = [portion.table for portion, count in counts if portion.table and count < portion.size]
        has_tables = self._cuts.form in FORMATS and self._cuts.options.table is None
        hint = f". One table: add --table {tables[0]}" if tables and has_tables else ""
        left_out = f"left out: {', '.join(_missing(counts, self._beyond))}. All: {self._limit.all}{hint}"
        return self._rendered(self._cuts.cut(self._kept, counts), printable(left_out), characters)

    def _rendered(self, reports: Sequence[Report], left_out: str = "", characters: int | None = None) -> str | None:
        """Return the output; None if it is longer than the limit."""
        stream = _LimitedStream(self._limit.characters if characters is None else characters)
        try:
            ALL_FORMATS[self._cuts.form](reports, stream, self._cuts.options._replace(left_out=left_out))
        except _FullError:
            return None
        return stream.getvalue()

    def _note_failure(self, report: Report, error: Exception) -> None:
        """Report a failure once: a report is rendered several times."""
        key = (report.input, report.module_name)
        if self._failed is None:
            raise error
        if key not in self._failures:
            self._failures.add(key)
            self._failed(report, error)


def _distributed(portions: Iterable[Portion], items: int) -> list[tuple[Portion, int]]:
    """Return the portions with their numbers of items, if the first ones are filled first. Those of one thing are joined."""
    counts: dict[tuple[int, str, str], tuple[Portion, int]] = {}
    for portion in portions:
        count = min(portion.size, items)
        items -= count
        key = portion.report, portion.kind, portion.table
        joined, before = counts.get(key, (portion._replace(size=0), 0))
        counts[key] = joined._replace(size=joined.size + portion.size), before + count
    return list(counts.values())


def _missing(counts: Sequence[tuple[Portion, int]], beyond: int) -> Iterator[str]:
    """Yield the parts that an output lacks: rows, tables, other items by kind, modules."""
    absent = {portion.report for portion, count in counts if portion.kind == "module" and not count}
    tables: dict[str, None] = {}
    others: Counter[str] = Counter()
    for portion, count in counts:
        if portion.report in absent or count == portion.size:
            continue
        if portion.kind != "row":
            others[portion.kind] += portion.size - count
        elif count or portion.least:
            yield f"{number_of(portion.size - count, 'row')} of {portion.table}"
        else:
            tables[portion.table] = None
    if tables:
        more = f" and {len(tables) - _NAMED_TABLES} more" if len(tables) > _NAMED_TABLES else ""
        yield f"table{'s' if len(tables) > 1 else ''} {', '.join(list(tables)[:_NAMED_TABLES])}{more}"
    yield from (number_of(count, kind) for kind, count in others.items())
    if beyond or absent:
        yield number_of(beyond + len(absent), "module")
