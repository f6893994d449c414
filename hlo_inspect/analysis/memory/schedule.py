"""The order in which a scheduled program runs its instructions, each at a time of its own.

Follows `HloLiveRange::FlattenSchedule` (xla/hlo/utils/hlo_live_range.cc): the text is the schedule. Computations that a while,
a call, a conditional or an async-start runs come before that instruction. Each computation is run once. Fused computations and
computations applied to elements have no times.

A printer writes `reduce-scatter-start` for an async-start of a computation that holds only a reduce-scatter. That computation,
its parameters and its root take times here too, as in XLA.

Instructions and values are numbered by `HloComputation::MakeInstructionPostOrder` (xla/hlo/ir/hlo_computation.cc). That is
depth first from instructions without users, operands from left to right, control predecessors before them.
`HloModule::MakeComputationPostOrder` is the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple, cast

from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CONTROL_FLOW, TABLE, opcodes_that_call
from hlo_inspect.hlo.values.shapes import Shape, TupleShape, subshape

Role = Literal["entry", "body", "condition", "branch", "call", "async"]

MISSING = -1
"""The time of an operand that is not defined before its use."""

_WRAPPING = {f"{opcode}-start": opcode for opcode in CONTROL_FLOW}
_RUNNING = opcodes_that_call("run", "body", "condition", "branch")


class MemoryFault(NamedTuple):
    """A fault at a line of the text that makes figures unknown.

    `of_sizes` and `of_aliases` are faults that arguments and outputs depend on. `of_operands`: the text does not name all
    operands of `subject`.
    """

    message: str
    line: int | None
    subject: str | None
    of_sizes: bool = False
    of_aliases: bool = False
    of_operands: bool = False


@dataclass(slots=True, eq=False)
class ComputationRun:
    """A computation in the schedule. Its instructions, callees included, have times from `start` to before `end`.

    `arguments`: the times of the operands that its parameters stand for. `caller`: the time of the instruction that runs it, -1
    for the entry. `times`: by row of its view. `parameters`: times by number. `asynchronous`: the run that an async-start wraps
    and that this run is in. `enclosing`: for an unprinted computation, the run that has the async-start.
    """

    name: str
    view: View | None
    role: Role
    arguments: tuple[int, ...]
    start: int
    end: int = -1
    caller: int = -1
    root: int = -1
    times: list[int] = field(default_factory=list)
    parameters: dict[int, int] = field(default_factory=dict)
    asynchronous: ComputationRun | None = None
    enclosing: ComputationRun | None = None


@dataclass(slots=True, eq=False)
class Schedule:
    """A program by time. `rows` has the row in the view of the run, `called` the runs that an instruction starts.

    `wrapped`: times of unprinted instructions, which a short spelling of an async-start wraps. `starts` maps the time of an
    async-update or -done to the time of the async-start, `done` the async-start to its async-done.
    """

    opcodes: list[str] = field(default_factory=list)
    shapes: list[Shape | None] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    runs: list[ComputationRun] = field(default_factory=list)
    run_at: list[ComputationRun] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    called: dict[int, tuple[ComputationRun, ...]] = field(default_factory=dict)
    elements: dict[int, int] = field(default_factory=dict)
    wrapped: set[int] = field(default_factory=set)
    starts: dict[int, int] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    faults: list[MemoryFault] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.opcodes)

    def name(self, time: int) -> str:
        """Return the name of the instruction. For an unprinted instruction return the name of the async-start."""
        return self.view(time).names[self.rows[time]]

    def view(self, time: int) -> View:
        """Return the view that has the row of a time."""
        run = self.run_at[time]
        while run.view is None and run.enclosing is not None:
            run = run.enclosing
        return cast("View", run.view)  # the entry has a view

    def line(self, time: int) -> int:
        return self.view(time).lines[self.rows[time]]


class _Pending(NamedTuple):
    """A computation to continue at a row. `begun` are the runs that this row starts; they have their times by then."""

    run: ComputationRun
    view: View
    row: int
    begun: tuple[ComputationRun, ...] | None


class ScheduleWalk:
    """The walk through the computations: each begins when the walk reaches the instruction that runs it."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._known: dict[str, ComputationRun] = {}
        self._schedule = Schedule()
        self._waiting: list[_Pending] = []
        self._entered: dict[tuple[str, int], tuple[tuple[int, ...], ComputationRun | None]] = {}

    def flatten(self, module: Module) -> Schedule:
        """Return the schedule of a module that was read with its graph."""
        schedule = self._schedule
        if module.entry is None:
            return schedule
        self._begin(module.entry.name, "entry", (), None)
        while self._waiting:
            run, view, row, begun = self._waiting.pop()
            if row == 0 and begun is None:
                run.start = schedule.end
            opcodes, count = view.opcodes, len(view.rows)
            while row < count:
                if begun is None and opcodes[row] in _RUNNING:
                    mark = len(self._waiting)
                    runs = self._begin_called(run, view, row)
                    if len(self._waiting) > mark:
                        self._waiting.insert(mark, _Pending(run, view, row, runs))
                        break
                    begun = runs
                self._add_row(run, view, row, begun or ())
                begun = None
                row += 1
            else:
                run.end = schedule.end
                run.root = run.times[view.root] if view.root is not None else MISSING
        return schedule

    # -- computations ---------------------------------------------------------------------------------------------------

    def _begin(self, name: str, role: Role, arguments: tuple[int, ...], caller: ComputationRun | None) -> ComputationRun | None:
        """Return the run of a computation, queued if it is new; None if no computation has this name."""
        cached = self._known.get(name)
        if cached is not None:
            if cached.end < 0:
                self._schedule.faults.append(MemoryFault(f"{name} runs itself", self._views.computations[name].line, name))
            return cached
        if name not in self._views.computations:
            return None
        view = self._views.for_computation(name)
        run = self._known[name] = ComputationRun(name, view, role, arguments, self._schedule.end)
        if caller is not None:
            run.asynchronous = caller.asynchronous
        if role == "async":
            run.asynchronous = run
        self._schedule.runs.append(run)
        self._waiting.append(_Pending(run, view, 0, None))
        return run

    def _begin_called(self, run: ComputationRun, view: View, row: int) -> tuple[ComputationRun, ...]:
        """Return the runs that a row starts, in the order of the walk. Its arguments have times by now."""
        called = view.called_at(row)
        if not called:
            return ()
        operands, inner = self._operands(run, view, row), None
        if view.opcodes[row] in _WRAPPING:
            inner = self._open_wrapped(run, row, view.opcodes[row], operands)
        self._entered[run.name, row] = operands, inner
        if inner is not None:
            operands, run = tuple(inner.parameters.values()), inner
        wanted: list[tuple[str, Role, tuple[int, ...]]] = []
        branch = 0
        for callee in called:
            if callee.role == "condition":
                wanted.insert(0, (callee.name, "condition", operands))
            elif callee.role == "body":
                wanted.append((callee.name, "body", operands))
            elif callee.role == "branch":
                branch += 1
                wanted.append((callee.name, "branch", operands[branch : branch + 1]))
            elif callee.role == "run":
                wanted.append((callee.name, "async" if view.opcodes[row] == "async-start" else "call", operands))
        mark = len(self._waiting)
        runs = [self._begin(name, role, arguments, run) for name, role, arguments in wanted]
        self._waiting[mark:] = self._waiting[mark:][::-1]
        if None in runs:
            self._fault(f"{view.names[row]} calls a computation that is not in the text", view, row)
        return tuple(called_run for called_run in runs if called_run is not None)

    # -- instructions ---------------------------------------------------------------------------------------------------

    def _operands(self, run: ComputationRun, view: View, row: int) -> tuple[int, ...]:
        """Return the times of the operands. An element of a result gets a get-tuple-element before the row, and its time."""
        times = run.times
        whole = view.whole_operands(row)
        here = len(times)
        if whole is not None and max(whole, default=-1) < here:
            return tuple([times[defined] for defined in whole])
        operands = []
        for defined, operand in zip(view.operand_rows(row), view.operands(row), strict=True):
            if defined is None or defined >= here:
                name, user = operand.name, view.names[row]
                reason = "is used before it is defined" if defined is not None else "is not defined in its computation"
                message = f"{name}, an operand of {user}, {reason}" if name else f"an operand of {user} has no name"
                self._fault(message, view, row, of_operands=not name)
                operands.append(MISSING)
            else:
                operands.append(self._element(run, row, times[defined], operand.path))
        return tuple(operands)

    def _element(self, run: ComputationRun, row: int, time: int, path: tuple[int, ...]) -> int:
        """Append a get-tuple-element for each index of a path, which the text leaves out, and return the last time."""
        schedule = self._schedule
        for number in path:
            shape = schedule.shapes[time]
            part = subshape(shape, (number,)) if isinstance(shape, TupleShape) else None
            time = self._append(run, row, "get-tuple-element", part, (time,))
            schedule.elements[time] = number
            schedule.wrapped.add(time)
        return time

    def _add_row(self, run: ComputationRun, view: View, row: int, begun: tuple[ComputationRun, ...]) -> None:
        """Give a row its time, after the computations that it runs."""
        schedule = self._schedule
        opcode = view.opcodes[row]
        operands, inner = self._entered.pop((run.name, row), (None, None))
        if operands is None:
            operands = self._operands(run, view, row) if opcode != "parameter" else ()
        kind = TABLE.get(opcode)
        if kind is not None and kind.is_wrapper:
            if kind.half == "start":
                inner = inner or self._open_wrapped(run, row, opcode, operands)
                self._close_wrapped(inner, row, kind.base, view.shapes[row], begun)
                begun = (inner,)
            opcode = f"async-{kind.half}"
        time = self._append(run, row, opcode, view.shapes[row], operands)
        run.times.append(time)
        if opcode == "parameter":
            number = view.parameter_number(row)
            if number is not None:
                run.parameters[number] = time
        elif opcode in ("async-update", "async-done") and operands:
            start = schedule.starts[time] = schedule.starts.get(operands[0], operands[0])
            if opcode == "async-done":
                schedule.done[start] = time
        elif opcode == "get-tuple-element":
            schedule.elements[time] = view.element_number(row) or 0
        self._note_called(time, begun)

    def _note_called(self, time: int, begun: tuple[ComputationRun, ...]) -> None:
        """Note the runs that end before the row that calls them. In a recursion the other runs contain this row."""
        ended = tuple([run for run in begun if run.end >= 0])
        if ended:
            self._schedule.called[time] = ended
            for called_run in ended:
                if called_run.caller < 0:
                    called_run.caller = time

    def _open_wrapped(self, run: ComputationRun, row: int, opcode: str, operands: tuple[int, ...]) -> ComputationRun:
        """Begin the computation that a short spelling of an async-start wraps, with its parameters."""
        schedule = self._schedule
        inner = ComputationRun(opcode, None, "async", operands, schedule.end, enclosing=run)
        inner.asynchronous = inner
        schedule.runs.append(inner)
        for number, time in enumerate(operands):
            given = schedule.shapes[time] if time >= 0 else None
            inner.parameters[number] = self._append(inner, row, "parameter", given, ())
        schedule.wrapped.update(inner.parameters.values())
        return inner

    def _close_wrapped(
        self, inner: ComputationRun, row: int, opcode: str, shape: Shape | None, begun: tuple[ComputationRun, ...]
    ) -> None:
        """End that computation with its root, after the computations that the root runs."""
        schedule = self._schedule
        result = subshape(shape, (1,)) if shape is not None else None
        inner.root = self._append(inner, row, opcode, result, tuple(inner.parameters.values()))
        inner.end = schedule.end
        schedule.wrapped.add(inner.root)
        self._note_called(inner.root, begun)

    def _append(self, run: ComputationRun, row: int, opcode: str, shape: Shape | None, operands: tuple[int, ...]) -> int:
        schedule = self._schedule
        schedule.opcodes.append(opcode)
        schedule.shapes.append(shape)
        schedule.operands.append(operands)
        schedule.run_at.append(run)
        schedule.rows.append(row)
        return len(schedule.opcodes) - 1

    def _fault(self, message: str, view: View, row: int, *, of_operands: bool = False) -> None:
        fault = MemoryFault(message, view.lines[row], view.names[row], of_operands=of_operands)
        if fault not in self._schedule.faults[-2:]:
            self._schedule.faults.append(fault)


