"""Tables: rows of raw values under typed columns, as plain data. Unknown is `None`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from hlo_inspect.errors import MissingExtraError
from hlo_inspect.report.displayable import Displayable
from hlo_inspect.report.rows import RowsOnDemand

Value = int | float | bool | str | None
Row = tuple[Value, ...]
Unit = Literal["text", "count", "bytes", "bool", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]

LOWER_BOUND = ".lower_bound"
"""Suffix of the name of a lower bound; the fact without the suffix is then None."""


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
        yield column
        if column.least is not None:
            yield column.lower_bound()


def _finished(column: Column) -> Column:
    """Return the column of a finished table. Tables of all modules share the same few; a getter may hold a module."""
    return _shared(*column[: Column._fields.index("get")])


@lru_cache(maxsize=1 << 10)
def _shared(*fields: Any) -> Column:  # noqa: ANN401 - of each field another type
    return Column(*fields)


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
        shown = tuple(map(_finished, columns))
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
