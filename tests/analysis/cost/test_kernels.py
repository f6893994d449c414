"""Kernels of the dumps cost together what the module does; a chain of updates is one kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.analysis.cost.kernels import Kernel, find_kernels, sum_of_step
from hlo_inspect.analysis.cost.module_cost import module_cost
from hlo_inspect.figure import add, exact, least
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.cost import Cost
from tests.analysis.cost.small import module_of

DATA = Path(__file__).parents[2] / "data"
STEP = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %n = f32[8] negate(%x)\n}\n"


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
    module = module_of("%p = f32[8] parameter(0)", *lines, "ROOT %d = f32[8] async-done(%u2999)", before=STEP)
    graph = CallGraph(module)
    (kernel,) = find_kernels(module_cost(module, graph), graph).launched
    assert isinstance(kernel, Kernel)
    assert len(kernel.parts) == 3002
    assert sum_of_step((), "flops") == 0
