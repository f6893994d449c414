"""Columns that no row has anything to say in."""

from __future__ import annotations

from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Column, Table

COLUMNS = (Column("name"), Column("reduction", detail=2), Column("source", detail=2), Column("why"))


def test_an_empty_column_that_may_be_dropped_is() -> None:
    table = Table("t", "T", COLUMNS, (("a", "add", "", ""), ("b", "", "", "")))
    assert make_grid(table, 80).header == ("name", "reduction", "why")


def test_it_does_not_count_as_hidden() -> None:
    table = Table("t", "T", COLUMNS, (("a", "", "", ""),))
    assert make_grid(table, 80).hidden == ()


def test_an_unknown_value_is_something_to_say() -> None:
    table = Table("t", "T", COLUMNS, (("a", None, "", ""),))
    assert make_grid(table, 80).header == ("name", "reduction", "why")
