"""Rows that were read together."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import lines as module
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.lines import Lines, Part, Reach
from hlo_inspect.hlo.rows import find_rows

TEXT = "\n  %a = f32[2]{0} parameter(0)\n  %b = s32[] constant(1)\n  %a = f32[2]{0} negate(%a)\n"


def test_definitions_and_text() -> None:
    rows = find_rows(TEXT, 1, len(TEXT))
    assert rows is not None
    lines = Lines(rows, [row[2] for row in rows], Heads(frozenset()), 7)
    assert lines.text == "0)\n1)\n%a)"
    assert lines.opcodes == ["parameter", "constant", "negate"]
    assert lines.head(1).opcode == "constant"
    assert {name: head.opcode for name, head in lines.definitions.items()} == {"a": "negate", "b": "constant"}
    assert lines.first == 7


def test_definitions_stay_in_reach_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DEFINITIONS", 3)
    reach = Reach()
    for row in (("", f"x{number}", "f32[] negate", "%y)") for number in range(3)):
        reach.add(Lines([row], [row[2]], Heads(frozenset()), 1))
    found = find_rows(TEXT, 1, len(TEXT)) or []
    reach.add(Lines(found, [row[2] for row in found], Heads(frozenset()), 1))
    assert [name for name in ("x0", "x1", "x2", "a", "b") if reach.get(name)] == ["b"]


def test_the_definitions_of_a_part_that_is_not_read() -> None:
    part = Part(TEXT, Heads(frozenset()))
    assert [head and head.opcode for head in map(part.get, "abc")] == ["negate", "constant", None]
    reach = Reach()
    reach.add(part)
    assert [head and head.opcode for head in map(reach.get, "abc")] == ["negate", "constant", None]
