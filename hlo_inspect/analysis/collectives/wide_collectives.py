"""Collectives that send a wider type than the program needs: narrowed right behind, or widened right before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import CollectiveResult, place_of, results_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_of, readers_of
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape

MAX_STEPS = 64
"""Slices that are followed from a collective's operand."""

_PARTS = {"slice", "dynamic-slice"}
_MOVES = _PARTS | {"concatenate"}
"""Moves before and behind a collective. XLA cuts the operand of an all-to-all into an array for each device."""


class WidelySent(NamedTuple):
    """A collective, the narrower type, the conversion that shows it, and the bytes of a step that it saves."""

    collective: Collective
    narrow: str
    conversion: ViewRow
    saved: int


def find_wide(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[WidelySent]:
    """Yield collectives that save `least` bytes or more in a narrower type, without those that sum.

    Of several arrays in one collective, those without a conversion save nothing.
    """
    moving = [c for c in collectives if not c.reduction and (c.wire_bytes or 0) > 0]
    for collective, arrays in groupby(results_of(views, calls, moving), key=lambda result: result.collective):
        results = list(arrays)
        sent = (collective.wire_bytes or 0) * results[0].runs
        if sent < least:
            continue
        conversions = [(result, _narrowing(views, result) or _widening(views, result)) for result in results]
        wide = [(result, conversion) for result, conversion in conversions if conversion is not None]
        saved = sent * sum(map(_narrowed_bytes, wide)) // max(sum(result.bytes for result in results), 1)
        if wide and saved >= least:
            yield WidelySent(collective, _narrow_type(wide[0][1]), wide[0][1], saved)


def _narrowed_bytes(wide: tuple[CollectiveResult, ViewRow]) -> int:
    """Return the bytes that an array has less in the narrower type of its conversion."""
    result, conversion = wide
    return result.bytes - result.bytes * BITS.get(_narrow_type(conversion), 0) // BITS[result.shape.dtype]


def _narrowing(views: Views, result: CollectiveResult) -> ViewRow | None:
    """Return a conversion to a narrower type, if each reader of the array is such a one."""
    types: set[str] = set()
    first: ViewRow | None = None
    waiting = [(result.place, result.element)]
    seen: set[tuple[str, int]] = set()
    while waiting:
        for reader in readers_of(views, *waiting.pop()):
            if reader is None:
                return None
            if reader.opcode in _MOVES:
                waiting += [(reader, ())] if reader.key not in seen else []
                seen.add(reader.key)
                continue
            made = reader.shape
            if reader.opcode != "convert" or not isinstance(made, ArrayShape) or not is_of_program(reader):
                return None
            types.add(made.dtype)
            first = first or reader
    return first if len(types) == 1 and is_narrower(result.shape.dtype, types.pop()) else None


def _widening(views: Views, result: CollectiveResult) -> ViewRow | None:
    """Return the conversion from a narrower type that makes the operand."""
    start = place_of(views, result.collective)
    operand = start.operand(next(iter(result.element), 0)) if start is not None else None
    made: ViewRow | None = None
    for _ in range(MAX_STEPS):
        made = maker_of(views, operand) if operand is not None else None
        if made is None or made.opcode not in _PARTS:
            break
        operand = made.operand(0)
    read = made.view.operand_shape(made.row, 0) if made is not None and made.opcode == "convert" else None
    is_wider = isinstance(read, ArrayShape) and is_narrower(result.shape.dtype, read.dtype)
    return made if made is not None and is_wider and is_of_program(made) else None


def _narrow_type(conversion: ViewRow) -> str:
    shapes = (conversion.view.operand_shape(conversion.row, 0), conversion.shape)
    types = [shape.dtype for shape in shapes if isinstance(shape, ArrayShape)]
    return min(types, key=lambda dtype: BITS.get(dtype, 0))


def is_of_program(conversion: ViewRow) -> bool:
    """Return True if the program contains a conversion; compilers give theirs the name of a neighbor, or none."""
    return conversion.op_name.endswith("convert_element_type")


_FLOATS = ("f", "bf")


def is_narrower(wide: str, other: str) -> bool:
    """Return True if `other` is a floating-point type of fewer bits than the floating-point type `wide`."""
    return wide.startswith(_FLOATS) and other.startswith(_FLOATS) and BITS.get(other, 0) < BITS.get(wide, 0)
