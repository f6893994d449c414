"""Collectives of a module in the order in which they run, and the devices that meet in them, counted by hand."""

from __future__ import annotations

import io

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.programs.collective_order import CollectiveOrder
from hlo_inspect.compare.programs.deviations import RankProgram, find_deviation
from hlo_inspect.compare.programs.meetings import Alternatives, Meeting, Repeated, Steps
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.inspection.rank_reports import WANTS

HEADER = "HloModule m{scheduled}, entry_computation_layout={{(f32[4]{{0}}, pred[])->f32[4]{{0}}}}"
MODULE = (
    HEADER
    + """, replica_count=2, num_partitions=4

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}}
{computations}
ENTRY main {{
  p = f32[4]{{0}} parameter(0)
  q = pred[] parameter(1)
{rows}
}}
"""
)
LOOP = """
body {
  s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  r = f32[4]{0} all-reduce(v), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[4]{0}) tuple(j, r)
}

condition {
  s = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i, n), direction=LT
}

left {
  v = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} all-gather(v), channel_id=2, replica_groups={{0,1},{2,3}}, dimensions={0}
}

right {
  v = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(v)
}
"""


def module(*rows: str, computations: str = "", scheduled: bool = True) -> Context:
    lines = "\n".join(f"  {row}" for row in rows)
    text = MODULE.format(scheduled=", is_scheduled=true" if scheduled else "", computations=computations, rows=lines)
    (read,) = read_input(open_source(io.StringIO(text)), WANTS)
    return Context(read)


def groups_of(attributes: str, opcode: str = "all-reduce", more: str = ", to_apply=add") -> list[list[int]] | None:
    order = CollectiveOrder(module(f"ROOT r = f32[4]{{0}} {opcode}(p), {attributes}{more}"))
    (step,) = order.steps
    assert isinstance(step, Meeting)
    return None if step.groups is None else sorted(map(sorted, step.groups))


def test_groups_are_flattened_devices_in_each_mode() -> None:
    """Replica r with partition p is device 4 r + p."""
    assert groups_of("replica_groups={{0,1}}") == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups_of("replica_groups={}") == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups_of("channel_id=1, replica_groups={{0,1}}") == [[0, 1, 2, 3, 4, 5, 6, 7]]
    flattened = "channel_id=1, use_global_device_ids=true, replica_groups="
    assert groups_of(f"{flattened}{{{{0,5}},{{1,2,3}}}}") == [[0, 5], [1, 2, 3]]
    assert groups_of(f"{flattened}[4,2]<=[2,4]T(1,0)") == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups_of("channel_id=1, replica_groups={{0,3},{1,2}}", "all-to-all", "") == [[0, 3], [1, 2], [4, 7], [5, 6]]


def test_a_permute_joins_the_devices_of_its_pairs() -> None:
    pairs = "channel_id=1, source_target_pairs={{0,1},{1,2}}"
    assert groups_of(pairs, "collective-permute", "") == [[0, 1, 2], [4, 5, 6]]
    assert groups_of("source_target_pairs={{0,1}}", "collective-permute", "") == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert groups_of("channel_id=1, source_target_pairs={}", "collective-permute", "") == []


def test_groups_of_devices_that_there_are_not_are_unknown() -> None:
    assert groups_of("channel_id=1, use_global_device_ids=true, replica_groups={{0,8}}") is None


def shaped(steps: Steps) -> list[object]:
    """Return the kinds of collectives, loops with their runs and conditionals as nested lists."""
    shapes: list[object] = []
    for step in steps:
        if isinstance(step, Meeting):
            shapes.append(step.content.split()[0])
        elif isinstance(step, Repeated):
            shapes.append((step.runs, shaped(step.steps)))
        else:
            assert isinstance(step, Alternatives)
            shapes.append([shaped(branch) for branch in step.branches])
    return shapes


def test_loops_and_branches_stand_in_the_order_of_the_schedule() -> None:
    order = CollectiveOrder(
        module(
            "zero = s32[] constant(0)",
            "t = (s32[], f32[4]{0}) tuple(zero, p)",
            "first = f32[4]{0} all-reduce(p), replica_groups={}, to_apply=add",
            "w = (s32[], f32[4]{0}) while(t), condition=condition, body=body",
            "v = f32[4]{0} get-tuple-element(w), index=1",
            "c = f32[4]{0} conditional(q, v, v), true_computation=left, false_computation=right",
            "ROOT last = f32[4]{0} collective-permute(c), channel_id=3, source_target_pairs={{0,1}}",
            computations=LOOP,
        )
    )
    assert shaped(order.steps) == ["all-reduce", (5, ["all-reduce"]), [["all-gather"], []], "collective-permute"]
    assert order.first is not None
    assert order.first.name == "first"


TWO = (
    "n = f32[4]{0} negate(p)",
    "a = f32[4]{0} all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add",
    "b = f32[4]{0} all-reduce(n), channel_id=1, replica_groups={{0,1}}, to_apply=add",
    "ROOT t = f32[4]{0} subtract(a, b)",
)


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ((TWO[0], TWO[2], TWO[1], TWO[3]), "order"),
        ((TWO[1], TWO[0], TWO[2], TWO[3]), "schedule"),
        ((TWO[0].replace("negate", "sine"), *TWO[1:]), "program"),
        ((*TWO[:3], "ROOT t = f32[4]{0} subtract(b, a)"), "program"),
        ((*TWO[:2], "ROOT t = f32[4]{0} subtract(a, n)"), "collective"),
    ],
)
def test_equal_collectives_are_told_apart_by_their_operands(rows: tuple[str, ...], verdict: str) -> None:
    assert find_deviation(RankProgram(module(*rows)), RankProgram(module(*TWO))).verdict == verdict


def test_texts_without_a_schedule_have_no_order() -> None:
    own = RankProgram(module(TWO[0], TWO[2].replace("negate", "sine"), TWO[1], TWO[3], scheduled=False))
    usual = RankProgram(module(*TWO, scheduled=False))
    assert find_deviation(own, usual).verdict == "names"
    other = RankProgram(module(TWO[0].replace("negate", "sine"), TWO[2], TWO[1], TWO[3], scheduled=False))
    deviation = find_deviation(other, usual)
    assert (deviation.verdict, deviation.detail) == ("program", "opcode sine, in the majority negate")
    assert deviation.first.own is not None
    assert deviation.first.own.name == "n"
