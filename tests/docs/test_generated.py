"""Generated pages are those that the code makes now: `python -m docs.pages` writes them."""

from __future__ import annotations

import tomllib

from docs.pages import generated_texts, stale_pages
from docs.pages.fleet import OWN_TABLES
from docs.pages.inventory import described_tables, meaning_key, meanings
from hlo_inspect.cli.commands import COMMANDS
from hlo_inspect.fleet.module_database import columns_of_table
from tests.docs.pages import DOCS, PAGES, README, ROOT


def test_generated_pages_are_fresh() -> None:
    texts = generated_texts()
    assert len(texts) > 100
    stale = [path for path, text in texts.items() if PAGES.get(DOCS / path) != text]
    assert stale == [], "run python -m docs.pages"
    assert stale_pages() == []


def test_each_meaning_of_a_column_is_used() -> None:
    tables = [table for command in COMMANDS for table in described_tables(command)]
    used = {meaning_key(table.name, column.name) for table in tables for column, _ in table.columns}
    used |= {meaning_key(table, column.name) for table in OWN_TABLES for column in columns_of_table(table)}
    assert meanings().keys() - used == set()


def test_the_tables_of_extras_have_each_with_its_packages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    text = PAGES[DOCS / "install.md"]
    for name, packages in extras.items():
        if name.startswith("test") or name == "lint":
            continue
        assert f"'.[{name}]'" in PAGES[README], name
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `pip install '.[{name}]'`")]
        for package in packages:
            assert package.partition(">=")[0].partition("==")[0].replace("[distributed]", "") in row, name
