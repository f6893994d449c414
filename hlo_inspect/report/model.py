"""The report: facts, tables, findings and notes as plain data.

A pass gives a `Section`; a `Report` is the sections of one command about one module. What comes after it (terminal, JSON, CSV,
Markdown, `check`) reads these objects and nothing else. Values are raw: bytes are integers of bytes, unknown is `None`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from hlo_inspect.errors import Location, MissingExtraError, UsageError, did_you_mean
from hlo_inspect.report.displayable import Displayable
from hlo_inspect.report.rows import RowsOnDemand

Value = int | float | bool | str | None
Row = tuple[Value, ...]
Unit = Literal["text", "count", "bytes", "bool", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]
Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # most severe first

SCHEMA_VERSION = 1
"""The schema of JSON reports, as they are written and read."""

LOWER_BOUND = ".lower_bound"
"""Suffix of the name of a lower bound; the fact without the suffix is then None."""

PART_NOTE = "partial module"
"""Beginning of the note that says why facts about a whole module are unknown if only lines of it are quoted."""


class FactSpec(NamedTuple):
    """The promise of a pass about a fact.

    `name` is dotted; a segment in angle brackets makes it a family (`opcode.<opcode>`): a member that does not occur is 0.
    `members` lists the values of that segment, or those of a single text fact; None leaves it open.
    `absent` is the meaning of None without a note: that there is no such thing. Scripts rely on these: names and
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
    `optional` column None means that there is no such thing, not that it is unknown. For `Table.of`, `get` returns the value of
    a row's object, and `least` a lower bound of it. The bound makes a second column, which is `bound_of` the first. A page has
    one cell for both, `>= 4` if the value is unknown. The columns of a finished table have neither.
    `width` is the usual number of characters of a text (default 16): with `detail` it decides which columns have room. A page
    shows the files of a column (`is_file`, or called `source`) relative to their common directory. A column that is
    `only_verbose` needs -v. One that `is_chosen` was asked for, and is on every page. The numbers of a `signed` column are
    differences, and have a plus sign too. Those of a `rounded` column have the digits of quantities. The texts of a
    column that `wraps` take several lines, and are not shortened.

    A page draws the shares of a column with a `bar`: `alone` each from the left, `stacked` each from the end of the one above.
    Its heading is made of `page_name` if that says more than the name, which scripts use. `members` are the values that a text
    can have, if they are few: a filter or check with another value is misspelt.

    If each row has a unit of its own, `unit_of` is the column that holds it. `like` is a column whose text names a value in the
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
    is_chosen: bool = False
    signed: bool = False
    rounded: bool = False
    wraps: bool = False
    bar: Literal["", "alone", "stacked"] = ""
    page_name: str = ""
    members: frozenset[str] = frozenset()
    get: Callable[[Any], Value] | None = None
    least: Callable[[Any], Value] | None = None

    def lower_bound(self) -> Column:
        """Return the column `<name>_lower_bound` of this one; its values equal those of this one if they are known."""
        name = f"{self.name}_lower_bound"
        return Column(name, self.unit, self.summed, 9, optional=True, bound_of=self.name, get=self.least)


def with_bounds(columns: Iterable[Column]) -> Iterator[Column]:
    """Yield the columns, each followed by that of its lower bounds if it has some."""
    for column in columns:
        yield column._replace(least=None)
        if column.least is not None:
            yield column.lower_bound()


def _without_getter(column: Column) -> Column:
    """Return the column of a finished table. Tables of all modules share the same few; a getter may hold a module."""
    return _shared(column._replace(get=None))


@lru_cache(maxsize=1 << 10)
def _shared(column: Column) -> Column:
    return column


class FilteredRows(NamedTuple):
    """The rows that a filter hides: their number, the sum of each column over them, and the lower bounds of these sums."""

    rows: int
    sums: Row
    at_least: Row


ALL_ROWS = sys.maxsize
"""The `page_rows` of a table that a page shows whole unless the user sets a number of rows."""


