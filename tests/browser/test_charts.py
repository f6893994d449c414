"""Pictures in use: a mark per row, scopes that are entered, measures that change, clicks that lead to rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hlo_inspect
from hlo_inspect.report.formats import RenderOptions
from hlo_inspect.report.formats.html.charts.drawings import Bar, BarSeries, bars_figure
from hlo_inspect.report.formats.html.page_model import Chart, Measure, Page, PageSection, PageView, TableGroup
from hlo_inspect.report.formats.html.page_text import write_page
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.units import format_value
from tests.browser.conftest import Opened, wait_until
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Locator
    from playwright.sync_api import Page as BrowserPage

DATA = Path(__file__).parents[1] / "data"
WITH_SOURCES = DATA / "cpu/adamw_step.after.txt"


TEXTS = """area => {
  const outside = area.getBoundingClientRect(), faults = [];
  const texts = [...area.querySelectorAll("text")];
  const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect(), text.matches(".note")]);
  for (const [text, box] of boxes) if (box.left < outside.left - 1 || box.right > outside.right + 1) faults.push(text);
  const notes = boxes.filter(([, , isNote]) => isNote);
  notes.forEach(([text, one], at) => {
    for (const [, other] of notes.slice(at + 1)) {
      const [across, up] = [Math.max(one.left, other.left), Math.max(one.top, other.top) + 2];
      if (across < Math.min(one.right, other.right) && up < Math.min(one.bottom, other.bottom)) faults.push(text);
    }
  });
  return faults;
}"""


def _picture(page: BrowserPage, name: str) -> Locator:
    """Scroll to a picture, wait until it is drawn, and return it."""
    figure = page.locator(f"figure[data-picture='{name}']")
    figure.scroll_into_view_if_needed()
    figure.locator("svg.picture, canvas").first.wait_for()
    page.wait_for_timeout(100)
    return figure


def becomes(locator: Locator, expression: str, expected: object) -> None:
    """Wait until a function of an element returns a value: a page draws again some time after its size or colours change."""
    for _ in range(200):
        value = locator.evaluate(expression)
        if value == expected:
            return
        locator.page.wait_for_timeout(50)
    raise AssertionError(value)


def test_each_kernel_of_the_roofline_has_a_mark_that_leads_to_its_row(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    figure = _picture(page, "roofline")
    groups = page_data.table("kernel_groups")
    marks = [
        mark
        for trace in page_data.pictures()["roofline"]["figures"][0]["figure"]["data"]
        if trace["keys"]
        for mark in zip(trace["keys"], trace["hovers"], strict=True)
    ]
    points = figure.locator("circle.point")
    assert points.count() == len(dict(marks)) == len(marks) > 10
    for to, words in marks:
        assert groups.texts[int(to.partition(":")[2])][0] in words
    point = points.last
    point.hover(force=True)
    words = figure.locator(".beside").inner_text()
    key = next(key for key, hover in marks if hover.replace("\n", "") == words.replace("\n", ""))
    point.dispatch_event("click")
    wait_until(page, "key => location.hash === `#table/${key.replace(':', '/')}`", key)
    page.wait_for_selector("[data-of='kernel_groups'] tr.here")
    row = int(key.rpartition(":")[2])
    assert page.locator("[data-of='kernel_groups'] tr.here td").first.inner_text() == groups.texts[row][0]


def test_marks_are_walked_by_keys(written: Callable[..., Path], opened: Opened) -> None:
    """Tab leads to a picture, arrows to its marks, and Enter into a file; the path above leads out again."""
    page = opened(written(WITH_SOURCES))
    figure = _picture(page, "source-tree")
    figure.locator(".drawing").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    said = page.locator("#said").inner_text()
    assert said.startswith(figure.locator(".beside b").inner_text())
    page.keyboard.press("Enter")
    wait_until(page, "figure => figure.querySelectorAll('.path button').length === 2", figure.element_handle())
    figure.locator(".path button").first.focus()
    page.keyboard.press("Enter")
    wait_until(page, "figure => !figure.querySelector('.path')", figure.element_handle())
    assert page.evaluate("document.activeElement.className") == "drawing"


def test_a_file_is_entered_and_the_measure_changes(written: Callable[..., Path], opened: Opened) -> None:
    """The widths of lines are their parts of a file, also of another measure."""
    page = opened(written(WITH_SOURCES))
    figure = _picture(page, "source-tree")
    figure.get_by_role("button", name="FLOPs").click()
    flops = hlo_inspect.inspect(WITH_SOURCES, "cost").facts["cost.executed_flops"]
    assert isinstance(flops, int)
    whole = figure.locator("rect.node").first
    whole.hover(force=True)
    assert format_value(flops, "flops") in figure.locator(".beside").inner_text()
    assert figure.locator("rect.node").count() > 3
    first = figure.locator("rect.node").nth(1)
    before = first.evaluate("node => node.getBoundingClientRect().width")
    first.click(force=True)
    wait_until(page, "figure => figure.querySelectorAll('.path button').length === 2", figure.element_handle())
    assert whole.evaluate("node => node.getBoundingClientRect().width") > before
    figure.get_by_role("button", name="Bytes").click()
    assert figure.locator(".path button").count() == 2


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
        Measure(label, bars_figure(["a", "b"], [BarSeries("", "$series-0", [Bar(0, 1, "a"), Bar(1, 2, "b")])], "count"), text)
        for label, text in (("FLOPs", "a: 7 FLOP"), ("Bytes", "a: 9 B"), ("Runs", ""))
    )
    chart = Chart("bars", "Bars", "A bar.", "of the picture", measures[0].figure, "cost", measures)
    table = Table("cost", "Cost", (Column("name"),), (("a",),))
    report = Report("cost", Input("a.txt", 1, 1, 1), {"module.name": "m"}, (table,))
    view = PageView("", "m", report, (PageSection("cost", "Cost", (chart,), (TableGroup.of_one("cost"),)),), report.tables)
    path = tmp_path / "measures.html"
    with path.open("w", encoding="utf-8") as stream:
        write_page(Page((view,), {}), stream, RenderOptions())
    figure = _picture(opened(path), "bars")
    said = []
    for label in ("FLOPs", "Bytes", "Runs"):
        figure.get_by_role("button", name=label).click()
        said.append(figure.locator(".drawing").get_attribute("aria-label"))
    assert [text.partition(". ")[0] for text in map(str, said)] == ["a: 7 FLOP", "a: 9 B", "of the picture"]


@pytest.mark.parametrize("width", [1280, 390])
def test_texts_are_inside_of_their_picture(width: int, path: Path, opened: Opened) -> None:
    """No picture is wider than its place, no text leaves its picture, and no two notes of a picture meet."""
    page = opened(path, width)
    for figure in page.locator("figure[data-picture]").all():
        _picture(page, figure.get_attribute("data-picture") or "")
        becomes(figure.locator(".drawing"), "area => area.scrollWidth <= area.clientWidth + 1", expected=True)
        becomes(figure.locator(".drawing"), TEXTS, [])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_colours_follow_the_readers_setting(path: Path, opened: Opened) -> None:
    for scheme, colour in (("light", "rgb(0, 114, 178)"), ("dark", "rgb(61, 155, 214)")):
        bar = _picture(opened(path, scheme=scheme), "step").locator("rect.bar").first
        becomes(bar, "bar => getComputedStyle(bar).fill", colour)
