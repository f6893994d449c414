"""Tables as constants: what is known of a table before a pass makes its rows, for all who use it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

from hlo_inspect.report.rows_on_demand import RowsOnDemand
from hlo_inspect.report.table import Column, Table, TablePlace, Value, finished

RowTest = Callable[[Value, str], bool]
"""Take the value of a row and the member in the name of a fact. Return True if the row belongs to the fact."""
RowTests = tuple[tuple[str, RowTest], ...]  # columns, each with its test


def is_member(value: Value, member: str) -> bool:
    """Return True if a value is the member in the name of a fact."""
    return str(value) == member


def is_set(value: Value, _: str) -> bool:
    """Return True for a value that is true, not 0 and not empty."""
    return bool(value)


def is_there(value: Value, _: str) -> bool:
    """Return True for a value that its row has, though it be 0."""
    return value not in (None, "")


def is_absent(value: Value, _: str) -> bool:
    """Return True for a value that its row lacks."""
    return value in (None, "")


class CountedRows(NamedTuple):
    """The rows that the facts of the pattern `fact` count: those whose columns pass the tests `wanted`.

    `could_be`: other rows that pass `among` could have been counted too; a figure that is too small shows them. `value` is the
    column of a row's amount, if its name is neither the fact's last segment nor the group of the pattern. `is_sum` is false
    for a fact that each row has for itself.
    """

    fact: str
    wanted: RowTests = ()
    among: RowTests = ()
    could_be: bool = False
    value: str = ""
    is_sum: bool = True


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table of reports, its places elsewhere, and all columns that it can have.

    `place` is that on the page of `report`. `collect --tables` can keep one that is `in_store`; assertions can name one that is
    `assertable`. `counts` are the facts that count its rows. The other fields are those of `Table`. A getter of a column asks a
    row for a value and builds nothing.
    """

    name: str
    title: str
    place: TablePlace | None = None
    in_store: bool = False
    assertable: bool = False
    counts: tuple[CountedRows, ...] = ()
    page_rows: int = 20
    page_as: str = ""
    on_page: bool = True
    only_verbose: bool = False
    is_curve: bool = False
    columns: tuple[Column, ...] = ()

    def with_columns(self, *columns: Column) -> TableSpec:
        """Return the specification with these columns. One without a getter shows the attribute of its name."""
        complete = [column if column.get else column._replace(get=attrgetter(column.name)) for column in columns]
        return replace(self, columns=tuple(complete))

    def with_flags(self, flags: Mapping[str, Mapping[str, Any]]) -> list[Column]:
        """Return the columns with other flags for this module: those of each name."""
        return [column._replace(**flags.get(column.name, {})) for column in self.columns]

    def of(
        self,
        items: Iterable[Any] | Callable[[], Sequence[Any]],
        *,
        title: str = "",
        without: Container[str] = (),
        columns: Iterable[Column] | None = None,
        on_page: bool | None = None,
    ) -> Table:
        """Return the table with a row for each item, which the getters read. Leave out the columns `without`.

        `items` is a function if they take long to find: it is called if somebody asks for the rows. `columns` are some of those
        of the specification, with other flags for this module.
        """
        shown = [column for column in (self.columns if columns is None else columns) if column.name not in without]
        getters = [column.get for column in shown if column.get is not None]
        return Table(
            self.name,
            title or self.title,
            tuple(map(finished, shown)),
            RowsOnDemand(items if callable(items) else list(items), getters),
            page_rows=self.page_rows,
            page_as=self.page_as,
            on_page=self.on_page if on_page is None else on_page,
            only_verbose=self.only_verbose,
            is_curve=self.is_curve,
            place=self.place,
        )
