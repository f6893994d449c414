"""The sets of opcodes are of HLO, and none says two things of one opcode."""

from __future__ import annotations

from itertools import combinations

from hlo_inspect.analysis.optimizer import opcodes
from hlo_inspect.hlo.opcodes import PRINTED_OPCODES

SETS = (opcodes.ELEMENTWISE, opcodes.SAME, opcodes.MOVES)


def test_they_are_opcodes() -> None:
    assert frozenset().union(*SETS) <= PRINTED_OPCODES


def test_no_opcode_is_in_two() -> None:
    assert all(left.isdisjoint(right) for left, right in combinations(SETS, 2))


def test_types() -> None:
    assert "bf16" in opcodes.FLOATS
    assert "bf16" not in opcodes.WIDE
