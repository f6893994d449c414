"""What an array is to the entry's parameters: a copy, transpose or conversion of one, its gradient, its new value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from hlo_inspect.graph.frames import MAX_STEPS, Frames, Place, may_come_from_before
from hlo_inspect.graph.parameters import Interface
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.opcodes import MARKERS, OPCODES, TABLE, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.rows import HeadColumn
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape
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
"""What an instruction makes of its first operand; what is not here and can be stepped through changes nothing."""

_PARTICIPLES = frozenset({GATHERED, "moved", "padded"})

_OF_FIRST_OPERAND = _PARTS | opcodes_that_are("update") | {"broadcast"}

_RESULT_OF_START = {"all-gather-start": (1,), "copy-start": (0,)}

_FOLLOWED = _OF_FIRST_OPERAND.union(_RESULT_OF_START)

_JOINED_SLICES = "ConcatBitcast"
"""A custom call of TPU: slices of one array that were copied one by one stand together again."""

_MOVING = (opcodes_that_give("same") - MARKERS) | {"transpose"}
"""What has one operand, an array."""

ArrayPlace = tuple[str, int, ShapeIndex]
"""A computation, a row of it, and an index into the result of that row."""


class Relation(NamedTuple):
    """What an array is to the entry's parameter of this number: `steps` say what was done to it, in order. A parameter itself
    has none.
    """

    parameter: int
    steps: tuple[str, ...] = ()

    def after(self, opcodes: Iterable[str]) -> Relation:
        """The relation of what instructions of these opcodes make of the array, one after the other."""
        words = dict.fromkeys([*self.steps, *(_WORDS[opcode] for opcode in opcodes if opcode in _WORDS)])
        return self if len(words) == len(self.steps) else Relation(self.parameter, tuple(words))

    def __str__(self) -> str:
        return ", ".join(self.steps) or PARAMETER

    @property
    def phrase(self) -> str:
        """With the number of the parameter: `copy of parameter 0`, `gathered from parameter 1`."""
        return f"{self} {'from' if self.steps[-1:] and self.steps[-1] in _PARTICIPLES else 'of'} parameter {self.parameter}"


class _StepBack(NamedTuple):
    """From an array to the one `before` it, which is done by these `opcodes`, or to what is known of it: its `source`."""

    source: Relation | None
    before: Place | None
    opcodes: tuple[str, ...] = ()


_NOWHERE = _StepBack(None, None)


class ParameterRelations:
    """The relations of a module's arrays to the parameters of its entry, each step of the way looked at once.

    `made` are arrays whose relation is known from elsewhere: gradients and new values.
    """

    def __init__(self, module: Module, views: Views, made: Mapping[ArrayPlace, Relation]) -> None:
        self._views = views
        self._frames = Frames(views)
        self._made = made
        self._entry = module.entry.name if module.entry is not None else ""
        self._numbers: dict[str, int | None] = {}
        self._loops: dict[int, Place] = {}
        self._branches: dict[tuple[int, int], dict[str, int]] = {}
        self._moving = MovingFusions()
        self._known: dict[Place, Relation | None] = {}

    def enter(self, caller: ArrayPlace | None, computation: str) -> None:
        """Says that the instruction at `caller` runs a computation; the entry has none. The first caller of several counts."""
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
        """What a computation gets from the instruction that runs it: a branch the operand of its number, after the index."""
        if self._frames.opcode(place) != "conditional":
            return self._frames.operands(place)
        numbers = self._branches.get(place[:2])
        if numbers is None:
            numbers = self._branches[place[:2]] = {}
            for number, branch in enumerate(self._frames.instruction(place).called, 1):
                numbers.setdefault(branch.name, number)
        argument = self._frames.operand(place, numbers[computation]) if computation in numbers else None
        return (argument,) if argument is not None else ()

    def of(self, array: ArrayPlace) -> Relation | None:
        """The relation of an array, `None` where it has none. Its computation has to be entered. The result of a start is what
        its end returns: the first element of a copy-start, the second of an all-gather-start.
        """
        place = self._place(array)
        if place is not None and place[2][:1] == _RESULT_OF_START.get(self._frames.opcode(place)):
            place = (*place[:2], place[2][1:])
        return self._relation(place) if place is not None else None

    def _place(self, array: ArrayPlace) -> Place | None:
        number = self._numbers.get(array[0])
        return (number, *array[1:]) if number is not None else None

    def _relation(self, place: Place) -> Relation | None:
        way: list[tuple[Place, tuple[str, ...]]] = []
        while place not in self._known:
            step = self._step(place)
            way.append((place, step.opcodes))
            if step.before is None or len(way) >= MAX_STEPS:
                relation = step.source
                break
            place = step.before
        else:
            relation = self._known[place]
        for passed, opcodes in reversed(way):
            relation = self._known[passed] = relation.after(opcodes) if relation is not None else None
        return relation

    def _step(self, place: Place) -> _StepBack:
        """From an array to the one that it is made of."""
        frame, row, index = place
        if row < 0:
            return _NOWHERE
        view = self._frames[frame].view
        opcode, computation = view.opcodes[row], view.computation.name
        if opcode == "parameter" and computation == self._entry:
            number = view.parameter_number(row)
            return _StepBack(Relation(number) if number is not None else None, None)
        source = self._made.get((computation, row, index))
        if source is not None:
            return _StepBack(source, None)
        step = self._through_fusion(view, place) if opcode == "fusion" and not index else None
        if step is not None:
            return step
        before = self._before(place)
        return _StepBack(None, before, () if self._keeps_size(place) else (opcode,)) if before is not None else _NOWHERE

    def _through_fusion(self, view: View, place: Place) -> _StepBack | None:
        """The same of a fusion that only moves something; `None` of all others."""
        fused = self._views.fused(view, place[1])
        moved = self._moving.of(fused) if fused is not None else None
        if fused is None or moved is None:
            return None
        # The rows passed are not in `made`: each has a step back, and arrays are in it by where such steps end (`_made_at`).
        if moved.opcode == "parameter":
            number = self._views.of(fused.name).parameter_number(moved.row)
            return _StepBack(None, self._frames.operand(place, number) if number is not None else None, moved.opcodes)
        if moved.opcode in _FOLLOWED or may_come_from_before(moved.opcode):
            return None
        source = self._made.get((fused.name, moved.row, ()))
        return _StepBack(source, None, moved.opcodes) if source is not None else _NOWHERE

    def _before(self, place: Place) -> Place | None:
        """Where the values of an array come from."""
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
        """What a loop was given for an element of its state that it never changes."""
        frames, loop = self._frames, self._loops[place[0]]
        is_same = frames.made_at(frames.root(place[0], place[2])) == place
        return frames.operand(loop, 0, place[2]) if is_same else None

    def _keeps_size(self, place: Place) -> bool:
        """Whether an instruction is a broadcast that repeats nothing."""
        frames = self._frames
        if frames.opcode(place) != "broadcast":
            return False
        return frames.size(place) == frames.size(frames.operand(place, 0) or place)


# -- fusions ----------------------------------------------------------------------------------------------------------------


class MovedParameter(NamedTuple):
    """The row that a result is, its opcode, and the opcodes by which it is moved, the first one first."""

    row: int
    opcode: str
    opcodes: tuple[str, ...]


_UNKNOWN = MovedParameter(-1, "", ())


class MovingFusions:
    """Fusions that only move what one row of them is: convert it, transpose it, copy it. Most of a program's fusions that a way
    from an array to a parameter goes through are of this kind.

    The rows that move it stand below each other, each with the one above as its operand, so that the heads say what is done.
    That is found once for all computations that have the same heads.
    """

    def __init__(self) -> None:
        self._known: dict[HeadColumn, MovedParameter | None] = {}

    def of(self, fused: Computation) -> MovedParameter | None:
        """What a computation returns that is run by a fusion; `None` where that is not easily found."""
        rows = fused.rows
        moved = self._known.get(rows.column, _UNKNOWN)
        if moved is _UNKNOWN:
            moved = self._known[rows.column] = _moved(rows.column)
        if moved is not None and moved.opcodes:
            names, tails = rows.names, rows.tails
            for row in range(moved.row, moved.row + len(moved.opcodes)):
                operand = f"{names[row]})"
                if not tails[row + 1].startswith(operand, 1 if tails[row + 1].startswith("%") else 0):
                    return None
        return moved


def _moved(rows: HeadColumn) -> MovedParameter | None:
    """What is returned where each row that moves something has the one above as its operand."""
    if len(rows.marked) != 1:
        return None
    row = root = min(rows.marked)
    while row >= 0 and rows.opcodes[row] in _MOVING:
        shape = rows.shapes[row]
        if not isinstance(shape, ArrayShape) or (rows.opcodes[row] == "convert" and shape.dtype[:1] in {"s", "u"}):
            return None  # whether a conversion to integers changes values depends on what is converted
        row -= 1
    return MovedParameter(row, rows.opcodes[row], tuple(rows.opcodes[row + 1 : root + 1])) if row >= 0 else None


# -- gradients and new values -----------------------------------------------------------------------------------------------


def made_arrays(interface: Interface, overview: Overview | None, views: Views, entry: str) -> dict[ArrayPlace, Relation]:
    """The gradients and new values of parameters by where they are made: of the optimizer where it was asked for, and the
    outputs that take the place of a parameter.
    """
    made: dict[ArrayPlace, Relation] = {}
    for place, relation in (*_of_optimizer(overview), *_outputs(interface, views, entry)):
        made.setdefault(place, relation)
    return made


def _of_optimizer(overview: Overview | None) -> Iterator[tuple[ArrayPlace, Relation]]:
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
        for place in [found for node in nodes if (found := updates.flow.graph.places.get(node)) is not None]:
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
    """Where the value at a place is made."""
    frame, row, index = frames.made_at(place)
    return frames[frame].view.computation.name, row, index
