"""Tables as constants: columns without a getter, columns left out, and flags of one module."""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec


class _Item(NamedTuple):
    name: str
    size: int


SPEC = TableSpec("items", "Items").with_columns(
    Column("name"), Column("size", "bytes"), Column("half", "bytes", get=lambda item: item.size // 2)
)


def test_a_column_without_a_getter_shows_the_attribute_of_its_name() -> None:
    assert SPEC.of([_Item("a", 6)]).records() == [{"name": "a", "size": 6, "half": 3}]


def test_a_column_that_is_left_out_has_no_value() -> None:
    assert SPEC.of([_Item("a", 6)], without=("size",)).records() == [{"name": "a", "half": 3}]


def test_flags_of_one_module_leave_the_constant_as_it_is() -> None:
    table = SPEC.of([_Item("a", 6)], columns=SPEC.with_flags({"size": {"detail": 9}}))
    assert [column.detail for column in table.columns] == [0, 9, 0]
    assert [column.detail for column in SPEC.columns] == [0, 0, 0]
