"""The tables of a report of several passes, each name once."""

from __future__ import annotations

from dataclasses import replace

from hlo_inspect.report.model import Report, Row, Table

_STACKS = "call_stacks"


def distinct_tables(report: Report) -> tuple[Table, ...]:
    """The tables of a report in which passes show the same table: it is there once, with the most columns that a pass gives
    it. Call stacks are those of all. A table of single rows has another title than that of equal ones together.
    """
    found: dict[str, Table] = {}
    for table in report.tables:
        before = found.get(table.name)
        if before is None:
            found[table.name] = table
        elif table.name == _STACKS:
            found[table.name] = replace(before, rows=_joined(before.rows, table.rows))
        elif len(table.columns) > len(before.columns):
            found[table.name] = table
    return tuple(
        replace(table, title=f"{table.title}, one by one")
        if table.page_as in found and found[table.page_as].title == table.title
        else table
        for table in found.values()
    )


def _joined(first: tuple[Row, ...], second: tuple[Row, ...]) -> tuple[Row, ...]:
    """The stacks of both, each once: the rows of a stack follow each other, and begin with the same source."""
    known = {row[0] for row in first}
    return (*first, *(row for row in second if row[0] not in known))
