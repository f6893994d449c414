"""Pages of several modules, of two compared and of compiler passes, in a browser: pictures are drawn, links lead on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opened, wait_until
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Page

DATA = Path(__file__).parents[1] / "data"

Written = Callable[..., Path]


@pytest.fixture(scope="session")
def twelve(tmp_path_factory: pytest.TempPathFactory, written: Written) -> Path:
    """Write the page of a dump directory of twelve modules."""
    folder = tmp_path_factory.mktemp("twelve")
    for number, dump in enumerate(sorted((DATA / "handmade").glob("[a-d]*.txt"))[:12]):
        (folder / f"module_{number:04d}.m{number}.cpu_after_optimizations.txt").write_bytes(dump.read_bytes())
    return written(folder)


def draw(page: Page, picture: str) -> None:
    page.evaluate("name => document.getElementById(name).scrollIntoView()", picture)
    page.wait_for_selector(f"[id='{picture}'] svg.picture")


def test_a_row_of_the_index_leads_to_its_module_and_back(twelve: Path, opened: Opened) -> None:
    page = opened(twelve)
    index = PageData(twelve.read_text(encoding="utf-8")).table("modules")
    assert len(index.rows) == 12
    link = index.links[3]
    rows = page.locator("[data-of='modules'] .dt-container tbody tr")
    rows.first.wait_for()
    assert page.locator("svg.picture").count() == 0  # modules are made when they are shown
    rows.nth(3).get_by_role("link").first.click()
    wait_until(page, "() => !document.querySelector('main[data-view=\"\"]')?.checkVisibility()")
    view = page.locator(f"main[data-view='{link[1:]}']")
    assert view.is_visible()
    assert index.rows[3][index.names.index("path")].rpartition("/")[2] in view.locator(".details").inner_text()
    assert page.locator("main:visible").count() == 1
    assert view.locator("nav.views [aria-current=page]").get_attribute("href") == link
    view.get_by_role("link", name="12 modules").click()
    wait_until(page, "() => document.querySelector('main[data-view=\"\"]')?.checkVisibility()")


def test_a_page_of_changes_begins_with_them_and_links_both_modules(written: Written, opened: Opened) -> None:
    path = written(DATA / "cpu" / "sgd_unused.after.txt", DATA / "gpu" / "sgd_unused.after.txt", "--diff")
    page = opened(path)
    assert page.get_by_role("heading", level=1).locator("visible=true").inner_text() == "Changes in jit_step"
    draw(page, "picture/differences-by-kind")
    draw(page, "picture/before-and-after")
    page.locator("[id='picture/before-and-after'] .measures button", has_text="Instructions").click()
    opcodes = [
        row for row in PageData(path.read_text(encoding="utf-8")).table("facts").rows if str(row[0]).startswith("opcode.")
    ]
    bars = "() => document.querySelectorAll(\"[id='picture/before-and-after'] rect.bar\").length"
    assert len(opcodes) > 10
    wait_until(page, f"{bars} === {2 * len(opcodes)}")  # one before and one after
    page.get_by_role("link", name="NEW: jit_step").first.click()
    wait_until(page, "() => document.querySelector('main[data-view=\"new\"]')?.checkVisibility()")


def test_a_mark_of_a_pass_leads_to_its_row(written: Written, opened: Opened) -> None:
    path = written(DATA / "pass_dumps")
    page = opened(path)
    draw(page, "picture/collectives-by-pass")
    history = PageData(path.read_text(encoding="utf-8")).table("history")
    kinds = [column for column, name in enumerate(history.names) if name in {"all_reduce", "all_gather"}]
    marks = page.locator("[id='picture/collectives-by-pass'] rect.bar")
    assert marks.count() == sum(bool(row[column]) for row in history.rows for column in kinds)
    page.evaluate("location.hash = '#table/history/4'")
    page.wait_for_selector("[data-of='history'] tr.here")
    assert "spmd-partitioning" in page.locator("[data-of='history'] tr.here").inner_text()
