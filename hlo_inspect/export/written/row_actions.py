"""The rows of a computation as actions of a step: kernels, starts and dones, calls, and rows that pass values on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.time.program_steps import (
    BranchStep,
    CallStep,
    ComputeStep,
    IssuedWork,
    IssueStep,
    LoopStep,
    Step,
    WaitStep,
)
from hlo_inspect.errors import InputError, Location
from hlo_inspect.export.plan.values import READY, StepValue, element, nodes_behind
from hlo_inspect.graph.view import InstructionPlace, View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES


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


class RunKernel(NamedTuple):
    """A kernel of the compute stream, which reads the values of these rows."""

    place: InstructionPlace
    operands: tuple[int, ...]


class Issue(NamedTuple):
    """Work beside the compute stream. With `waits` the compute stream waits for it at once."""

    place: InstructionPlace
    operands: tuple[int, ...]
    waits: bool


class Await(NamedTuple):
    """The end of the work that was issued at `place`."""

    place: InstructionPlace
    operands: tuple[int, ...]


class RunLoop(NamedTuple):
    """A loop, whose state begins as the value of `operands`."""

    step: LoopStep
    operands: tuple[int, ...]


class RunBranch(NamedTuple):
    """A conditional; the branch of number n gets the operand n + 1."""

    step: BranchStep
    operands: tuple[int, ...]


class RunCalls(NamedTuple):
    """Computations that run in place, each with all operands as its parameters."""

    computations: tuple[str, ...]
    operands: tuple[int, ...]


Forwarding = Parameter | MakeTuple | TakeElement | Forward
"""Actions of rows that take no time."""
RowAction = Forwarding | RunKernel | Issue | Await | RunLoop | RunBranch | RunCalls


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
            actions.append(_forwarding(view, row, operands) if own is None else _acting(own, operands))
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


def _acting(steps: Sequence[Step], operands: tuple[int, ...]) -> RowAction:
    """Return the action of a row with these steps; only calls have several."""
    step = steps[0]
    if isinstance(step, ComputeStep):
        return RunKernel(step.place, operands)
    if isinstance(step, IssueStep):
        return Issue(step.place, operands, step.waits)
    if isinstance(step, WaitStep):
        return Await(step.place, operands)
    if isinstance(step, LoopStep):
        return RunLoop(step, operands)
    if isinstance(step, BranchStep):
        return RunBranch(step, operands)
    return RunCalls(tuple(call.computation for call in steps if isinstance(call, CallStep)), operands)


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
        return element(values[action.operand], action.element)
    if isinstance(action, Parameter):
        return arguments[action.number] if action.number < len(arguments) else READY
    operands = [values[operand] for operand in action.operands]
    if isinstance(action, MakeTuple):
        return tuple(operands)
    return operands[0] if len(operands) == 1 else nodes_behind(operands)
