"""Kernels: the instructions that are one, their runs and their cost; together they cost as much as the module."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels, find_kernels, sum_of_step
from hlo_inspect.analysis.cost.module_cost import module_cost
from hlo_inspect.figure import Number, add, exact, least, unknown
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.cost import Cost
from tests.analysis.cost.small import limits, module_of

DATA = Path(__file__).parents[2] / "data"
P = "%p = f32[8] parameter(0)"
TWICE = "%twice {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] add(%x, %x)\n}\n"
STEP = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %n = f32[8] negate(%x)\n}\n"
TEST = "%test {\n  %x = f32[8] parameter(0)\n  ROOT %c = pred[] constant(false)\n}\n"
BODY = ', backend_config={"known_trip_count":{"n":"5"}}'


def kernels_of(*lines: str, before: str = "") -> Kernels:
    module = module_of(*lines, before=before)
    graph = CallGraph(module)
    return find_kernels(module_cost(module, graph), graph)


def by_name(kernels: Kernels) -> dict[str, tuple[str, Number | None, Number | None, Number | None]]:
    """Kind, runs, FLOPs and bytes of each kernel."""
    figures = {}
    for kernel in kernels.launched:
        flops, size = exact(kernel.of_step("flops")), exact(kernel.of_step("bytes"))
        figures[kernel.instruction.name] = (kernel.kind, exact(kernel.runs), flops, size)
    return figures


def test_kernels_are_the_instructions_that_run_on_the_device() -> None:
    lines = [
        "%t = (f32[8], f32[8]) tuple(%p, %p)",
        "%g = f32[8] get-tuple-element(%t), index=0",
        "%b = f32[2,4] bitcast(%g)",
        "%f = f32[8] fusion(%g), kind=kLoop, calls=%twice",
        '%m = f32[8] custom-call(%f), custom_call_target="Sharding"',
        "%c = f32[8] copy(%m)",
        "ROOT %r = (f32[8]) tuple(%c)",
    ]
    kernels = kernels_of(P, *lines, before=TWICE)
    assert by_name(kernels) == {"f": ("fusion", 1, 8, 64), "c": ("copy", 1, 0, 64)}
    assert exact(sum_of_step(kernels.other_costs, "bytes")) == 2 * 4 + 4  # tables of three pointers


def test_runs_of_a_loop() -> None:
    """Five runs of a negation of eight numbers."""
    line = f"%w = f32[8] while(%p), condition=%test, body=%step{BODY}"
    assert by_name(kernels_of(P, line, before=STEP + TEST)) == {"n": ("negate", 5, 5 * 8, 5 * 64)}


def test_a_start_and_its_done() -> None:
    """The start reads 32 bytes and writes 32 and 64; the done reads two pointers and writes 64."""
    lines = [
        "%s = (f32[8], f32[16]) all-gather-start(%p), dimensions={0}, replica_groups={{0,1}}",
        "ROOT %d = f32[16] all-gather-done(%s)",
    ]
    assert by_name(kernels_of(P, *lines)) == {"s": ("all-gather", 1, 0, (32 + 32 + 64) + (2 * 4 + 64))}


def test_a_done_of_what_is_wrapped_belongs_to_the_kernel_inside() -> None:
    lines = ["%s = ((f32[8]), f32[8], s32[]) async-start(%p), calls=%step", "ROOT %d = f32[8] async-done(%s), calls=%step"]
    assert by_name(kernels_of(P, *lines, before=STEP)) == {"n": ("negate", 1, 8, 64 + (3 * 4 + 32))}


def test_work_of_a_custom_call_without_a_rule_is_not_known() -> None:
    kernels = kernels_of(P, '%k = f32[8] custom-call(%p), custom_call_target="odd"')
    (kernel,) = kernels.launched
    assert kernel.of_step("flops") == unknown("there is no rule for odd")
    assert exact(kernel.of_step("bytes")) == 64


def test_branches_may_not_run() -> None:
    """The cheaper of the two counts: 8 FLOPs and 64 bytes, against 16 and 128."""
    dear = "%dear {\n  %x = f32[8] parameter(0)\n  %y = f32[8] abs(%x)\n  ROOT %z = f32[8] abs(%y)\n}\n"
    line = "%i = f32[8] conditional(%p, %p, %p), branch_computations={%step, %dear}"
    kernels = {k.instruction.name: k for k in kernels_of(P, line, before=STEP + dear).launched}
    assert [limits(kernels[name].of_step("flops")) for name in "nyz"] == [(8, None), (0, None), (0, None)]
    assert [limits(kernels[name].runs) for name in "nyz"] == [(0, 1), (0, 1), (0, 1)]


def dumps() -> list[str]:
    return [
        str(path.relative_to(DATA)) for folder in ("cpu", "gpu", "tpu") for path in sorted((DATA / folder).glob("*.after.txt"))
    ]


@pytest.mark.parametrize("name", dumps())
def test_all_kernels_cost_what_the_module_costs(name: str) -> None:
    """With the costs outside kernels: lower bounds agree figure by figure, and figures if they are known."""
    (module,) = read_modules(open_source(DATA / name), Cost.wants)
    context = Context(module)
    for figure in FIGURES:
        total = sum_of_step(context.kernels.other_costs, figure)
        for kernel in context.kernels.launched:
            total = add(total, kernel.of_step(figure))
        assert least(total) == least(context.cost.step[figure])
        assert exact(total) in {exact(context.cost.step[figure]), None}


def test_updates_in_a_chain() -> None:
    """Long chains take linear time."""
    lines = ["%s = ((f32[8]), f32[8], s32[]) async-start(%p), calls=%step"]
    lines += [f"%u{i} = ((f32[8]), f32[8], s32[]) async-update(%{f'u{i - 1}' if i else 's'})" for i in range(3000)]
    (kernel,) = kernels_of(P, *lines, "ROOT %d = f32[8] async-done(%u2999)", before=STEP).launched
    assert isinstance(kernel, Kernel)
    assert len(kernel.parts) == 3002
    assert sum_of_step((), "flops") == 0
