"""The generated parts of the pages on stores and on modules in SQL: tables with their columns."""

from __future__ import annotations

from docs.pages.commands import DOCS
from docs.pages.inventory import meaning_key, meanings
from docs.pages.markdown import make_table, with_part
from hlo_inspect.fleet.module_database import COMMANDS_OF_TABLES, TABLES, columns_of_table
from hlo_inspect.fleet.schema import stored_tables

OWN_TABLES = [table for table in TABLES if table not in COMMANDS_OF_TABLES]
"""Tables of modules in SQL that no command and no store has."""


def fleet_texts() -> dict[str, str]:
    """Return the pages by their paths below `docs`."""
    rows = [
        (f"`{name}`", f"`{table.pass_name}`", ", ".join(column.name for column in table.spec.columns))
        for name, table in stored_tables().items()
    ]
    stores, modules = ((DOCS / name).read_text(encoding="utf-8") for name in ("fleet.md", "sql.md"))
    described = [(f"`{table}`", *row) for table in OWN_TABLES for row in _columns(table)]
    return {
        "fleet.md": with_part(stores, "tables", make_table(("table", "pass", "columns"), rows)),
        "sql.md": with_part(modules, "relations", make_table(("table", "column", "type", "meaning"), described)),
    }


def _columns(table: str) -> list[tuple[str, str, str]]:
    """Return the columns of a table without its bounds and the number of the module."""
    return [
        (f"`{column.name}`", column.type, meanings()[meaning_key(table, column.name)])
        for column in columns_of_table(table)[1:]
        if not column.name.endswith("_bound")
    ]
