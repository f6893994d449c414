"""Content of a page in a browser: switches of tables, cards of instructions, comparisons, and what axe finds."""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hlo_inspect
from hlo_inspect.cli.commands.report import PASSES
from hlo_inspect.cli.main import run
from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.units import as_unit, parse_quantity
from tests.browser.conftest import Opened, wait_until
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Page

DATA = Path(__file__).parents[1] / "data"
DUMP = DATA / "cpu" / "adamw_step.after.txt"
COMPARED = (DUMP, DATA / "cpu" / "sgd_unused.after.txt")
AXE = os.environ.get("HLO_INSPECT_AXE", "")

Written = Callable[..., Path]

QUANTITIES = {"bytes", "seconds", "count", "flops"}

SHOWN_TEXTS = """async (picks) => {
  const texts = [];
  for (const [table, row, name] of picks) {
    const details = placeOf("", table);
    choose(details, table);
    details.open = true;
    const { made, shown } = await makeTable(details);
    const column = shown.findIndex((one) => one.name === name);
    made.column(column).visible(true);
    texts.push([made.cell(row, column).render("display"), details.querySelector("summary").textContent]);
  }
  return texts;
}"""
"""Switches to each table, and returns the text of a cell and the summary of the place."""


@pytest.fixture(scope="module")
def path(written: Written) -> Path:
    return written(DUMP, "--profile", "h100-sxm")


