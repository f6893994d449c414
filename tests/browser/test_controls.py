"""Controls of a page: they say what they did, the address keeps it, the search finds; little is made before it is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.browser.conftest import Opened, wait_until
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Page

DATA = Path(__file__).parents[1] / "data"
NODES = "() => { let all = 0; for (const walk = document.createTreeWalker(document); walk.nextNode();) all += 1; return all; }"


def _kernels(page: Page) -> None:
    page.evaluate("location.hash = '#table/kernels'")
    page.wait_for_selector("[data-of='kernels'] tbody tr td")


def test_a_filter_that_is_no_value_says_so(path: Path, opened: Opened) -> None:
    page = opened(path)
    _kernels(page)
    table = page.locator("[data-of='kernels']")
    table.get_by_label("Column to filter").select_option(label="accessed")
    field = table.get_by_label("Filter", exact=True)
    field.fill(">= 64 apples")
    assert table.locator(".fault").inner_text() == "not a value of accessed; for example >= 64 KiB"
    field.fill(">= 64 KiB")
    assert table.locator(".fault").inner_text() == ""
    field.fill("")


def test_filter_sort_and_search_stand_in_the_address(path: Path, page_data: PageData, opened: Opened) -> None:
    """A fresh page at the address shows the same rows in the same order."""
    page = opened(path)
    _kernels(page)
    table = page.locator("[data-of='kernels']")
    table.get_by_label("Column to filter").select_option(label="accessed")
    table.get_by_label("Filter", exact=True).fill(">= 64 KiB")
    table.get_by_label("Search").fill("fusion")
    table.locator(".dt-scroll-head th", has_text="accessed").click()
    hash_of_table = f"#table/kernels/search/fusion/filter/bytes/{quote('>= 64 KiB', safe='')}/sort/bytes/desc"
    wait_until(page, "expected => location.hash === expected", hash_of_table)
    shown = table.locator(".dt-info").inner_text(), table.locator("tbody tr td").first.inner_text()
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}{hash_of_table}")
    page.wait_for_selector("[data-of='kernels'] tbody tr td")
    wait_until(page, "document.querySelector(\"[data-of='kernels'] .dt-info\").textContent.includes('of')")
    assert (table.locator(".dt-info").inner_text(), table.locator("tbody tr td").first.inner_text()) == shown
    assert table.get_by_label("Filter", exact=True).input_value() == ">= 64 KiB"
    kernels = page_data.table("kernels")
    column = kernels.names.index("bytes")
    rows = zip(kernels.rows, kernels.texts, strict=True)
    left = [row for row, texts in rows if row[column] >= 64 * 1024 and any("fusion" in text.lower() for text in texts)]
    assert shown[0].startswith(f"{len(left)} rows")
    table.get_by_role("button", name="Copy as CSV").click()
    wait_until(
        page, "text => document.getElementById('said').textContent === text", f"Copied {len(left)} of {len(kernels.rows)} rows"
    )
    page.evaluate("location.hash = '#table/kernels/search/'")
    wait_until(page, "document.querySelector(\"[data-of='kernels'] input[type=search]\").value === ''")


def test_a_key_opens_the_search_of_the_page(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    finder = page.locator("#finder")
    instruction = page_data.table("instructions").rows[40][0]
    for words, kind, hash_of_found in (
        (instruction, "instruction", f"#instruction/{quote(instruction, safe='')}"),
        ("kernels single", "", ""),
        (page_data.table("params").title, "table", "#table/params"),
    ):
        wait_until(page, "() => !document.querySelector('dialog[open]')")
        page.locator("body").press("/")
        wait_until(page, "() => document.querySelector('#finder[open]')?.contains(document.activeElement)")
        page.keyboard.type(words)
        if not kind:
            assert finder.locator(".nothing").inner_text() == "nothing found"
            page.keyboard.press("Escape")
            continue
        link = finder.locator("a", has_text=words).and_(page.locator(f"[href='{hash_of_found}']"))
        assert link.locator(".kind").inner_text() == kind
        page.keyboard.press("ArrowDown")
        assert finder.locator("a").first.evaluate("link => link === document.activeElement")
        link.click()
        wait_until(page, "expected => location.hash === expected", hash_of_found)
        assert not finder.is_visible()
        if kind == "instruction":
            page.locator("#instruction[open]").wait_for()
            page.keyboard.press("Escape")


def test_libraries_come_when_they_are_needed(written: Callable[..., Path], opened: Opened) -> None:
    """Tables are evaluated when they are near, pictures when the page is idle: it can be printed at once."""
    page = opened(written(DATA / "memory" / "gpu_unrolled.hlo"))
    page.set_viewport_size({"width": 1280, "height": 120})
    page.evaluate("scrollTo(0, 0)")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.wait_for_timeout(100)
    assert page.evaluate("typeof window.DataTable") == "undefined"
    assert page.evaluate(NODES) < 5_000
    page.evaluate("location.hash = '#table/kernels'")
    page.wait_for_selector("[data-of='kernels'] tbody tr td")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("document.querySelector('figure').scrollIntoView()")
    wait_until(page, "typeof window.drawFigure === 'function'")
