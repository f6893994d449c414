"""Gradients of inputs and of weights: a backward product is for a weight if no other backward product needs its result."""

from __future__ import annotations

from collections.abc import Mapping

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.export.plan.kernel_work import KernelWork
from hlo_inspect.graph.view import InstructionPlace, View
from hlo_inspect.hlo.values.op_names import BACKWARD

_MATMUL = FIGURES.index("matmul_flops")


def weight_gradients(context: Context, work: Mapping[InstructionPlace, KernelWork]) -> set[InstructionPlace]:
    """Return the kernels that multiply matrices for the gradient of a weight, loops by loop.

    A loop passes an element of its result to the same element of its next iteration.
    """
    products: dict[str, dict[int, InstructionPlace]] = {}
    for position, own in work.items():
        kernel = own.kernel
        if kernel.parts[0].cost.amounts[_MATMUL] and kernel.labels.phase == BACKWARD:
            products.setdefault(position[0], {})[kernel.row] = position
    bodies = {loop.body for loop in context.call_graph.loops}
    places: set[InstructionPlace] = set()
    for name, rows in products.items():
        view = context.views.for_computation(name)
        needed = _needed(view, list(rows), is_body=name in bodies)
        places.update(position for row, position in rows.items() if row not in needed)
    return places


def _needed(view: View, products: list[int], *, is_body: bool) -> set[int]:
    """Return the rows whose results some product needs, through any rows and iterations."""
    carried = _carried_rows(view) if is_body else {}
    waiting = [operand for row in products for operand in view.operand_rows(row) if operand is not None]
    needed = set(waiting)
    while waiting:
        row = waiting.pop()
        before = carried.get(row)
        sources = [before] if before is not None else [operand for operand in view.operand_rows(row) if operand is not None]
        new = set(sources) - needed
        needed |= new
        waiting += new
    return needed


def _carried_rows(view: View) -> dict[int, int]:
    """Map each row that takes an element of a loop's state to the row that makes it in the iteration before."""
    if view.root is None or view.opcodes[view.root] != "tuple":
        return {}
    made = view.operand_rows(view.root)
    carried: dict[int, int] = {}
    for row, opcode in enumerate(view.opcodes):
        operand = view.operand_row(row, 0) if opcode == "get-tuple-element" else None
        index = view.element_number(row) if operand is not None and view.opcodes[operand] == "parameter" else None
        source = made[index] if index is not None and index < len(made) else None
        if source is not None:
            carried[row] = source
    return carried
