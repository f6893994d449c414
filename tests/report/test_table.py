"""Tables that are made of the objects of their rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from weakref import ref

import pytest

from hlo_inspect.figure import Figure, at_least
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table, Value
from hlo_inspect.report.table_spec import TableSpec


def test_each_column_takes_its_value_from_each_item() -> None:
    columns = (Column("text", get=str), Column("double", "count", get=lambda item: 2 * item))
    made = TableSpec("t", "Title").with_columns(*columns).of(iter([1, 2, 3]))
    assert made.rows == (("1", 2), ("2", 4), ("3", 6))
    assert TableSpec("t", "Title").with_columns(*columns).of([]).rows == ()


def test_a_getter_that_finds_no_next_item_does_not_shorten_the_table() -> None:
    """`next` without a default raises `StopIteration`, which ends a `map` as the end of the items does."""
    columns = (Column("first", "count", get=lambda item: next(iter(item))),)
    assert TableSpec("t", "Title").with_columns(*columns).of([[1], [2]]).rows == ((1,), (2,))
    with pytest.raises(StopIteration):
        TableSpec("t", "Title").with_columns(*columns).of([[1], [], [3]]).made()


def test_a_table_without_getters_has_a_row_for_each_item() -> None:
    assert TableSpec("t", "Title").with_columns().of([1, 2, 3]).rows == ((), (), ())


def test_a_function_of_items_is_called_once_when_somebody_asks_for_rows() -> None:
    calls: list[str] = []

    def items() -> list[int]:
        calls.append("called")
        return [1, 2]

    table = TableSpec("t", "Title").with_columns(Column("text", get=str)).of(items)
    assert calls == []
    assert (len(table.rows), table.rows, calls) == (2, (("1",), ("2",)), ["called"])


# -- rows on demand -----------------------------------------------------------------------------------------------------------


class Item:
    """The object of a row; it counts the reads of each value."""

    def __init__(self, number: int, size: int | None, asked: Counter[str]) -> None:
        self._values = {"name": f"i{number}", "size": at_least(number, "its size is unknown") if size is None else size}
        self._asked = asked

    def get(self, name: str) -> Value:
        self._asked[name] += 1
        return self._values[name]


def sized(sizes: list[int | None], asked: Counter[str]) -> Table:
    """Return a row for each size; an unknown one has its position as lower bound."""
    size = Column("size", "bytes", summed=True, bounded=True, get=lambda item: item.get("size"))
    columns = (Column("name", get=lambda item: item.get("name")), size)
    return TableSpec("t", "Title").with_columns(*columns).of([Item(number, value, asked) for number, value in enumerate(sizes)])


def test_the_rows_of_a_table_are_made_when_it_is_cut() -> None:
    """Sizes are summed over all rows; the names of rows that are cut off are not read."""
    asked: Counter[str] = Counter()
    table = sized([8, 4, None, 2], asked)
    assert len(table.rows) == 4
    assert not asked
    top = table.top(2)
    third = at_least(2, "its size is unknown")
    assert top.rows == (("i0", 8), ("i1", 4), ("[2 more]", 2 + third))
    assert asked == {"name": 2, "size": 4}
    assert (top.others, top.sums, top.total) == (2, (None, 14 + third), (None, None))
    assert top.flat().rows == (("i0", 8, 8), ("i1", 4, 4), ("[2 more]", None, 4))
    assert top.flat().total == (None, None, 16)  # 8 + 4 + 2 + 2
    assert list(table.rows) == [("i0", 8), ("i1", 4), ("i2", third), ("i3", 2)] == list(table.made().rows)
    assert asked == {"name": 6, "size": 8}


def test_bounds_are_columns_of_their_own_for_scripts() -> None:
    """Upper bounds have a column if a figure has a limit: 3 + 1 + at most 4 is at most 8."""
    runs = Column("runs", "count", summed=True, bounded=True)
    rows = (("a", 3), ("b", Figure(1, 4, "a branch")), ("c", 1), ("d", None))
    table = Table("t", "Title", (Column("name"), runs), rows[:3]).flat()
    assert [column.name for column in table.columns] == ["name", "runs", "runs_lower_bound", "runs_upper_bound"]
    assert list(table.rows) == [("a", 3, 3, 3), ("b", None, 1, 4), ("c", 1, 1, 1)]
    assert table.total == (None, None, 5, 8)
    assert table.flat() == table
    assert Table("t", "Title", (Column("name"), runs), rows).flat().total == (None, None, 5, None)
    assert table.records()[1] == {"name": "b", "runs": None, "runs_lower_bound": 1, "runs_upper_bound": 4}


def test_a_total_of_missing_rows_is_a_lower_bound() -> None:
    table = Table("t", "Title", (Column("name"), Column("size", "bytes", summed=True)), (("a", 3), ("b", 4)), lacks_rows=True)
    assert table.sums == (None, at_least(7, "rows are missing"))


def test_sums_by_phase_of_a_text_with_missing_rows_are_lower_bounds() -> None:
    """A missing row may be of each phase; a row of a single instruction is what it is."""
    columns = (Column("phase"), Column("size", "bytes", summed=True), Column("line", "number"))
    table = Table("cost_by_phase", "Title", columns, (("forward", 3, 7), ("loss", None, 9)), lacks_rows=True)
    assert list(table.page_cells) == [("forward", at_least(3, "rows are missing"), 7), ("loss", None, 9)]
    for exact in (replace(table, lacks_rows=False), replace(table, name="kernels")):
        assert exact.page_cells == table.rows


def test_rows_on_demand_are_equal_to_those_that_are_made() -> None:
    table = sized([1, 2], Counter())
    assert table == table.made() == sized([1, 2], Counter())
    assert hash(table) == hash(table.made())
    assert table != sized([1, 3], Counter())


def test_a_table_that_is_cut_can_be_cut_again() -> None:
    """A second cut folds what the first has folded: 8, an unknown size of at least 2, and 1."""
    table = sized([16, 8, None, 1], Counter())
    assert table.top(3).top(3) == table.top(3)
    assert table.top(3).top(1) == table.top(1)
    assert table.top(1).flat().rows == (("i0", 16, 16), ("[3 more]", None, 11))


def test_a_report_holds_nothing_that_its_rows_are_about() -> None:
    items = [Item(0, 1, Counter())]
    item = ref(items[0])
    table = TableSpec("t", "Title").with_columns(Column("name", get=lambda item: item.get("name"))).of(items)
    report = Report("t", Input("-", 1, 1, 1), {}, (table,))
    del items, table
    assert item() is None
    assert report.table("t").rows == (("i0",),)