@pytest.fixture(scope="module")
def page_data(path: Path) -> PageData:
    return PageData(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def comparison(written: Written) -> Path:
    return written(*COMPARED, "--diff")


def _json_tables(tmp_path: Path) -> dict[str, Any]:
    """Return the tables of a comparison as JSON has them, by name."""
    output = tmp_path / "diff.json"
    assert run(["diff", *map(str, COMPARED), "-q", "--format", "json", "-o", str(output)]) == 0
    report = json.loads(output.read_text(encoding="utf-8"))
    return {table["name"]: table for table in report["tables"]}


def _assert_shown(page: Page, tables: dict[str, Any], count: int) -> None:
    """Compare numbers of tables, chosen at random, with the cells that readers see."""
    cells = [
        (name, row, column["name"], value)
        for name, table in tables.items()
        for row, values in enumerate(table["rows"])
        for column, value in zip(table["columns"], values, strict=True)
        if column["unit"] in QUANTITIES and isinstance(value, int | float) and not column["name"].endswith("_bound")
        if column["unit"] != "seconds" or not 0 < abs(value) < 1e-11  # printed as "< 0.01 ns"
    ]
    chosen = random.Random(46).sample(cells, count)  # noqa: S311 - the same cells each time
    units = {(name, column["name"]): column["unit"] for name, table in tables.items() for column in table["columns"]}
    texts = page.evaluate(SHOWN_TEXTS, [[table, row, column] for table, row, column, _ in chosen])
    for (table, _, column, value), (text, summary) in zip(chosen, texts, strict=True):
        unit = as_unit(units[table, column])
        number = text.replace(",", "").removeprefix("+") + ("FLOP" if unit == "flops" else "")
        assert math.isclose(parse_quantity(number, unit), value, rel_tol=0.05), (table, column, text, value)
        assert f"{len(tables[table]['rows']):,} row" in summary


def test_numbers_of_switched_tables_are_those_of_json(path: Path, page_data: PageData, opened: Opened) -> None:
    shown = {name for name in page_data.tables() if name not in ("instructions", "call_stacks")}
    report = hlo_inspect.inspect(DUMP, PASSES, profile="h100-sxm")
    tables = {
        table.name: {"columns": [{"name": column.name, "unit": column.unit} for column in table.columns], "rows": table.rows}
        for table in map(Table.flat, report.tables)
        if table.name in shown and len(table.columns) == len(page_data.table(table.name).names)
    }
    assert len(tables) > 30
    _assert_shown(opened(path), tables, 40)


def test_numbers_of_a_comparison_are_those_of_json(comparison: Path, opened: Opened, tmp_path: Path) -> None:
    page = opened(comparison)
    shown = PageData(comparison.read_text(encoding="utf-8")).tables()
    _assert_shown(page, {name: table for name, table in _json_tables(tmp_path).items() if name in shown}, 40)


def test_a_switch_keeps_what_was_done_to_a_table(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    page.evaluate("location.hash = '#table/kernels'")
    page.locator("[data-of='kernels']").get_by_label("Search").fill("backward")
    kernels = page.locator("details.table", has=page.locator("[data-choice='kernels']"))
    switch = kernels.get_by_role("group", name="Kernels", exact=True)
    assert [button.inner_text() for button in switch.get_by_role("button", pressed=True).all()] == ["single"]
    assert kernels.locator(".subtitle").inner_text() == page_data.table("kernels").title
    switch.get_by_role("button", name="merged").click()
    kernels.locator("[data-of='kernel_groups'] tbody td").first.wait_for()
    assert not kernels.locator("[data-of='kernels']").is_visible()
    assert page.evaluate("location.hash") == "#table/kernel_groups"
    switch.get_by_role("button", name="single").click()
    assert kernels.locator("[data-of='kernels']").get_by_label("Search").input_value() == "backward"
    kernels.locator("[data-of='kernels']").get_by_label("Search").fill("")


def test_long_names_lose_their_middle_and_sources_come_early(tmp_path: Path, opened: Opened) -> None:
    name, sentence = f"begin{'x' * 50}end", "a sentence of many words takes several lines and stays whole"
    columns = (Column("name"), Column("words"), Column("source"), Column("nothing", optional=True))
    table = Table("cost", "Cost", columns, ((name, sentence, "model.py:7", None),))
    report = Report("cost", Input("a.txt", 1, 1, 1), {"module.name": "m"}, (table,))
    path = tmp_path / "names.html"
    with path.open("w", encoding="utf-8") as stream:
        ALL_FORMATS["html"]([report], stream, RenderOptions())
    page = opened(path)
    page.evaluate("location.hash = '#table/cost/0'")
    page.locator("[data-of='cost'] tr.here").wait_for()
    heads = page.locator("[data-of='cost'] .dt-scroll-head th").all_inner_texts()
    assert [head.strip() for head in heads] == ["name", "source", "words"]
    cells = page.locator("[data-of='cost'] tr.here td")
    assert cells.all_inner_texts() == [f"begin{'x' * 14}…{'x' * 17}end", "model.py:7", sentence]
    assert cells.first.get_attribute("title") == name


def test_a_card_has_the_line_and_what_its_source_makes(path: Path, page_data: PageData, opened: Opened) -> None:
    """The line is that of the file; figures of 0 are left out; a source line leads to all of its instructions."""
    page = opened(path)
    instructions, kernels = page_data.table("instructions"), page_data.table("kernels")
    records = [dict(zip(instructions.names, row, strict=True)) for row in instructions.rows]
    sources = [record["source"] for record in records]
    names = [record["name"] for record in records]
    kernel = next(
        record
        for record in (dict(zip(kernels.names, row, strict=True)) for row in kernels.rows)
        if record["matmul_flops"] == 0 and record["source"] and names.count(record["name"]) == 1
    )
    record = records[names.index(kernel["name"])]
    page.evaluate("name => { location.hash = `#instruction/${encodeURIComponent(name)}`; }", record["name"])
    dialog = page.get_by_role("dialog")
    line = DUMP.read_text(encoding="utf-8").splitlines()[record["line"] - 1].strip()
    wait_until(page, "line => document.querySelector('dialog pre.line')?.textContent === line", line)
    assert dialog.get_by_role("heading").inner_text().endswith(f" % of the step · {kernel['phase']}")
    dialog.get_by_role("button", name="Copy line").click()
    wait_until(page, "document.getElementById('said').textContent === 'Copied the line'")
    assert page.evaluate("navigator.clipboard.readText()") == line
    figures = dialog.locator("dl.figures").inner_text().split()
    assert "accessed" in figures
    assert "matmul" not in figures
    everything = dialog.locator("details")
    everything.locator("summary").click()
    count = sources.count(record["source"])
    assert f"{count} instruction" in everything.locator("summary").inner_text()
    assert everything.locator("ul").first.locator("li").count() == count
    page.keyboard.press("Escape")


def test_a_comparison_begins_with_facts_and_marks_what_changed(comparison: Path, opened: Opened) -> None:
    page = opened(comparison)
    headings = page.locator("main:visible > section > h2").all_inner_texts()
    assert headings[0] == "Facts that differ"
    assert {"Memory at the peak", "Scopes"} <= set(headings)
    row = page.locator("[data-of='facts'] tbody tr", has_text="optimizer.name")
    row.wait_for()
    assert row.locator("mark").all_inner_texts() == ["adamw", "sgd"]


@pytest.mark.extras("HLO_INSPECT_AXE")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, path: Path, comparison: Path, opened: Opened) -> None:
    """Pages with their pictures and a table, and a card, break none of axe's rules."""
    for file, table in ((path, "kernel_groups"), (comparison, "facts")):
        page = opened(file, scheme=scheme)
        page.evaluate(
            """async (table) => {
                for (const one of document.querySelectorAll("main:not([hidden]) figure")) await draw(one);
                const main = document.querySelector("main:not([hidden])");
                for (const one of main.querySelectorAll("details.table")) one.open = false;
                const place = placeOf(viewOf(main), table);
                choose(place, table);
                place.open = true;
                await makeTable(place);
            }""",
            table,
        )
        page.evaluate(Path(AXE).read_text(encoding="utf-8") + "; undefined")
        violations = [page.evaluate(RUN_AXE)]
        if file == path:
            page.evaluate("location.hash = `#instruction/${valueAt(columnOf(data('', 'table', 'instructions'), 'name'), 0)}`")
            page.wait_for_selector("dialog[open]")
            violations.append(page.evaluate(RUN_AXE))
            page.keyboard.press("Escape")
        assert violations == [[]] * len(violations)


RUN_AXE = """async () => {
  const { violations } = await axe.run({ exclude: [["tbody tr:nth-child(n+3)"]] }, { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => [id, nodes[0].target.join(" ")]);
}"""
