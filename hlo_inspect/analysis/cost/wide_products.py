"""Work in a wider type than the program needs: products of operands that it widens, and instructions in double precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import runs_of
from hlo_inspect.analysis.collectives.wide_collectives import is_of_program
from hlo_inspect.analysis.cost.computation import Costs
from hlo_inspect.analysis.cost.custom_calls.user_rules import NO_USER_RULES
from hlo_inspect.analysis.cost.figures import FIGURES, UnknownCostError
from hlo_inspect.analysis.cost.operation import callees
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import PRODUCTS, opcodes_that_call
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, array_leaves

_PRODUCTS = PRODUCTS | {"custom-call"}  # calls of a library have FLOPs if they are products
_CALLS = opcodes_that_call("run", "body", "condition", "branch", "fused")
_FLOPS = FIGURES.index("flops")


class WideWork(NamedTuple):
    """An instruction and its FLOPs of one step in a wide type; `narrow` is the type of a product's operands before."""

    place: ViewRow
    flops: int
    narrow: str = ""


def find_widened_products(views: Views, calls: CallGraph) -> Iterator[WideWork]:
    """Yield the products whose two operands the program widens. Runs are those of one step; an unknown number counts once."""
    if _PRODUCTS.isdisjoint(views.opcodes):
        return
    costs = Costs(views.fingerprints, NO_USER_RULES)
    for view, row in _rows(views, calls):
        if view.opcodes[row] in _PRODUCTS and len(view.operand_rows(row)) >= 2:
            types = [_narrow_type(views, view, row, number) for number in (0, 1)]
            if all(types):
                yield WideWork(ViewRow(view, row), _flops_of_step(views, calls, costs, view, row), max(types, key=_bits))


def find_double_precision(views: Views, calls: CallGraph) -> Iterator[WideWork]:
    """Yield the instructions with results in f64 or c128, with their FLOPs of one step."""
    costs = Costs(views.fingerprints, NO_USER_RULES)
    for view, row in _rows(views, calls):
        results = [] if view.opcodes[row] in _CALLS else array_leaves(view.shapes[row])
        if any(leaf.dtype in {"f64", "c128"} for _, leaf in results):
            flops = _flops_of_step(views, calls, costs, view, row)
            if flops:
                yield WideWork(ViewRow(view, row), flops)


def _rows(views: Views, calls: CallGraph) -> Iterator[tuple[View, int]]:
    """Yield the rows of the computations that run, fused ones included."""
    for name in views.computations:
        if name in views.fusions or name in calls.calls:
            view = views.for_computation(name)
            yield from ((view, row) for row in range(len(view.rows)))


def _narrow_type(views: Views, view: View, row: int, number: int) -> str:
    """Return the narrower type from which the program converts an operand; empty if it does not."""
    operand, shape = view.operand_row(row, number), view.operand_shape(row, number)
    if operand is None or not isinstance(shape, ArrayShape):
        return ""
    made = maker_of(views, ViewRow(view, operand))
    read = made.view.operand_shape(made.row, 0) if made.opcode == "convert" else None
    if not isinstance(read, ArrayShape) or not is_of_program(made):
        return ""
    is_float = read.dtype.startswith(("f", "bf"))
    return read.dtype if is_float and _bits(read.dtype) < _bits(shape.dtype) else ""


def _bits(dtype: str) -> int:
    return BITS.get(dtype, 0)


def _flops_of_step(views: Views, calls: CallGraph, costs: Costs, view: View, row: int) -> int:
    """Return the FLOPs of an instruction; inside of a fusion, with the runs of the fusion."""
    try:
        for role, callee in callees(view, row, "fused"):  # such as the addition of a reduction
            if role == "applied" and callee in views.computations and not costs.copy_counted(role, callee):
                costs.count(role, views.for_computation(callee))
        cost = costs.of_row(view, row)
    except UnknownCostError:
        return 0
    return 0 if "flops" in cost.gaps else cost.amounts[_FLOPS] * runs_of(calls, views.running(view.computation.name))
