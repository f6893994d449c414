"""Names of dumps that are markup, scripts or templates: on the page they are text, with its policy and without."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.report.formats.csv import render_csv
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Column, Table
from tests.browser.conftest import WatchedPage, wait_until
from tests.browser.hostile_dump import hostile_module, in_one_line
from tests.browser.hostile_names import hostile_names
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = hostile_names()

SHOWN = {"with its policy": ("", "m7"), "without a policy": ("", "m1")}
"""The views that are looked at: of both files, and one with all names. What runs nowhere without a policy breaks none."""

COPIED = ("params", "collectives", "custom_calls_by_target")
"""Tables whose texts are hostile names, those of cells of spreadsheets among them."""

ELEMENTS = """() => {
  const all = [...document.querySelectorAll("*")];
  const attributes = all.flatMap((one) => [...one.attributes].map((other) => [one.localName, other.name, other.value]));
  return {
    scripts: [...document.scripts].map((one) => one.type),
    names: [...new Set(all.map((one) => one.localName))],
    handlers: attributes.filter(([, name]) => name.startsWith("on")),
    links: attributes.filter(([, name, value]) => /(href|src|action|data)$/.test(name) && !/^(#|data:image.png;)/.test(value)),
    hostile: window.hostile ?? null,
  };
}"""
"""Content of the page, and the result of a hostile name that ran."""

SHOW = """async (view) => {
  location.hash = view ? `#${view}` : "#top";
  while (![...document.querySelectorAll("main")].some((one) => one.dataset.view === view && !one.hidden)) {
    await new Promise((done) => setTimeout(done, 15));
  }
  const main = [...document.querySelectorAll("main")].find((one) => one.dataset.view === view);
  for (const one of main.querySelectorAll("details")) one.open = true;
}"""

DRAW = """async (view) => {
  const main = [...document.querySelectorAll("main")].find((one) => one.dataset.view === view);
  for (const one of main.querySelectorAll("figure, details.table, details.finding")) {
    one.scrollIntoView({ block: "center" });
    let turns = one.matches("figure") ? 600 : 1;
    do await new Promise((done) => setTimeout(done, 15));
    while (--turns && !one.querySelector("svg.picture, canvas"));
  }
  const figures = [...main.querySelectorAll("figure")];
  for (let turns = 2000; turns && figures.some((one) => !one.querySelector("svg.picture, canvas")); turns -= 1) {
    await new Promise((done) => setTimeout(done, 15));
  }
  const drawings = figures.map((one) => one.querySelector(".drawing"));
  for (const one of drawings) {
    one.focus();
    for (let turns = 0; turns < 5; turns += 1) one.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  }
  return drawings.length;
}"""
"""Draws all pictures of a view, for each of which it waits, and shows a hover on each."""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page of a module with all names, and of twelve with a few each, from files with hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    inputs = [folder / "<img src=x onerror=window.hostile=1>{{7*7}}.txt", folder / "a\udcff\u202e'\"&.txt"]
    inputs[0].write_text(hostile_module(NAMES), encoding="utf-8")
    inputs[1].write_text("\n".join(hostile_module(NAMES, 11 * number, 5) for number in range(12)), encoding="utf-8")
    output = folder / "page.html"
    assert run(["report", *map(str, inputs), "-q", "-o", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def page_data(page_file: Path) -> PageData:
    return PageData(page_file.read_text(encoding="utf-8"))


def test_all_names_are_on_the_page(page_data: PageData) -> None:
    """Each name is in some table as it was written, or as lines can hold it: the other tests are about something.

    Only a surrogate alone cannot be in a text of UTF-8: its bytes are read as escapes.
    """
    cells = {cell for table in page_data.tables("m1").values() for row in table.rows for cell in row if isinstance(cell, str)}
    every = "\n".join(cells)
    missing = [name for name in NAMES if name not in every and in_one_line(name) not in every]
    assert all("\ud800" in name or "\udfff" in name for name in missing)


@pytest.fixture(scope="module", params=SHOWN)
def watched_page(browser: Browser, page_file: Path, request: pytest.FixtureRequest) -> Iterator[WatchedPage]:
    """Yield the page with the tables of some views open and their pictures drawn."""
    watched = WatchedPage(browser, page_file, without_policy=request.param == "without a policy")
    for view in SHOWN[request.param]:
        watched.page.evaluate(SHOW, view)
        assert watched.page.evaluate(DRAW, view) > 2 or not view
    yield watched
    watched.context.close()


def test_nothing_runs_and_nothing_is_loaded(watched_page: WatchedPage) -> None:
    content: dict[str, Any] = watched_page.page.evaluate(ELEMENTS)
    assert content["hostile"] is None
    assert watched_page.problems == []
    assert set(content["scripts"]) <= {"", "application/json", "application/octet-stream"}
    assert content["scripts"].count("") == 1  # the page's own; those of libraries remove themselves
    assert not {"img", "iframe", "object", "embed", "base", "form", "math", "plaintext", "textarea"} & set(content["names"])
    assert content["handlers"] == []
    assert content["links"] == []


CARDS = """async () => {
  const OWN = "header h2 span button p pre dl div dt dd ul ol li a details summary".split(" ");
  location.hash = "#m1";
  await arrived("m1");
  const table = data("m1", "table", "instructions"), names = columnOf(table, "name"), all = await lines("m1");
  const dialog = document.getElementById("instruction"), wrong = [];
  let cards = 0;
  for (let row = 0; row < table.rows; row += 2) {
    cards += 1;
    showInstruction("m1", valueAt(names, row), String(row));
    await Promise.resolve();
    const title = document.getElementById("instruction-name").textContent, line = dialog.querySelector("pre").textContent;
    const foreign = [...dialog.querySelectorAll("*")].filter((one) => !OWN.includes(one.localName));
    if (title !== valueAt(names, row) || line !== all[row] || foreign.length) wrong.push([title, line, foreign.length]);
  }
  dialog.close();
  return [cards, wrong];
}"""
"""Shows the card of every second instruction. Returns their number, and those with markup or with a wrong name or line."""


@pytest.mark.parametrize("watched_page", ["without a policy"], indirect=True)
def test_instructions_are_shown_as_text(watched_page: WatchedPage) -> None:
    cards, wrong = watched_page.page.evaluate(CARDS)
    assert cards >= len(NAMES)
    assert wrong == []
    assert watched_page.page.evaluate("window.hostile ?? null") is None


@pytest.mark.parametrize("watched_page", ["with its policy"], indirect=True)
def test_copies_as_csv_have_the_fields_of_the_command(watched_page: WatchedPage, page_data: PageData) -> None:
    """Copies of the page and `--format csv` escape a name in one way: no control characters, no formulas."""
    page = watched_page.page
    copied = 0
    for name in COPIED:
        table = page_data.table(name, "m1")
        page.evaluate("name => { location.hash = `#m1/table/${name}`; }", name)
        page.locator(f"[data-view='m1'] [data-of='{name}']").get_by_role("button", name="Copy as CSV").dispatch_event("click")
        wait_until(page, "document.getElementById('said').textContent.startsWith('Copied ')")
        rows = list(csv.reader(StringIO(page.evaluate("navigator.clipboard.readText()"))))
        page.evaluate("document.getElementById('said').textContent = ''")
        fields = list(csv.reader(StringIO(csv_text([tuple(table.names), *table.rows]))))
        texts = [number for number, unit in enumerate(table.units) if unit == "text"]
        assert [[row[number] for number in texts] for row in rows] == [[row[number] for number in texts] for row in fields]
        assert all(field.isprintable() and not field.startswith(("=", "+", "-", "@")) for row in rows for field in row if field)
        copied += sum(bool(row[number]) for row in rows for number in texts)
    assert copied > len(NAMES)


def csv_text(rows: Sequence[tuple[object, ...]]) -> str:
    """Return rows of one table as the command writes them."""
    columns = tuple(Column(str(number)) for number in range(len(rows[0])))
    report = Report("params", Input("a.txt", 1, 1, 1), {}, (Table("t", "T", columns, tuple(rows)),))  # type: ignore[arg-type]
    written = StringIO()
    render_csv([report], written, RenderOptions())
    return written.getvalue().partition("\n")[2]
