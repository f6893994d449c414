"""The arrays that collectives make, and the instructions that read them: for rules on bytes that are sent for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.figure import exact
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, readers_behind
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, ELEMENTWISE
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves

MAX_BOXES = 12
"""Slices whose union is exact; the sizes of more are added."""

_SLICING = frozenset({"slice", "dynamic_slice", "squeeze", "split"})
"""Primitives of slices that stand in the program. Slices of compilers have the name of their neighbor, or none."""


class CollectiveResult(NamedTuple):
    """An array of a collective's result: the instruction that finishes it, and the array's element and shape there.

    `runs` are those of one step; an unknown number counts once.
    """

    collective: Collective
    place: ViewRow
    element: ShapeIndex
    shape: ArrayShape
    runs: int

    @property
    def bytes(self) -> int:
        return self.shape.bytes or 0


def runs_of(calls: CallGraph, computation: str) -> int:
    """Return the runs of a computation in one step; an unknown number counts once."""
    return int(exact(calls.runs(computation)) or 1)


def place_of(views: Views, collective: Collective) -> ViewRow | None:
    """Return the instruction that starts a collective in its computation; None if the graph lacks it."""
    view = views.find(collective.start.computation.name)
    row = view.row_at(collective.start.line, collective.start.name) if view is not None else None
    return ViewRow(view, row) if view is not None and row is not None else None


def results_of(views: Views, calls: CallGraph, collectives: Iterable[Collective]) -> Iterator[CollectiveResult]:
    """Yield the arrays of collectives that stand in the text as one instruction or as an asynchronous pair."""
    for collective in collectives:
        place = place_of(views, collective)
        if place is None or collective.start.opcode == "fusion":
            continue
        finished = _finished(place) if collective.is_async or place.opcode.endswith("-start") else place
        if finished is None:
            continue
        runs = runs_of(calls, finished.view.computation.name)
        for index, leaf in array_leaves(finished.shape):
            yield CollectiveResult(collective, finished, index, leaf, runs)


def _finished(place: ViewRow) -> ViewRow | None:
    view, row = place
    passed: set[int] = set()
    while row not in passed:
        passed.add(row)
        end = next((user for user in view.users[row] if view.opcodes[user] in ASYNC_ENDS), None)
        if end is None or view.opcodes[end].endswith("-done"):
            return ViewRow(view, end) if end is not None else None
        row = end
    return None


# -- what slices read ---------------------------------------------------------------------------------------------------


def unread_bytes(views: Views, result: CollectiveResult) -> tuple[int, ViewRow] | None:
    """Return the bytes of an array that no slice reads, and the program's first slice; None if something reads all of it.

    Overlaps of slices with fixed bounds count once; dynamic slices count their sizes. A slice behind elementwise work reads the
    same elements: the mean of a sum over devices, or a conversion. A combined sum is sliced twice: by the compiler into the
    arrays that it combined, and those by the program.
    """
    reading = _read_slices(views, result.place, result.element, result.shape)
    inner = [_read_slices(views, place, (), shape) for place, shape in reading.of_compiler] if reading is not None else []
    slices = [place for each in (reading, *inner) if each is not None for place in each.of_program]
    if reading is None or not slices or not result.shape.elements:
        return None
    unread = reading.unread + sum(each.unread for each in inner if each is not None)
    return unread * result.bytes // result.shape.elements, slices[0]


class _Reading(NamedTuple):
    """The slices that read an array, and the number of elements that none of them reads."""

    of_program: list[ViewRow]
    of_compiler: list[tuple[ViewRow, ArrayShape]]
    unread: int


def _read_slices(views: Views, place: ViewRow, element: ShapeIndex, shape: ArrayShape) -> _Reading | None:
    """Return the slices that read an array; None if something else reads it.

    Of the compiler's slices those with fixed bounds are named.
    """
    boxes: dict[tuple[int | None, ...], list[tuple[SliceDimension, ...]]] = {}
    dynamic = 0
    reading = _Reading([], [], 0)
    for reader in readers_behind(views, place, element, lambda reader: reader.opcode in ELEMENTWISE):
        if reader is None:
            return None
        read, made = reader.view.operand_shape(reader.row, 0), reader.shape
        if not isinstance(read, ArrayShape) or not isinstance(made, ArrayShape):
            return None
        box = reader.view.instruction_at(reader.row).attr("slice") if reader.opcode == "slice" else None
        if box is not None:
            boxes.setdefault(read.dimensions, []).append(tuple(box))
        elif reader.opcode == "dynamic-slice":
            dynamic += made.elements or 0
        else:
            return None
        if reader.op_name.rpartition("/")[2] in _SLICING:
            reading.of_program.append(reader)
        elif box is not None:
            reading.of_compiler.append((reader, made))
    covered = dynamic + sum(_union(each) for each in boxes.values())
    return reading._replace(unread=max(0, (shape.elements or 0) - covered))


def _union(boxes: list[tuple[SliceDimension, ...]]) -> int:
    """Return the number of elements in the union of slices; of many, or of slices with strides, the sum."""
    distinct = list(dict.fromkeys(boxes))
    if len(distinct) > MAX_BOXES or any(part.stride != 1 for box in distinct for part in box):
        return sum(prod(-(-(part.limit - part.start) // part.stride) for part in box) for box in distinct)
    cuts = [sorted({bound for part in parts for bound in (part.start, part.limit)}) for parts in zip(*distinct, strict=True)]
    cells = product(*[list(pairwise(bounds)) for bounds in cuts])
    return sum(prod(high - low for low, high in cell) for cell in cells if any(_covers(box, cell) for box in distinct))


def _covers(box: Iterable[SliceDimension], cell: Iterable[tuple[int, int]]) -> bool:
    return all(part.start <= low and high <= part.limit for part, (low, high) in zip(box, cell, strict=True))


class SlicedCollective(NamedTuple):
    """A collective of whose result slices read a part: the bytes of one step that nothing reads, and the first slice."""

    collective: Collective
    unread: int
    slice: ViewRow


def find_sliced(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SlicedCollective]:
    """Yield collectives whose results have unread bytes, `least` or more in one step, because the program slices them."""
    unread: dict[int, int] = {}
    slices: dict[int, ViewRow] = {}
    wanted = list(collectives)
    for result in results_of(views, calls, wanted):
        whole = (result.collective.result_bytes or 0) * result.runs
        part = unread_bytes(views, result) if whole >= least else None
        if part is not None and part[0]:
            number = id(result.collective)
            unread[number] = unread.get(number, 0) + part[0] * result.runs
            slices.setdefault(number, part[1])
    for collective in wanted:
        if unread.get(id(collective), 0) >= max(least, 1):
            yield SlicedCollective(collective, unread[id(collective)], slices[id(collective)])
