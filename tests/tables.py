"""Tables of reports as tests read them: by the names of their columns."""

from __future__ import annotations

from typing import Any

import pytest

from hlo_inspect.report.table import Plain, Table


def column(table: Table, name: str) -> list[Plain]:
    """Return the value of a column in each row."""
    return [record[name] for record in table.records()]


def rows(report: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of a report in JSON by column."""
    table = next(table for table in report["tables"] if table["name"] == name)
    names = [item["name"] for item in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def columns(table: Table, *names: str) -> list[tuple[Plain, ...]]:
    """Return the values of some columns in each row."""
    return [tuple(record[name] for name in names) for record in table.records()]


def totals(table: Table) -> dict[str, Plain]:
    """Return the total of each column; nothing of a table without totals."""
    return dict(zip([item.name for item in table.columns], table.total or (), strict=False))


def approximately(value: Plain) -> Any:
    """Return an object that equals the value, but for the rounding of a float."""
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
