"""Tables: rows of raw values under typed columns, as plain data. Unknown is `None`, or a figure with bounds."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from hlo_inspect.errors import MissingExtraError
from hlo_inspect.figure import Figure, Quantity, at_least, least
from hlo_inspect.report.displayable import Displayable
from hlo_inspect.report.rows_on_demand import RowsOnDemand

Plain = int | float | bool | str | None
"""A value as scripts read it."""

Value = Plain | Figure
"""A value of a fact or a cell. Unknown is None, or a figure if it has bounds."""

Row = tuple[Value, ...]
Unit = Literal["text", "count", "bytes", "bool", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]

LOWER_BOUND, UPPER_BOUND = ".lower_bound", ".upper_bound"
"""Suffixes of the names of the bounds of a fact; the fact without the suffix is then None."""


def plain(value: Value) -> Plain:
    """Return the value as scripts read it: a figure is None."""
    return None if isinstance(value, Figure) else value


def lower_bound(value: Value) -> Plain:
    """Return the value, or the lower bound of a figure; None if it has none."""
    low = least(value) if isinstance(value, Figure) else value
    return None if low == -math.inf else low


def upper_bound(value: Value) -> Plain:
    """Return the value, or the upper bound of a figure; None if it has none."""
    return value.greatest if isinstance(value, Figure) else value


def figure_of(facts: Mapping[str, Value], name: str) -> Value:
    """Return a fact of those that scripts read; a figure if only its bounds are known."""
    value, low, high = facts[name], facts.get(f"{name}{LOWER_BOUND}"), facts.get(f"{name}{UPPER_BOUND}")
    limit = high if isinstance(high, int | float) else None
    if value is not None or (low is None and limit is None):
        return value
    return Figure(low if isinstance(low, int | float) else 0, limit, f"{name} is unknown")


Bound = Literal["", "lower", "upper"]

READERS: Mapping[Bound, Callable[[Value], Plain]] = {"": plain, "lower": lower_bound, "upper": upper_bound}
"""Functions from a value to the part that scripts read: the value, or one of its bounds."""


class TablePlace(NamedTuple):
    """The place of a table on the page of `report`: a section, and a group of tables there, of which one is shown.

    `label` chooses the table among those of its group, and `rank` is its position among them.
    """

    section: str
    group: str
    label: str = ""
    rank: int = 0


class Column(NamedTuple):
    """A typed column.

    `summed` columns have a total. `detail` says how early a narrow terminal drops it (0: never, 9: only in CSV and JSON). In an
    `optional` column None means that there is no such thing, not that it is unknown. `get` returns the value of a row's object;
    the columns of a finished table have no getter. The values of a `bounded` column may be figures: scripts
    read their bounds in columns of their own, of which `bound` says the kind.
    `width` is the usual number of characters of a text (default 16): with `detail` it decides which columns have room. A page
    shows the files of a column (`is_file`, or called `source`) relative to their common directory. Off a terminal those of
    `is_file` are whole. A column that is
    `only_verbose` needs -v. One that `is_chosen` was asked for, and is on every page. The numbers of a `signed` column are
    differences, and have a plus sign too. Those of a `rounded` column have the digits of quantities, counts those of FLOPs. The
    texts of a column that `wraps` take several lines, and are not shortened. Those of a column that is `below` stand under
    their rows, unless the page is very wide.

    A page draws the shares of a column with a `bar`: `alone` each from the left, `stacked` each from the end of the one above.
    Its heading is made of `page_name` if that says more than the name, which scripts use. `members` are the values that a text
    can have, if they are few: a filter or check with another value is misspelt. `meaning` is what it holds, for the docs;
    empty if columns of that name mean the same in all tables. The numbers of a `real` column can have a fraction.

    If each row has a unit of its own, `unit_of` is the column that holds it. `like` is a column whose text names a value in the
    multiple of the unit to print it in.
    """

    name: str
    unit: Unit = "text"
    summed: bool = False
    detail: int = 0
    optional: bool = False
    bounded: bool = False
    bound: Bound = ""
    width: int = 0
    unit_of: str = ""
    like: str = ""
    is_file: bool = False
    only_verbose: bool = False
    is_chosen: bool = False
    signed: bool = False
    rounded: bool = False
    wraps: bool = False
    below: bool = False
    bar: Literal["", "alone", "stacked"] = ""
    page_name: str = ""
    members: frozenset[str] = frozenset()
    meaning: str = ""
    real: bool = False
    get: Callable[[Any], Value] | None = None

    def bound_column(self, bound: Literal["lower", "upper"]) -> Column:
        """Return the column `<name>_lower_bound` or `<name>_upper_bound` of this one."""
        return Column(f"{self.name}_{bound}_bound", self.unit, self.summed, 9, optional=True, bound=bound)


def finished(column: Column) -> Column:
    """Return the column of a finished table. Tables of all modules share the same few; a getter may hold a module."""
    return _shared(*column[: Column._fields.index("get")])


@lru_cache(maxsize=1 << 10)
def _shared(*fields: Any) -> Column:  # noqa: ANN401 - of each field another type
    return Column(*fields)


class FilteredRows(NamedTuple):
    """The rows that a filter hides: their number, and the sum of each column over them."""

    rows: int
    sums: Row


ALL_ROWS = sys.maxsize
"""The `page_rows` of a table that a page shows whole unless the user sets a number of rows."""


@dataclass(frozen=True, slots=True, repr=False)
class Table(Displayable):
    """Rows of raw values under typed columns.

    `top` folds `others` rows into the last one. `page_rows` is the number of rows on a page unless the user sets one. A table
    with 0 page rows is always shown whole. Pages leave out a table that is not `on_page`, and without -v also one that is
    `only_verbose`. They show the table `page_as` of the same report in place of this one, unless the user selects single rows.
    They draw one that `is_curve`, unless it is selected by name. `left_out` are the rows that a filter hides: they are in no
    total. A table that `lacks_rows` is of a truncated text: its sums are lower bounds. Without rows it says
    `nothing`. Python sessions show the table `shown`, of which `flat` made this one.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    others: int = 0
    left_out: FilteredRows | None = None
    page_rows: int = 20
    page_as: str = ""
    on_page: bool = True
    only_verbose: bool = False
    is_curve: bool = False
    lacks_rows: bool = False
    nothing: str = "none"
    place: TablePlace | None = None
    shown: Table | None = field(default=None, compare=False)

    def made(self) -> Table:
        """Return the table with all of its rows, which hold values and nothing else."""
        return replace(self, rows=self.rows.made()) if isinstance(self.rows, RowsOnDemand) else self

    @property
    def total(self) -> tuple[Plain, ...] | None:
        """The sums as scripts read them: None if a row's value is unknown, and for columns that are not summed."""
        if not self._is_summed:
            return None
        return tuple(READERS[column.bound](value) for column, value in zip(self.columns, self._sums(self.rows), strict=True))

    @property
    def sums(self) -> Row | None:
        """A row of sums, with figures if a row's value is unknown or rows are missing; None without summed columns."""
        if not self._is_summed:
            return None
        sums = self._sums(self.rows)
        return tuple(map(_as_lower_bound, sums)) if self.lacks_rows else sums

    @property
    def _is_summed(self) -> bool:
        return any(column.summed for column in self.columns)

    def with_bounds(self) -> Table:
        """Return the table with columns of bounds behind those whose values may be figures.

        Each such column has one of lower bounds. One of upper bounds it has if a figure has a limit.
        """
        positions: list[tuple[int, Column]] = []
        for index, column in enumerate(self.columns):
            positions.append((index, column._replace(bounded=False)))
            if column.bounded:
                positions.append((index, column.bound_column("lower")))
                if any(isinstance(row[index], Figure) and upper_bound(row[index]) is not None for row in self.rows):
                    positions.append((index, column.bound_column("upper")))
        if len(positions) == len(self.columns):
            return self

        def expanded(row: Row) -> Row:
            return tuple(READERS[column.bound](row[index]) if column.bound else row[index] for index, column in positions)

        left_out = self.left_out and self.left_out._replace(sums=expanded(self.left_out.sums))
        return replace(
            self, columns=tuple(column for _, column in positions), rows=tuple(map(expanded, self.rows)), left_out=left_out
        )

    def flat(self) -> Table:
        """Return the table as scripts read it: plain values, None if unknown, and bounds in columns of their own."""
        table = self.with_bounds()
        left_out = table.left_out and table.left_out._replace(sums=tuple(map(plain, table.left_out.sums)))
        rows = tuple([tuple(map(plain, row)) for row in table.rows])
        return replace(table, rows=rows, left_out=left_out, shown=self.shown or self)

    def records(self) -> list[dict[str, Plain]]:
        """Return the rows as scripts read them, as dicts by the names of the columns: bytes are integers, unknown is None."""
        table = self.with_bounds()
        names = [column.name for column in table.columns]
        return [dict(zip(names, map(plain, row), strict=True)) for row in table.rows]

    def records_with_figures(self) -> list[dict[str, Value]]:
        """Return the rows as dicts by the names of the columns, with figures in cells."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas has no types where it is not installed
        """Return the rows as a `pandas.DataFrame` with nullable columns. Raise MissingExtraError if pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("Table.to_pandas needs the package pandas: pip install pandas") from error
        table = self.flat()
        names = [column.name for column in table.columns]
        return pandas.DataFrame.from_records(list(table.rows), columns=names).convert_dtypes()

    @property
    def page_cells(self) -> Sequence[Row]:
        """The rows with the figures of a page: sums by phase, kind or source of a text with missing rows are lower bounds."""
        if not self.lacks_rows or "_by_" not in self.name:
            return self.rows
        return [
            tuple(_as_lower_bound(value) if column.summed else value for value, column in zip(row, self.columns, strict=True))
            for row in self.rows
        ]

    def _sums(self, rows: Sequence[Row]) -> Row:
        return tuple(_sum([row[index] for row in rows]) if column.summed else None for index, column in enumerate(self.columns))

    def top(self, limit: int) -> Table:
        """Return the table with its first `limit` rows and the rest summed in one row labelled `[N more]`; 0 keeps all."""
        shown = len(self.rows) - (1 if self.others else 0)
        if limit <= 0 or shown <= limit or self.page_rows == 0:
            return self
        cut = shown - limit + self.others
        rows, rest = self._split(limit)
        others = self.labelled(self._sums(rest), f"[{cut:,} more]")
        return replace(self, rows=(*rows, others), others=cut)

    def _split(self, limit: int) -> tuple[Sequence[Row], Sequence[Row]]:
        """Return the first `limit` rows, and the others as far as sums need them."""
        if not isinstance(self.rows, RowsOnDemand):
            return self.rows[:limit], self.rows[limit:]
        summed = {index for index, column in enumerate(self.columns) if column.summed}
        return self.rows.first(limit), self.rows.after(limit, summed)

    def filtered(self, test: Callable[[Row], bool]) -> Table:
        """Return the table with the rows that pass the test; the others are summed in `left_out`."""
        rows = [row for row in self.rows if test(row)]
        out = [row for row in self.rows if not test(row)]
        return replace(self, rows=tuple(rows), left_out=FilteredRows(len(out), self._sums(out)) if out else None)

    def labelled(self, sums: Row, label: str) -> Row:
        """Return a row of sums with its label in the first column that has none."""
        index = next((index for index, column in enumerate(self.columns) if not column.summed), None)
        return sums if index is None else (*sums[:index], label, *sums[index + 1 :])


def _as_lower_bound(total: Value) -> Value:
    """Return the sum of rows of which some are missing."""
    return at_least(least(total), "rows are missing") if isinstance(total, int | float | Figure) else None


def _sum(values: Sequence[Value]) -> Quantity | None:
    """Return the sum, in which values that are no numbers are unknown.

    It is None if all values are unknown, or if a known one is negative: the others bound nothing then.
    """
    numbers = [value for value in values if isinstance(value, int | float | Figure)]
    total: Quantity = sum(numbers)
    if len(numbers) == len(values) and not isinstance(total, Figure):
        return total
    if not numbers or any(least(number) < 0 for number in numbers):
        return None
    return total if len(numbers) == len(values) else at_least(least(total), "a row is unknown")


def number_of(count: int, noun: str) -> str:
    """Format a number with its noun: `1 module`, `1,234 modules`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
