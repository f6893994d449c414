"""The largest arrays of a text, scheduled or not: parameters, and results of instructions that are not fused.

A fused value has no memory of its own. Tuples, bitcasts, loops, calls and barriers return arrays of other instructions. The
result of an asynchronous pair is the result of its end. In a scheduled text an instruction that writes in place makes no array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.memory.array_flow import ArrayFlow
from hlo_inspect.analysis.memory.array_sources import ArraySource
from hlo_inspect.analysis.memory.parameter_relations import Relation
from hlo_inspect.analysis.provenance import Labels
from hlo_inspect.graph.frames import MAX_STEPS, Frames, Place
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CONTROL_FLOW, MARKERS, NAMING, TABLE, TRANSFERS, UNCHANGED_TARGETS, opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves

LEAST_SHARE = 100
"""Arrays that are smaller than the largest by this factor are left out."""

_WRITING = opcodes_that_are("update")
_MADE_ELSEWHERE = (
    NAMING | MARKERS | CONTROL_FLOW | {opcode.name for opcode in TABLE.values() if opcode.half in ("start", "update")}
)
_IN_PLACE_TARGETS = UNCHANGED_TARGETS - TRANSFERS
"""Custom calls that return their operands in place."""


class LargeArray(NamedTuple):
    """An array: the row that makes it, the index `element` into its result, and its relation to the entry's parameters.

    `labels` have source and scope of the instruction that makes the elements, `path` is the path of the parameter.
    """

    view: View
    row: int
    element: ShapeIndex
    shape: ArrayShape
    relation: Relation | None
    labels: Labels
    path: str

    @property
    def name(self) -> str:
        return self.view.names[self.row]

    @property
    def opcode(self) -> str:
        return self.view.opcodes[self.row]

    @property
    def line(self) -> int:
        return self.view.lines[self.row]


Made = tuple[View, int, ShapeIndex, ArrayShape]
"""An array by the row that makes it, and the index into the result of that row."""


class LargestArrays:
    """The arrays of a module that was read with its graph, by their bytes with padding.

    `relation_of` returns the relation of an array to a parameter, `source_of` its source.
    """

    def __init__(
        self,
        module: Module,
        views: Views,
        flow: ArrayFlow,
        relation_of: Callable[[View, int, ShapeIndex], Relation | None],
        source_of: Callable[[View, int, ShapeIndex], ArraySource],
    ) -> None:
        self._relation_of = relation_of
        self._source_of = source_of
        self._in_place = _InPlace(views) if module.header.is_scheduled else None
        entry = module.entry.name if module.entry is not None else ""
        self._made = [
            made
            for number, view in enumerate(flow.views)
            for made in _made_by_head(view, number, has_inputs=entry in {"", view.computation.name})
        ]

    @cached_property
    def found(self) -> list[LargeArray]:
        """The arrays of at least the largest one's bytes / `LEAST_SHARE`, the largest first."""
        return [self._described(array) for array in self._large() if not self._is_in_place(array)]

    def constants(self) -> list[LargeArray]:
        """Return the constants among the arrays of at least the largest one's bytes / `LEAST_SHARE`."""
        return [self._described(array) for array in self._large() if array[0].opcodes[array[1]] == "constant"]

    def parameter_copies(self) -> list[LargeArray]:
        """Return the arrays that an instruction makes by copying, transposing or converting a parameter or a part of it."""
        copies = []
        for _, array in self._sized():
            relation = self._relation_of(*array[:3]) if array[0].opcodes[array[1]] != "parameter" else None
            if relation is not None and relation.copying and not self._is_in_place(array):
                copies.append(self._described(array))
        return copies

    def _large(self) -> Iterator[Made]:
        return (array for _, array in self._sized(self._largest / LEAST_SHARE))

    @property
    def _largest(self) -> int:
        return max((size for made in self._made for size, *_ in made.leaves), default=0)

    def _sized(self, least: float = 0) -> Iterator[tuple[int, Made]]:
        """Yield the arrays of `least` bytes or more with their bytes, the largest first, else in the order of the text."""
        of_size: defaultdict[int, list[tuple[int, _MadeByHead]]] = defaultdict(list)
        for made in self._made:
            for number, (size, *_) in enumerate(made.leaves):
                if size >= least:
                    of_size[size].append((number, made))
        for size in sorted(of_size, reverse=True):
            places = [(made.number, row, number, made) for number, made in of_size[size] for row in made.rows]
            for _, row, number, made in sorted(places, key=itemgetter(0, 1, 2)):
                yield size, (made.view, row, *made.leaves[number][1:])

    @cached_property
    def largest_made(self) -> list[LargeArray]:
        """All arrays of the size of the largest array that is no parameter."""
        largest: list[LargeArray] = []
        limit = 0
        for size, array in self._sized():
            if size < limit:
                break
            if array[0].opcodes[array[1]] != "parameter" and not self._is_in_place(array):
                limit = size
                largest.append(self._described(array))
        return largest

    @property
    def largest_made_shape(self) -> ArrayShape | None:
        """The shape of the largest array that is no parameter."""
        arrays = (array for _, array in self._sized())
        return next((a[3] for a in arrays if a[0].opcodes[a[1]] != "parameter" and not self._is_in_place(a)), None)

    def _is_in_place(self, array: Made) -> bool:
        return self._in_place is not None and self._in_place.writes(*array[:3])

    def _described(self, array: Made) -> LargeArray:
        view, row, element, shape = array
        source = self._source_of(view, row, element)
        return LargeArray(view, row, element, shape, self._relation_of(view, row, element), source.labels, source.path)


