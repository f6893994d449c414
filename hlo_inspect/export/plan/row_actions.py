"""The rows of a computation as actions of a step: rows that take steps, and rows that pass values on.

A value is known by the nodes that make it: a set of nodes for an array, a tuple of values for a tuple.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.time.program_steps import IssuedWork, Step, WaitStep
from hlo_inspect.errors import InputError, Location
from hlo_inspect.graph.view import InstructionPlace, View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES

StepValue = frozenset[int] | tuple["StepValue", ...]
"""Numbers of nodes whose end makes the value available; a tuple has a value for each element."""

READY: frozenset[int] = frozenset()
"""Value that is there when the step begins."""


def nodes_behind(values: Iterable[StepValue]) -> frozenset[int]:
    """Return the nodes that make all parts of these values. Parts that tuples share are visited once."""
    waiting = list(values)
    if len(waiting) == 1 and isinstance(waiting[0], frozenset):  # as most
        return waiting[0]
    nodes: set[int] = set()
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, frozenset):
            nodes |= value
        elif id(value) not in seen:
            seen.add(id(value))
            waiting.extend(value)
    return frozenset(nodes)


class Parameter(NamedTuple):
    """A parameter of the computation."""

    number: int


class MakeTuple(NamedTuple):
    """A tuple of the values of these rows."""

    operands: tuple[int, ...]


class TakeElement(NamedTuple):
    """An element of a tuple."""

    operand: int
    element: int | None


class Forward(NamedTuple):
    """A row that passes its operands on: the value of a single one as it is."""

    operands: tuple[int, ...]


class RunSteps(NamedTuple):
    """Steps that a row takes; only calls are several. They read the values of `operands`.

    The state of a loop begins as the value of its operand. The branch of number n gets the operand n + 1. Computations that are
    called get all operands as their parameters.
    """

    steps: Sequence[Step]
    operands: tuple[int, ...]


Forwarding = Parameter | MakeTuple | TakeElement | Forward
"""Actions of rows that take no time."""
RowAction = Forwarding | RunSteps


class ComputationActions(NamedTuple):
    """The action of each row of a computation in its order, and the row that is the result."""

    actions: Sequence[RowAction]
    root: int | None


class ActionTable:
    """The actions of the computations of a module, each made on first use."""

    def __init__(self, module: Module, views: Views, work: IssuedWork) -> None:
        self._path = module.path
        self._views = views
        self._steps: Mapping[str, Sequence[Step]] = work.program.steps
        self._known: dict[str, ComputationActions] = {}

    def get(self, computation: str) -> ComputationActions:
        """Return the actions of a computation. Raise InputError if a line uses a value that a later line defines."""
        actions = self._known.get(computation)
        if actions is None:
            actions = self._known[computation] = self._make(computation)
        return actions

    def _make(self, name: str) -> ComputationActions:
        if name not in self._views.computations:
            return ComputationActions((), None)
        view = self._views.for_computation(name)
        steps: defaultdict[InstructionPlace, list[Step]] = defaultdict(list)
        for step in self._steps.get(name, ()):
            steps[step.done if isinstance(step, WaitStep) else step.place].append(step)
        actions = []
        for row, place in enumerate(zip((name for _ in view.names), view.lines, view.names, strict=False)):
            operands = self._operands(view, row)
            own = steps.get(place)
            actions.append(_forwarding(view, row, operands) if own is None else RunSteps(own, operands))
        return ComputationActions(actions, view.root)

    def _operands(self, view: View, row: int) -> tuple[int, ...]:
        """Return the rows that a row waits for. Raise InputError if they come later."""
        rows = awaited_rows(view, row)
        if any(operand >= row for operand in rows):
            message = f"{view.names[row]} uses a value that a later line defines, so the text has no order of a step"
            raise InputError(message, Location(self._path, view.lines[row]))
        return rows


def awaited_rows(view: View, row: int) -> tuple[int, ...]:
    """Return the rows that a row waits for: its operands and its control predecessors."""
    if view.opcodes[row] in LITERAL_OPCODES:
        return ()
    rows = [operand for operand in view.operand_rows(row) if operand is not None]
    if "control-predecessors=" in view.tails[row]:
        names = view.instruction_at(row).attr("control-predecessors") or ()
        rows += [index for index in map(view.index, names) if index is not None]
    return tuple(rows)


def _forwarding(view: View, row: int, operands: tuple[int, ...]) -> Forwarding:
    """Return the action of a row that takes no time."""
    opcode = view.opcodes[row]
    if opcode == "parameter":
        return Parameter(view.parameter_number(row) or 0)
    if opcode == "tuple":
        elements = [operand for operand in view.operand_rows(row) if operand is not None]
        return MakeTuple(tuple(elements)) if len(elements) == len(view.operand_rows(row)) else Forward(operands)
    if opcode == "get-tuple-element" and operands:
        return TakeElement(operands[0], view.element_number(row))
    return Forward(operands)


def forwarded(action: Forwarding, values: Sequence[StepValue], arguments: Sequence[StepValue]) -> StepValue:
    """Return the value of a row that takes no time, from the values of the rows before it and of the parameters."""
    if isinstance(action, TakeElement):
        whole, index = values[action.operand], action.element
        if isinstance(whole, tuple):
            return whole[index] if index is not None and index < len(whole) else nodes_behind([whole])
        return whole
    if isinstance(action, Parameter):
        return arguments[action.number] if action.number < len(arguments) else READY
    operands = [values[operand] for operand in action.operands]
    if isinstance(action, MakeTuple):
        return tuple(operands)
    return operands[0] if len(operands) == 1 else nodes_behind(operands)
