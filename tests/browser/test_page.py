"""A page in use: tables that sort, filter, search and copy, links that lead on, in both widths and on paper."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.figure import Figure, at_least
from hlo_inspect.report.filters import parse_filter, row_test, shows
from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Row, Table
from tests.browser.conftest import Opened, wait_until
from tests.browser.page_data import PageData

if TYPE_CHECKING:
    from playwright.sync_api import Page


NAMES_AND_LOOP = """\
HloModule names, is_scheduled=true, num_partitions=4

%called (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  %x = f32[8] negate(%p)
  ROOT %y = f32[8] negate(%x)
}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body (s: (f32[], f32[16384])) -> (f32[], f32[16384]) {
  %s = (f32[], f32[16384]) parameter(0)
  %left = f32[] get-tuple-element(%s), index=0
  %array = f32[16384] get-tuple-element(%s), index=1
  %reduced = f32[16384] all-reduce(%array), replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %next = (f32[], f32[16384]) tuple(%left, %reduced)
}

%condition (v: (f32[], f32[16384])) -> pred[] {
  %v = (f32[], f32[16384]) parameter(0)
  %now = f32[] get-tuple-element(%v), index=0
  %zero = f32[] constant(0)
  ROOT %more = pred[] compare(%now, %zero), direction=GT
}

