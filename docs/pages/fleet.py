"""The generated part of the page on stores: the tables that a store can keep."""

from __future__ import annotations

from docs.pages.commands import DOCS
from docs.pages.markdown import make_table, with_part
from hlo_inspect.fleet.schema import stored_tables


def fleet_texts() -> dict[str, str]:
    """Return the page by its path below `docs`."""
    rows = [
        (f"`{name}`", f"`{table.pass_name}`", ", ".join(column.name for column in table.spec.columns))
        for name, table in stored_tables().items()
    ]
    text = (DOCS / "fleet.md").read_text(encoding="utf-8")
    return {"fleet.md": with_part(text, "tables", make_table(("table", "pass", "columns"), rows))}
