"""Texts that end after their first computation: whether that is the entry, whose mark a text written by hand may leave out."""

from __future__ import annotations

import pytest

import hlo_inspect

HEADER = "HloModule jit_step{scheduled}, entry_computation_layout={{(f32[4]{{0}}, f32[4]{{0}}, f32[4]{{0}})->f32[4]{{0}}}}\n\n"
TWO = "fused {\n  a = f32[4]{0} parameter(0)\n  b = f32[4]{0} parameter(1)\n  ROOT c = f32[4]{0} add(a, b)\n}\n"
THREE = TWO.replace("  ROOT", "  d = f32[4]{0} parameter(2)\n  ROOT")
SCHEDULED = ", is_scheduled=true"


def _codes(text: str, command: str) -> set[str]:
    return {finding.rule for finding in hlo_inspect.inspect(text, (command,)).findings}


@pytest.mark.parametrize("command", ["summary", "collectives", "params", "optimizer", "memory"])
def test_a_text_that_a_compiler_scheduled_marks_its_entry(command: str) -> None:
    assert "HI002" in _codes(HEADER.format(scheduled=SCHEDULED) + TWO, command)


@pytest.mark.parametrize("command", ["summary", "collectives", "params", "optimizer"])
def test_the_entry_has_the_parameters_that_the_header_states(command: str) -> None:
    assert "HI002" in _codes(HEADER.format(scheduled="") + TWO, command)
    assert "HI002" not in _codes(HEADER.format(scheduled="") + THREE, command)


def test_a_truncated_computation_is_no_entry() -> None:
    facts = hlo_inspect.inspect(HEADER.format(scheduled="") + TWO, ("summary",)).facts
    assert facts["optimizer.name"] is None
    assert facts["module.instructions"] == 3
