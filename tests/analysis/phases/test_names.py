"""Names in computations that are called: relative to their callers, and of several phases."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.collectives import Collectives
from hlo_inspect.passes.cost import Cost
from hlo_inspect.report.model import Report

STEP = """HloModule jit_step, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

%layer (h: f32[8,8], w: f32[8,8]) -> f32[8,8] {{
  %h = f32[8,8]{{1,0}} parameter(0)
  %w = f32[8,8]{{1,0}} parameter(1)
  %d = f32[8,8]{{1,0}} dot(%h, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="{dot}"}}
  ROOT %r = f32[8,8]{{1,0}} all-reduce(%d), channel_id=1, replica_groups={{{{0,1}}}}, use_global_device_ids=true, to_apply=%add,
    metadata={{op_name="{reduction}"}}
}}

%body (s: (s32[], f32[8,8], f32[8,8])) -> (s32[], f32[8,8], f32[8,8]) {{
  %s = (s32[], f32[8,8], f32[8,8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %h = f32[8,8]{{1,0}} get-tuple-element(%s), index=1
  %w = f32[8,8]{{1,0}} get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %c = f32[8,8]{{1,0}} call(%h, %w), to_apply=%layer, metadata={{op_name="jit(step)/transpose(jvp(Model))/while/body/call"}}
  ROOT %t = (s32[], f32[8,8], f32[8,8]) tuple(%next, %c, %w)
}}

%condition (s: (s32[], f32[8,8], f32[8,8])) -> pred[] {{
  %s = (s32[], f32[8,8], f32[8,8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(3)
  ROOT %l = pred[] compare(%i, %n), direction=LT
}}

ENTRY %main (h: f32[8,8], w: f32[8,8]) -> f32[8,8] {{
  %h = f32[8,8]{{1,0}} parameter(0)
  %w = f32[8,8]{{1,0}} parameter(1)
  %y = f32[8,8]{{1,0}} call(%h, %w), to_apply=%layer, metadata={{op_name="jit(step)/jvp(Model)/call"}}
  %zero = s32[] constant(0)
  %t = (s32[], f32[8,8], f32[8,8]) tuple(%zero, %y, %w)
  %l = (s32[], f32[8,8], f32[8,8]) while(%t), condition=%condition, body=%body
  ROOT %g = f32[8,8]{{1,0}} get-tuple-element(%l), index=1
}}
"""
MATMUL = 2 * 8**3


def step(dot: str = "layers/dot_general", reduction: str = "layers/psum") -> str:
    return STEP.format(dot=dot, reduction=reduction).replace(",\n    metadata", ", metadata")


def reported(*passes: str, **names: str) -> Report:
    return hlo_inspect.inspect(step(**names), passes)


def phase_of_dot(text: str) -> str:
    (module,) = read_modules(open_source(text), Cost.wants | Collectives.wants)
    context = Context(module)
    return context.phases.for_instruction(context.views.for_computation("layer").instruction(2)).phase


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("layers/dot_general", "backward"),  # three calls of four are
        ("jit(matmul)/dot_general", "backward"),  # the step's function is another
        ("rematted_computation/layers/dot_general", "recompute"),  # its name gives the phase in all calls
        ("jit(step)/jvp(Model)/dot_general", "forward"),  # begins with a scope of the step
        ("jit(step)/optimizer/dot_general", "optimizer"),
    ],
)
def test_relative_names(name: str, phase: str) -> None:
    assert phase_of_dot(step(dot=name)) == phase


def test_executed_figures_are_split_by_runs_and_counts_are_not() -> None:
    """The layer runs once in the forward pass and three times in the backward pass; its all-reduce has 8 · 8 floats."""
    facts = reported("collectives", "cost").facts
    assert facts["collectives.phase.backward.count"] == 1
    assert facts["collectives.phase.forward.count"] == 0
    assert facts["collectives.phase.forward.executed_count"] == 1
    assert facts["collectives.phase.backward.executed_count"] == 3
    assert facts["collectives.phase.forward.executed_operand_bytes"] == 256
    assert facts["collectives.phase.backward.executed_operand_bytes"] == 768
    assert facts["collectives.executed_count"] == 4


def test_costs_are_split_by_runs() -> None:
    rows = {row["phase"]: row for row in reported("cost").table("cost_by_phase").records()}
    assert rows["forward"]["matmul_flops"] == MATMUL
    assert rows["backward"]["matmul_flops"] == 3 * MATMUL


def test_tables_of_phases_add_up() -> None:
    report = reported("collectives")
    rows = {row["phase"]: (row["sites"], row["runs"]) for row in report.table("collectives_by_phase").records()}
    assert rows == {"backward": (1, 3), "forward": (0, 1)}
    (site,) = report.table("collectives").records()
    assert (site["phase"], site["phase_from"]) == ("backward", "name")


FUSION = """HloModule jit_step

fused {{
  a = f32[8,8]{{1,0}} parameter(0), metadata={{op_name="w"}}
  m = f32[8,8]{{1,0}} tanh(a), metadata={{op_name="{first}"}}
  e = f32[8,8]{{1,0}} exponential(m), metadata={{op_name="{second}"}}
  ROOT c = f32[8,8]{{0,1}} copy(e)
}}

ENTRY main {{
  w = f32[8,8]{{1,0}} parameter(0), metadata={{op_name="w"}}
  n = f32[8,8]{{1,0}} negate(w)
  ROOT f = f32[8,8]{{0,1}} fusion(n), kind=kLoop, calls=fused
}}
"""
OF_FORWARD, OF_BACKWARD, OF_LOSS = "jit(step)/jvp(M)/tanh", "jit(step)/transpose(jvp(M))/mul", "jit(step)/jvp()/log_softmax/exp"


@pytest.mark.parametrize(
    ("first", "second", "phase"),
    [
        (OF_FORWARD, OF_FORWARD, "forward"),
        (OF_FORWARD, OF_BACKWARD, "backward"),  # XLA repeats forward work in fusions of the backward pass
        (OF_BACKWARD, OF_LOSS, "unknown"),
        ("jit(step)/tanh", "jit(step)/exp", "unknown"),
    ],
)
def test_a_fusion_without_metadata_has_the_phase_of_its_contents(first: str, second: str, phase: str) -> None:
    """The fusion reads and writes 256 bytes each. `negate` has no name, and no phase."""
    report = hlo_inspect.inspect(FUSION.format(first=first, second=second), "cost")
    bytes_of_phases = {record["phase"]: record["bytes_accessed"] for record in report.table("cost_by_phase").records()}
    assert bytes_of_phases == ({"unknown": 1024} if phase == "unknown" else {"unknown": 512, phase: 512})
