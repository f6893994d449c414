"""The views of a page and their parts: several modules, pairs, changes by compiler passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.cli.commands.report import page_reports
from hlo_inspect.cli.main import run
from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.errors import HloInspectError
from hlo_inspect.figure import at_least
from hlo_inspect.hlo.input.dump_directory import CompiledModule, compiled_modules
from hlo_inspect.passes.modules import ModuleList
from hlo_inspect.report.formats.html import views
from hlo_inspect.report.formats.html.other_sections import history_section
from hlo_inspect.report.formats.html.page_model import Chart, Drawing, Measure, Page, PageSection, PageView, TableGroup
from hlo_inspect.report.formats.html.views import page_of, with_shown_tables
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table
from hlo_inspect.request import Request

DATA = Path(__file__).parent.parent / "data"
PASSES = ("summary", "collectives")
OUTPUT = OutputOptions("html", quiet=True, verbose=True, sites=True)
MODULE = """HloModule {name}, entry_computation_layout={{(f32[8]{{0}})->f32[8]{{0}}}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT n = f32[8]{{0}} {opcode}(p)
}}

"""


def page(*inputs: Path, compares: bool = False) -> Page:
    _, reports = page_reports([str(path) for path in inputs], Request(PASSES), OUTPUT, None, compares=compares)
    return page_of(reports)


def traces(figure: Drawing) -> Any:
    return figure["data"]


def view(of_page: Page, name: str) -> PageView:
    (match,) = [match for match in of_page.views if match.name == name]
    return match


def section(of_page: Page, name: str) -> PageSection:
    """Return a section of the first view."""
    (match,) = [match for match in of_page.views[0].sections if match.name == name]
    return match


def test_one_module_is_the_page() -> None:
    (only,) = page(DATA / "cpu" / "sgd_unused.after.txt").views
    assert (only.name, only.title, only.siblings) == ("", "jit_step", {})


def test_several_modules_have_an_index_with_a_link_each(tmp_path: Path) -> None:
    names = ("small", "large", "small")
    texts = [MODULE.format(name=name, opcode="negate") for name in names]
    texts[1] = texts[1].replace("  ROOT", "  unused = f32[8]{0} abs(p)\n  ROOT")
    (tmp_path / "all.txt").write_text("".join(texts))
    modules_page = page(tmp_path / "all.txt")
    assert [module_view.name for module_view in modules_page.views] == ["", "m1", "m2", "m3"]
    index = modules_page.views[0]
    (table,) = index.tables
    assert [record["name"] for record in table.records()] == ["large", "small", "small"]  # the most lines first
    assert index.links == {"modules": ("#m2", "#m1", "#m3")}
    places = [record["path"] for record in table.records()]
    assert places == [view(modules_page, name[1:]).report.input.place for name in index.links["modules"]]
    assert view(modules_page, "m3").siblings == {"": "3 modules", "m3": "small"}


def test_the_largest_of_too_many_modules_have_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 100
    monkeypatch.setattr(views, "MOST_VIEWS", most)

    def reports() -> Iterator[Report]:
        listed = ModuleList()
        for number in range(most + 5):
            facts = {"module.name": f"m{number}"}
            yield from listed.noting([Report("summary", Input(f"{number}.txt", 1, 5 + number % 40, 100), facts)])
        yield listed.report("all")

    modules_page = page_of(reports())
    assert len(modules_page.views) == 1 + most
    (section,) = modules_page.views[0].sections
    assert "The 100 largest of 105 modules" in section.text
    assert "--module" in section.text
    rows = modules_page.views[0].tables[0].records()
    without = [row for row, link in zip(rows, modules_page.views[0].links["modules"], strict=True) if not link]
    # three modules have 5 lines (0, 40, 80), and three have 6 (1, 41, 81), of which the first stays
    assert sorted(str(row["name"]) for row in without) == ["m0", "m40", "m41", "m80", "m81"]


def test_a_pair_has_what_changed_and_both_modules(tmp_path: Path) -> None:
    for name, opcode in (("old", "negate"), ("new", "cosine")):
        (tmp_path / f"{name}.txt").write_text(MODULE.format(name="m", opcode=opcode))
    pair_page = page(tmp_path / "old.txt", tmp_path / "new.txt", compares=True)
    assert [(pair_view.name, pair_view.title) for pair_view in pair_page.views] == [
        ("", "Changes in m"),
        ("old", "OLD: m"),
        ("new", "NEW: m"),
    ]
    assert list(pair_page.views[0].siblings) == list(pair_page.views[2].siblings) == ["", "old", "new"]
    tables = [(section.name, section.tables) for section in pair_page.views[0].sections if section.tables]
    assert tables == [("facts", ("facts",)), ("changes", ("changes",)), ("scopes", ("scopes",))]
    facts, peak = section(pair_page, "facts"), section(pair_page, "peak")
    assert "same arrays" in peak.nothing
    (chart,) = facts.pictures
    (opcodes,) = [measure.figure for measure in chart.measures if measure.label == "Instructions"]
    old, new = traces(opcodes)
    layout: Any = opcodes["layout"]
    values = zip(layout["y"]["labels"], old["x"], new["x"], strict=True)
    assert set(values) == {("negate", 1, 0), ("cosine", 0, 1)}


LOOP = """HloModule m

