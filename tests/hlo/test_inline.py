"""Computations written in place."""

from __future__ import annotations

import hlo_inspect

BODY = "to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
TEXT = f"""HloModule m

ENTRY main {{
  p = f32[4]{{0}} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={{0}}, {BODY}
}}
"""


def test_they_count_as_computations() -> None:
    report = hlo_inspect.inspect(TEXT)
    assert (report.facts["module.computations"], report.facts["module.instructions"]) == (2, 3 + 3)
    assert (report.facts["module.entry_instructions"], report.facts["opcode.add"]) == (3, 1)
    assert report.findings == ()


def test_the_entry_is_not_one_of_them() -> None:
    facts = hlo_inspect.inspect(TEXT.replace("ENTRY ", "")).facts
    assert (facts["params.count"], facts["outputs.bytes"], facts["module.entry_instructions"]) == (1, 4, 3)


def test_several_branches_and_bodies_inside_of_bodies() -> None:
    reduce = f"ROOT r = f32[] reduce(q, z), dimensions={{0}}, {BODY}"
    branch = f"{{ q = f32[4]{{0}} parameter(0) z = f32[] constant(0) {reduce} }}"
    branches = f"branch_computations={{ {branch}, {branch} }}"
    text = f"""HloModule m

ENTRY main {{
  i = s32[] parameter(0)
  p = f32[4]{{0}} parameter(1)
  ROOT c = f32[] conditional(i, p, p), {branches}
}}
"""
    facts = hlo_inspect.inspect(text).facts
    assert facts["module.computations"] == 1 + 2 + 2
    assert facts["module.instructions"] == 3 + 2 * 3 + 2 * 3


def test_a_fault_inside_is_counted() -> None:
    report = hlo_inspect.inspect(TEXT.replace("ROOT c = f32[] add(a, b)", "ROOT c = f32[ add(a, b)"))
    assert report.facts["module.unparsed_lines"] == 1
    assert [finding.rule for finding in report.findings if finding.rule == "HI001"] == ["HI001"]
