"""The subshapes of a shape in the order of `ShapeUtil::ForEachSubshape`: the shape itself, then what is in it, depth first.

A value has a place in its instruction's result: the number of its subshape in that order, 0 for the whole result. The result of
an instruction is thus a list with one entry a subshape, and an element of a tuple is a slice of the list.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import Shape, TupleShape


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTree:
    """The subshapes of a tuple. `elements` has the span of each of its elements, `parts` the subshapes themselves."""

    elements: tuple[tuple[int, int], ...]
    parts: tuple[Shape, ...]


class ShapeTrees:
    """The trees of a module's tuple shapes, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Shape, ShapeTree]] = {}  # the shape is kept, so that its identity stays taken

    def of(self, shape: TupleShape) -> ShapeTree:
        known = self._known.get(id(shape))
        if known is None:
            known = self._known[id(shape)] = (shape, _tree(shape))
        return known[1]

    def size(self, shape: Shape | None) -> int:
        """How many subshapes there are; an unknown shape counts as one array."""
        return len(self.of(shape).parts) if isinstance(shape, TupleShape) else 1

    def part(self, shape: Shape | None, place: int) -> Shape | None:
        """The subshape at a place."""
        return self.of(shape).parts[place] if isinstance(shape, TupleShape) else shape

    def place(self, shape: Shape | None, index: ShapeIndex) -> int | None:
        """The place of a shape index, `None` where it leads nowhere."""
        place = 0
        for i in index:
            if not isinstance(shape, TupleShape) or i >= len(shape.elements):
                return None
            place += self.of(shape).elements[i][0]
            shape = shape.elements[i]
        return place

    def index(self, shape: Shape | None, place: int) -> ShapeIndex:
        """The shape index of a place."""
        index: list[int] = []
        while place and isinstance(shape, TupleShape):
            for number, (start, end) in enumerate(self.of(shape).elements):
                if start <= place < end:
                    index.append(number)
                    place -= start
                    shape = shape.elements[number]
                    break
        return tuple(index)


def _tree(shape: TupleShape) -> ShapeTree:
    parts: list[Shape] = [shape]
    elements: list[tuple[int, int]] = []
    for element in shape.elements:
        start = len(parts)
        waiting = [element]
        while waiting:
            one = waiting.pop()
            parts.append(one)
            if isinstance(one, TupleShape):
                waiting += reversed(one.elements)
        elements.append((start, len(parts)))
    return ShapeTree(tuple(elements), tuple(parts))
