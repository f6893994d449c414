"""Integer scalars of computations that are kept for the trip counts of loops."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.input import source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.open_computation import read_skipped
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module

LOOPS = Wants(opcodes=frozenset({"while", "call", "all-reduce"}), loops=True)
SLOW = "all-reduce(%x), replica_groups={}, to_apply=%sum"
STATE = "(s32[], f32[8]{0})"
TEXT = f"""HloModule m

%count (c: s32[], d: s32[]) -> s32[] {{
  %c = s32[] parameter(0)
  %d = s32[] parameter(1)
  ROOT %e = s32[] add(%c, %d)
}}

%fused (f: f32[8], g: s32[]) -> f32[8] {{
  %f = f32[8]{{0}} parameter(0)
  %g = s32[] parameter(1)
  %h = s32[] add(%g, %g)
  ROOT %n = f32[8]{{0}} custom-call(%f, %h), custom_call_target="f"
}}

%body (s: {STATE}) -> {STATE} {{
  %s = {STATE} parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %unused = s32[] constant(7)
  %one = s32[] constant(1)
  %next = s32[] fusion(%i, %one), kind=kLoop, calls=%count
  %x = f32[8]{{0}} get-tuple-element(%s), index=1
  %y = f32[8]{{0}} {SLOW}
  ROOT %out = {STATE} tuple(%next, %y)
}}

%cond (s: {STATE}) -> pred[] {{
  %s = {STATE} parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %limit = s32[] constant(5)
  %x = f32[8]{{0}} get-tuple-element(%s), index=1
  ROOT %less = pred[] compare(%i, %limit), direction=LT
}}

ENTRY %main (x: f32[8], k: s32[]) -> s32[] {{
  %x = f32[8]{{0}} parameter(0)
  %k = s32[] parameter(1)
  %zero = s32[] constant(0)
  %start = s32[] copy(%zero)
  %init = {STATE} tuple(%start, %x)
  %loop = {STATE} while(%init), condition=%cond, body=%body
  %end = s32[] get-tuple-element(%loop), index=0
  ROOT %sum = s32[] add(%end, %k)
}}
"""
KEPT = {
    "count": {"c", "d", "e"},
    "body": {"s", "i", "one", "next", "out"},
    "cond": {"s", "i", "limit", "less"},
    "main": {"zero", "start", "init"},
}


def kept_scalars(parsed: Module) -> dict[str, set[str]]:
    read_skipped(parsed)
    return {name: set(computation.scalars) for name, computation in parsed.computations.items() if computation.scalars}


def test_operands_of_roots_and_loops_are_kept() -> None:
    parsed = module(TEXT, LOOPS)
    assert kept_scalars(parsed) == KEPT
    assert {i.name for i in parsed.instructions} == {"y", "loop"}
    assert "fused" not in parsed.root_opcodes  # no reducer: its result is no scalar


def test_no_scalars_are_kept_unless_loops_are_wanted() -> None:
    assert kept_scalars(module(TEXT, Wants(opcodes=LOOPS.opcodes, every_line=True))) == {}


@pytest.mark.parametrize("more", [Wants(), Wants(every_line=True), Wants(graph=True), Wants(entry=True)])
@pytest.mark.parametrize("piece", [1, 64, 200, 333, 500, 1 << 20])
def test_kept_scalars_are_the_same_for_all_wants_and_pieces(more: Wants, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE_BYTES", piece)
    assert kept_scalars(module(TEXT, LOOPS | more)) == KEPT


def test_kept_scalars_have_their_line_and_root_mark() -> None:
    lines = TEXT.splitlines()
    for wants in (LOOPS, LOOPS | Wants(every_line=True)):
        for computation in module(TEXT, wants).computations.values():
            for name, scalar in computation.scalars.items():
                assert lines[scalar.line - 1].lstrip().removeprefix("ROOT ").startswith(f"%{name} = ")
                assert scalar.is_root == lines[scalar.line - 1].startswith("  ROOT ")
            assert lines[computation.line - 1].removeprefix("ENTRY ").startswith(f"%{computation.name} (")


def test_an_unmarked_root_is_the_last_line() -> None:
    parsed = module(TEXT.replace("ROOT ", ""), LOOPS | Wants(every_line=True))
    assert kept_scalars(parsed) == KEPT
    assert [i.name for i in parsed.computations["cond"].scalars.values() if i.is_root] == ["less"]


def test_operands_of_a_root_that_is_a_custom_call_are_not_kept() -> None:
    text = TEXT.replace("ROOT %e = s32[] add(%c, %d)", "ROOT %e = (f32[2]{0}, s32[]) custom-call(%c, %d)")
    assert "count" not in kept_scalars(module(text, LOOPS | Wants(every_line=True)))


def test_a_malformed_line_is_not_kept() -> None:
    text = TEXT.replace("get-tuple-element(%s), index=0\n  %limit", "get-tuple-element((%s), index=0\n  %limit")
    assert kept_scalars(module(text, LOOPS))["cond"] == {"limit", "less"}
