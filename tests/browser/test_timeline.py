"""The timeline in use: the wheel zooms, a drag pans, ticks follow, names are found, and ten thousand kernels stay fluid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hlo_inspect.report.formats import RenderOptions
from hlo_inspect.report.formats.html.charts.timeline_chart import timeline_chart
from hlo_inspect.report.formats.html.page_model import Page, PageSection, PageView, TableGroup
from hlo_inspect.report.formats.html.page_text import write_page
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table
from tests.browser.conftest import Opened, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle
    from playwright.sync_api import Page as BrowserPage

KERNELS = 10_000
SECONDS = 1e-6
"""The time of each kernel: one begins when the one before ends."""

LONGEST_FRAME = 1000 / 30
STATE = "area => [area.timeline.from, area.timeline.to]"
TICKS = "area => area.timeline.ticks.map((tick) => [tick.time, tick.text])"
FRAMES = """async (area) => {
  const times = [];
  for (let turn = 0; turn < 30; turn += 1) {
    await new Promise(requestAnimationFrame);
    const begin = performance.now();
    area.timeline.pan(5);
    area.timeline.draw();
    times.push(performance.now() - begin);
  }
  return times.sort((one, other) => one - other)[15];
}"""


@pytest.fixture(scope="module")
def ten_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page of kernels one after the other, with a collective over each hundredth."""
    columns = (
        *(Column("stream"), Column("event"), Column("name"), Column("events", "count"), Column("iterations", "count")),
        *(Column(name, "seconds") for name in ("begin_s", "end_s", "span_s", "busy_s")),
        *(Column("kind"), Column("phase"), Column("source"), Column("line", "number")),
    )
    kernels = [_event("compute", f"kernel.{number}", number, 1, "forward") for number in range(KERNELS)]
    collectives = [_event("d0", f"all-gather.{number}", number, 10, "backward") for number in range(0, KERNELS, 100)]
    table = Table("timeline", "Timeline", columns, (*kernels, *collectives))
    chart = timeline_chart({"timeline": table})
    assert chart is not None
    assert chart.figure["data"][0]["streams"] == ["d0", "compute"]  # collectives above compute
    report = Report("time", Input("a.txt", 1, 1, 1), {"module.name": "m"}, (table,))
    section = PageSection("step", "Step", (chart,), (TableGroup.of_one("timeline"),))
    path = tmp_path_factory.mktemp("timeline") / "page.html"
    with path.open("w", encoding="utf-8") as stream:
        write_page(Page((PageView("", "m", report, (section,), report.tables),), {}), stream, RenderOptions())
    return path


def _event(stream: str, name: str, begin: int, length: int, phase: str) -> tuple[Any, ...]:
    times = (begin * SECONDS, (begin + length) * SECONDS, length * SECONDS, length * SECONDS)
    return (stream, "kernel", name, 1, 1, *times, "fusion", phase, "", 1)


def _area(page: BrowserPage) -> ElementHandle:
    page.wait_for_selector("figure[data-picture='timeline'] canvas")
    area = page.query_selector("figure[data-picture='timeline'] .drawing")
    assert area is not None
    page.evaluate("area => { area.timeline.select(null); area.timeline.whole(); }", area)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    return area


def _canvas(page: BrowserPage) -> tuple[float, float, float]:
    """Return the left end, the middle of the lane of kernels, and the width of the timeline."""
    canvas = page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return box["x"], box["y"] + 36 + 24, box["width"]


