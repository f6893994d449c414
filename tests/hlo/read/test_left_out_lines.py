"""Shortened texts: dots instead of lines, and a comma after the last attribute of a row."""

from __future__ import annotations

import pytest

import hlo_inspect

SHORTENED = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%fused (p: f32[4]) -> f32[4] {
DOTS
}

ENTRY %e (a: f32[4], b: f32[4]) -> f32[4] {
DOTS
  %x = f32[4]{0} fusion(%a), kind=kLoop, calls=%fused
  %y = f32[4]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%sum
  DOTS
  ROOT %c = f32[4]{0} add(%x, %y)
}
"""
COMMAS = """HloModule m

ENTRY %e (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]},
  %b = f32[4]{0} parameter(1)
  ROOT %c = f32[4]{0} add(%a, %b), metadata={op_name="x"},
}
"""


@pytest.mark.parametrize("dots", ["...", "  ...", "    ... (40 lines)", "…", "  [...]", "<... 40 lines ...>", "  [truncated]"])
@pytest.mark.parametrize("command", ["summary", "collectives", "params", "fusions"])
def test_dots_are_a_truncation_and_hide_faults_of_missing_lines(command: str, dots: str) -> None:
    """Neither `a` nor `sum` is reported as undefined, and `fused` is not reported as empty."""
    report = hlo_inspect.inspect(SHORTENED.replace("DOTS", dots), command)
    assert [(finding.rule, finding.location and finding.location.line) for finding in report.findings] == [("HI002", 4)]
    (message,) = {finding.message for finding in report.findings}
    assert message == "dots stand for lines that are left out (3 times, first here)"


def test_counts_are_unknown_if_dots_replace_lines() -> None:
    text = "HloModule m\n\nENTRY main {\n  ...\n  ROOT d = f32[8,8]{1,0} dot(p, q), lhs_contracting_dims={1}\n}\n"
    report = hlo_inspect.inspect(text, "summary")
    assert (report.facts["params.count"], report.facts["params.leaf_count"]) == (None, None)
    assert report.facts["opcode.dot"] == 1


def test_dots_in_a_literal_are_no_truncation() -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT c = f32[4]{0} constant({\n  ...\n  })\n}\n"
    assert hlo_inspect.inspect(text, "summary").findings == ()


def test_a_line_with_a_trailing_comma_is_a_fault_but_is_read() -> None:
    report = hlo_inspect.inspect(COMMAS, "summary")
    assert [(finding.rule, str(finding.location)) for finding in report.findings if finding.rule != "HI101"] == [
        ("HI001", "<text>:4:59"),
        ("HI001", "<text>:6:58"),
    ]
    assert (report.facts["module.entry_instructions"], report.facts["params.count"]) == (3, 2)
