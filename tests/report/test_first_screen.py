"""The first screen of a page: its title, strips whose parts add up, findings in a line each, and a command to copy."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.commands.report import PASSES
from hlo_inspect.figure import at_least
from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.formats.html import assets
from hlo_inspect.report.formats.html.strips import strips_of
from hlo_inspect.report.model import Finding, Input, Report
from hlo_inspect.report.table import Column, Table
from tests.browser.page_data import PageData

DATA = Path(__file__).parents[1] / "data"
SECONDS = Column("estimate_s", "seconds", bounded=True)
STEP = Table(
    "step",
    "Step",
    (Column("part"), Column("bound_s", "seconds"), SECONDS),
    (
        ("kernels bound by compute", 1e-3, 3e-3),
        ("fixed costs of kernels", 0.0, at_least(1e-3, "a kernel")),
        ("exposed collectives, d0", 1e-3, 0.0),
    ),
)
MEMORY = {
    "memory_parts": Table(
        "memory_parts", "Parts", (Column("part"), Column("bytes", "bytes")), (("arguments", 2**30), ("temporaries", 2**31))
    ),
    "memory_fit": Table(
        "memory_fit",
        "Fit",
        (Column("usable_bytes", "bytes"), Column("left_bytes", "bytes"), Column("fits", "bool")),
        ((12 * 2**30, 9 * 2**30, True),),
    ),
}


def page_text(report: Report) -> str:
    stream = StringIO()
    ALL_FORMATS["html"]([report], stream, RenderOptions())
    return stream.getvalue()


def test_the_strip_of_a_step_has_its_known_parts() -> None:
    """Kernels take 3 of the known 4 ms. An unknown part makes the whole a lower bound, and a part without time is left out."""
    (strip,) = strips_of({"step": STEP})
    assert (strip.section, strip.title) == ("step", "Step, estimate >= 4.00 ms")
    assert [(part.name, part.share, part.text) for part in strip.parts] == [
        ("kernels bound by compute", 0.75, "3.00 ms"),
        ("fixed costs of kernels", 0.25, ">= 1.00 ms"),
    ]


def test_a_measured_step_comes_first() -> None:
    columns = (Column("part"), Column("time_s", "seconds"))
    measured = Table("measured_parts", "Parts", columns, (("kernels", 3e-3), ("idle", 1e-3)))
    (strip,) = strips_of({"step": STEP, "measured_parts": measured})
    assert (strip.section, strip.title) == ("measured", "Measured step, 4.00 ms")
    assert [part.share for part in strip.parts] == [0.75, 0.25]


def test_without_a_step_the_strip_has_flops_by_phase() -> None:
    columns = (Column("phase"), Column("flops", "flops"), Column("bytes_accessed", "bytes"))
    table = Table("cost_by_phase", "Costs", columns, (("backward", 6_000, 4), ("forward", 3_000, 4)))
    (strip,) = strips_of({"cost_by_phase": table})
    assert strip.title == "FLOPs by phase, 9.00 kFLOP"
    assert [(part.name, round(part.share, 3)) for part in strip.parts] == [("forward", 0.333), ("backward", 0.667)]
    no_flops = Table("cost_by_phase", "Costs", columns, (("unknown", 0, 4),))
    assert strips_of({"cost_by_phase": no_flops})[0].title == "Bytes accessed by phase, 4 B"


@pytest.mark.parametrize(
    ("tables", "title", "shares"),
    [
        (MEMORY, "Memory needed, 3.00 GiB of 12.0 GiB: it fits", [1 / 12, 2 / 12, 9 / 12]),
        ({"memory_parts": MEMORY["memory_parts"]}, "Memory needed, 3.00 GiB", [1 / 3, 2 / 3]),
    ],
)
def test_the_strip_of_memory_is_that_of_the_accelerator(tables: Mapping[str, Table], title: str, shares: list[float]) -> None:
    (strip,) = strips_of(tables)
    assert strip.title == title
    assert [part.share for part in strip.parts] == pytest.approx(shares)


def test_a_page_begins_with_what_the_program_is() -> None:
    dump = DATA / "cpu" / "adamw_step.after.txt"
    text = page_text(hlo_inspect.inspect(dump, PASSES))
    header = text[text.index("<main") : text.index("<nav class")]
    assert "<h1>Train step: adamw on " in header
    assert header.index("<b>jit_") < header.index("<h1>") < header.index('class="strips"')
    assert f"hlo-inspect report {dump} --profile " in header
    links = PageData(header).links
    assert links[:2] == ["#step", "#memory"]


def test_a_page_with_times_names_no_command() -> None:
    text = page_text(hlo_inspect.inspect(DATA / "gpu" / "gathered_matmul.after.txt", PASSES, profile="h100-sxm"))
    assert "Times need a hardware profile" not in text


def test_findings_of_a_rule_are_a_line_and_infos_are_folded() -> None:
    def finding(rule: str, severity: Any, message: str) -> Finding:
        return Finding(rule, severity, message, None)

    findings = (
        *(finding("HI101", "warning", f"message {number}") for number in range(3)),
        finding("HI102", "info", "a remark"),
    )
    text = page_text(Report("summary", Input("a.txt", 1, 1, 1), {"module.name": "m"}, findings=findings))
    section = text[text.index('id="findings"') : text.index("</section>")]
    lines = section.split("<summary>")[1:]
    assert 'class="message">message 0</span> <span class="rows">and 2 more</span></summary>' in lines[0]
    assert "message 2" in lines[0]
    assert lines[1].startswith("1 info")
    assert "a remark" in lines[2]


def test_a_page_carries_the_code_of_its_kinds_of_pictures_alone() -> None:
    bars = assets.libraries({"bar"})
    assert "DRAWERS.bar" in bars["pictures"]
    assert not {"DRAWERS.timeline", "DRAWERS.icicle", "DRAWERS.cells", "DRAWERS.points"} & set(bars["pictures"].split())
    assert list(assets.libraries(())) == ["tables"]
    every = assets.pictures_script(assets.DRAWINGS)
    assert all(f"DRAWERS.{kind} = " in every for kind in assets.DRAWINGS)
