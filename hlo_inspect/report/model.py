"""The report: facts, tables, findings and notes as plain data.

A pass gives a `Section`; a `Report` is the sections of one command about one module. What comes after it (terminal, JSON, CSV,
Markdown, `check`) reads these objects and nothing else. Values are raw: bytes are integers of bytes, unknown is `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hlo_inspect.errors import Location, UsageError

Value = int | float | bool | str | None
Row = tuple[Value, ...]
Unit = Literal["text", "count", "bytes", "bool", "flops", "seconds", "number", "flops_per_s", "bytes_per_s"]
Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # most severe first


@dataclass(frozen=True, slots=True)
class FactSpec:
    """What a pass promises about a fact.

    `name` is dotted; a segment in angle brackets makes it a family (`opcode.<opcode>`): a member that does not occur is 0.
    `members` lists what the segment can be, and of a text fact of its own the values that it can have; `None` leaves it open.
    Scripts rely on these: names and units are never changed.
    """

    name: str
    unit: Unit
    meaning: str
    members: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A typed column.

    `summed` columns have a total. `detail` says how early a narrow terminal drops it (0: never, 9: only in CSV and JSON). In an
    `optional` column `None` means that there is no such thing, not that it is unknown. `get` takes the value from what a row is
    about, for `Table.of`; the columns of a finished table do not have it.
    """

    name: str
    unit: Unit = "text"
    summed: bool = False
    detail: int = 0
    optional: bool = False
    get: Callable[[Any], Value] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of raw values under typed columns.

    `others` is how many rows `top` folded into the last one; `page_rows` how many a page shows where the user does not say.
    A table with 0 page rows is always shown whole.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    others: int = 0
    page_rows: int = 20

    @classmethod
    def of(cls, name: str, title: str, columns: Iterable[Column], items: Iterable[Any], page_rows: int = 20) -> Table:
        """A table with a row for each item, whose values the `get` of each column takes from it."""
        columns = tuple(columns)
        getters = [column.get for column in columns if column.get is not None]
        rows = tuple([tuple([get(item) for get in getters]) for item in items])
        return cls(name, title, tuple(replace(column, get=None) for column in columns), rows, page_rows=page_rows)

    @property
    def total(self) -> Row | None:
        """One value per column: the sum of a summed column, `None` where a row's value is unknown and in other columns; no
        total at all where no column is summed.
        """
        if not any(column.summed for column in self.columns):
            return None
        return self._sums(self.rows)

    def _sums(self, rows: Iterable[Row]) -> Row:
        columns = zip(self.columns, zip(*rows, strict=True), strict=True) if rows else ((c, ()) for c in self.columns)
        return tuple(_sum(values) if column.summed else None for column, values in columns)

    def top(self, limit: int) -> Table:
        """The first `limit` rows, with the rest summed in one row labelled `[N others]`; 0 keeps all."""
        cut = len(self.rows) - limit
        if limit <= 0 or cut <= 0 or self.page_rows == 0:
            return self
        rest = (f"[{cut:,} others]", *self._sums(self.rows[limit:])[1:])
        return Table(self.name, self.title, self.columns, (*self.rows[:limit], rest), others=cut)


def _sum(values: tuple[Value, ...]) -> int | float | None:
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) if len(numbers) == len(values) else None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at: `rule` is a stable code (HI0xx reading, HI1xx donation and parameters, HI2xx collectives, …);
    `subject` the instruction or parameter it is about; `bytes_at_stake` orders findings of one severity.
    """

    rule: str
    severity: Severity
    message: str
    location: Location | None = None
    subject: str | None = None
    bytes_at_stake: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """What one pass answers.

    `tables` is read once, and only where the pass was asked for by its name; given a generator, they are made then. `notes` say
    why a fact is unknown: one line each that starts with its name.
    """

    facts: dict[str, Value]
    tables: Iterable[Table] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Input:
    """The text that a report is about: 1-based first line of the module in the input, its lines and bytes."""

    path: str
    first_line: int
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A text under a heading; `verbatim` where its line breaks and blanks have to stay, as in an example."""

    heading: str
    text: str
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found out about one module. `specs` gives the unit of every fact that its passes can give.

    A report that is about no module has a `title` instead of the module's name; `passages` are the texts of a page of
    documentation.
    """

    command: str
    input: Input
    facts: Mapping[str, Value]
    tables: tuple[Table, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    profile: str | None = None
    specs: tuple[FactSpec, ...] = ()
    title: str = ""
    passages: tuple[Passage, ...] = ()

    def table(self, name: str) -> Table:
        """The table of that name; `UsageError` lists the names there are."""
        for table in self.tables:
            if table.name == name:
                return table
        names = ", ".join(table.name for table in self.tables) or "none"
        raise UsageError(f"no table {name!r} in this report; there are: {names}")


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity, then by the bytes at stake, then as they came."""
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -f.bytes_at_stake))
