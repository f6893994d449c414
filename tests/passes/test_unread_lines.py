"""A line that cannot be read is not nothing: what it may be counts as a lower bound."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from tests.calling import call_text

TEXT = """HloModule jit_f, is_scheduled=true, num_partitions=2

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8,16]) -> f32[8,16] {
  %x = f32[8,16]{1,0} parameter(0)
  %g = f32[8,16]{1,0} all-gather(%x), channel_id=2, replica_groups={{0},{1}}, dimensions={0}, use_global_device_ids=true
  LINE
  ROOT %z = f32[8,16]{1,0} negate(%g)
}
"""
REDUCE = "%r = f32[8,16]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum"
UNREADABLE = {
    "an operand list": REDUCE.replace("(%x)", "(%x"),
    "a shape": REDUCE.replace("[8,16]", "[8,16"),
    "a line of another program": f"text.append({REDUCE}",
    "a start": REDUCE.replace("all-reduce(%x)", "all-reduce-start(%x"),
    "only its attributes": "%r = f32[8,16]{1,0}, channel_id=1, replica_groups={{0,1}}",
    "an opcode of another version": REDUCE.replace("all-reduce(%x)", "all-mix(%x"),
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("command", ["summary", "collectives"])
def test_an_unreadable_collective_makes_counts_lower_bounds(command: str, line: str) -> None:
    report = hlo_inspect.inspect(TEXT.replace("LINE", line).encode(), command)
    assert "HI001" in {finding.rule for finding in report.findings}
    for fact, least in {"count": 1, "operand_bytes": 512, "executed_count": 1, "all-reduce.count": 0}.items():
        assert report.facts[f"collectives.{fact}"] is None
        assert report.facts.get(f"collectives.{fact}.lower_bound", 0) == least


@pytest.mark.parametrize("command", ["summary", "collectives"])
@pytest.mark.parametrize(
    "row", ["%r = f32[8,16]{1,0}", "%r = (f32[8,16]{1,0}, f32[8,", "%r =", "%r", "%r = f32[8,16]{1,0} all-re"]
)
def test_a_row_that_ends_before_its_opcode_may_be_anything(command: str, row: str) -> None:
    """The lines behind it are read: nothing of the sum in another computation is lost, nor the root."""
    text = TEXT.replace("  LINE\n", "").replace("  %b = f32[] param", f"  {row}\n  %b = f32[] param")
    report = hlo_inspect.inspect(text.encode(), command)
    assert [finding.location and finding.location.line for finding in report.findings if finding.rule == "HI001"] == [5]
    facts = report.facts
    assert (facts["collectives.count"], facts["collectives.count.lower_bound"], facts["collectives.all-reduce.count"]) == (
        None,
        1,
        None,
    )
    assert facts.get("module.instructions", 6) == 6


def test_a_quote_that_stays_open_swallows_no_instruction() -> None:
    text = TEXT.replace("  LINE\n", "").replace("parameter(0)\n  %g", 'parameter(0), metadata={op_name="x"}"\n  %g')
    report = hlo_inspect.inspect(text.replace("_ids=true", '_ids=true, metadata={op_name="g"}').encode(), "collectives")
    assert [(finding.rule, finding.location and finding.location.line) for finding in report.findings] == [("HI001", 10)]
    assert report.facts["collectives.count"] == 1


@pytest.mark.parametrize("line", [REDUCE.replace("{{0,1}}", "{{0,1}"), REDUCE + ', metadata={op_name="a'])
def test_a_collective_with_unreadable_attributes_counts(line: str) -> None:
    report = hlo_inspect.inspect(TEXT.replace("LINE", line).encode(), "collectives")
    assert "HI001" in {finding.rule for finding in report.findings}
    assert (report.facts["collectives.count"], report.facts["collectives.operand_bytes"]) == (2, 2 * 512)


def test_other_kinds_stay_exact() -> None:
    facts = hlo_inspect.inspect(TEXT.replace("LINE", UNREADABLE["an operand list"]).encode()).facts
    assert (facts["collectives.all-gather.count"], facts["collectives.send.count"], facts["fusions.count"]) == (1, 0, 0)
    assert (facts["opcode.all-reduce"], facts["opcode.all-gather"], facts["custom_calls.count"]) == (None, 1, 0)


@pytest.mark.parametrize(
    ("line", "fact"), [("%f = f32[8] fusion(%x", "fusions.count"), ("%c = s8[1] custom-call(%x", "custom_calls.count")]
)
def test_other_opcodes_make_lower_bounds_of_their_own_facts(line: str, fact: str) -> None:
    facts = hlo_inspect.inspect(TEXT.replace("LINE", line).encode()).facts
    assert (facts[fact], facts["collectives.count"]) == (None, 1)


def test_costs_are_lower_bounds_beside_any_unreadable_line() -> None:
    """The negate of 128 elements is what is left."""
    facts = hlo_inspect.inspect(TEXT.replace("LINE", "no instruction").encode()).facts
    assert (facts["cost.flops"], facts["cost.flops.lower_bound"], facts["collectives.count"]) == (None, 128, 1)
    assert facts["params.unused_count"] is None


def test_check_fails_and_says_which_line(tmp_path: Path) -> None:
    dump = tmp_path / "dump.hlo"
    dump.write_text(TEXT.replace("  %g = ", "  %g == ").replace("  LINE\n", ""))
    done = call_text("check", dump, "--assert", "collectives.count == 0")
    assert done.returncode == 1
    assert "line 11 cannot be read and may be a collective (all-gather)" in done.stdout
    assert "collectives  ?: line 11 cannot be read" in call_text("summary", dump).stdout
    assert call_text("check", dump, "--assert", "collectives.all-to-all.count == 0").returncode == 0