ENTRY %main (q: f32[8], r: f32[1024], i: f32[16384], n: f32[]) -> (f32[8], f32[1024], (f32[], f32[16384])) {
  %r = f32[1024] parameter(1)
  %x = f32[1024] exponential(%r)
  %q = f32[8] parameter(0)
  %c = f32[8] call(%q), to_apply=%called
  %i = f32[16384] parameter(2)
  %n = f32[] parameter(3)
  %begin = (f32[], f32[16384]) tuple(%n, %i)
  %loop = (f32[], f32[16384]) while(%begin), condition=%condition, body=%body
  ROOT %all = (f32[8], f32[1024], (f32[], f32[16384])) tuple(%c, %x, %loop)
}
"""
"""Two instructions called `x`, and a loop whose trip count is unknown."""

OPERATORS = ("=", "==", "!=", "<", "<=", ">", ">=", "~")
FILTER_VALUES = (
    *("?", '"?"', "5", "5KiB", ".5", "5.", ".", "1_000", "1__0", "1,000", "1e3", "1E-3", "1e9999", "0x10", "+4", "-1", "e3"),
    *("4MiB", "fusion", "Fusion", '"dot.1"', "dot", "dot$", "(x)", "[d", "yes", "no", "true"),
    *("5 MiB", "1 MB", "3 ms", "0.3 ms", "1 us", "1 µs", "7 %", "3 GB/s", "2 TFLOP/s", "1.1 kFLOP/s"),
    *("5 FLOP", "1.5 kFLOP", "2 MFLOP", "1 apple", "1 constructor", "constructor", f"1{'0' * 64}", f".{'0' * 31}1"),
)


def _open_table(page: Page, name: str) -> None:
    page.evaluate("name => { location.hash = `#table/${name}`; }", name)
    page.wait_for_selector(f"[data-of='{name}'] .dt-container tbody tr td")


def _column(page: Page, name: str, heading: str) -> list[str]:
    """Return the cells of a column that are on the screen, in their order."""
    cells: list[str] = page.evaluate(
        """([name, heading]) => {
            const table = document.querySelector(`[data-of='${name}']`).querySelector(".dt-scroll");
            const heads = [...table.querySelectorAll(".dt-scroll-head thead th")].map((one) => one.innerText.trim());
            const at = heads.indexOf(heading);
            return [...table.querySelectorAll(".dt-scroll-body tbody tr")].map((row) => row.cells[at].innerText);
        }""",
        [name, heading],
    )
    return cells


def _comes_to_begin_with(page: Page, name: str, heading: str, cells: list[str]) -> None:
    """Wait until the column begins with these cells."""
    for _ in range(100):
        if _column(page, name, heading)[: len(cells)] == cells:
            return
        page.wait_for_timeout(50)
    assert _column(page, name, heading)[: len(cells)] == cells


def test_a_column_sorts_by_its_values(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    _open_table(page, "kernels")
    heading = page.locator("[data-of='kernels'] .dt-scroll-head th", has_text="accessed")
    kernels = page_data.table("kernels")
    column = kernels.names.index("bytes")
    by_size = sorted(range(len(kernels.rows)), key=lambda row: kernels.rows[row][column])
    heading.click()
    _comes_to_begin_with(page, "kernels", "accessed", [kernels.texts[row][column] for row in reversed(by_size)][:5])
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    _comes_to_begin_with(page, "kernels", "accessed", [kernels.texts[row][column] for row in by_size][:5])
    assert heading.get_attribute("aria-sort") == "ascending"


def test_a_filter_compares_values_with_units(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    _open_table(page, "kernels")
    kernels = page_data.table("kernels")
    column = kernels.names.index("bytes")
    fitting = [row for row in kernels.rows if row[column] >= 64 * 1024]
    assert 0 < len(fitting) < len(kernels.rows)
    table = page.locator("[data-of='kernels']")
    table.get_by_label("Column to filter").select_option(label="accessed")
    table.get_by_label("Filter", exact=True).fill(">= 64 KiB")
    assert table.locator(".dt-info").inner_text().startswith(f"{len(fitting)} rows")
    table.get_by_label("Filter", exact=True).fill(">= 64 apples")
    assert table.get_by_label("Filter", exact=True).get_attribute("aria-invalid") == "true"
    table.get_by_label("Filter", exact=True).fill("")


def test_columns_are_chosen_from_a_menu(path: Path, opened: Opened) -> None:
    """The menu is inside of the window, however many columns there are."""
    page = opened(path)
    _open_table(page, "kernels")
    table = page.locator("[data-of='kernels']")
    table.get_by_role("button", name="Columns").click()
    menu = page.locator("div.dt-button-collection")
    box = menu.bounding_box()
    assert box is not None
    assert 0 <= box["y"] <= box["y"] + box["height"] <= 900
    assert menu.locator("[role=menu]").evaluate("one => one.scrollHeight > one.clientHeight")
    menu.get_by_text("computation", exact=True).click()
    page.keyboard.press("Escape")
    table.locator(".dt-scroll-head th", has_text="computation").wait_for()
    assert not menu.is_visible()


def test_search_and_copy_as_csv(path: Path, page_data: PageData, opened: Opened) -> None:
    """The copy has the raw values of the rows that are left, in all columns."""
    page = opened(path)
    _open_table(page, "kernels")
    table = page.locator("[data-of='kernels']")
    table.get_by_label("Search").fill("backward")
    table.get_by_role("button", name="Copy as CSV").click()
    wait_until(page, "document.getElementById('said').textContent.startsWith('Copied ')")
    copied = list(csv.reader(StringIO(page.evaluate("navigator.clipboard.readText()"))))
    kernels = page_data.table("kernels")
    left = [number for number, row in enumerate(kernels.texts) if any("backward" in cell for cell in row)]
    assert copied[0] == kernels.names
    assert len(copied) == 1 + len(left) > 10
    column = kernels.names.index("bytes")
    assert sorted(int(row[column]) for row in copied[1:]) == sorted(kernels.rows[number][column] for number in left)
    table.get_by_label("Search").fill("")


def test_the_first_lines_are_copied_as_text(path: Path, opened: Opened) -> None:
    page = opened(path)
    page.get_by_role("button", name="Copy as text").click()
    wait_until(page, "document.getElementById('said').textContent.startsWith('Copied ')")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0].startswith("jit_")
    assert any(line.startswith("compute ") for line in lines)


def test_a_name_leads_to_its_instruction_and_on(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    _open_table(page, "kernels")
    instructions = page_data.table("instructions")
    operands = {row[0]: row[4].split(", ") for row in instructions.rows}
    name = next(row[0] for row in page_data.table("kernels").rows if operands.get(row[0], [""])[0] in operands)
    page.locator("[data-of='kernels'] tbody").get_by_role("link", name=name, exact=True).first.click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading").inner_text().startswith(f"{name} · ")
    dialog.get_by_role("link", name=operands[name][0], exact=True).first.click()
    wait_until(page, "name => document.getElementById('instruction-name').textContent === name", operands[name][0])
    page.go_back()
    wait_until(page, "name => document.getElementById('instruction-name').textContent === name", name)
    dialog.get_by_role("link", name="Kernels: single", exact=True).click()
    page.wait_for_selector("tr.here")
    assert not dialog.is_visible()
    assert page.locator("tr.here td").first.inner_text() == name
    page.go_back()
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert "instruction" not in page.url


def test_a_merged_row_links_each_of_its_kernels(path: Path, page_data: PageData, opened: Opened) -> None:
    page = opened(path)
    _open_table(page, "kernel_groups")
    groups = page_data.table("kernel_groups")
    group = next(row for row in groups.rows if ".*" in row[0])
    sites = group[groups.names.index("sites")]
    page.locator("[data-of='kernel_groups'] tbody").get_by_role("link", name=group[0], exact=True).first.click()
    page.wait_for_selector("[data-of='kernels'] .dt-container tbody tr td")
    kernels = _column(page, "kernels", "name")
    assert sites <= len(kernels) < len(page_data.table("kernels").rows)
    assert all(name.startswith(group[0].split(".*")[0]) for name in kernels)


def test_the_page_is_as_wide_as_the_window(path: Path, opened: Opened) -> None:
    for width in (390, 1280):
        assert opened(path, width=width).evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_follows_the_color_scheme_of_the_reader(path: Path, opened: Opened) -> None:
    for scheme, paper in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 28)")):
        page = opened(path, scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        assert page.evaluate("document.documentElement.classList.contains('dark')") == (scheme == "dark")


def test_paper_has_the_first_rows_and_no_controls(path: Path, opened: Opened) -> None:
    page = opened(path, scheme="dark")
    _open_table(page, "kernel_groups")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("[id='table/kernel_groups'] table.static").is_visible()
    assert not page.locator("nav.sections").is_visible()
    assert not page.locator("[data-of='kernel_groups'] .dt-container").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("table.static").count() == 0


def test_pictures_are_drawn_for_paper(path: Path, opened: Opened) -> None:
    """In the colours of a light page and as wide as paper, also from a dark screen; then as they were."""
    page = opened(path, scheme="dark")
    drawing = "document.querySelector('#kernels figure svg.picture')"
    text = "getComputedStyle(document.documentElement).getPropertyValue('--c-text').trim()"
    page.evaluate("location.hash = '#kernels'")
    page.wait_for_selector("#kernels figure svg.picture")
    before = page.evaluate(f"[{text}, {drawing}.clientWidth]")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("[id='table/kernel_groups']").get_attribute("open") is not None
    assert page.evaluate(f"[{text}, {drawing}.clientWidth]") == ["#1c2024", 690]
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert before == page.evaluate(f"[{text}, {drawing}.clientWidth]")
    assert before[0] == "#e4e7ea"
    assert before[1] > 1000


def test_sections_without_anything_are_one_line_at_the_end(path: Path, opened: Opened) -> None:
    page = opened(path)
    *sections, empty = page.locator("main > section").all()
    assert all(section.locator("h2 ~ *").count() for section in sections)
    assert "This module has no custom calls." in empty.inner_text()
    assert page.locator("nav.sections a[href='#custom-calls']").count() == 0
    page.evaluate("location.hash = '#custom-calls'")  # an old address still leads to the reason
    assert page.locator("#custom-calls").is_visible()


FILTERED = Table(
    "cost",
    "Cost",
    (
        Column("name"),
        Column("size", "bytes", bounded=True),
        Column("time", "seconds"),
        Column("part", "share"),
        Column("rate", "bytes_per_s"),
        Column("speed", "flops_per_s"),
        Column("work", "flops"),
        Column("runs", "count"),
        Column("fits", "bool"),
        Column("words"),
    ),
    (
        ("a", 4 * 2**20, 0.003, 0.25, 3_000_000_000, 2e12, 5, 1, True, "dot.1"),
        ("b", Figure(4 * 2**20, 7 * 2**20, "a branch"), 0.0003, 0.07, 2_500_000, 1e9, 1_500, 1_000, False, "dot.2 (x)"),
        ("c", at_least(0, "a loop"), None, None, None, None, None, None, None, None),
        ("d", 1_000_000, 1e-6, 1.0, 0, 0, 0, 0, True, "Fusion dot"),
        ("e", 6 * 2**20, 1.5, 0.0, 10**13, 1.1e3, 2_000_000, 8, False, "?"),
        ("f", 0, 0, 0.5, 1, 1, 1, 2, True, "yes"),
    ),
)


@pytest.fixture(scope="module")
def tables_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a table to filter, and of one with 10,000 rows."""
    texts = range(10)
    columns = (Column("name"), Column("bytes", "bytes"), *(Column(f"text_{index}") for index in texts))
    rows: tuple[Row, ...] = tuple(
        (f"op.{number}", number * 4096, *[f"cell {number} {index}" for index in texts]) for number in range(10_000)
    )
    tables = (FILTERED, Table("kernels", "Kernels", columns, rows))
    path = tmp_path_factory.mktemp("tables") / "page.html"
    with path.open("w", encoding="utf-8") as stream:
        ALL_FORMATS["html"]([Report("cost", Input("a.txt", 1, 1, 1), {"module.name": "m"}, tables)], stream, RenderOptions())
    return path