%add (l: f32[], r: f32[]) -> f32[] {{
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %s = f32[] add(%l, %r)
}}

%body (x: f32[{size}]) -> f32[{size}] {{
  %x = f32[{size}] parameter(0)
  ROOT %sum = f32[{size}] all-reduce(%x), replica_groups={{{{0,1}}}}, to_apply=%add
}}

%cond (y: f32[{size}]) -> pred[] {{
  %y = f32[{size}] parameter(0)
  ROOT %more = pred[] custom-call(%y), custom_call_target="unknown"
}}

ENTRY %main (a: f32[{size}]) -> f32[{size}] {{
  %a = f32[{size}] parameter(0)
  ROOT %loop = f32[{size}] while(%a), condition=%cond, body=%body{trip_count}
}}
"""
KNOWN = ', backend_config={"known_trip_count":{"n":"3"}}'


def before_and_after(tmp_path: Path, old: str, new: str) -> tuple[Any, str]:
    """Return the picture of bytes sent by kind, and its text."""
    (tmp_path / "old.txt").write_text(old)
    (tmp_path / "new.txt").write_text(new)
    (chart,) = section(page(tmp_path / "old.txt", tmp_path / "new.txt", compares=True), "facts").pictures
    (sent,) = [measure for measure in chart.measures if measure.label == "Bytes sent by kind"]
    assert sent.text in chart.text
    return sent.figure, sent.text


def test_an_unknown_figure_has_a_bar_of_its_lower_bound(tmp_path: Path) -> None:
    # an all-reduce among two sends 2 * 1/2 of its array: 4,096 bytes each of unknown many times, then of 3 times 1,024 bytes
    old, new = LOOP.format(size=1024, trip_count=""), LOOP.format(size=256, trip_count=KNOWN)
    figure, text = before_and_after(tmp_path, old, new)
    bars = {trace["name"]: (trace["y"], trace["x"], trace["texts"]) for trace in figure["data"]}
    assert bars == {"OLD": ([], [], []), "NEW": ([0], [3072], ["3.00 KiB"]), "OLD, lower bound": ([0], [4096], [">= 4.00 KiB"])}
    assert "all-reduce >= 4.00 KiB before, 3.00 KiB after" in text


def test_differing_lower_bounds_are_drawn_as_lower_bounds(tmp_path: Path) -> None:
    old, new = (LOOP.format(size=size, trip_count="") for size in (1024, 256))
    figure, text = before_and_after(tmp_path, old, new)
    bars = {trace["name"]: (trace["x"], trace["texts"]) for trace in figure["data"] if trace["x"]}
    assert bars == {"OLD, lower bound": ([4096], [">= 4.00 KiB"]), "NEW, lower bound": ([1024], [">= 1.00 KiB"])}
    assert "all-reduce >= 4.00 KiB before, >= 1.00 KiB after" in text


def test_instructions_of_a_saved_report_are_not_compared(tmp_path: Path) -> None:
    old, new = DATA / "cpu" / "sgd_unused.after.txt", DATA / "gpu" / "sgd_unused.after.txt"
    saved = tmp_path / "old.json"
    assert run(["fusions", str(old), "--format", "json", "-o", str(saved)]) == 0
    of_saved = page(saved, new, compares=True)
    assert section(of_saved, "changes").nothing.startswith("Instructions are not compared")
    assert section(of_saved, "facts").pictures
    assert section(page(old, old, compares=True), "changes").nothing.startswith("No difference")


def test_several_pairs_have_an_index(tmp_path: Path) -> None:
    for side, modules in (("old", ("a", "b", "gone")), ("new", ("b", "a"))):
        (tmp_path / side).mkdir()
        for name in modules:
            text = MODULE.format(name=name, opcode="cosine" if (side, name) == ("new", "b") else "negate")
            (tmp_path / side / f"{name}.txt").write_text(text)
    pairs_page = page(tmp_path / "old", tmp_path / "new", compares=True)
    rows = pairs_page.views[0].tables[0].records()
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("a", "same program"), ("b", "different programs"), ("gone", "only in OLD")
    ]  # fmt: skip
    assert pairs_page.views[0].links == {"pairs": ("#m1", "#m2", "#m3")}
    assert [pair_view.name for pair_view in pairs_page.views] == ["", "m1", "m1-old", "m1-new", "m2", "m2-old", "m2-new", "m3"]
    (alone,) = [said.nothing for said in view(pairs_page, "m3").sections if said.nothing]
    assert alone == "The other input has no module to compare with this one."


@pytest.fixture(scope="module")
def passes() -> PageView:
    return page(DATA / "pass_dumps").views[0]


def test_compiler_passes_are_a_section_of_their_module(passes: PageView) -> None:
    assert passes.sections[-1].name == "passes"
    assert passes.title == "jit_step"
    assert "9 from spmd-partitioning (0006)" in passes.sections[-1].text


def test_a_dump_of_many_modules_is_searched_once_for_files_of_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report on them searches once more, however many modules it has."""
    for number in range(6):
        for stage in ("0001.p.after_a.before_b", "after_optimizations"):
            file = tmp_path / f"module_{number:04}.m{number}.{stage}.txt"
            file.write_text(MODULE.format(name=f"m{number}", opcode="negate" if "0001" in stage else "abs"))
    searched: list[str] = []

    def search(directory: str, errors: list[HloInspectError]) -> list[CompiledModule]:
        searched.append(directory)
        return compiled_modules(directory, errors)

    monkeypatch.setattr("hlo_inspect.inspection.pass_histories.compiled_modules", search)
    views = page(tmp_path).views
    assert len(views) == 7
    assert [module_view.title for module_view in views for section in module_view.sections if section.name == "passes"] == [
        "m0"
    ]
    assert searched == [str(tmp_path)] * 2


