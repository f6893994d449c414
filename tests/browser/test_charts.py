"""Pictures in use: a mark per row, scopes that are entered, measures that change, clicks that lead to rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hlo_inspect
from hlo_inspect.report import RenderOptions
from hlo_inspect.report.html.model import Chart, Measure, Page, PageSection, PageView
from hlo_inspect.report.html.page import write_page
from hlo_inspect.report.model import Column, Input, Report, Table
from tests.browser.conftest import Opened, wait_until
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Locator
    from playwright.sync_api import Page as BrowserPage

DATA = Path(__file__).parents[1] / "data"
WITH_SOURCES = DATA / "cpu/adamw_step.after.txt"


def _picture(page: BrowserPage, name: str) -> Locator:
    """Scroll to a picture, wait until it is drawn, and return it."""
    figure = page.locator(f"figure[data-picture='{name}']")
    figure.scroll_into_view_if_needed()
    figure.locator(".main-svg").first.wait_for()
    page.wait_for_timeout(100)
    return figure


def _drawn(figure: Locator) -> list[dict[str, Any]]:
    """Return the traces as Plotly has drawn them: their type, the number of marks and their sum."""
    traces: list[dict[str, Any]] = figure.locator(".drawing").evaluate(
        """area => area._fullData.map((trace) => ({
            type: trace.type, name: trace.name, marks: (trace.x ?? trace.values ?? []).length,
            sum: (trace.values ?? trace.x ?? []).reduce((sum, one) => sum + Number(one), 0),
        }))"""
    )
    return traces


def test_each_kernel_of_the_roofline_has_a_mark_that_leads_to_its_row(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    figure = _picture(page, "roofline")
    groups = page_data.table("kernel_groups")
    marks = [
        mark
        for trace in page_data.pictures()["roofline"]["figures"][0]["figure"]["data"]
        if "customdata" in trace
        for mark in zip(trace["customdata"], trace["hovertext"], strict=True)
    ]
    points = figure.locator(".scatterlayer .trace path.point")
    assert points.count() == len(dict(marks)) == len(marks) > 10
    for to, words in marks:
        assert groups.texts[int(to.partition(":")[2])][0] in words
    points.last.dispatch_event("mousemove")
    box = points.last.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.up()
    wait_until(page, "location.hash.startsWith('#table/kernel_groups/')")
    row = int(page.evaluate("location.hash").rpartition("/")[2])
    page.wait_for_selector("[id='table/kernel_groups'] tr.here")
    assert page.locator("[id='table/kernel_groups'] tr.here td").first.inner_text() == groups.texts[row][0]
    assert f"kernel_groups:{row}" == marks[-1][0]  # the row of the last point


def test_a_file_is_entered_and_left_by_keys(written: Callable[..., Path], opened: Opened) -> None:
    """Tab leads to one node of a tree alone; the second node is the first file, and the bar above leads back."""
    page = opened(written(WITH_SOURCES))
    figure = _picture(page, "source-tree")
    drawing = figure.locator(".drawing").element_handle()
    assert figure.locator("[tabindex='0']").count() == 1
    figure.locator("g.slice").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == figure.locator("g.slice").nth(1).text_content()
    page.keyboard.press("Enter")
    wait_until(page, "area => area._fullData[0].level === 'n1'", drawing)
    page.wait_for_selector("[id='picture/source-tree'] g.pathbar[role='button']")
    figure.locator("g.pathbar").first.focus()
    page.keyboard.press("Enter")
    wait_until(page, "area => area._fullData[0].level !== 'n1'", drawing)


def test_a_file_is_entered_and_the_measure_changes(written: Callable[..., Path], opened: Opened) -> None:
    page = opened(written(WITH_SOURCES))
    figure = _picture(page, "source-tree")
    drawing = figure.locator(".drawing")
    figure.get_by_role("button", name="FLOPs").click()
    facts = hlo_inspect.inspect(WITH_SOURCES, "cost").facts
    (trace,) = _drawn(figure)
    assert trace["sum"] == facts["cost.executed_flops"]
    slices = figure.locator("g.slice")
    assert slices.count() > 3
    slices.nth(1).click()
    wait_until(page, "area => area._fullData[0].level === 'n1'", drawing.element_handle())
    figure.get_by_role("button", name="Bytes").click()
    (trace,) = _drawn(figure)
    assert trace["sum"] == facts["cost.executed_bytes_accessed"]


def test_every_picture_of_a_tpu_module_is_drawn(written: Callable[..., Path], opened: Opened) -> None:
    path = written(DATA / "tpu" / "gathered_matmul.after.txt")
    page = opened(path)
    pictures = PageData(path.read_text(encoding="utf-8")).pictures()
    assert {"roofline", "scope-tree"} & set(pictures)
    for name in pictures:
        _picture(page, name)


def test_each_measure_has_its_text(tmp_path: Path, opened: Opened) -> None:
    """A screen reader gets the text of the drawn measure; a measure without a text has that of the picture."""
    measures = tuple(
        Measure(label, {"data": [{"type": "bar", "x": [1], "y": ["a"]}], "layout": {}}, text)
        for label, text in (("FLOPs", "a: 7 FLOP"), ("Bytes", "a: 9 B"), ("Runs", ""))
    )
    chart = Chart("bars", "Bars", "A bar.", "of the picture", measures[0].figure, "cost", measures)
    table = Table("cost", "Cost", (Column("name"),), (("a",),))
    report = Report("cost", Input("a.txt", 1, 1, 1), {"module.name": "m"}, (table,))
    view = PageView("", "m", report, (PageSection("cost", "Cost", (chart,), ("cost",)),), report.tables)
    path = tmp_path / "measures.html"
    with path.open("w", encoding="utf-8") as stream:
        write_page(Page((view,), {}), stream, RenderOptions())
    figure = _picture(opened(path), "bars")
    said = []
    for label in ("FLOPs", "Bytes", "Runs"):
        figure.get_by_role("button", name=label).click()
        said.append(figure.locator(".drawing").get_attribute("aria-label"))
    assert said == ["a: 7 FLOP", "a: 9 B", "of the picture"]


@pytest.mark.parametrize("width", [1280, 390])
def test_legends_and_texts_are_beside_the_marks(width: int, path: Path, opened: Opened) -> None:
    """No legend lies over the marks of its picture, and no picture is wider than its place."""
    page = opened(path, width)
    for figure in page.locator("figure[data-picture]").all():
        _picture(page, figure.get_attribute("data-picture") or "")
        over: bool = figure.locator(".drawing").evaluate(
            """area => {
                const box = (one) => one.getBoundingClientRect();
                const legend = area.querySelector(".legend"), plot = area.querySelector(".bglayer .bg, .cartesianlayer .plot");
                if (!legend || !plot) return false;
                return box(legend).bottom > box(plot).top + 2 && box(legend).top < box(plot).bottom;
            }"""
        )
        assert not over, figure.get_attribute("data-picture")
        inside: bool = figure.locator(".drawing").evaluate("area => area.scrollWidth <= area.clientWidth + 1")
        assert inside, figure.get_attribute("data-picture")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_colours_follow_the_readers_setting(path: Path, opened: Opened) -> None:
    def ground(scheme: str) -> str:
        page = opened(path, scheme=scheme)
        figure = _picture(page, "step")
        page.wait_for_timeout(300)
        colour: str = figure.locator(".drawing").evaluate("area => area._fullLayout.paper_bgcolor")
        return colour

    assert ground("light") == "#ffffff"
    assert ground("dark") == "#15181c"