def test_a_filter_is_that_of_the_option(tables_page: Path, opened: Opened) -> None:
    """The same rows as --filter, for values in all units, unknown ones, and lower bounds; what it refuses is marked."""
    table = FILTERED
    cases = [
        (column.name, f"{OPERATORS[(index + number // 3) % len(OPERATORS)]} {word}")
        for index, column in enumerate(table.columns)
        for number, word in enumerate(FILTER_VALUES)
        if column.name != "name" and (index + number) % 3 == 0
    ]
    cases += [("size", f"{operator} 4 MiB") for operator in OPERATORS] + [("words", f"{operator} ?") for operator in OPERATORS]
    expected = [_chosen(table, f"{name} {condition}") for name, condition in cases]
    assert {None, "", "a", "abe", "adf", "bcdef"} <= set(expected)
    page = opened(tables_page)
    _open_table(page, "cost")
    names = [column.name for column in table.flat().columns]
    left: list[str | None] = page.evaluate(
        """cases => {
            const table = document.getElementById("table/cost");
            const choice = table.querySelector(".filter select"), field = table.querySelector(".filter input");
            return cases.map(([at, text]) => {
                choice.value = at;
                field.value = text;
                field.dispatchEvent(new Event("input"));
                if (field.getAttribute("aria-invalid") === "true") return null;
                const cells = table.querySelectorAll(".dt-scroll-body tbody tr td:first-child:not(.dt-empty)");
                return [...cells].map((cell) => cell.textContent).join("");
            });
        }""",
        [[str(names.index(name)), condition] for name, condition in cases],
    )
    different = [case for case in zip(cases, expected, left, strict=True) if case[1] != case[2]]
    assert different == []


