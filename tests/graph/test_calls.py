"""Runs of deep, wide and real call graphs. Cases of small texts are in tests/cases/graph/calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.executed_collectives import ExecutedTotals
from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import at_least, exact, greatest, least
from hlo_inspect.graph.calls import WANTS, CallGraph
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import module

DATA = Path(__file__).parents[1] / "data"
LIGHT = Wants(opcodes=OPCODES, targets=TARGETS) | WANTS
GRAPH = LIGHT | Wants(graph=True)
ALL_WAYS = [LIGHT, LIGHT | Wants(every_line=True), GRAPH]

SHARED = "%v = f32[8]{0} parameter(0)"
GATHER = "all-gather(%v), replica_groups={{0,1}}, dimensions={0}"
CALL = "ROOT %r = f32[8]{0} call(%v), to_apply="


def computation(name: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"{name} {{", *(f"  {line}" for line in lines), "}", ""])


def figures(text: str, wants: Wants = LIGHT) -> ExecutedTotals:
    return Context(module(text.encode(), wants)).executed.total


def test_runs_of_a_chain_of_3000_calls_are_exact() -> None:
    """The chain is 3000 calls deep. In it 60 computations call the next one twice: 2^60 runs."""
    chain = "\n".join(
        computation(
            f"%c{n + 1}",
            (SHARED, *([f"%a = f32[8]{{0}} call(%v), to_apply=%c{n}"] if n < 60 else []), CALL + f"%c{n}"),
        )
        for n in range(3000)
    )
    first = computation("%c0", (SHARED, f"ROOT %r = f32[8]{{0}} {GATHER}"))
    text = "\n".join(["HloModule m\n", first, chain, computation("ENTRY %main", (SHARED, CALL + "%c3000"))])
    assert exact(figures(text).count) == 2**60


@pytest.mark.parametrize("wants", ALL_WAYS)
@pytest.mark.parametrize("printed", [True, False])
def test_collectives_of_a_scan_run_once_per_layer(wants: Wants, printed: bool) -> None:
    """Outside of loops 2 all-reduces have 388 bytes. A layer has gathers of 128 forward and backward, and a scatter of 256."""
    text = (DATA / "cpu" / "scan_fsdp.after.txt").read_text()
    total = figures(text if printed else re.sub("known_trip_count", "taken_out", text), wants)
    assert (exact(total.count), exact(total.operand_bytes)) == (2 + 3 + 6, 388 + 3 * 128 + 3 * (128 + 256))


def test_figures_of_a_computation_include_those_of_its_calls() -> None:
    """Two computations call `five` once each, a third calls it twice: 5 + 5 + 10 = 20."""
    text = """HloModule m

five { ROOT %f = f32[] constant(5) }

first { ROOT %a = f32[] call(), to_apply=five }

second { ROOT %b = f32[] call(), to_apply=five }

twice {
  %c = f32[] call(), to_apply=five
  ROOT %d = f32[] call(), to_apply=five
}

ENTRY main {
  %x = f32[] call(), to_apply=first
  %y = f32[] call(), to_apply=second
  ROOT %z = f32[] call(), to_apply=twice
}
"""
    each = CallGraph(module(text.encode(), GRAPH)).bounds_of_each({"five": {"done": 5}})
    assert each["first"] == each["second"]
    done = {name: exact(figures["done"]) for name, figures in each.items()}
    assert done == {"five": 5, "first": 5, "second": 5, "twice": 10, "main": 20}


def test_a_count_above_10_to_the_30_is_a_lower_bound() -> None:
    """4000 computations, each of which calls the next one twice: 2^4000 has 1205 digits."""
    chain = [
        computation(
            f"%c{n + 1}",
            (SHARED, f"%a = f32[8]{{0}} call(%v), to_apply=%c{n}", f"ROOT %r = f32[8]{{0}} call(%a), to_apply=%c{n}"),
        )
        for n in range(4000)
    ]
    first = computation("%c0", (SHARED, f"ROOT %r = f32[8]{{0}} {GATHER}"))
    text = "\n".join(["HloModule m\n", first, *chain, computation("ENTRY %main", (SHARED, CALL + "%c4000"))])
    assert figures(text).count == at_least(10**30, "it exceeds 10^30")
    assert least(CallGraph(module(text.encode(), LIGHT)).runs("c0")) == 10**30


def test_many_branches_take_linear_time() -> None:
    count = 3000
    named = [computation(f"%b{n}", (SHARED, "ROOT %r = f32[8]{0} negate(%v)")) for n in range(count)]
    branches = ", ".join(f"%b{n}" for n in range(count))
    entry = computation(
        "ENTRY %main",
        (SHARED, "%p = s32[] parameter(1)", f"ROOT %r = f32[8]{{0}} conditional(%p), branch_computations={{{branches}}}"),
    )
    graph = CallGraph(module("\n".join(["HloModule m\n", *named, entry]).encode(), GRAPH))
    bounds = graph.bounds({f"b{n}": {n: 1} for n in range(count)})
    assert {(least(amount), greatest(amount)) for amount in bounds.values()} == {(0, 1)}
