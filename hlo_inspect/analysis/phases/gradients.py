"""Which nodes of a step's values are gradients, and which are weights: what the updates of the optimizer say.

The gradient in the update of a weight stands there as a form over opaque values. Of these the gradients are those that are at
least as large as the weight and are factors with exponent 1: the norm of a clip is a scalar, a second moment holds a square.
The condition of a `select` chooses and is left out. Of an update that no rule explains it is the same of the new value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.value_graph import Parts, ValueGraph, nodes_in
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.algebra.normal_form import Atom, NormalForms, Sum
from hlo_inspect.optimizer.overview import Overview, Row

MAX_ATOMS = 20_000
"""Atoms of one update that are looked at."""


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
    places = UpdatePlaces(overview.updates.flow.frames, graph)
    found = []
    for row in [row for row in overview.rows if not row.matched.is_linear]:
        weight = TrainedWeight()
        for place, part in _gradients(row):
            weight.gradients.update(places.nodes(place, part))
        if not weight.gradients:
            continue
        for array in (row.weight, row.master):
            if array is not None:
                weight.arrays.update(places.input(*array.source))
        found.append(weight)
    return found


_Part = SliceDimension | None
"""A range of the elements of a flattened array; all of them for `None`."""


def _gradients(row: Row) -> list[tuple[Place, _Part]]:
    """Where the opaque values are that stand for the gradient in an update: those as large as the weight; inside of regions
    with manual sharding, where arrays are smaller, the largest.
    """
    update, claim = row.matched.update, row.matched.claim
    forms = update.forms
    waiting: list[tuple[Sum, _Part]] = [(update.form if claim is None else claim.gradient, None)]
    seen: set[tuple[int, _Part]] = set()
    places: list[tuple[int, Place, _Part]] = []
    while waiting and len(seen) < MAX_ATOMS:
        form, part = waiting.pop()
        for monomial in form:
            for number, exponent in monomial:
                if exponent == 1.0 and (number, part) not in seen:
                    seen.add((number, part))
                    waiting += _below(forms, forms.atoms[number], part, places)
    least = min(update.array.shape.elements or 1, max((size for size, *_ in places), default=1))
    return [(place, part) for size, place, part in places if size >= least]


def _below(forms: NormalForms, atom: Atom, part: _Part, places: list[tuple[int, Place, _Part]]) -> list[tuple[Sum, _Part]]:
    """What an atom is made of; the size and place of an opaque one are added to `places`."""
    if atom.node is None:
        cut = atom.attribute
        if atom.op == "slice" and isinstance(cut, tuple) and len(cut) == 1 and isinstance(cut[0], SliceDimension):
            return [(atom.parts[0], cut[0])]
        return [(form, part) for form in (atom.parts[1:] if atom.op == "select" else atom.parts)]
    place = forms.graph.places.get(atom.node)
    if place is not None:
        places.append((forms.graph.sizes[atom.node], place, part))
        return []
    return [(forms.definition(atom.node), part)] if forms.graph.args[atom.node] else []
