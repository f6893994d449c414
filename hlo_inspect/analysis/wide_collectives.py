"""Collectives that send a wider type than the program needs: narrowed right behind, or widened right before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hlo_inspect.analysis.collective_results import CollectiveResult, place_of, results_of
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_of, readers_of
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape

CONVERSION = "convert_element_type"
"""The primitive of a conversion that the program contains; compilers give theirs the name of a neighbor, or none."""

_PARTS = {"slice", "dynamic-slice"}


class WidelySent(NamedTuple):
    """A collective, the narrower type, the conversion that shows it, and the bytes of a step that it saves."""

    collective: Collective
    narrow: str
    conversion: ViewRow
    saved: int


def find_wide(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[WidelySent]:
    """Yield collectives of one array that save `least` bytes or more in a narrower type, without those that sum."""
    moving = [c for c in collectives if not c.reduction and (c.wire_bytes or 0) > 0]
    for result in results_of(views, calls, moving):
        wire = (result.collective.wire_bytes or 0) * result.runs
        if result.element or wire < least:
            continue
        conversion = _narrowing(views, result) or _widening(views, result)
        if conversion is None:
            continue
        narrow = _narrow_type(conversion)
        saved = wire - wire * BITS.get(narrow, 0) // BITS[result.shape.dtype]
        if saved >= least:
            yield WidelySent(result.collective, narrow, conversion, saved)


def _narrowing(views: Views, result: CollectiveResult) -> ViewRow | None:
    """Return a conversion to a narrower type, if each reader of the array is such a one."""
    types: set[str] = set()
    first: ViewRow | None = None
    waiting = [(result.place, result.element)]
    while waiting:
        for reader in readers_of(views, *waiting.pop()):
            if reader is None:
                return None
            if reader.opcode in _PARTS:
                waiting.append((reader, ()))
                continue
            made = reader.view.shapes[reader.row]
            if reader.opcode != "convert" or not isinstance(made, ArrayShape) or not _is_of_program(reader):
                return None
            types.add(made.dtype)
            first = first or reader
    return first if len(types) == 1 and is_narrower(result.shape.dtype, types.pop()) else None


def _widening(views: Views, result: CollectiveResult) -> ViewRow | None:
    """Return the conversion from a narrower type that makes the operand."""
    start = place_of(views, result.collective)
    row = start.view.operand_row(start.row, 0) if start is not None else None
    if start is None or row is None:
        return None
    made = maker_of(views, ViewRow(start.view, row))
    read = made.view.operand_shape(made.row, 0) if made.opcode == "convert" else None
    is_wider = isinstance(read, ArrayShape) and is_narrower(result.shape.dtype, read.dtype)
    return made if is_wider and _is_of_program(made) else None


def _narrow_type(conversion: ViewRow) -> str:
    shapes = (conversion.view.operand_shape(conversion.row, 0), conversion.view.shapes[conversion.row])
    types = [shape.dtype for shape in shapes if isinstance(shape, ArrayShape)]
    return min(types, key=lambda dtype: BITS.get(dtype, 0))


def _is_of_program(place: ViewRow) -> bool:
    return place.view.op_name(place.row).endswith(CONVERSION)


_FLOATS = ("f", "bf")


def is_narrower(wide: str, other: str) -> bool:
    """Return True if `other` is a floating-point type of fewer bits than the floating-point type `wide`."""
    return wide.startswith(_FLOATS) and other.startswith(_FLOATS) and BITS.get(other, 0) < BITS.get(wide, 0)
