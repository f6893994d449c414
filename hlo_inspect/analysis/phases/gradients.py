"""Which nodes of a step's values are gradients, and which are weights: what the updates of the optimizer say."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.value_graph import Parts, ValueGraph, nodes_in
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.overview import Overview


@dataclass(slots=True)
class TrainedWeight:
    """The nodes of one weight's gradient, and of the arrays that hold the weight: itself and its working copy."""

    gradients: set[int] = field(default_factory=set)
    arrays: set[int] = field(default_factory=set)


class UpdatePlaces:
    """The nodes at the places that the optimizer's analysis names, which reads the same computations call by call."""

    def __init__(self, frames: Frames, graph: ValueGraph) -> None:
        self._frames = frames
        self._graph = graph
        self._known: dict[int, int | None] = {}
        self._parameters: dict[int, dict[int, int]] = {}

    def nodes(self, place: Place, part: SliceDimension | None = None) -> list[int]:
        """The nodes of the value at the place, or of those parts of it that hold a range of its elements; none where it was not
        read.
        """
        frame, row, index = place
        number = self._frame(frame)
        if number is None or row < 0:
            return []
        whole = self._graph.frames[number].value(row)
        value = ValueGraph.element(whole, index)
        if isinstance(value, Parts) and part is not None and part.limit <= value.stop:
            return value.within(part.start, part.limit)
        return nodes_in(value) or nodes_in(whole)

    def input(self, frame: int, number: int, index: tuple[int, ...]) -> list[int]:
        """The nodes of an element of a parameter."""
        rows = self._parameters.get(frame)
        if rows is None:
            rows = self._parameters[frame] = self._frames[frame].view.parameters_by_number()
        return self.nodes((frame, rows[number], index)) if number in rows else []

    def _frame(self, frame: int) -> int | None:
        """The number that a call has in the graph."""
        around = [frame]  # and the calls around it, the outermost last
        while around[-1] not in self._known and (caller := self._frames[around[-1]].caller) is not None:
            around.append(caller[0])
        for one in reversed(around):
            if one not in self._known:
                self._known[one] = self._find(one, self._frames[one].caller)
        return self._known[frame]

    def _find(self, frame: int, caller: tuple[int, int] | None) -> int | None:
        name = self._frames[frame].view.computation.name
        if caller is None:
            found = self._graph.frames_by_name.get(name, [])
            return found[0].number if found else None
        above = self._known[caller[0]]
        if above is None:
            return None
        called = self._graph.frames[above].called.get(caller[1], ())
        return next((one for one in called if self._graph.frames[one].name == name), None)


def trained_weights(overview: Overview, graph: ValueGraph) -> list[TrainedWeight]:
    """The weights of which gradients were found that depend on a cotangent."""
    places = UpdatePlaces(overview.frames, graph)
    found = []
    for row in [row for row in overview.rows if not row.matched.is_linear]:
        weight = TrainedWeight()
        for place, part in row.matched.gradient_places():
            weight.gradients.update(places.nodes(place, part))
        if not weight.gradients:
            continue
        for array in (row.weight, row.master):
            if array is not None:
                weight.arrays.update(places.input(*array.source))
        found.append(weight)
    return found
