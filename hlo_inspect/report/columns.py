"""Columns by the names that people write."""

from __future__ import annotations

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.report.cells import heading
from hlo_inspect.report.model import Table


def find_column(name: str, table: Table) -> int:
    """The position of a column, by its name or its heading on a page; `UsageError` with the nearest names."""
    names = [column.name for column in table.columns]
    headings = [heading(column) for column in table.columns]
    wanted = name.strip()
    for known, spelt in ((names, wanted), (names, wanted.replace(" ", "_").replace("-", "_")), (headings, wanted)):
        if spelt in known:
            return known.index(spelt)
    hint = did_you_mean(wanted, names) or f"; there are: {', '.join(names)}"
    raise UsageError(f"no column {wanted!r} in the table {table.name!r}{hint}")
