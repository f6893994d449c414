"""A step with all loops unrolled: runs of kernels and communications, and the flow of values between them.

The schedule of the module is followed run by run. Values flow through tuples, loops, calls and conditionals. A node waits for
the communications that make its operands, also those of an earlier iteration. A start and its done are one node. Kernels
between them do not wait for it. Users of the done and later kernels do, since the compute stream waits there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.program_steps import (
    BranchStep,
    CallStep,
    ComputeStep,
    IssuedWork,
    IssueStep,
    LoopStep,
    TimedProgram,
    WaitStep,
    called_by,
    issued_work,
)
from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.export.plan.branches import Branches, Likeness
from hlo_inspect.export.plan.communications import Communication, Communications
from hlo_inspect.export.plan.kernel_work import KernelWork, find_kernel_work
from hlo_inspect.export.plan.row_actions import READY, ActionTable, RunSteps, StepValue, forwarded, nodes_behind
from hlo_inspect.figure import Number, Quantity, least
from hlo_inspect.graph.calls import CallGraph, place, recursion
from hlo_inspect.graph.view import InstructionPlace

KERNELS_OF_NODE = 64
"""Kernel runs that are followed for each node of the limit: short kernels are many to a node."""

_Request = tuple[str, Sequence[StepValue]]
_Walk = Generator[_Request, StepValue, StepValue]

BRANCHES_DIFFER = "the branches of a conditional communicate differently, so the program of a rank is unknown"


class Unrolling:
    """The loops of a program, and the room for the nodes of its step."""

    def __init__(self, path: str, program: TimedProgram, graph: CallGraph, max_nodes: int) -> None:
        self._path = path
        self._program = program
        self._graph = graph
        self.max_nodes = max_nodes

    def require_counts(self) -> None:
        """Raise InputError if a loop that runs has an unknown count, UsageError if the loops run too often."""
        reasons = {(loop.instruction.computation.name, loop.instruction.name): loop.reason for loop in self._graph.loops}
        for name in self._graph.order:
            for step in self._program.steps.get(name, ()):
                if isinstance(step, LoopStep) and step.trips is None:
                    reason = reasons.get((step.place[0], step.place[2])) or "is unknown"
                    raise InputError(f"the trip count of {step.place[2]} {reason}", Location(self._path, step.place[1]))
        runs = self._graph.bounds({name: self._own(name) for name in self._graph.order}).get("runs", 0)
        self.require_room(0, least(runs))

    def _own(self, name: str) -> dict[str, Quantity]:
        """Return the runs of kernels, other work and computations in one run of a computation."""
        return {"runs": len(self._program.steps.get(name, ())) + 1}

    def require_room(self, nodes: int, kernel_runs: Number) -> None:
        """Raise UsageError if there are more nodes than the limit, or more kernel runs than are followed for it."""
        if nodes <= self.max_nodes and kernel_runs <= self.max_nodes * KERNELS_OF_NODE:
            return
        step = self._largest_loop()
        if step is None:
            message = f"a step has more than {self.max_nodes:,} nodes; raise --max-nodes"
            raise UsageError(message, Location(self._path))
        runs = f"{step.place[2]} runs its body {step.trips:,} times"
        message = f"{runs}, and a step has more than {self.max_nodes:,} nodes; raise --max-nodes"
        raise UsageError(message, Location(self._path, step.place[1]))

    def _largest_loop(self) -> LoopStep | None:
        """Return the loop whose iterations run the most steps."""
        inclusive = self._graph.bounds_of_each({name: self._own(name) for name in self._graph.order})

        def steps_of(step: LoopStep) -> Number:
            return least(inclusive.get(step.body, {}).get("runs", 0)) * (step.trips or 0)

        loops = [step for steps in self._program.steps.values() for step in steps if isinstance(step, LoopStep)]
        return max(loops, key=lambda step: (steps_of(step), step.trips or 0), default=None)

    def require_no_recursion(self, computation: str, running: Collection[str]) -> None:
        """Raise InputError if a computation is entered that runs already."""
        if computation in running:
            raise InputError(recursion(computation), Location(self._path, self._graph.line_of(computation)))


@dataclass(slots=True)
class StepProgram:
    """The parts that a step is made of. `at` are the communications that start at a place, `work` are its kernels."""

    issued: IssuedWork
    communications: Communications
    at: Mapping[InstructionPlace, Sequence[Communication]]
    work: Mapping[InstructionPlace, KernelWork]
    branches: Branches
    unrolling: Unrolling


def find_program(context: Context) -> StepProgram:
    """Return the parts of a step of a module that was read with its graph. Raise InputError if it has no entry."""
    module = context.module
    if module.entry is None:
        raise InputError("the text has no entry computation, so it has no step", Location(module.path, module.first_line))
    if module.problems.is_truncated:
        raise InputError("the text is truncated, so a part of the step is missing", Location(module.path, module.first_line))
    issued = issued_work(module, context.views, context.call_graph, context.kernels, context.collectives, in_order=True)
    communications = Communications(context)
    by_place: defaultdict[InstructionPlace, list[Communication]] = defaultdict(list)
    for communication in communications.listed:
        by_place[place(communication.collective.start)].append(communication)
    work = find_kernel_work(context)
    weights = {position: own.time or own.size for position, own in work.items()}
    branches = Branches(context.call_graph, issued, by_place, weights)
    unrolling = Unrolling(module.path, issued.program, context.call_graph, context.request.max_nodes)
    return StepProgram(issued, communications, by_place, work, branches, unrolling)


@dataclass(slots=True)
class StepPlan:
    """The runs of a step: those that the sink of the plan took, and the others.

    `runs` and `named` count the runs of communications by index among those of the module: with a node, and without for one
    of the `reasons`. The runs of those in `uncertain` are unknown. `alternatives` are computations of branches that communicate
    as much as those taken. `asynchronous` counts other work beside the compute stream, by place.
    """

    program: StepProgram
    runs: Counter[int] = field(default_factory=Counter)
    named: Counter[int] = field(default_factory=Counter)
    reasons: dict[int, str] = field(default_factory=dict)
    uncertain: set[int] = field(default_factory=set)
    alternatives: set[str] = field(default_factory=set)
    asynchronous: Counter[InstructionPlace] = field(default_factory=Counter)
    kernel_runs: int = 0
    without_estimate: set[InstructionPlace] = field(default_factory=set)
    unknown_work: set[InstructionPlace] = field(default_factory=set)


class StepSink(Protocol):
    """Receiver of the runs of a step in the order of the schedule: nodes of a trace, or rows of a text.

    `size` is the number of its nodes or rows, `kernel_runs` that of kernels. Values are by its own numbers of nodes.
    """

    kernel_runs: int

    @property
    def size(self) -> int: ...
    def refusal(self, communication: Communication, /) -> str:
        """Return the reason why it cannot express a communication; empty if it can."""

    def kernel(self, work: KernelWork, operands: Sequence[StepValue], /) -> StepValue:
        """Take a run of a kernel and return the value of its result."""

    def communicate(self, communication: Communication, operands: Sequence[StepValue], /) -> StepValue:
        """Take a run of a communication and return the value at its end."""

    def wait(self, value: StepValue, /) -> None:
        """Let the kernels that follow wait for a value: the compute stream waits at a done, whatever uses its result."""

    def iterate(self, loop: LoopStep, iteration: int | None, /) -> None:
        """Begin an iteration of a loop, or leave it with None."""

    def finish(self) -> None:
        """End the step."""


def make_plan(context: Context, program: StepProgram, sink: StepSink) -> StepPlan:
    """Unroll the step into a sink. Raise InputError for an unknown trip count or a recursion, UsageError for too many nodes."""
    program.unrolling.require_counts()
    return _Planner(context, program, sink).plan()


class _Planner:
    """Follows a step, computation by computation. Calls nest deeper than Python's stack, so there is no recursion."""

    def __init__(self, context: Context, program: StepProgram, sink: StepSink) -> None:
        self._program = program
        self._actions = ActionTable(context.module, context.views, program.issued)
        self._nodes = sink
        self._plan = StepPlan(program)
        self._numbers = {id(own): number for number, own in enumerate(program.communications.listed)}
        self._differing: list[Likeness] = []
        """Conditionals around this place whose branches communicate differently."""

    def plan(self) -> StepPlan:
        entry = self._program.issued.program.entry
        waiting: list[tuple[str, _Walk]] = [(entry, self._walk(entry, ()))]
        running = {entry}
        answer: StepValue | None = None
        while waiting:
            name, walk = waiting[-1]
            try:
                callee, values = next(walk) if answer is None else walk.send(answer)
            except StopIteration as stop:
                waiting.pop()
                running.discard(name)
                answer = stop.value
                continue
            self._program.unrolling.require_no_recursion(callee, running)
            running.add(callee)
            waiting.append((callee, self._walk(callee, values)))
            answer = None
        self._nodes.finish()
        self._plan.kernel_runs = self._nodes.kernel_runs
        return self._plan

    def _walk(self, name: str, arguments: Sequence[StepValue]) -> _Walk:
        """Follow one run of a computation, request the runs of its callees, and return the value of its result."""
        computation = self._actions.get(name)
        values: list[StepValue] = []
        issued: dict[InstructionPlace, StepValue] = {}
        self._program.unrolling.require_room(self._nodes.size, self._nodes.kernel_runs)
        for action in computation.actions:
            if not isinstance(action, RunSteps):
                values.append(forwarded(action, values, arguments))
                continue
            step, operands = action.steps[0], [values[operand] for operand in action.operands]
            if isinstance(step, LoopStep):
                value = yield from self._loop(step, operands)
            elif isinstance(step, BranchStep):
                value = yield from self._branch(step, operands)
            elif isinstance(step, CallStep):
                value = READY
                for callee in chain.from_iterable(map(called_by, action.steps)):
                    value = yield callee, operands
            else:
                value = self._work(step, operands, issued)
            values.append(value)
        return values[computation.root] if computation.root is not None else READY

    def _work(
        self, step: ComputeStep | IssueStep | WaitStep, operands: Sequence[StepValue], issued: dict[InstructionPlace, StepValue]
    ) -> StepValue:
        """Add the nodes of a row, and return the value of its result."""
        if isinstance(step, ComputeStep):
            return self._kernel(step.place, operands)
        communicates = step.place in self._program.at
        if isinstance(step, IssueStep):
            value = issued[step.place] = self._issue(step.place, operands)
            if communicates and not step.waits:
                return READY
        else:
            value = nodes_behind([*operands, issued.get(step.place, READY)])
        if communicates:
            self._nodes.wait(value)
        return value

    def _kernel(self, position: InstructionPlace, operands: Sequence[StepValue]) -> StepValue:
        work = self._program.work[position]
        if work.is_bound:
            self._plan.without_estimate.add(position)
        if work.is_unknown:
            self._plan.unknown_work.add(position)
        return self._nodes.kernel(work, operands)

    def _issue(self, position: InstructionPlace, operands: Sequence[StepValue]) -> StepValue:
        """Start work beside the compute stream, and return the value at its end."""
        communications = self._program.at.get(position)
        if not communications:
            self._plan.asynchronous[position] += 1
            return nodes_behind(operands)
        ends: list[StepValue] = []
        for communication in communications:
            number = self._numbers[id(communication)]
            reason = communication.reason or self._nodes.refusal(communication) or (BRANCHES_DIFFER if self._differing else "")
            if reason:
                self._plan.named[number] += 1
                self._plan.reasons[number] = reason
                if "different" in self._differing:
                    self._plan.uncertain.add(number)
                ends.extend(operands)
            else:
                self._plan.runs[number] += 1
                ends.append(self._nodes.communicate(communication, operands))
        return nodes_behind(ends)

    def _loop(self, step: LoopStep, operands: Sequence[StepValue]) -> _Walk:
        """Run the body of a loop as often as it runs, each time after its condition."""
        state = operands[0] if operands else READY
        for iteration in range(step.trips or 0):
            self._nodes.iterate(step, iteration)
            yield step.condition, [state]
            state = yield step.body, [state]
            self._nodes.iterate(step, None)
        yield step.condition, [state]
        return state

    def _branch(self, step: BranchStep, operands: Sequence[StepValue]) -> _Walk:
        """Run the costliest branch. If the branches communicate differently, its communications get no node."""
        if not step.branches:
            return nodes_behind(operands)
        likeness, taken = self._program.branches.likeness(step), self._program.branches.taken(step)
        if likeness != "different":
            others = [name for number, name in enumerate(step.branches) if number != taken]
            self._plan.alternatives.update(self._program.branches.reached(others))
        argument = operands[taken + 1] if len(operands) == len(step.branches) + 1 else nodes_behind(operands)
        if likeness == "same":
            return (yield step.branches[taken], [argument])
        self._differing.append(likeness)
        value = yield step.branches[taken], [argument]
        self._differing.pop()
        return value
