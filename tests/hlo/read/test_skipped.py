"""Skipped computations that may belong to loops."""

from __future__ import annotations

import random
import re
import tracemalloc

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import WANTS
from hlo_inspect.graph.loops import find_loops
from hlo_inspect.hlo.module import Module
from tests.hlo.reading import module

LOOPS = 500
PRINTED = ', backend_config={"known_trip_count":{"n":"4"}}'
ONE_LOOP = """%body.NUMBER (s: (s32[], s32[])) -> (s32[], s32[]) {
  %s = (s32[], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %rest = s32[] get-tuple-element(%s), index=1
  ROOT %out = (s32[], s32[]) tuple(%next, %rest)
}

%cond.NUMBER (s: (s32[], s32[])) -> pred[] {
  %s = (s32[], s32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %limit = s32[] constant(4)
  ROOT %less = pred[] compare(%i, %limit), direction=LT
}

"""
WHILE = "  %loop.NUMBER = (s32[], s32[]) while(%init), condition=%cond.NUMBER, body=%body.NUMBER"


def many_loops(attributes: str) -> str:
    numbers = range(LOOPS)
    parts = "".join(ONE_LOOP.replace("NUMBER", str(number)) for number in numbers)
    whiles = "\n".join(WHILE.replace("NUMBER", str(number)) + attributes for number in numbers)
    entry = "%zero = s32[] constant(0)\n  %init = (s32[], s32[]) tuple(%zero, %zero)"
    return f"HloModule m\n\n{parts}ENTRY %main () -> s32[] {{\n  {entry}\n{whiles}\n  ROOT %r = s32[] copy(%zero)\n}}\n"


def read(text: str) -> tuple[Module, float]:
    """Return the module, and its bytes in memory for each loop."""
    module(text, WANTS)  # imports and compiles patterns, which do not count
    tracemalloc.start()
    try:
        parsed = module(text, WANTS)
        return parsed, tracemalloc.get_traced_memory()[0] / LOOPS
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("attributes", "source"), [("", "derived"), (PRINTED, "known_trip_count")])
def test_possible_loop_parts_take_little_memory(attributes: str, source: str) -> None:
    """A loop is kept as an instruction and two names. Its rows would take 50 % more memory."""
    parsed, size = read(many_loops(attributes))
    assert size < 1_250
    assert len(parsed.skipped) == 2 * LOOPS - 1  # the computation before the entry is read
    assert {(loop.trip_count, loop.source) for loop in find_loops(parsed)} == {(4, source)}


@pytest.mark.parametrize(("attributes", "source"), [("", "derived"), (PRINTED, "known_trip_count")])
def test_scalars_of_a_long_computation_are_kept(attributes: str, source: str) -> None:
    """A computation has thousands of characters, and its trip count is printed or derived."""
    rest = '  %rest = s32[] get-tuple-element(%s), index=1, metadata={op_name="LONG"}\n'
    text = many_loops(attributes).replace("  %rest = s32[] get-tuple-element(%s), index=1\n", rest)
    chance = random.Random(1)  # noqa: S311 - text that compresses badly
    long = re.sub("LONG", lambda _: f"jit(step)/{chance.randrange(10**4096)}", text)
    parsed, size = read(long)
    assert size < 2_200
    assert len(parsed.skipped) == LOOPS - 1  # all conditions except the one before the entry
    assert {(loop.trip_count, loop.source) for loop in find_loops(parsed)} == {(4, source)}


@pytest.mark.parametrize("padding", ["", "x" * 5000])
def test_the_first_of_two_computations_of_a_name_is_used(padding: str) -> None:
    first = ONE_LOOP.replace("NUMBER", "0")
    padded = first.replace("index=1", f'index=1, metadata={{op_name="{padding}"}}').replace("constant(1)", "constant(2)")
    for parts, count in ((first + padded, 4), (padded + first, 2)):
        entry = "  %zero = s32[] constant(0)\n  %init = (s32[], s32[]) tuple(%zero, %zero)\n" + WHILE.replace("NUMBER", "0")
        text = f"HloModule m\n\n{parts}%last () -> f32[] {{\n  ROOT %l = f32[] constant(0)\n}}\n\n"
        parsed = module(f"{text}ENTRY %main () -> s32[] {{\n{entry}\n  ROOT %r = s32[] copy(%zero)\n}}\n", WANTS)
        assert [loop.trip_count for loop in find_loops(parsed)] == [count]