@dataclass(frozen=True, slots=True, repr=False)
class Table(Displayable):
    """Rows of raw values under typed columns.

    `top` folds `others` rows into the last one, and `others_at_least` are the lower bounds of its sums. `page_rows` is the
    number of rows on a page unless the user sets one. A table with 0 page rows is always shown whole. Pages leave out a table
    that is not `on_page`, and without -v also one that is `only_verbose`. They show the table `page_as` of the same report in
    place of this one, unless the user selects single rows. They draw one that `is_curve`, unless it is selected by name.
    `left_out` are the rows that a filter hides: they are in no total. A table that `lacks_rows` is of a truncated text: on a
    page its totals are lower bounds.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    others: int = 0
    others_at_least: Row = ()
    left_out: FilteredRows | None = None
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
        items: Iterable[Any] | Callable[[], Sequence[Any]],
        *,
        page_rows: int = 20,
        page_as: str = "",
        on_page: bool = True,
        is_curve: bool = False,
    ) -> Table:
        """Return a table with a row for each item. The `get` of each column takes its value from the item.

        `items` is a function if they take long to find: it is called if somebody asks for the rows.
        """
        columns = tuple(with_bounds(columns))
        getters = [column.get for column in columns if column.get is not None]
        rows = RowsOnDemand(items if callable(items) else list(items), getters)
        shown = tuple(map(_without_getter, columns))
        return cls(name, title, shown, rows, page_rows=page_rows, page_as=page_as, on_page=on_page, is_curve=is_curve)

    def made(self) -> Table:
        """Return the table with all of its rows, which hold values and nothing else."""
        return replace(self, rows=self.rows.made()) if isinstance(self.rows, RowsOnDemand) else self

    @property
    def total(self) -> Row | None:
        """A row of sums: None if a row's value is unknown, and for columns that are not summed; None without summed columns."""
        if not any(column.summed for column in self.columns):
            return None
        return self._sums(self.rows, self._lower_bounds(self.rows) if any(column.bound_of for column in self.columns) else ())

    @property
    def total_on_page(self) -> Row | None:
        """The total, without the sums of a table that lacks rows: they are no more than `total_at_least`."""
        total = self.total
        return (None,) * len(total) if total and self.lacks_rows else total

    @property
    def total_at_least(self) -> Row:
        """A lower bound of the total of each summed column; None in other columns and if no value is known."""
        return self._lower_bounds(self._rows_at_least)

    @property
    def _rows_at_least(self) -> Sequence[Row]:
        """The rows, of which that of the others has the lower bounds of its sums."""
        return (*self.rows[:-1], self.others_at_least) if self.others else self.rows

    @property
    def bound_columns(self) -> dict[int, int]:
        """The positions of the columns that have a column of lower bounds, each with the position of that column."""
        positions = {column.name: position for position, column in enumerate(self.columns)}
        return {
            positions[column.bound_of]: position for position, column in enumerate(self.columns) if column.bound_of in positions
        }

    def records(self) -> list[dict[str, Value]]:
        """Return the rows as dicts by the names of the columns: bytes are integers, unknown is None."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas has no types where it is not installed
        """Return the rows as a `pandas.DataFrame` with nullable columns. Raise MissingExtraError if pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("Table.to_pandas needs the package pandas: pip install pandas") from error
        names = [column.name for column in self.columns]
        return pandas.DataFrame.from_records(list(self.rows), columns=names).convert_dtypes()

    def _sums(self, rows: Sequence[Row], lower: Row) -> Row:
        """Return the sums of the rows; a column of lower bounds has that of `lower`, as known values count in it too."""
        return tuple(
            lower[index] if column.bound_of else _sum([row[index] for row in rows]) if column.summed else None
            for index, column in enumerate(self.columns)
        )

    def _lower_bounds(self, rows: Sequence[Row]) -> Row:
        exact_or_bound = {index: (index, bound) for index, bound in self.bound_columns.items()}
        exact_or_bound |= {bound: both for both in exact_or_bound.values() for bound in both[1:]}
        return tuple(
            _sum_at_least([[row[position] for row in rows] for position in exact_or_bound.get(index, (index,))])
            if column.summed
            else None
            for index, column in enumerate(self.columns)
        )

    def top(self, limit: int) -> Table:
        """Return the table with its first `limit` rows and the rest summed in one row labelled `[N others]`; 0 keeps all."""
        shown = len(self.rows) - (1 if self.others else 0)
        if limit <= 0 or shown <= limit or self.page_rows == 0:
            return self
        cut = shown - limit + self.others
        rows, rest = self._split(limit)
        lower = self._lower_bounds(rest)
        others = self.labelled(self._sums(rest, lower), f"[{number_of(cut, 'other')}]")
        at_least = self._lower_bounds(self._rows_at_least[limit:]) if self.others else lower
        return replace(self, rows=(*rows, others), others=cut, others_at_least=at_least)

    def _split(self, limit: int) -> tuple[Sequence[Row], Sequence[Row]]:
        """Return the first `limit` rows, and the others as far as sums need them."""
        if not isinstance(self.rows, RowsOnDemand):
            return self.rows[:limit], self.rows[limit:]
        summed = {index for index, column in enumerate(self.columns) if column.summed}
        bounds = self.bound_columns
        return self.rows.first(limit), self.rows.after(limit, summed.union(bounds, bounds.values()))

    def filtered(self, test: Callable[[Row], bool]) -> Table:
        """Return the table with the rows that pass the test; the others are summed in `left_out`."""
        rows = [row for row in self.rows if test(row)]
        out = [row for row in self.rows if not test(row)]
        lower = self._lower_bounds(out)
        left_out = FilteredRows(len(out), self._sums(out, lower), lower) if out else None
        return replace(self, rows=tuple(rows), left_out=left_out)

    def labelled(self, sums: Row, label: str) -> Row:
        """Return a row of sums with its label in the first column that has none."""
        index = next((index for index, column in enumerate(self.columns) if not column.summed), None)
        return sums if index is None else (*sums[:index], label, *sums[index + 1 :])


