"""The report: facts, tables, findings and notes as plain data.

A pass gives a `Section`; a `Report` is the sections of one command about one module. What comes after it (terminal, JSON, CSV,
Markdown, `check`) reads these objects and nothing else. Values are raw: bytes are integers of bytes, unknown is `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from hlo_inspect.errors import Location, MissingExtraError, UsageError, did_you_mean
from hlo_inspect.report.rows import RowsOnDemand
from hlo_inspect.report.shown import Shown

Value = int | float | bool | str | None
Row = tuple[Value, ...]
Unit = Literal["text", "count", "bytes", "bool", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]
Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # most severe first

SCHEMA_VERSION = 1
"""The schema of JSON reports, as they are written and read."""

LOWER_BOUND = ".lower_bound"
"""What the name of a fact ends in that is a lower bound of the fact before it, which is `None` then."""

PART_NOTE = "a part of a module"
"""How the one note begins that says why facts about a whole module are unknown where only lines of it are quoted."""


class FactSpec(NamedTuple):
    """What a pass promises about a fact.

    `name` is dotted; a segment in angle brackets makes it a family (`opcode.<opcode>`): a member that does not occur is 0.
    `members` lists what the segment can be, and of a text fact of its own the values that it can have; `None` leaves it open.
    `absent` is what `None` means where no note gives a reason: that there is no such thing. Scripts rely on these: names and
    units are never changed.
    """

    name: str
    unit: Unit
    meaning: str
    members: frozenset[str] | None = None
    absent: str = ""


class Column(NamedTuple):
    """A typed column.

    `summed` columns have a total. `detail` says how early a narrow terminal drops it (0: never, 9: only in CSV and JSON). In an
    `optional` column `None` means that there is no such thing, not that it is unknown. `get` takes the value from what a row
    is about, for `Table.of`. `least` takes a lower bound of the value in the same way, for a second column, which is `bound_of`
    the first: a page has one cell for both, `>= 4` where the value is unknown. The columns of a finished table have neither.
    `width` is how many characters a text usually has, where that is not 16: it decides with `detail` for which columns there is
    room. A page shows the files that a column holds (`is_file`, or called `source`) relative to what they have in common, and
    with -v a column that is `only_verbose`. The numbers of a column that is `signed` are differences, and have a plus sign too.

    A page draws the shares of a column with a `bar`: `alone` each from the left, `stacked` each from where the one above ends.
    Its heading is made of `page_name` where that says more than the name, which scripts use.

    Where each row has a unit of its own, `unit_of` is the column that holds it, and `like` one whose text names a value in the
    multiple of the unit to print it in.
    """

    name: str
    unit: Unit = "text"
    summed: bool = False
    detail: int = 0
    optional: bool = False
    bound_of: str = ""
    width: int = 0
    unit_of: str = ""
    like: str = ""
    is_file: bool = False
    only_verbose: bool = False
    signed: bool = False
    bar: Literal["", "alone", "stacked"] = ""
    page_name: str = ""
    get: Callable[[Any], Value] | None = None
    least: Callable[[Any], Value] | None = None

    def lower_bound(self) -> Column:
        """The column `<name>_lower_bound` of this one; its values equal those of this one where they are known."""
        name = f"{self.name}_lower_bound"
        return Column(name, self.unit, self.summed, 9, optional=True, bound_of=self.name, get=self.least)


def with_bounds(columns: Iterable[Column]) -> Iterator[Column]:
    """The columns, one that has lower bounds followed by that of these."""
    for column in columns:
        yield column._replace(least=None)
        if column.least is not None:
            yield column.lower_bound()


def _without_getter(column: Column) -> Column:
    """The column of a finished table. Tables of all modules have the same few; what gets their values may hold a module."""
    return _shared(column._replace(get=None))


@lru_cache(maxsize=1 << 10)
def _shared(column: Column) -> Column:
    return column


class LeftOut(NamedTuple):
    """How many rows a filter hides, the sum of each column over them, and the lower bounds of these sums."""

    rows: int
    sums: Row
    at_least: Row


@dataclass(frozen=True, slots=True, repr=False)
class Table(Shown):
    """Rows of raw values under typed columns.

    `others` is how many rows `top` folded into the last one, and `others_at_least` the lower bounds of its sums; `page_rows` is
    how many a page shows where the user does not say. A table with 0 page rows is always shown whole. Pages leave out a table
    that is not `on_page`, without -v also one that is `only_verbose`, and show the table `page_as` of the same report in place
    of this one, except where the user asks for single rows. They draw one that `is_curve`, except where it is asked for by its
    name. `left_out` are the rows that a filter hides: they are in no total. A table that `lacks_rows` is of a text that is cut
    off: on a page its totals are lower bounds.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    others: int = 0
    others_at_least: Row = ()
    left_out: LeftOut | None = None
    page_rows: int = 20
    page_as: str = ""
    on_page: bool = True
    only_verbose: bool = False
    is_curve: bool = False
    lacks_rows: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        columns: Iterable[Column],
        items: Iterable[Any],
        *,
        page_rows: int = 20,
        page_as: str = "",
        on_page: bool = True,
        is_curve: bool = False,
    ) -> Table:
        """Return a table with a row for each item. The `get` of each column takes its value from the item."""
        columns = tuple(with_bounds(columns))
        rows = RowsOnDemand(list(items), [column.get for column in columns if column.get is not None])
        shown = tuple(map(_without_getter, columns))
        return cls(name, title, shown, rows, page_rows=page_rows, page_as=page_as, on_page=on_page, is_curve=is_curve)

    def made(self) -> Table:
        """The table with all of its rows, which hold values and nothing else."""
        return replace(self, rows=self.rows.made()) if isinstance(self.rows, RowsOnDemand) else self

    @property
    def total(self) -> Row | None:
        """One value per column: the sum of a summed column, `None` where a row's value is unknown and in other columns; no
        total at all where no column is summed.
        """
        if not any(column.summed for column in self.columns):
            return None
        return self._sums(self.rows)

    @property
    def total_on_page(self) -> Row | None:
        """The total, without the sums of a table that lacks rows: they are no more than `total_at_least`."""
        total = self.total
        return (None,) * len(total) if total and self.lacks_rows else total

    @property
    def total_at_least(self) -> Row:
        """A lower bound of the total of each summed column; `None` in other columns and where no value is known."""
        return self._lower_bounds(self._rows_at_least)

    @property
    def _rows_at_least(self) -> Sequence[Row]:
        """The rows, of which that of the others has the lower bounds of its sums."""
        return (*self.rows[:-1], self.others_at_least) if self.others else self.rows

    @property
    def bound_columns(self) -> dict[int, int]:
        """The positions of the columns that another column holds lower bounds of, each with the position of that one."""
        positions = {column.name: at for at, column in enumerate(self.columns)}
        return {positions[column.bound_of]: at for at, column in enumerate(self.columns) if column.bound_of in positions}

    def records(self) -> list[dict[str, Value]]:
        """The rows as dicts by the names of the columns: bytes are integers, unknown is `None`."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas has no types where it is not installed
        """The rows as a `pandas.DataFrame` with nullable columns; `MissingExtraError` where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("Table.to_pandas needs the package pandas: pip install pandas") from error
        names = [column.name for column in self.columns]
        return pandas.DataFrame.from_records(list(self.rows), columns=names).convert_dtypes()

    def _sums(self, rows: Sequence[Row]) -> Row:
        """The sums of the rows; in a column of lower bounds known values count where a row has no bound."""
        lower = self._lower_bounds(rows) if any(column.bound_of for column in self.columns) else ()
        return tuple(
            lower[at] if column.bound_of else _sum([row[at] for row in rows]) if column.summed else None
            for at, column in enumerate(self.columns)
        )

    def _lower_bounds(self, rows: Sequence[Row]) -> Row:
        exact_or_bound = {at: (at, bound) for at, bound in self.bound_columns.items()}
        exact_or_bound |= {bound: both for both in exact_or_bound.values() for bound in both[1:]}
        return tuple(
            _sum_at_least([[row[one] for row in rows] for one in exact_or_bound.get(at, (at,))]) if column.summed else None
            for at, column in enumerate(self.columns)
        )

    def top(self, limit: int) -> Table:
        """The first `limit` rows, with the rest summed in one row labelled `[N others]`; 0 keeps all."""
        shown = len(self.rows) - (1 if self.others else 0)
        if limit <= 0 or shown <= limit or self.page_rows == 0:
            return self
        cut = shown - limit + self.others
        rest = self.rows[limit:]
        others = self.labelled(self._sums(rest), f"[{number_of(cut, 'other')}]")
        at_least = self._lower_bounds(self._rows_at_least[limit:] if self.others else rest)
        return replace(self, rows=(*self.rows[:limit], others), others=cut, others_at_least=at_least)

    def where(self, test: Callable[[Row], bool]) -> Table:
        """The rows that pass the test; the others are summed in `left_out`."""
        rows = [row for row in self.rows if test(row)]
        out = [row for row in self.rows if not test(row)]
        left_out = LeftOut(len(out), self._sums(out), self._lower_bounds(out)) if out else None
        return replace(self, rows=tuple(rows), left_out=left_out)

    def labelled(self, sums: Row, label: str) -> Row:
        """A row of sums with its label in the first column that has none."""
        at = next((at for at, column in enumerate(self.columns) if not column.summed), None)
        return sums if at is None else (*sums[:at], label, *sums[at + 1 :])


