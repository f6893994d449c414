"""Modules with one loop, for tests; each part of it can be replaced."""

from __future__ import annotations

from hlo_inspect.graph.calls import WANTS
from hlo_inspect.graph.loops import Loop, find_loops
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module

STATE = "(s32[], s32[], f32[8]{0})"
ELEMENTS = (
    f"%s = {STATE} parameter(0)",
    "%i = s32[] get-tuple-element(%s), index=0",
    "%n = s32[] get-tuple-element(%s), index=1",
    "%x = f32[8]{0} get-tuple-element(%s), index=2",
    "%one = s32[] constant(1)",
    "%ten = s32[] constant(10)",
)
CONDITION = (*ELEMENTS, "ROOT %less = pred[] compare(%i, %ten), direction=LT")
STEP = (*ELEMENTS, "%next = s32[] add(%i, %one)")
BODY = (*STEP, f"ROOT %out = {STATE} tuple(%next, %n, %x)")
START = (
    "%zero = s32[] constant(0)",
    "%six = s32[] constant(6)",
    "%data = f32[8]{0} parameter(0)",
    "%bound = s32[] parameter(1)",
    f"%init = {STATE} tuple(%zero, %six, %data)",
)
LOOP = f"ROOT %loop = {STATE} while(%init), condition=%cond, body=%body"


def computation(name: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"{name} {{", *(f"  {line}" for line in lines), "}", ""])


def loop_text(
    *,
    condition: tuple[str, ...] = CONDITION,
    body: tuple[str, ...] = BODY,
    entry: tuple[str, ...] = (*START, LOOP),
    before: str = "",
) -> str:
    """Write a loop that counts from 0 below 10 by 1.

    The state's second element is 6 and stays so. `before` are further computations.
    """
    parts = (
        "HloModule m\n",
        before,
        computation("%body", body),
        computation("%cond", condition),
        computation("ENTRY %main", entry),
    )
    return "\n".join(parts)


def loop_of(text: str, name: str = "loop") -> Loop:
    """Return a loop of a text. Check that the reader finds the same loop if it skips lines."""
    light, whole = (_loop(text, name, wants) for wants in (WANTS, WANTS | Wants(every_line=True)))
    assert (light.trip_count, light.source, light.reason) == (whole.trip_count, whole.source, whole.reason)
    return light


def _loop(text: str, name: str, wants: Wants) -> Loop:
    (loop,) = (loop for loop in find_loops(module(text.encode(), wants)) if loop.instruction.name == name)
    return loop
