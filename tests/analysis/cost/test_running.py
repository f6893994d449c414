"""Computations that run themselves: what they cost, and as XLA counts them."""

from __future__ import annotations

from tests.analysis.cost.small import as_xla, cost_of, executed

P = "%p = f32[8] parameter(0)"
FLOPS = "%flops {\n  %x = f32[8] parameter(0)\n  %y = f32[8] add(%x, %x)\n  ROOT %z = f32[8] add(%y, %y)\n}\n"
TANH = "%tanh {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] tanh(%x)\n}\n"
TEST = "%test {\n  %x = f32[8] parameter(0)\n  ROOT %c = pred[] compare(%x, %x), direction=LT\n}\n"
ADDS = 2 * 3 * 32
"""Bytes of the two additions of `%flops`."""


def test_a_loop_counts_its_body_and_its_condition_once() -> None:
    found = as_xla(P, "%w = f32[8] while(%p), condition=%test, body=%flops", before=FLOPS + TEST)
    assert found == (16 + 1, 0, 0, ADDS + 1 + 32 + 32)


def test_of_branches_the_largest_of_each_figure() -> None:
    line = "%i = f32[8] conditional(%p, %p, %p), branch_computations={%flops, %tanh}"
    assert as_xla(P, line, before=FLOPS + TANH) == (16, 8, 0, ADDS)


def test_calls_and_asynchronous_computations_count_what_they_run() -> None:
    lines = ("%c = f32[8] call(%p), to_apply=%flops", "%s = ((f32[8]), f32[8], u32[]) async-start(%c), calls=%tanh")
    found = as_xla(P, *lines, "%d = f32[8] async-done(%s)", before=FLOPS + TANH)
    assert found == (16, 8, 0, ADDS + 64 + (32 + 3 * 8))  # the done reads three pointers and writes the result


def test_what_is_run_is_not_in_the_own_tallies() -> None:
    cost = cost_of(P, "%c = f32[8] call(%p), to_apply=%flops", before=FLOPS, executions={"flops": 5})
    assert executed(cost) == (5 * 16, 0, 0, 5 * ADDS)


def test_a_gap_is_noted_everywhere() -> None:
    cost = cost_of(P, "%a = f32[8] negate(%gone)", "%w = f32[8] while(%a), body=%lost, condition=%lost")
    for tally in (cost.opcodes, cost.by("kind"), cost.by("phase"), cost.by("source")):
        assert (tally.total("flops"), tally.total("bytes")) == (None, None)
    assert {label for label, _ in cost.opcodes.by_label()} == {"negate", "while"}
    assert cost.as_xla.why_unknown("bytes") == "line 12: a: the shape of operand gone is not known"
    assert cost.as_xla.why_unknown("flops") == "line 13: w: computation lost is not in the text, or calls itself"


def test_the_sum_is_rounded_in_the_order_of_xla() -> None:
    """An addition of one element is lost beside 2^24 FLOPs that come before it, and counted where it comes first."""
    big = ("%q = f32[4096,4096] parameter(1)", "%b = f32[4096,4096] negate(%q)")
    one = ("%o = f32[] parameter(2)", "%n = f32[] negate(%o)")
    for first, second in ((big, one), (one, big)):
        root = f"ROOT %t = (f32[], f32[]) tuple({second[1].split()[0]}, {first[1].split()[0]})"
        found = as_xla(*big, *one, root)
        assert found[0] == 2**24 + (0 if second is one else 1) - (1 if second is big else 0)
