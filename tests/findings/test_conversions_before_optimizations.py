"""A conversion that the text before optimizations shows to be the program's: one that bf16 would halve."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.findings import RULES


@pytest.mark.parametrize(("narrow", "stakes"), [("bf16", [1 << 20]), ("f16", [])])
def test_the_text_before_optimizations_shows_conversions_of_the_program(narrow: str, stakes: list[int], tmp_path: Path) -> None:
    text = RULES.load("wide-collective").page().example.replace("convert_element_type", "transpose")
    after = tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt"
    before = tmp_path / "module_0001.jit_f.before_optimizations.txt"
    after.write_text(text, encoding="utf-8")
    program = f"HloModule f\n\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n  ROOT c = {narrow}[8]{{0}} convert(p)\n}}\n"
    before.write_text(program, encoding="utf-8")
    findings = hlo_inspect.inspect(after, "findings").findings
    assert [finding.stake for finding in findings if finding.name == "wide-collective"] == stakes