def number_of(count: int, noun: str) -> str:
    """Format a number with its noun: `1 module`, `1,234 modules`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_NUMBERS = (int, float)


def _sum(values: Sequence[Value]) -> int | float | None:
    numbers = [value for value in values if isinstance(value, _NUMBERS)]
    return sum(numbers) if len(numbers) == len(values) else None


def _sum_at_least(columns: Sequence[Sequence[Value]]) -> int | float | None:
    """Sum the first known value of each row. Return None if no row has one, or if one is negative: the sum is no bound then."""
    firsts, *others = columns
    for column in others:
        firsts = [other if value is None else value for value, other in zip(firsts, column, strict=True)]
    numbers = [value for value in firsts if isinstance(value, _NUMBERS)]
    return sum(numbers) if all(value >= 0 for value in numbers) and (numbers or not firsts) else None


StakeUnit = Literal["s", "bytes", "flops"]
STAKE_UNITS: tuple[StakeUnit, ...] = get_args(StakeUnit)
"""The units of a stake: findings with an earlier one come first."""


class Finding(NamedTuple):
    """A report of a rule. `rule` is a stable code (HI0xx reading, HI1xx donation and parameters, HI2xx collectives, …).

    `subject` is the instruction or parameter it is about. `stake` is what mending it saves in one step on one device, in
    `stake_unit`. It orders findings of one severity, and is None if nothing is counted. `source` is the line of Python as
    `path:line`, `op_name` the name that the front end gave. `label` describes the finding without names and numbers of the
    dump, and `fingerprint` is its hash. Both survive new names, lines and channel numbers.
    """

    rule: str
    severity: Severity
    message: str
    location: Location | None = None
    subject: str | None = None
    stake: int | float | None = None
    stake_unit: StakeUnit = "bytes"
    name: str = ""
    source: str | None = None
    fingerprint: str = ""
    op_name: str = ""
    label: str = ""


class Amount(NamedTuple):
    """A raw value within a line of text: "16 devices" is `Amount(16, "count", "device")`.

    `at_least` is a lower bound of an unknown value; `noun` follows the value, with an s unless the value is 1.
    """

    value: Value
    unit: Unit
    noun: str = ""
    at_least: Value = None


Parts = Iterator[str | Amount]
"""Texts and amounts in one line: a renderer puts nothing between them."""


def sentence(text: str, *values: str | Amount) -> Parts:
    """Yield the parts of a text with the values in the places of its `{}`. Texts of a dump are values, never in `text`."""
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
    """A line of the first block of a page: a label and its parts.

    A row without a label is a line of its own. `severity` colours a row that warns, as of a truncated text. `command` is that
    of its page, if a report is several pages in one.
    """

    label: str
    parts: tuple[str | Amount, ...]
    severity: Severity | None = None
    command: str = ""


class Section(NamedTuple):
    """The answer of one pass.

    `tables`, `headline` and `passages` are read once, and only if the user named the pass; a generator makes them then.
    `notes`, read once too, say why a fact is unknown: one line each that starts with its name. An answer about a single
    instruction names it (`about`: line and name). The report then has the findings of all rules that name it.
    `findings` are those that no rule can make, because they need more than the module.
    """

    facts: dict[str, Value]
    tables: Iterable[Table] = ()
    notes: Iterable[str] = ()
    headline: Iterable[HeadlineRow] = ()
    passages: Iterable[Passage] = ()
    about: tuple[int, str] | None = None
    findings: tuple[Finding, ...] = ()


class Input(NamedTuple):
    """The text that a report is about: 1-based first line of the module in the input, its lines and bytes.

    `counted` names the one of two inputs that lines and bytes are of.
    """

    path: str
    first_line: int
    lines: int
    bytes: int
    counted: str = ""

    @property
    def place(self) -> str:
        """The path, with the line where the module does not begin with the text."""
        return self.path if self.first_line == 1 else f"{self.path}:{self.first_line}"


class Passage(NamedTuple):
    """A text under a heading; `verbatim` if its line breaks and blanks have to stay, as in an example."""

    heading: str
    text: str
    verbatim: bool = False


class Verdict(NamedTuple):
    """The result of all checks of a command: the last line of its page."""

    text: str
    passed: bool


class IgnoredFinding(NamedTuple):
    """A finding that does not count, and the reason that the user gave."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Report(Displayable):
    """The results of a command on one module. `specs` gives the unit of every fact that its passes can give.

    `headline` are the first lines of its page. A report that is about no module has a `title` instead of the module's name;
    `passages` are the texts of a page of documentation. The last report of checks has their `verdict`. `unanswered` are facts
    of the request that an input of its kind does not have. `findings_scope` says which findings these are if they are not
    those of all rules, and `left_out_rules` are the rules that did not run. `failed_checks` are the assertions of a check that
    failed, as findings, and `ignored` the findings that an entry ignores: formats for CI have both. The rows of its tables are
    made: it holds no module.
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
    failed_checks: tuple[Finding, ...] = ()
    ignored: tuple[IgnoredFinding, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple([table.made() for table in self.tables]))

    @property
    def module_name(self) -> str:
        """The module's name, of a report that is about none its title."""
        return str(self.facts.get("module.name", self.title))

    @property
    def module_facts(self) -> dict[str, Value]:
        """The facts of the module, which reports of all commands have."""
        return {name: value for name, value in self.facts.items() if name.startswith("module.")}

    @property
    def module_specs(self) -> tuple[FactSpec, ...]:
        return tuple(spec for spec in self.specs if spec.name.startswith("module."))

    @property
    def answers_in_tables(self) -> bool:
        """True if a page begins with the tables: those of checks are the answer, findings come after them."""
        return any(table.name == "checks" for table in self.tables)

    def table(self, name: str) -> Table:
        """Return the table of that name. Raise UsageError with all names if there is none."""
        for table in self.tables:
            if table.name == name:
                return table
        names = [table.name for table in self.tables]
        raise UsageError(
            f"no table {name!r} in this report; there are: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
        )


def reaching(findings: Iterable[Finding], least: Severity) -> list[Finding]:
    """Return the findings of a severity or above."""
    return [finding for finding in findings if SEVERITIES.index(finding.severity) <= SEVERITIES.index(least)]


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, then by stake (seconds, then bytes, then FLOPs), then as they came."""
    return sorted(findings, key=urgency)


def urgency(finding: Finding) -> tuple[int, int, float]:
    """Return the key by which worse findings come first."""
    return SEVERITIES.index(finding.severity), STAKE_UNITS.index(finding.stake_unit), -(finding.stake or 0)