def _chosen(table: Table, condition: str) -> str | None:
    """Return the names of the rows that --filter leaves; None if it refuses the condition."""
    try:
        (comparison,) = parse_filter(condition)
        test = row_test(comparison, table)
    except UsageError:
        return None
    return "".join(str(row[0]) for row in table.rows if shows(comparison, test(row)))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the dump with equal names and an unknown loop."""
    path = tmp_path_factory.mktemp("dump") / "names.hlo"
    path.write_text(NAMES_AND_LOOP)
    return path


def test_two_instructions_of_one_name(dump: Path, written: Callable[..., Path], opened: Opened) -> None:
    """`x` is a negate in one computation, and an exponential in the other: each row and each operand leads to its own."""
    page = opened(written(dump))
    dialog = page.get_by_role("dialog")

    def said() -> str:
        page.wait_for_selector("dialog[open]")
        return dialog.inner_text()

    def follow(address: str) -> str:
        page.evaluate("to => { location.hash = to; }", address)
        page.wait_for_timeout(50)
        return said()

    _open_table(page, "kernels")
    links = page.locator("[data-of='kernels'] .dt-scroll-body tbody").get_by_role("link", name="x", exact=True)
    addresses = {}
    for link in links.all():
        address = link.get_attribute("href") or ""
        text = follow(address)
        opcode = next(name for name in ("negate", "exponential") if name in text)
        addresses[opcode] = address
        assert ("8.00 KiB" in text, "64 B" in text) == (opcode == "exponential", opcode == "negate"), text
    assert len(set(addresses.values())) == 2
    both = follow("#instruction/x")
    assert "line 5" in both
    assert "line 32" in both
    dialog.get_by_role("link", name="in main").click()
    wait_until(page, "() => document.getElementById('instruction').innerText.includes('exponential')")
    assert "negate" in follow("#instruction/y")
    dialog.get_by_role("link", name="x", exact=True).click()
    wait_until(page, "to => location.hash === to", addresses["negate"])
    page.keyboard.press("Escape")


def test_columns_of_unknown_figures_are_shown(dump: Path, written: Callable[..., Path], opened: Opened) -> None:
    """Nothing is known of how often the loop runs: at least once, with its one all-reduce."""
    page = opened(written(dump))
    _open_table(page, "loops")
    assert _column(page, "loops", "trip count") == ["?"]
    assert _column(page, "loops", "runs") == [">= 1"]
    assert _column(page, "loops", "collectives") == [">= 1"]


def test_ten_thousand_rows_scroll(tables_page: Path, opened: Opened) -> None:
    """Only the rows on the screen are elements of the page."""
    page = opened(tables_page)
    _open_table(page, "kernels")
    body = page.locator("[data-of='kernels'] .dt-scroll-body")
    body.evaluate("element => { element.scrollTop = element.scrollHeight; }")
    wait_until(page, "() => document.querySelector('[data-of=kernels]').innerText.includes('op.9999')")
    assert page.locator("[data-of='kernels'] tbody tr").count() < 250
    page.evaluate("location.hash = '#table/kernels/5000'")
    page.wait_for_selector("tr.here")
    assert page.locator("tr.here td").first.inner_text() == "op.5000"


def test_a_page_printed_at_once_has_its_pictures(path: Path, opened: Opened) -> None:
    page = opened(path)
    page.wait_for_function("() => Boolean(window.drawFigure)")  # nobody scrolled to a picture
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    drawings = "[...document.querySelectorAll('main:not([hidden]) figure[data-picture] .drawing')]"
    assert page.evaluate(f"{drawings}.filter((one) => !one.firstElementChild).length") == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
