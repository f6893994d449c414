"""Texts in which instructions are made of themselves, or computations call themselves: each walk through them ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.parameter_copies import _fused_slices
from hlo_inspect.analysis.program_outline import outline_of
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.report.model import Report
from tests.hlo.reading import module
from tests.time_limit import time_limit

FUSION = """HloModule m, is_scheduled=true

f {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} negate(a)
  ROOT c = f32[8]{0} %s(c)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  n = f32[8]{0} negate(p)
  x = f32[8]{0} fusion(n), kind=kInput, calls=f, backend_config={"fusion_backend_config":{"kind":"__triton"}}
  ROOT o = f32[8]{0} negate(x)
}
"""

UPDATE = """HloModule m, is_scheduled=true, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[8192]{0} parameter(0)
  g = f32[8192]{0} all-reduce-start(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum
  u = f32[8192]{0} async-update(g, u)
  ROOT d = f32[8192]{0} all-reduce-done(u)
}
"""

BRANCH = """HloModule m, is_scheduled=true

b {
  q = f32[8]{0:T(256)S(1)} parameter(0)
  x = f32[8]{0:T(256)S(1)} negate(q)
  i = s32[] constant(0)
  c = f32[8]{0:T(256)S(1)} conditional(i, x, q), branch_computations={b, d}
  ROOT r = f32[8]{0:T(256)S(1)} add(c, x)
}

d {
  q2 = f32[8]{0:T(256)S(1)} parameter(0)
  ROOT y = f32[8]{0:T(256)S(1)} negate(q2)
}

ENTRY e {
  p = f32[8]{0:T(256)S(1)} parameter(0)
  n = f32[8]{0:T(256)S(1)} negate(p)
  j = s32[] constant(0)
  ROOT o = f32[8]{0:T(256)S(1)} conditional(j, n, n), branch_computations={b, d}
}
"""
"""Arrays in the fast memory of a TPU, whose last use is a conditional: a branch with that conditional."""

SLICES = """HloModule m

ENTRY f {
  a = f32[4,8] parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  b = f32[4,8] bitcast(a, b)
  ROOT c = f32[1,8] dynamic-slice(b, i, z), dynamic_slice_sizes={1,8}
}
"""


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    with time_limit(10):
        yield


def report(text: str) -> Report:
    return hlo_inspect.inspect(text.encode(), "summary")


@pytest.mark.parametrize("opcode", ["convert", "negate", "bitcast", "reshape"])
def test_a_result_of_a_fusion_that_is_made_of_itself(opcode: str) -> None:
    assert report(FUSION % opcode).facts["module.instructions"] == 7


def test_an_update_of_an_asynchronous_collective_that_reads_itself() -> None:
    assert report(UPDATE).facts["collectives.count"] == 1


def test_a_conditional_in_its_own_branch() -> None:
    findings = report(BRANCH).findings
    assert ("HI301", "b runs itself") in [(finding.rule, finding.message) for finding in findings]


def test_a_bitcast_of_itself_and_a_parameter_passes_each_slice_on_once() -> None:
    view = View(module(SLICES.encode(), Wants(graph=True, entry=True)).computations["f"])
    stack = view.shapes[0]
    assert isinstance(stack, ArrayShape)
    assert list(_fused_slices(view, 0, stack)) == [8]


def test_the_start_of_an_update_that_reads_itself_is_unknown() -> None:
    """The damaged one of two asynchronous pairs has no start."""
    text = """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  s = (f32[8], f32[8]) copy-start(p)
  d = f32[8] copy-done(s)
  u = ((f32[8]), f32[8], s32[]) async-update(u)
  ROOT o = f32[8] async-done(u)
}
"""
    context = Context(module(text.encode(), Wants(graph=True, entry=True)))
    assert outline_of(context).starts == {"d": "s"}
