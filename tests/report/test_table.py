"""Tables that are made of what their rows are about."""

from __future__ import annotations

from collections import Counter
from weakref import ref

import pytest

from hlo_inspect.report.model import Column, Input, Report, Table


def test_each_column_takes_its_value_from_each_item() -> None:
    columns = (Column("text", get=str), Column("double", "count", get=lambda item: 2 * item))
    made = Table.of("t", "Title", columns, iter([1, 2, 3]))
    assert made.rows == (("1", 2), ("2", 4), ("3", 6))
    assert Table.of("t", "Title", columns, []).rows == ()


def test_a_getter_that_finds_no_next_item_does_not_shorten_the_table() -> None:
    """`next` without a default raises `StopIteration`, which ends a `map` as the end of the items does."""
    columns = (Column("first", "count", get=lambda item: next(iter(item))),)
    assert Table.of("t", "Title", columns, [[1], [2]]).rows == ((1,), (2,))
    with pytest.raises(StopIteration):
        Table.of("t", "Title", columns, [[1], [], [3]]).made()


def test_the_value_of_a_part_is_taken_once_for_each_object() -> None:
    """Two equal lists are two objects; the part of a row is asked for once, however many columns take values from it."""
    one, other = [1, 2], [1, 2]
    asked: list[list[int]] = []

    def first(item: tuple[list[int], str]) -> list[int]:
        asked.append(item[0])
        return item[0]

    taken: list[list[int]] = []

    def total(part: list[int]) -> int:
        taken.append(part)
        return sum(part)

    columns = (
        Column("total", "count", get=total, part=first),
        Column("length", "count", get=len, part=first),
        Column("name", get=lambda item: item[1]),
    )
    made = Table.of("t", "Title", columns, [(one, "a"), (other, "b"), (one, "c")])
    assert made.rows == ((3, 2, "a"), (3, 2, "b"), (3, 2, "c"))
    assert len(asked) == 3
    assert len(taken) == 2
    assert made.columns[0] == Column("total", "count")


def test_a_table_without_getters_has_a_row_for_each_item() -> None:
    assert Table.of("t", "Title", (), [1, 2, 3]).rows == ((), (), ())


# -- rows on demand -----------------------------------------------------------------------------------------------------------


class Item:
    """What a row is about; it counts how often each value is asked for."""

    def __init__(self, number: int, size: int | None, asked: Counter[str]) -> None:
        self._values = {"name": f"i{number}", "size": size, "least": number}
        self._asked = asked

    def get(self, name: str) -> str | int | None:
        self._asked[name] += 1
        return self._values[name]


def sized(sizes: list[int | None], asked: Counter[str]) -> Table:
    """A row for each size, with a lower bound that is its position."""
    size = Column("size", "bytes", summed=True, get=lambda item: item.get("size"), least=lambda item: item.get("least"))
    columns = (Column("name", get=lambda item: item.get("name")), size)
    return Table.of("t", "Title", columns, [Item(number, value, asked) for number, value in enumerate(sizes)])


def test_the_first_rows_and_sums_take_no_other_values() -> None:
    """Sizes and bounds are summed over all rows, and names stand in two of them."""
    asked: Counter[str] = Counter()
    table = sized([8, 4, None, 2], asked)
    assert len(table.rows) == 4
    assert not asked
    top = table.top(2)
    assert top.rows == (("i0", 8, 0), ("i1", 4, 1), ("[2 others]", None, 4))
    assert (top.others, top.others_at_least) == (2, (None, 4, 4))
    assert (top.total, top.total_at_least) == ((None, None, 16), (None, 16, 16))
    assert asked == {"name": 2, "size": 4, "least": 4}


def test_nothing_is_made_twice() -> None:
    asked: Counter[str] = Counter()
    table = sized([1, 2, 3], asked)
    assert table.total == (None, 6, 6)
    assert asked == {"size": 3, "least": 3}
    assert list(table.rows) == [("i0", 1, 0), ("i1", 2, 1), ("i2", 3, 2)] == list(table.made().rows)
    assert (table.rows[-1], table.total) == (("i2", 3, 2), (None, 6, 6))
    assert asked == {"name": 3, "size": 3, "least": 3}


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
    assert table.top(1).rows == (("i0", 16, 0), ("[3 others]", None, 11))


def test_a_report_holds_nothing_that_its_rows_are_about() -> None:
    items = [Item(0, 1, Counter())]
    item = ref(items[0])
    table = Table.of("t", "Title", (Column("name", get=lambda item: item.get("name")),), items)
    report = Report("t", Input("-", 1, 1, 1), {}, (table,))
    del items, table
    assert item() is None
    assert report.table("t").rows == (("i0",),)