def post_orders(schedule: Schedule) -> dict[ComputationRun, list[int]]:
    """Return the times of each computation's instructions in post-order."""
    members: dict[ComputationRun, list[int]] = {run: [] for run in schedule.runs}
    for time, run in enumerate(schedule.run_at):
        members[run].append(time)
    used = set(chain.from_iterable(schedule.operands))
    orders = {}
    for run, times in members.items():
        predecessors = _predecessor_getter(schedule, run, has_missing=MISSING in used)
        orders[run] = list(operands_first((time for time in times if time not in used), predecessors))
    return orders


def _predecessor_getter(schedule: Schedule, run: ComputationRun, *, has_missing: bool) -> Callable[[int], Sequence[int]]:
    """Return a function for the predecessors of each instruction of a computation."""
    operands, predecessors = schedule.operands, _predecessors(run)
    if not predecessors and not has_missing:
        return operands.__getitem__
    return lambda time: [*reversed(predecessors.get(time, ())), *(operand for operand in operands[time] if operand != MISSING)]


def _predecessors(run: ComputationRun) -> dict[int, list[int]]:
    """Return the control predecessors of each instruction that has any."""
    view, predecessors = run.view, {}
    if view is None:
        return {}
    for row, tail in enumerate(view.tails):
        if "control-predecessors=" not in tail:
            continue
        rows = [view.index(name) for name in view.instruction_at(row).attr("control-predecessors") or ()]
        predecessors[run.times[row]] = [run.times[operand_row] for operand_row in rows if operand_row is not None]
    return predecessors


