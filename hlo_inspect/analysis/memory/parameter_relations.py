"""The relation of an array to the entry's parameters: a copy, transpose or conversion, gradient, or new value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo_inspect.analysis.memory.array_flow import PARTS, ArrayFlow, ArrayPlace
from hlo_inspect.graph.frames import MAX_STEPS, Frames, Place
from hlo_inspect.graph.parameters import Interface
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.opcodes import OPCODES, TABLE, opcodes_that_are
from hlo_inspect.optimizer.overview import Overview

PARAMETER, GRADIENT, NEW_VALUE, BROADCAST, GATHERED = "parameter", "gradient", "new value", "broadcast", "gathered"

_WORDS = {
    **{name: name for name in (opcodes_that_are("relayout") - {"bitcast"}) | {BROADCAST}},
    **dict.fromkeys((f"{name}{half}" for name in PARTS for half in ("", "-start", "-done")), "slice"),
    **dict.fromkeys(opcodes_that_are("update"), "update"),
    **dict.fromkeys(("convert", "reduce-precision"), "conversion"),
    **dict.fromkeys(("copy-start", "copy-done"), "copy"),
    **dict.fromkeys((name for name in OPCODES if TABLE[name].base == "all-gather"), GATHERED),
    "recv-done": GATHERED,
    "pad": "padded",
    "custom-call": "moved",
}
"""The word for an instruction's result in relation to its first operand. Other opcodes to step through add no word."""

_COPYING = frozenset({"copy", "transpose", "conversion"})
_NO_COPY = frozenset({GRADIENT, NEW_VALUE, BROADCAST, GATHERED, "update"})

_PARTICIPLES = frozenset({GATHERED, "moved", "padded"})


class Relation(NamedTuple):
    """The relation of an array to an entry parameter: `steps` are the changes in order, none for itself."""

    parameter: int
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.steps) or PARAMETER

    @property
    def copying(self) -> str:
        """The last step if it copies, transposes or converts a parameter or a part of it on its device; else empty."""
        last = self.steps[-1] if self.steps else ""
        return last if last in _COPYING and _NO_COPY.isdisjoint(self.steps) else ""

    @property
    def phrase(self) -> str:
        """The relation with the number of the parameter: `copy of parameter 0`, `gathered from parameter 1`."""
        return f"{self} {'from' if self.steps[-1:] and self.steps[-1] in _PARTICIPLES else 'of'} parameter {self.parameter}"


class ParameterRelations:
    """The relations of a module's arrays to the parameters of its entry, each computed once.

    `made` are arrays whose relation is known already: gradients and new values.
    """

    def __init__(self, flow: ArrayFlow, made: Mapping[ArrayPlace, Relation]) -> None:
        self._flow = flow
        self._frames = flow.frames
        self._made = made
        self._known: dict[Place, Relation | None] = {}

    def get(self, array: ArrayPlace) -> Relation | None:
        """Return the relation of an array; None if it has none. An asynchronous start stands for its result."""
        place = self._flow.place(array)
        return self.at_place(self._flow.finished(place)) if place is not None else None

    def at_place(self, place: Place) -> Relation | None:
        """Return the relation of the array at a place."""
        way: list[Place] = []
        while place not in self._known:
            step = self._step(place)
            if step is None or isinstance(step, Relation) or len(way) == MAX_STEPS:
                self._known[place] = step if isinstance(step, Relation) else None
                break
            way.append(place)
            place = step
        relation = self._known[place]
        for passed in reversed(way):
            word = self._word(passed) if relation is not None else None
            if relation is not None and word is not None and word not in relation.steps and not self._keeps_size(passed):
                relation = Relation(relation.parameter, (*relation.steps, word))
            self._known[passed] = relation
        return relation

    def _word(self, place: Place) -> str | None:
        """Return the word for the array at a place in relation to the array that it comes from."""
        return "copy" if self._flow.is_joined(place) else _WORDS.get(self._frames.opcode(place))

    def _step(self, place: Place) -> Relation | Place | None:
        """Return the relation of an array if it is known, else the array that it comes from, if any."""
        if place[1] < 0:
            return None
        number = self._flow.parameter(place)
        if number is not None:
            return Relation(number)
        return self._made.get(self._flow.array(place)) or self._flow.source(place)

    def _keeps_size(self, place: Place) -> bool:
        """Return True if an instruction is a broadcast that repeats nothing."""
        frames = self._frames
        if frames.opcode(place) != "broadcast":
            return False
        return frames.size(place) == frames.size(frames.operand(place, 0) or place)


# -- gradients and new values -----------------------------------------------------------------------------------------------


def made_arrays(interface: Interface, overview: Overview | None, views: Views, entry: str) -> dict[ArrayPlace, Relation]:
    """Return the gradients and new values of parameters by the place that makes them.

    They come from the optimizer, if it was requested, and from outputs that alias a parameter.
    """
    made: dict[ArrayPlace, Relation] = {}
    for place, relation in (*_optimizer_relations(overview), *_outputs(interface, views, entry)):
        made.setdefault(place, relation)
    return made


def _optimizer_relations(overview: Overview | None) -> Iterator[tuple[ArrayPlace, Relation]]:
    if overview is None:
        return
    updates, frames = overview.updates, overview.updates.flow.frames
    for step in updates.steps:
        for array in step.arrays:
            parameter = updates.parameters.get(array.source)
            if parameter is not None and not array.is_unchanged and array.place[1] >= 0:
                yield _made_at(frames, array.place), Relation(parameter[0], (NEW_VALUE,))
    for row in overview.rows:
        claim, parameter = row.matched.claim, updates.parameters.get(row.weight.source)
        if claim is None or parameter is None:
            continue
        forms = row.matched.update.forms
        atoms = {atom for monomial in claim.gradient for atom, _ in monomial}
        nodes = [row.matched.own_node(node) for atom in atoms if (node := forms.atoms[atom].node) is not None]
        for place in [place for node in nodes if (place := updates.flow.graph.places.get(node)) is not None]:
            if frames.size(place) == row.weight.shape.elements:
                yield _made_at(frames, place), Relation(parameter[0], (GRADIENT,))


def _outputs(interface: Interface, views: Views, entry: str) -> Iterator[tuple[ArrayPlace, Relation]]:
    frames = Frames(views)
    number = frames.open(entry)
    for output in interface.outputs if number is not None else ():
        if output.alias is not None:
            yield _made_at(frames, frames.root(number or 0, output.index)), Relation(output.alias.parameter, (NEW_VALUE,))


def _made_at(frames: Frames, place: Place) -> ArrayPlace:
    frame, row, index = frames.find_maker(place)
    return frames[frame].view.computation.name, row, index