def test_marks_of_compiler_passes_are_rows(passes: PageView) -> None:
    (table,) = [candidate for candidate in passes.tables if candidate.name == "history"]
    collectives, figures = passes.sections[-1].pictures
    marks = {
        (mark, trace["name"]): height
        for trace in traces(collectives.figure)
        for mark, height in zip(trace["keys"], trace["y"], strict=True)
    }
    kinds = ("all_reduce", "all_gather")
    cells = {
        (f"history:{number}", kind.replace("_", "-")): record[kind]
        for number, record in enumerate(table.records())
        for kind in kinds
        if record[kind]
    }
    assert marks == cells
    for measure, name in zip(figures.measures, ("instructions", "fusions", "copies"), strict=False):
        (trace,) = traces(measure.figure)
        assert trace["y"] == [record[name] for record in table.records()]


def test_a_lower_bound_of_a_pass_is_drawn_as_such() -> None:
    """The line of FLOPs goes on at the bound, its mark is grey and says so; the columns of kinds are found by their names."""
    columns = tuple(map(Column, ("collectives", "all_gather", "pass", "instructions", "all_reduce", "file", "change")))
    rows = (
        (0, 0, "a", 1, 0, "", "", 500),
        (5, 2, "b", 2, 3, "1", "", at_least(700, "a call")),
        (1, 1, "c", 3, 0, "2", "", None),
    )
    table = Table("history", "Passes", (*columns, Column("flops", "flops", bounded=True)), rows)
    collectives, figures = history_section(Report("history", Input("d", 1, 1, 1), {}, (table,))).pictures
    bars = {trace["name"]: (trace["x"], trace["y"]) for trace in traces(collectives.figure)}
    assert bars == {"all-reduce": ([1], [3]), "all-gather": ([1, 2], [2, 1])}
    (drawn,) = [measure.figure for measure in figures.measures if measure.label == "FLOPs"]
    (trace,) = traces(drawn)
    assert trace["y"] == [500, 700, None]
    (text,) = [measure.text for measure in figures.measures if measure.label == "FLOPs"]
    assert text == "FLOPs after each pass that changed them: a: 500 FLOP; b: >= 700 FLOP; c: ?."
    assert trace["colors"] == ["$series-0", "$unknown", "$unknown"]
    assert [text.split("\n")[1] for text in trace["hovers"]] == ["FLOPs: 500 FLOP", "FLOPs: >= 700 FLOP", "FLOPs: ?"]


def _shown(tables: tuple[Table, ...], chart: Chart | None = None) -> list[tuple[str, list[str]]]:
    """Return the titles of the groups that a view shows of `tables`, with the names of their tables."""
    group = TableGroup("Sizes", {table.name: table.title for table in tables})
    sections = (PageSection("sizes", "Sizes", () if chart is None else (chart,), (group,)),)
    report = Report("cost", Input("a.txt", 1, 1, 1), {"module.name": "m"}, tables)
    (shown,) = with_shown_tables(PageView("", "m", report, sections, tables)).sections
    return [(group.title, list(group.choices)) for group in shown.groups]


def test_tables_without_rows_or_with_the_rows_of_another_are_not_shown() -> None:
    name, size, kind = Column("name"), Column("size", "bytes"), Column("kind")
    whole = Table("whole", "", (name, size, kind), (("a", 1, "x"), ("b", 2, "y")))
    part = Table("part", "", (size, name), ((2, "b"), (1, "a")))
    other = Table("other", "", (name, size), (("a", 1), ("b", 3)))
    empty = Table("empty", "", (name,), ())
    assert _shown((part, whole, other, empty)) == [("Sizes", ["whole", "other"])]
    chart = Chart("sizes", "Sizes", "", "", {"data": [], "layout": {}}, "part")
    assert _shown((part, whole, other), chart) == [("Sizes", ["part", "whole", "other"])]  # the picture leads to it


def test_a_picture_of_one_value_is_a_sentence() -> None:
    single, pair = ({"data": [{"type": "bar", "hovers": ["a"] * count}], "layout": {}} for count in (1, 2))
    assert Chart("a", "A", "", "a: 7", single, "t").is_single
    assert not Chart("a", "A", "", "a: 7", pair, "t").is_single
    assert not Chart.of_measures("a", "A", "", (Measure("x", single), Measure("y", pair)), "t").is_single