def numbered(orders: Mapping[ComputationRun, Sequence[int]], runs: Iterable[ComputationRun]) -> list[int]:
    """Return for each time the place of its instruction in the orders of these computations, one after the other."""
    places = [0] * sum(map(len, orders.values()))
    for place, time in enumerate(chain.from_iterable(orders[run] for run in runs)):
        places[time] = place
    return places


def in_order_of_text(schedule: Schedule, module: Module) -> list[ComputationRun]:
    """Return the computations in the order of the text.

    An unprinted computation precedes the computation of its async-start.
    """
    in_text = {name: number for number, name in enumerate(module.computations)}
    order: dict[ComputationRun, float] = {}
    for run in schedule.runs:  # an enclosing computation comes before the computations that it encloses
        if run.view is not None:
            order[run] = in_text[run.name]
        elif run.enclosing is not None:
            order[run] = order[run.enclosing] - 0.5
    return sorted(schedule.runs, key=order.__getitem__)


def callers_first(schedule: Schedule) -> list[ComputationRun]:
    """Return the computations in reverse post-order of the call graph (`CallGraph::VisitNodes`): a body before its condition.

    Buffers of one size are assigned in this order.
    """
    calls: dict[ComputationRun, list[ComputationRun]] = {}
    for time in sorted(schedule.called):
        runs = schedule.called[time]
        calls.setdefault(schedule.run_at[time], []).extend(sorted(runs, key=lambda run: run.role == "condition"))
    return list(operands_first(schedule.runs[:1], lambda run: calls.get(run, [])))[::-1]
