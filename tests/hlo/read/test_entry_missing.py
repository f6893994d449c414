"""Texts with a single computation without ENTRY: handwritten texts omit the mark, printed ones are truncated."""

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
def test_a_scheduled_text_without_entry_is_truncated(command: str) -> None:
    assert "HI002" in _codes(HEADER.format(scheduled=SCHEDULED) + TWO, command)


@pytest.mark.parametrize("command", ["summary", "collectives", "params", "optimizer"])
def test_a_computation_is_the_entry_if_its_parameters_fit_the_header(command: str) -> None:
    assert "HI002" in _codes(HEADER.format(scheduled="") + TWO, command)
    assert "HI002" not in _codes(HEADER.format(scheduled="") + THREE, command)


def test_a_truncated_module_without_entry_has_no_optimizer() -> None:
    facts = hlo_inspect.inspect(HEADER.format(scheduled="") + TWO, ("summary",)).facts
    assert facts["optimizer.name"] is None
    assert facts["module.instructions"] == 3
