"""The relation of an array to the entry's parameters: a copy, transpose or conversion, gradient, or new value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo_inspect.graph.frames import MAX_STEPS, Frames, Place
from hlo_inspect.graph.parameters import Interface
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import OPCODES, TABLE, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.optimizer.overview import Overview

PARAMETER, GRADIENT, NEW_VALUE, BROADCAST, GATHERED = "parameter", "gradient", "new value", "broadcast", "gathered"

_PARTS = opcodes_that_give("part") - opcodes_that_are("collective") - {"gather", "reverse"}
_WORDS = {
    **{name: name for name in (opcodes_that_are("relayout") - {"bitcast"}) | {BROADCAST}},
    **dict.fromkeys(_PARTS, "slice"),
    **dict.fromkeys(opcodes_that_are("update"), "update"),
    **dict.fromkeys(("convert", "reduce-precision"), "conversion"),
    **dict.fromkeys(("copy-start", "copy-done"), "copy"),
    **dict.fromkeys((name for name in OPCODES if TABLE[name].base == "all-gather"), GATHERED),
    "recv-done": GATHERED,
    "pad": "padded",
    "custom-call": "moved",
}
"""The word for an instruction's result in relation to its first operand. Other opcodes to step through add no word."""

_COPYING = frozenset({"copy", "transpose", "conversion", GATHERED})
_CHANGING = frozenset({GRADIENT, NEW_VALUE, BROADCAST, "update"})

_PARTICIPLES = frozenset({GATHERED, "moved", "padded"})

_OF_FIRST_OPERAND = _PARTS | opcodes_that_are("update") | {"broadcast"}

_RESULT_OF_START = {"all-gather-start": (1,), "copy-start": (0,)}

_JOINED_SLICES = "ConcatBitcast"
"""A custom call of TPU that joins slices of an array which were copied separately."""

ArrayPlace = tuple[str, int, ShapeIndex]
"""A computation, a row of it, and an index into the result of that row."""


class Relation(NamedTuple):
    """The relation of an array to an entry parameter: `steps` are the changes in order, none for itself."""

    parameter: int
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.steps) or PARAMETER

    @property
    def copying(self) -> str:
        """The steps that copy a parameter or a part of it, as `conversion, gathered`; empty if others change its values."""
        return ", ".join(step for step in self.steps if step in _COPYING) if _CHANGING.isdisjoint(self.steps) else ""

    @property
    def phrase(self) -> str:
        """The relation with the number of the parameter: `copy of parameter 0`, `gathered from parameter 1`."""
        return f"{self} {'from' if self.steps[-1:] and self.steps[-1] in _PARTICIPLES else 'of'} parameter {self.parameter}"


class ParameterRelations:
    """The relations of a module's arrays to the parameters of its entry, each computed once.

    `made` are arrays whose relation is known already: gradients and new values.
    """

    def __init__(self, module: Module, views: Views, made: Mapping[ArrayPlace, Relation]) -> None:
        self._views = views
        self._frames = Frames(views)
        self._made = made
        self._entry = module.entry.name if module.entry is not None else ""
        self._numbers: dict[str, int | None] = {}
        self._loops: dict[int, Place] = {}
        self._branches: dict[tuple[int, int], dict[str, int]] = {}
        self._known: dict[Place, Relation | None] = {}

    def enter(self, caller: ArrayPlace | None, computation: str) -> None:
        """Note that the instruction at `caller` runs a computation; the entry has no caller.

        The first of several callers counts.
        """
        if computation in self._numbers:
            return
        place = self._place(caller) if caller is not None else None
        if place is not None and self._frames.opcode(place) != "while":
            self._numbers[computation] = self._frames.call(place, computation, self._arguments(place, computation))
            return
        number = self._numbers[computation] = self._frames.open(computation)
        if number is not None and place is not None:
            self._loops[number] = place

    def _arguments(self, place: Place, computation: str) -> tuple[Place, ...]:
        """Return the arguments of a computation: the operands of its caller, or for a branch its operand after the index."""
        if self._frames.opcode(place) != "conditional":
            return self._frames.operands(place)
        numbers = self._branches.get(place[:2])
        if numbers is None:
            numbers = self._branches[place[:2]] = {}
            for number, branch in enumerate(self._frames.instruction(place).called, 1):
                numbers.setdefault(branch.name, number)
        argument = self._frames.operand(place, numbers[computation]) if computation in numbers else None
        return (argument,) if argument is not None else ()

    def get(self, array: ArrayPlace) -> Relation | None:
        """Return the relation of an array; None if it has none. Its computation must be entered.

        The result of a start is the result of its end: the first element of a copy-start, the second of an all-gather-start.
        """
        place = self._place(array)
        if place is not None and place[2][:1] == _RESULT_OF_START.get(self._frames.opcode(place)):
            place = (*place[:2], place[2][1:])
        return self._relation(place) if place is not None else None

    def _place(self, array: ArrayPlace) -> Place | None:
        number = self._numbers.get(array[0])
        return (number, *array[1:]) if number is not None else None

    def _relation(self, place: Place) -> Relation | None:
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
            word = _WORDS.get(self._frames.opcode(passed)) if relation is not None else None
            if relation is not None and word is not None and word not in relation.steps and not self._keeps_size(passed):
                relation = Relation(relation.parameter, (*relation.steps, word))
            self._known[passed] = relation
        return relation

    def _step(self, place: Place) -> Relation | Place | None:
        """Return the relation of an array if it is known, else the array that it comes from, if any."""
        frame, row, index = place
        if row < 0:
            return None
        view = self._frames[frame].view
        if view.opcodes[row] == "parameter" and view.computation.name == self._entry:
            number = view.parameter_number(row)
            return Relation(number) if number is not None else None
        return self._made.get((view.computation.name, row, index)) or self._source(place)

    def _source(self, place: Place) -> Place | None:
        """Return the place that the values of an array come from."""
        opcode = self._frames.opcode(place)
        if opcode in _OF_FIRST_OPERAND:
            return self._frames.operand(place, 0)
        if opcode in _RESULT_OF_START:
            return self._frames.operand(place, place[2][0] if place[2] else 0, place[2][1:])
        if opcode == "custom-call" and self._frames.target(place) == _JOINED_SLICES:
            return self._frames.operand(place, 0)
        if opcode == "parameter" and place[0] in self._loops:
            return self._invariant(place)
        return self._frames.step_back(place)

    def _invariant(self, place: Place) -> Place | None:
        """Return the initial value of an element of a loop's state that the loop never changes."""
        frames, loop = self._frames, self._loops[place[0]]
        is_same = frames.find_maker(frames.root(place[0], place[2])) == place
        return frames.operand(loop, 0, place[2]) if is_same else None

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
        nodes = [node for atom in atoms if (node := forms.atoms[atom].node) is not None]
        for place in [place for node in nodes if (place := updates.flow.graph.places.get(node)) is not None]:
            if frames.size(place) == row.weight.shape.elements:
                yield _made_at(frames, place), Relation(parameter[0], (GRADIENT,))


def _outputs(interface: Interface, views: Views, entry: str) -> Iterator[tuple[ArrayPlace, Relation]]:
    frames = Frames(views)
    number = frames.open(entry)
    for output in interface.outputs if number is not None else ():
        if output.alias is not None:
            place = _made_at(frames, frames.root(number or 0, output.index))
            yield place, Relation(output.alias.parameter, (NEW_VALUE,))


def _made_at(frames: Frames, place: Place) -> ArrayPlace:
    """Return the array that makes the value at a place."""
    frame, row, index = frames.find_maker(place)
    return frames[frame].view.computation.name, row, index