class _MadeByHead(NamedTuple):
    """Rows of a view with one head, and the arrays of the result of each: padded bytes, index and shape.

    `number` is that of the view among those of the module.
    """

    view: View
    number: int
    rows: Sequence[int]
    leaves: Sequence[tuple[int, ShapeIndex, ArrayShape]]


def _made_by_head(view: View, number: int, *, has_inputs: bool) -> Iterator[_MadeByHead]:
    """Yield the rows of a computation that make arrays, and its parameters if they are inputs.

    Arrays of no or unknown bytes are left out.
    """
    made_elsewhere = _MADE_ELSEWHERE if has_inputs else _MADE_ELSEWHERE | {"parameter"}
    for rows in view.rows_by_head():
        opcode, shape = view.opcodes[rows[0]], view.shapes[rows[0]]
        leaves = [(size, *leaf) for leaf in array_leaves(shape) if (size := leaf[1].padded_bytes)]
        made = rows if opcode not in made_elsewhere else ()
        if opcode == "custom-call":
            targets = {row: view.instruction_at(row).attr("custom_call_target") for row in rows}
            made = [row for row in rows if targets[row] not in _IN_PLACE_TARGETS]
        if made:
            yield _MadeByHead(view, number, made, leaves)


class _InPlace:
    """Results that are written into an operand: of instructions that write a part, and of fusions with such a root."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._frames = Frames(views)

    def writes(self, view: View, row: int, index: ShapeIndex) -> bool:
        if view.opcodes[row] != "fusion":
            return view.opcodes[row] in _WRITING
        fused = self._views.fused(view, row)
        if fused is None:
            return False
        root = fused.rows.column.root
        if root is not None and root.opcode not in NAMING:
            return root.opcode in _WRITING
        return self._ends_in_write(fused.name, index)

    def _ends_in_write(self, name: str, index: ShapeIndex) -> bool:
        """Return True if an element of a computation's result comes from an instruction that writes a part."""
        frames, number = self._frames, self._frames.open(name)
        place: Place | None = frames.root(number, index) if number is not None else None
        for _ in range(MAX_STEPS):
            if place is None or frames.opcode(place) not in NAMING:
                break
            place = frames.step_back(place)
        return place is not None and frames.opcode(place) in _WRITING
