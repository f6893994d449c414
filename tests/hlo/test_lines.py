"""Rows that were read together."""

from __future__ import annotations

from hlo_inspect.hlo.instruction import head_of
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.rows import find_rows

TEXT = "\n  %a = f32[2]{0} parameter(0)\n  %b = s32[] constant(1)\n  %a = f32[2]{0} negate(%a)\n"


def test_definitions_and_text() -> None:
    rows = find_rows(TEXT, 1, len(TEXT), balanced=True)
    assert rows is not None
    texts = [row[2] for row in rows]
    lines = Lines(rows, texts, [head_of(text) for text in texts], 7, TEXT, 1, len(TEXT))
    assert lines.text == TEXT[1:]
    assert {name: head.opcode for name, head in lines.definitions.items()} == {"a": "negate", "b": "constant"}
    assert lines.first == 7
