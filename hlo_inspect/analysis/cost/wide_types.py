"""Work in a wider type than the program needs: collectives that send it, products of widened operands, double precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import CollectiveResult, place_of, results_of, runs_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.collectives.loop_collectives import initial_value
from hlo_inspect.analysis.cost.computation import Costs
from hlo_inspect.analysis.cost.figures import FIGURES, UnknownCostError
from hlo_inspect.analysis.cost.operation import callees
from hlo_inspect.analysis.cost.program_conversions import ProgramConversions, is_named_conversion
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_behind, maker_of, readers_behind
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import PRODUCTS, opcodes_that_call
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, array_leaves

_PARTS = {"slice", "dynamic-slice"}
_MOVES = _PARTS | {"concatenate"}
"""Moves before and behind a collective. XLA cuts the operand of an all-to-all into an array for each device."""


class WidelySent(NamedTuple):
    """A collective, the narrower type, the conversion that shows it, and the bytes of a step that it saves."""

    collective: Collective
    narrow: str
    conversion: ViewRow
    saved: int


def find_wide(
    views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float, program: ProgramConversions
) -> Iterator[WidelySent]:
    """Yield collectives that save `least` bytes or more in a narrower type, without those that sum.

    Of several arrays in one collective, those without a conversion save nothing.
    """
    moving = [c for c in collectives if not c.reduction and (c.wire_bytes or 0) > 0]
    for collective, arrays in groupby(results_of(views, calls, moving), key=lambda result: result.collective):
        results = list(arrays)
        sent = (collective.wire_bytes or 0) * results[0].runs
        if sent < least:
            continue
        finder = _ConversionFinder(views, calls, program)
        conversions = [(result, finder.narrowing(result) or finder.widening(result)) for result in results]
        wide = [(result, conversion) for result, conversion in conversions if conversion is not None]
        saved = sent * sum(map(_narrowed_bytes, wide)) // max(sum(result.bytes for result in results), 1)
        if wide and saved >= least:
            yield WidelySent(collective, _narrow_type(wide[0][1]), wide[0][1], saved)


def _narrowed_bytes(wide: tuple[CollectiveResult, ViewRow]) -> int:
    """Return the bytes that an array has less in the narrower type of its conversion."""
    result, conversion = wide
    return result.bytes - result.bytes * BITS.get(_narrow_type(conversion), 0) // BITS[result.shape.dtype]


class _ConversionFinder:
    """Finds the conversions of the program beside the arrays of collectives."""

    def __init__(self, views: Views, calls: CallGraph, program: ProgramConversions) -> None:
        self._views, self._calls, self._program = views, calls, program

    def narrowing(self, result: CollectiveResult) -> ViewRow | None:
        """Return a conversion to a narrower type, if each reader of the array is such a one."""
        first = self._narrowing(result)
        return first if first is not None and self._program.contains(first) else None

    def _narrowing(self, result: CollectiveResult) -> ViewRow | None:
        """Return the first of the readers if all convert to one narrower type."""
        types: set[str] = set()
        first: ViewRow | None = None
        for reader in readers_behind(self._views, result.place, result.element, lambda reader: reader.opcode in _MOVES):
            made = reader.shape if reader is not None and reader.opcode == "convert" else None
            if not isinstance(made, ArrayShape):
                return None
            types.add(made.dtype)
            if first is None or (reader is not None and is_named_conversion(reader)):
                first = reader
        return first if len(types) == 1 and is_narrower(result.shape.dtype, types.pop()) else None

    def widening(self, result: CollectiveResult) -> ViewRow | None:
        """Return the conversion from a narrower type that makes the operand.

        If a conversion back follows and neither has its own name, the compiler made both.
        """
        start = place_of(self._views, result.collective)
        operand = start.operand(next(iter(result.element), 0)) if start is not None else None
        made = self._maker(operand)
        read = made.view.operand_shape(made.row, 0) if made is not None and made.opcode == "convert" else None
        is_wider = isinstance(read, ArrayShape) and is_narrower(result.shape.dtype, read.dtype)
        if made is None or not is_wider or (not is_named_conversion(made) and self._narrowing(result) is not None):
            return None
        return made if self._program.contains(made, before_collective=True) else None

    def _maker(self, operand: ViewRow | None) -> ViewRow | None:
        """Return the instruction that makes a value, outside of loops that never change it."""
        for _ in range(_MAX_LOOPS):
            made = maker_behind(self._views, operand, _PARTS)
            outside = initial_value(self._views, self._calls, made) if made is not None else None
            if outside is None:
                break
            operand = outside
        return made


_MAX_LOOPS = 8


def _narrow_type(conversion: ViewRow) -> str:
    shapes = (conversion.view.operand_shape(conversion.row, 0), conversion.shape)
    types = [shape.dtype for shape in shapes if isinstance(shape, ArrayShape)]
    return min(types, key=lambda dtype: BITS.get(dtype, 0))


_FLOATS = ("f", "bf")


def is_narrower(wide: str, other: str) -> bool:
    """Return True if `other` is a floating-point type of fewer bits than the floating-point type `wide`."""
    return wide.startswith(_FLOATS) and other.startswith(_FLOATS) and BITS.get(other, 0) < BITS.get(wide, 0)


# -- products and double precision --------------------------------------------------------------------------------------------


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
    costs = Costs(views.classes, ())
    for view, row in views.rows_with(_PRODUCTS):
        if _runs(views, calls, view.computation.name) and len(view.operand_rows(row)) >= 2:
            types = [_converted_from(views, view, row, number) for number in (0, 1)]
            if all(types):
                yield WideWork(ViewRow(view, row), _flops_of_step(views, calls, costs, view, row), max(types, key=_bits))


def find_double_precision(views: Views, calls: CallGraph) -> Iterator[WideWork]:
    """Yield the instructions with results in f64 or c128, with their FLOPs of one step."""
    costs = Costs(views.classes, ())
    for view, row in views.rows_with(views.opcodes - _CALLS):
        if not _runs(views, calls, view.computation.name):
            continue
        if any(leaf.dtype in {"f64", "c128"} for _, leaf in array_leaves(view.shapes[row])):
            flops = _flops_of_step(views, calls, costs, view, row)
            if flops:
                yield WideWork(ViewRow(view, row), flops)


def _runs(views: Views, calls: CallGraph, computation: str) -> bool:
    """Return True if a computation runs, alone or fused."""
    return computation in calls.calls or computation in views.fusions


def _converted_from(views: Views, view: View, row: int, number: int) -> str:
    """Return the narrower type from which the program converts an operand; empty if it does not."""
    operand, shape = view.operand_row(row, number), view.operand_shape(row, number)
    if operand is None or not isinstance(shape, ArrayShape):
        return ""
    made = maker_of(views, ViewRow(view, operand))
    read = made.view.operand_shape(made.row, 0) if made.opcode == "convert" else None
    if not isinstance(read, ArrayShape) or not is_named_conversion(made):
        return ""
    is_float = read.dtype.startswith(_FLOATS)
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