def number_of(count: int, noun: str) -> str:
    """`1 module`, `1,234 modules`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _sum(values: Sequence[Value]) -> int | float | None:
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) if len(numbers) == len(values) else None


def _sum_at_least(columns: Sequence[Sequence[Value]]) -> int | float | None:
    """The sum of the first value of each row that is known in one of the columns; `None` where none is, or one is negative, so
    that the sum of some bounds nothing.
    """
    firsts = [next((value for value in row if value is not None), None) for row in zip(*columns, strict=True)]
    numbers = [value for value in firsts if isinstance(value, int | float)]
    return sum(numbers) if all(value >= 0 for value in numbers) and (numbers or not firsts) else None


class Finding(NamedTuple):
    """Something to look at: `rule` is a stable code (HI0xx reading, HI1xx donation and parameters, HI2xx collectives, …);
    `subject` the instruction or parameter it is about; `bytes_at_stake` orders findings of one severity.
    """

    rule: str
    severity: Severity
    message: str
    location: Location | None = None
    subject: str | None = None
    bytes_at_stake: int = 0


class Amount(NamedTuple):
    """A raw value within a line of text: "16 devices" is `Amount(16, "count", "device")`.

    `at_least` is a lower bound where the value is unknown; `noun` follows the value, with an s where it is not one.
    """

    value: Value
    unit: Unit
    noun: str = ""
    at_least: Value = None


Parts = Iterator[str | Amount]
"""Texts and amounts in one line: a renderer puts nothing between them."""


def sentence(text: str, *values: str | Amount) -> Parts:
    """The parts of a text with the values in the places of its `{}`. What comes from a dump is a value, never in the text."""
    said = ""
    for before, value in zip(text.split("{}"), (*values, ""), strict=True):
        said += before
        if isinstance(value, str):
            said += value
        else:
            yield from (said, value) if said else (value,)
            said = ""
    if said:
        yield said


class HeadlineRow(NamedTuple):
    """One of the first lines of a page: a label and its parts.

    A row without a label is a line of its own. `severity` colours a row that warns, as of a text that is cut off. `command` is
    that of its page, where a report is several pages in one.
    """

    label: str
    parts: tuple[str | Amount, ...]
    severity: Severity | None = None
    command: str = ""


class Section(NamedTuple):
    """What one pass answers.

    `tables`, `headline` and `passages` are read once, and only where the pass was asked for by its name; given a generator,
    they are made then. `notes`, read once too, say why a fact is unknown: one line each that starts with its name. An answer
    that is about one instruction alone says which (`about`, its line and name): of the findings of all rules the report has
    those that name it.
    """

    facts: dict[str, Value]
    tables: Iterable[Table] = ()
    notes: Iterable[str] = ()
    headline: Iterable[HeadlineRow] = ()
    passages: Iterable[Passage] = ()
    about: tuple[int, str] | None = None


class Input(NamedTuple):
    """The text that a report is about: 1-based first line of the module in the input, its lines and bytes."""

    path: str
    first_line: int
    lines: int
    bytes: int

    @property
    def place(self) -> str:
        """The path, with the line where the module does not begin with the text."""
        return self.path if self.first_line == 1 else f"{self.path}:{self.first_line}"


class Passage(NamedTuple):
    """A text under a heading; `verbatim` where its line breaks and blanks have to stay, as in an example."""

    heading: str
    text: str
    verbatim: bool = False


class Verdict(NamedTuple):
    """How all checks of a command came out together: the last line of its page."""

    text: str
    passed: bool


@dataclass(frozen=True, slots=True, repr=False)
class Report(Shown):
    """What a command found out about one module. `specs` gives the unit of every fact that its passes can give.

    `headline` are the first lines of its page. A report that is about no module has a `title` instead of the module's name;
    `passages` are the texts of a page of documentation. The last report of checks has their `verdict`. `unanswered` are facts
    that were asked for and that an input of its kind does not have. `findings_scope` says which findings these are if they
    are not those of all rules, and `left_out_rules` are the rules that did not run. The rows of its tables are made: it holds
    no module.
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
    headline: tuple[HeadlineRow, ...] = ()
    verdict: Verdict | None = None
    unanswered: tuple[FactSpec, ...] = ()
    findings_scope: str = ""
    left_out_rules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple([table.made() for table in self.tables]))

    @property
    def module_name(self) -> str:
        """The module's name, of a report that is about none its title."""
        return str(self.facts.get("module.name", self.title))

    @property
    def module_facts(self) -> dict[str, Value]:
        """What the module is, which reports of all commands have."""
        return {name: value for name, value in self.facts.items() if name.startswith("module.")}

    @property
    def module_specs(self) -> tuple[FactSpec, ...]:
        return tuple(spec for spec in self.specs if spec.name.startswith("module."))

    @property
    def answers_in_tables(self) -> bool:
        """Whether a page begins with the tables: those of checks are the answer, findings come after them."""
        return any(table.name == "checks" for table in self.tables)

    def table(self, name: str) -> Table:
        """The table of that name; `UsageError` lists the names there are."""
        for table in self.tables:
            if table.name == name:
                return table
        names = [table.name for table in self.tables]
        raise UsageError(
            f"no table {name!r} in this report; there are: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
        )


def reaching(findings: Iterable[Finding], least: Severity) -> list[Finding]:
    """The findings of a severity or above."""
    return [finding for finding in findings if SEVERITIES.index(finding.severity) <= SEVERITIES.index(least)]


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by severity, then by the bytes at stake, then as they came."""
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), -f.bytes_at_stake))
