"""A step with all loops unrolled: runs of kernels and communications, and the flow of values between them.

The schedule of the module is followed run by run. Values flow through tuples, loops, calls and conditionals. A node waits for
the communications that make its operands, also those of an earlier iteration. A start and its done are one node. Kernels
between them do not wait for it. Users of the done and later kernels do, since the compute stream waits there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.program_steps import IssuedWork, LoopStep, issued_work
from hlo_inspect.errors import InputError, Location
from hlo_inspect.export.plan.branches import Branches, Likeness
from hlo_inspect.export.plan.communications import Communication, Communications
from hlo_inspect.export.plan.kernel_work import KernelWork, find_kernel_work
from hlo_inspect.export.plan.unrolling import Unrolling
from hlo_inspect.export.plan.values import READY, StepValue, nodes_behind
from hlo_inspect.export.written.row_actions import (
    ActionTable,
    Await,
    Issue,
    RunBranch,
    RunCalls,
    RunKernel,
    RunLoop,
    forwarded,
)
from hlo_inspect.graph.calls import place
from hlo_inspect.graph.view import InstructionPlace

_Request = tuple[str, Sequence[StepValue]]
_Walk = Generator[_Request, StepValue, StepValue]

BRANCHES_DIFFER = "the branches of a conditional communicate differently, so the program of a rank is unknown"


@dataclass(slots=True)
class StepProgram:
    """The parts of a module that a step is made of.

    `at` are the communications that start at a place, `work` are its kernels.
    """

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
    """Unroll the step into a sink.

    Raise InputError for an unknown trip count or a recursion, UsageError for too many nodes.
    """
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
        waiting: list[tuple[str, _Walk]] = [self._enter(self._program.issued.program.entry, ())]
        running = {waiting[0][0]}
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
            waiting.append(self._enter(callee, values))
            answer = None
        self._nodes.finish()
        self._plan.kernel_runs = self._nodes.kernel_runs
        return self._plan

    def _enter(self, name: str, values: Sequence[StepValue]) -> tuple[str, _Walk]:
        return name, self._walk(name, values)

    def _walk(self, name: str, arguments: Sequence[StepValue]) -> _Walk:
        """Follow one run of a computation, request the runs of its callees, and return the value of its result."""
        computation = self._actions.get(name)
        values: list[StepValue] = []
        issued: dict[InstructionPlace, StepValue] = {}
        self._program.unrolling.require_room(self._nodes.size, self._nodes.kernel_runs)
        for action in computation.actions:
            if isinstance(action, RunLoop):
                value = yield from self._loop(action, values)
            elif isinstance(action, RunBranch):
                value = yield from self._branch(action, values)
            elif isinstance(action, RunCalls):
                value = READY
                for callee in action.computations:
                    value = yield callee, [values[operand] for operand in action.operands]
            elif isinstance(action, RunKernel | Issue | Await):
                value = self._work(action, [values[operand] for operand in action.operands], issued)
            else:
                value = forwarded(action, values, arguments)
            values.append(value)
        return values[computation.root] if computation.root is not None else READY

    def _work(
        self, action: RunKernel | Issue | Await, operands: Sequence[StepValue], issued: dict[InstructionPlace, StepValue]
    ) -> StepValue:
        """Add the nodes of a row, and return the value of its result."""
        if isinstance(action, RunKernel):
            return self._kernel(action, operands)
        communicates = action.place in self._program.at
        if isinstance(action, Issue):
            value = issued[action.place] = self._issue(action, operands)
            if communicates and not action.waits:
                return READY
        else:
            value = nodes_behind([*operands, issued.get(action.place, READY)])
        if communicates:
            self._nodes.wait(value)
        return value

    def _kernel(self, action: RunKernel, operands: Sequence[StepValue]) -> StepValue:
        work = self._program.work[action.place]
        if work.is_bound:
            self._plan.without_estimate.add(action.place)
        if work.is_unknown:
            self._plan.unknown_work.add(action.place)
        return self._nodes.kernel(work, operands)

    def _issue(self, action: Issue, operands: Sequence[StepValue]) -> StepValue:
        """Start work beside the compute stream, and return the value at its end."""
        communications = self._program.at.get(action.place)
        if not communications:
            self._plan.asynchronous[action.place] += 1
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

    def _loop(self, action: RunLoop, values: Sequence[StepValue]) -> Generator[_Request, StepValue, StepValue]:
        """Run the body of a loop as often as it runs, each time after its condition."""
        step = action.step
        state = values[action.operands[0]] if action.operands else READY
        for iteration in range(step.trips or 0):
            self._nodes.iterate(step, iteration)
            yield step.condition, [state]
            state = yield step.body, [state]
            self._nodes.iterate(step, None)
        yield step.condition, [state]
        return state

    def _branch(self, action: RunBranch, values: Sequence[StepValue]) -> Generator[_Request, StepValue, StepValue]:
        """Run the costliest branch. If the branches communicate differently, its communications get no node."""
        step = action.step
        if not step.branches:
            return nodes_behind([values[operand] for operand in action.operands])
        likeness, taken = self._program.branches.likeness(step), self._program.branches.taken(step)
        if likeness != "different":
            others = [name for number, name in enumerate(step.branches) if number != taken]
            self._plan.alternatives.update(self._program.branches.reached(others))
        operands = [values[operand] for operand in action.operands]
        argument = operands[taken + 1] if len(operands) == len(step.branches) + 1 else nodes_behind(operands)
        if likeness == "same":
            return (yield step.branches[taken], [argument])
        self._differing.append(likeness)
        value = yield step.branches[taken], [argument]
        self._differing.pop()
        return value
