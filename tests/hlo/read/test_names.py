"""Reads of parameters within operands in place. Cases of names are in tests/cases/hlo/read/names.hlo."""

from __future__ import annotations

from tests.hlo.reading import module


def test_reads_are_unknown_if_an_operand_shows_no_name() -> None:
    """Operands in place are read down to a depth; the last one may read the parameter, as it does here."""
    operand = "negate(" * 70 + "%p" + ")" * 70
    parsed = module(f"HloModule m\nENTRY %main {{\n  %p = f32[2] parameter(0)\n  ROOT %s = f32[2] negate({operand})\n}}\n")
    assert parsed.entry is not None
    assert parsed.entry.reads is not None
    assert not parsed.entry.reads.known
