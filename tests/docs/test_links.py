"""Links of the README and the pages: files, headings, live reports, and places in the navigation."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from docs.site.__main__ import FOLDERS, config
from docs.site.reports import FOLDER, REPORTS
from hlo_inspect.cli.commands import COMMANDS
from tests.docs.pages import DOCS, PAGES, ROOT, anchors, links

OTHERS = {path: path.read_text(encoding="utf-8") for path in (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md")}


def test_links_have_existing_files_and_headings() -> None:
    texts = {**PAGES, **OTHERS}
    number = 0
    for page, text in texts.items():
        for target, anchor in links(text):
            path = (page.parent / target).resolve() if target else page
            place = page.relative_to(ROOT), target, anchor
            assert path.exists(), place
            if anchor:
                assert anchor in anchors(path.read_text(encoding="utf-8")), place
            number += 1
    assert number > 300


def test_links_of_the_site_stay_on_it() -> None:
    """A static host has nothing beside the folder of the site."""
    for page, text in PAGES.items():
        if page.is_relative_to(DOCS):
            outside = [target for target, _ in links(text) if not (page.parent / target).resolve().is_relative_to(DOCS)]
            assert outside == [], page


def test_the_page_of_live_reports_links_each_with_its_command() -> None:
    rows = re.findall(r'href="([^"]*)".* \| `hlo-inspect report (.*)` \|', PAGES[DOCS / "reports.md"])
    made = ((f"{FOLDER}/{report.name}.html", " ".join(report.arguments)) for report in REPORTS)
    assert rows == [(page, f"{arguments} -o {Path(page).name}") for page, arguments in made]


def pages_of(entry: Any) -> list[str]:
    """Return the Markdown pages of an entry of the navigation."""
    if isinstance(entry, str):
        return [entry] if entry.endswith(".md") else []
    entries = entry.values() if isinstance(entry, dict) else entry
    return [page for inner in entries for page in pages_of(inner)]


def test_each_page_has_one_place_in_the_navigation() -> None:
    named = Counter(pages_of(tomllib.loads(config())["project"]["nav"]))
    assert set(named.values()) == {1}
    assert set(named) == {path.relative_to(DOCS).as_posix() for path in PAGES if path.is_relative_to(DOCS)}
    assert {f"commands/{name}.md" for name in COMMANDS} <= named.keys()


def test_an_index_links_the_pages_behind_it() -> None:
    for folder in FOLDERS:
        linked = {target for target, _ in links(PAGES[DOCS / folder / "index.md"])}
        assert {path.name for path in PAGES if path.parent == DOCS / folder} - {"index.md"} <= linked
