"""Tables that are made of what their rows are about."""

from __future__ import annotations

import pytest

from hlo_inspect.report.model import Column, Table


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
        Table.of("t", "Title", columns, [[1], [], [3]])


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
