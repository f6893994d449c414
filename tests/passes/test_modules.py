"""The list of modules: a row each, from the facts of the other passes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import hlo_inspect
from hlo_inspect.passes.modules import ModuleList
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.model import Finding, Input, Report

DATA = Path(__file__).parents[1] / "data"


def listed(*reports: Report) -> Report:
    modules = ModuleList()
    assert list(modules.noting(reports)) == list(reports)
    return modules.report("dumps")


def made(name: str, lines: int, path: str = "a.txt", first_line: int = 1, **facts: Any) -> Report:
    named = {name.replace("__", "."): value for name, value in facts.items()}
    findings = (Finding("HI002", "error", "cut off"), Finding("HI102", "info", "unused"))
    return Report("module_facts", Input(path, first_line, lines, 10 * lines), {"module.name": name, **named}, findings=findings)


def test_the_module_with_the_most_lines_is_first() -> None:
    table = listed(made("a", 5), made("b", 7), made("c", 5)).table("modules")
    assert [row[0] for row in table.rows] == ["b", "a", "c"]
    assert table.name == "modules"


def test_a_narrow_page_tells_modules_of_one_name_apart() -> None:
    """JAX calls most of them `jit_step`: without the path their rows could not be told from each other."""
    stream = StringIO()
    figures = {"module__devices": 8, "cost__executed_flops": 9, "collectives__executed_count": 7, "params__bytes": 6}
    report = listed(made("jit_step", 5, "first.txt", **figures), made("jit_step", 5, "second.txt", **figures))
    FORMATS["table"]([report], stream, RenderOptions(width=80))
    assert ("first.txt" in stream.getvalue(), "second.txt" in stream.getvalue()) == (True, True)


def test_the_report_is_about_all_modules() -> None:
    report = listed(made("a", 5), made("b", 7))
    assert (report.command, report.title, report.input) == ("list", "2 modules", Input("dumps", 1, 12, 120))


def test_a_row_has_what_the_passes_say() -> None:
    (row,) = (
        listed(made("a", 5, "d/module_0001.jit_f.cpu_after_optimizations.txt", 4, module__devices=8, params__leaf_count=3))
        .table("modules")
        .records()
    )
    assert (row["name"], row["lines"], row["devices"], row["parameters"]) == ("a", 5, 8, 3)
    assert (row["findings"], row["errors"], row["warnings"]) == (2, 1, 0)
    assert row["path"] == "d/module_0001.jit_f.cpu_after_optimizations.txt:4"
    assert row["stage"] == "cpu_after_optimizations"
    assert "flops" not in row  # no report has costs


def test_the_known_part_of_a_figure_is_its_lower_bound() -> None:
    facts: dict[str, Any] = {"collectives__executed_count": None, "collectives__executed_count__lower_bound": 3}
    facts = {name.replace("__lower_bound", ".lower_bound"): value for name, value in facts.items()}
    first, second = listed(made("a", 5, **facts), made("b", 4, collectives__executed_count=2)).table("modules").records()
    assert (first["collectives"], first["collectives_lower_bound"]) == (None, 3)
    assert (second["collectives"], second["collectives_lower_bound"]) == (2, 2)
    report = listed(made("a", 5, **facts))
    assert report.notes == ("collectives: unknown for 1 of 1 modules; run `summary -v` on one for the reason",)


def test_a_stage_without_a_name_that_tells_it() -> None:
    first, second = (
        listed(made("a", 5, module__is_scheduled=True), made("b", 4, module__is_scheduled=False, fusions__count=0))
        .table("modules")
        .records()
    )
    assert (first["stage"], second["stage"]) == ("optimized", None)


def test_figures_of_a_dump() -> None:
    """The figures are XLA's own (tests/data/expected.json).

    The collectives, none of which is in a loop, are 1 all-gather, 3 all-reduces, 1 all-to-all, 1 collective-permute and
    1 reduce-scatter.
    """
    (report,) = hlo_inspect.inspect_all(DATA / "cpu" / "collectives.after.txt", "module_facts", also=("summary",))
    (row,) = listed(report).table("modules").records()
    assert (row["name"], row["lines"], row["devices"]) == ("jit_step", report.input.lines, 8)
    assert (row["parameters"], row["argument_bytes"], row["flops"], row["collectives"]) == (2, 1280, 1792, 7)


def test_truncated_modules_come_first() -> None:
    whole, cut = (hlo_inspect.inspect(DATA / name, "summary") for name in ("cpu/adamw_step.after.txt", "handmade/cut_off.txt"))
    report = listed(whole, cut)
    (line,) = report.headline
    assert line.parts == (f"TRUNCATED: cut_off in {cut.input.place}; their counts are lower bounds",)
    assert {row["name"]: row["truncated"] for row in report.table("modules").records()} == {"jit_step": None, "cut_off": True}
    assert listed(whole).headline == ()
