"""Texts whose memory cannot be known: findings with their place, figures that depend on them `None` with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo_inspect

GOOD = """HloModule step, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

%cond (c: (s32[], f32[4])) -> pred[] {
  %c = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(5)
  ROOT %go = pred[] compare(%i, %n), direction=LT
}

%body (b: (s32[], f32[4])) -> (s32[], f32[4]) {
  %b = (s32[], f32[4]{0}) parameter(0)
  %j = s32[] get-tuple-element(%b), index=0
  %next = s32[] add(%j, %j)
  %x = f32[4]{0} get-tuple-element(%b), index=1
  ROOT %out = (s32[], f32[4]{0}) tuple(%next, %x)
}

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[4]{0}) tuple(%zero, %p)
  %loop = (s32[], f32[4]{0}) while(%init), condition=%cond, body=%body
  ROOT %r = f32[4]{0} get-tuple-element(%loop), index=1
}
"""
ELSEWHERE = {"memory.xla_temp_bytes", "memory.capacity_bytes", "memory.left_bytes"}
"""Facts of a file of XLA beside the text, and of a machine."""
LAID_OUT = GOOD.replace("is_scheduled=true", "is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}")


def test_the_module_that_the_faults_are_put_into_has_none() -> None:
    report = hlo_inspect.inspect(GOOD, "memory")
    assert not report.findings
    computed = {name: value for name, value in report.facts.items() if name.startswith("memory.") and name not in ELSEWHERE}
    assert None not in computed.values()
    assert report.facts["memory.alias_bytes"] == 16


FAULTS = {
    "used before it is defined": ("add(%j, %j)", "add(%x, %j)", "x, an operand of next, is used before it is defined", 13),
    "not defined": ("add(%j, %j)", "add(%j, %gone)", "gone, an operand of next, is not defined in its computation", 13),
    "a root that does not fit": (
        "ROOT %out = (s32[], f32[4]{0}) tuple(%next, %x)",
        "ROOT %out = (s32[], f32[4]{0}, s32[]) tuple(%next, %x, %j)",
        "loop has a body whose root does not fit its parameter",
        22,
    ),
    "a tuple of another shape": (
        "tuple(%next, %x)",
        "tuple(%next)",
        "out does not have the shape of the value that it passes on",
        15,
    ),
    "an unknown computation": ("body=%body", "body=%other", "loop calls a computation that is not in the text", 22),
    "an unknown space": ("%next = s32[] add", "%next = s32[]{:S(99)} add", "next is in an unknown memory space, 99", 13),
    "an unknown size": ("%next = s32[] add", "%next = s32[?] add", "the size of next is unknown", 13),
    "an alias to a missing output": (
        "{}: (0",
        "{4}: (0",
        "an alias of the header names a parameter or output that does not exist",
        1,
    ),
    "an alias to a missing parameter": (
        "(0, {}, may",
        "(9, {}, may",
        "an alias of the header names a parameter or output that does not exist",
        1,
    ),
}


@pytest.mark.parametrize("which", FAULTS)
def test_a_fault_is_a_finding_with_its_place(which: str) -> None:
    old, new, message, line = FAULTS[which]
    assert old in GOOD
    report = hlo_inspect.inspect(GOOD.replace(old, new), "memory")
    assert (message, line) in {
        (finding.message, finding.location and finding.location.line) for finding in report.findings if finding.rule == "HI301"
    }
    for name in ("temp", "peak", "xla_peak", "needed", "heap", "live_peak", "padding"):
        assert report.facts[f"memory.{name}_bytes"] is None
        assert any(note.startswith(f"memory.{name}_bytes: ") and message in note for note in report.notes)


def test_figures_that_a_fault_does_not_touch_stay_known() -> None:
    old, new, _, _ = FAULTS["used before it is defined"]
    facts = hlo_inspect.inspect(GOOD.replace(old, new), "memory").facts
    assert (facts["memory.argument_bytes"], facts["memory.output_bytes"], facts["memory.constant_bytes"]) == (16, 16, 8)
    old, new, _, _ = FAULTS["an alias to a missing output"]
    facts = hlo_inspect.inspect(GOOD.replace(old, new), "memory").facts
    assert (facts["memory.argument_bytes"], facts["memory.output_bytes"]) == (16, None)


LARGER = """HloModule larger, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY %main (p: f32[4]) -> f32[8] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[8]{0} concatenate(%p, %p), dimensions={0}
}
"""


def test_an_alias_to_a_larger_output() -> None:
    report = hlo_inspect.inspect(LARGER, "memory")
    assert "an alias of the header joins parameter 0, of 16 bytes, with an output of 32" in {f.message for f in report.findings}
    assert report.facts["memory.peak_bytes"] is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace("is_scheduled=true, ", ""), "the module is not scheduled"),
        (GOOD[: GOOD.index("  %loop = ")], "the text does not hold the whole module"),
        (LAID_OUT[: LAID_OUT.index("ENTRY")], "the text does not hold the whole module"),
        (GOOD.replace("  %zero = s32[] constant(0)", "  nothing that could be read"), "lines of the module could not be read"),
    ],
)
def test_without_a_whole_schedule_only_the_interface_is_known(text: str, reason: str) -> None:
    report = hlo_inspect.inspect(text, "memory")
    assert report.facts["memory.peak_bytes"] is None
    assert any(note.startswith(f"memory.peak_bytes: {reason}") for note in report.notes)


def test_before_scheduling_arguments_and_results_have_their_logical_sizes() -> None:
    facts = hlo_inspect.inspect(GOOD.replace("is_scheduled=true, ", ""), "memory").facts
    assert [facts[f"memory.{name}_bytes"] for name in ("argument", "output", "alias")] == [16, 16, 16]


def test_a_computation_that_runs_itself_ends() -> None:
    text = (
        GOOD.replace("add(%j, %j)", "s32[] call(%j), to_apply=%again")
        .replace(
            "ENTRY",
            "%again (a: s32[]) -> s32[] {\n  %a = s32[] parameter(0)\n  ROOT %s = s32[] call(%a), to_apply=%again\n}\n\nENTRY",
        )
        .replace("= s32[] s32[]", "= s32[]")
    )
    report = hlo_inspect.inspect(text, "memory")
    assert "again runs itself" in {finding.message for finding in report.findings}
    assert report.facts["memory.peak_bytes"] is None


def test_memory_of_tpu_is_unknown_without_layouts() -> None:
    """Tiles and memory spaces stand in layouts; the text still has the marks of a TPU."""
    text = (Path(__file__).parents[2] / "data" / "tpu" / "sgd_unused.after.txt").read_text(encoding="utf-8")
    report = hlo_inspect.inspect(re.sub(r"(?<=\])\{[0-9,]*(?::[^}]*)?\}", "", text), ("memory",))
    assert report.facts["module.is_scheduled"] is True
    figures = {name: value for name, value in report.facts.items() if name.startswith("memory.")}
    assert figures["memory.space.0.peak_bytes"] is None and set(figures.values()) == {None}
    computed = figures.keys() - ELSEWHERE
    assert {f"{name}: the text has no layouts" for name in computed} <= {note.partition(";")[0] for note in report.notes}