def test_the_wheel_zooms_and_ticks_follow(ten_thousand: Path, opened: Opened) -> None:
    """At each zoom there are ticks in sight, no two with one text, and the time under the mouse stays."""
    page = opened(ten_thousand)
    area = _area(page)
    left, middle, width = _canvas(page)
    page.mouse.move(left + width / 4, middle)
    for _ in range(18):
        begin, end = page.evaluate(STATE, area)
        ticks = page.evaluate(TICKS, area)
        assert 3 <= len(ticks) <= width / 80
        assert len({text for _, text in ticks}) == len(ticks)
        assert all(begin - 1e-12 <= time <= end + 1e-12 for time, _ in ticks)
        page.mouse.wheel(0, -200)
        wait_until(page, "([area, span]) => area.timeline.to - area.timeline.from < span", [area, end - begin])
        page.evaluate("() => new Promise(requestAnimationFrame)")
        closer, farther = page.evaluate(STATE, area)
        assert closer + (farther - closer) / 4 == pytest.approx(begin + (end - begin) / 4, rel=1e-3)
    assert end - begin < 20e-9
    page.get_by_role("button", name="Show the whole step").click()
    assert page.evaluate(STATE, area) == [0, pytest.approx(KERNELS * SECONDS)]


def test_a_drag_pans_and_a_click_leads_to_the_row(ten_thousand: Path, opened: Opened) -> None:
    page = opened(ten_thousand)
    area = _area(page)
    left, middle, width = _canvas(page)
    page.evaluate("area => area.timeline.show(0.002, 0.0001)", area)
    page.mouse.move(left + 600, middle)
    page.mouse.down()
    page.mouse.move(left + 400, middle, steps=4)
    page.mouse.up()
    begin, end = page.evaluate(STATE, area)
    assert begin == pytest.approx(0.002 + 0.0001 * 200 / width, rel=1e-6)
    assert end - begin == pytest.approx(0.0001)
    assert "timeline/" not in page.url
    page.mouse.click(left + 400, middle)
    wait_until(page, "location.hash.startsWith('#table/timeline/')")
    row = int((begin + 0.0001 * 400 / width) / SECONDS)
    assert page.evaluate("location.hash") == f"#table/timeline/{row}"
    page.locator("canvas").dblclick(position={"x": 1, "y": 2})
    assert page.evaluate(STATE, area)[0] == 0


def test_a_search_leads_to_each_instruction(ten_thousand: Path, opened: Opened) -> None:
    page = opened(ten_thousand)
    area = _area(page)
    field = page.get_by_label("Find an instruction on the timeline")
    field.fill("gather.77")
    begin, end = page.evaluate(STATE, area)
    assert begin < 7700 * SECONDS < 7710 * SECONDS < end < begin + 100 * SECONDS
    assert page.locator(".controls .rows").inner_text() == "1 of 1, Enter: next"
    field.fill("gather.1")
    assert page.locator(".controls .rows").inner_text() == "1 of 11, Enter: next"
    field.press("Enter")
    begin, end = page.evaluate(STATE, area)
    assert begin < 1000 * SECONDS < end
    field.fill("nowhere")
    assert page.locator(".controls .rows").inner_text() == "not on the timeline"
    field.fill("")


def test_keys_lead_from_event_to_event(ten_thousand: Path, opened: Opened) -> None:
    page = opened(ten_thousand)
    _area(page)
    page.locator("figure[data-picture='timeline'] .drawing").focus()
    said = []
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
        said.append(page.locator("#said").inner_text().partition(",")[0])
    assert said == ["kernel.0", "kernel.1", "all-gather.0"]
    page.keyboard.press("Enter")
    wait_until(page, f"location.hash === '#table/timeline/{KERNELS}'")


def test_ten_thousand_kernels_stay_fluid(ten_thousand: Path, opened: Opened) -> None:
    """A frame of panning, over the whole and over parts, is drawn in time for 30 frames a second."""
    page = opened(ten_thousand)
    area = _area(page)
    for part in (1, 0.1):
        page.evaluate("([area, part]) => area.timeline.show(0, area.timeline.end * part)", [area, part])
        assert page.evaluate(FRAMES, area) < LONGEST_FRAME
    wide = "area => { area.timeline.show(0, 1e-5); area.timeline.draw(); }"
    page.evaluate(wide, area)
    pixel = "() => [...document.querySelector('canvas').getContext('2d').getImageData(30, 36 + 16, 1, 1).data]"
    assert page.evaluate(pixel)[:3] == [0x00, 0x72, 0xB2]  # forward
