"""Instruction lines without a computation around modules, in pieces. Cases are in tests/cases/hlo/pasted/quoted_lines.hlo."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import PART_NOTE, Report

REDUCE = "%all-reduce.1 = f32[1024]{0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add"
GATHER = (
    "%all-gather.2 = bf16[64,8]{1,0} all-gather(bf16[16,8]{1,0} %p.1), channel_id=3, replica_groups=[2,4]<=[8], "
    "dimensions={0}, use_global_device_ids=true"
)
FUSION = "ROOT %fusion.7 = (f32[8]{0}, f32[4]{0}) fusion(%all-reduce.1, %q), kind=kLoop, calls=%fused_computation.7"
CALL = '%custom-call.4 = f32[16,16]{1,0} custom-call(%a, %b), custom_call_target="__cublas$gemm"'
LINES = (REDUCE, GATHER, FUSION, CALL)


def report_of_quoted_lines(text: str, command: str = "summary") -> Report:
    report = hlo_inspect.inspect(text.encode(), command)
    assert report.facts["module.name"] == "quoted_lines"
    return report


def test_facts_of_the_whole_module_are_unknown_for_quoted_lines() -> None:
    report = report_of_quoted_lines("\n".join(LINES))
    names = {"module.computations", "module.instructions", "module.entry_instructions", "module.devices"}
    names |= {name for name in report.facts if name.startswith(("params.", "outputs.")) or ".executed_" in name}
    assert len(names) > 50
    assert {report.facts[name] for name in names} == {None}
    assert sum(note.startswith(PART_NOTE) for note in report.notes) == 1
    assert not any(note.startswith(tuple(names)) for note in report.notes)


def test_quoted_lines_may_end_as_in_windows() -> None:
    facts = [report_of_quoted_lines(end.join(LINES)).facts for end in ("\n", "\r\n")]
    assert facts[0] == facts[1]


def test_lines_before_between_and_after_modules_are_partial_modules() -> None:
    module = "HloModule {}\n\nENTRY e {{\n  ROOT p = f32[4]{{0}} parameter(0)\n}}\n\n"
    text = f"{REDUCE}\n{module.format('a')}{GATHER}\n{CALL}\n{module.format('b')}and {FUSION}\n"
    reports = list(hlo_inspect.inspect_all(text.encode(), "summary"))
    names = [report.facts["module.name"] for report in reports]
    assert names == ["quoted_lines", "a", "quoted_lines", "b", "quoted_lines"]
    assert [report.facts["collectives.count"] for report in reports] == [1, 0, 1, 0, 0]
    assert [report.input.first_line for report in reports] == [1, 2, 8, 10, 16]
    assert [report.facts["module.instructions"] for report in reports] == [None, 1, None, 1, None]


def test_lines_before_a_module_are_not_dropped() -> None:
    """In jax#15773 the lines of the question stand before the dump."""
    text = (
        "This copy is odd: %copy.3 = f32[1024]{0} copy(f32[1024]{0} %p)\n\nThe whole text:\n\n"
        "HloModule jit_f\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"
    )
    quoted, module = hlo_inspect.inspect_all(text.encode(), "summary")
    assert (quoted.facts["opcode.copy"], module.facts["module.name"]) == (1, "jit_f")
    note = "the text also holds 1 partial module; inspect_all returns a report for each"
    assert hlo_inspect.inspect(text.encode(), "summary").notes[-1] == note


def test_quoted_lines_are_read_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"prose\n{REDUCE}\n{GATHER.replace('), ', '),' + chr(10) + '   ')}\n" * 40
    for size in (50, 333, 1 << 18):
        monkeypatch.setattr("hlo_inspect.hlo.input.source.PIECE_BYTES", size)
        report = report_of_quoted_lines(text, "collectives")
        assert report.facts["collectives.count"] == 80
        assert report.table("collectives").records()[-1]["line"] == 40 * 4 - 1
