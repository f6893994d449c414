"""The steps of a module in time: runs, issues and waits of each computation, in the order of the text.

Starts and dones follow XLA's schedules: `X-start` and `X-done` by their operands, and an async-start of a computation. On TPU a
fusion starts an asynchronous collective and another fusion ends it; fusions between them carry copies of it. If a collective's
config says `is_sync`, or if it has no start, the step waits for it at once. It does not wait for a send.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import ASYNC_DONE_TARGET, Collective
from hlo_inspect.analysis.cost.bytes_accessed import FREE
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels, StartRows
from hlo_inspect.analysis.cost.operation import RUNNERS, wrapped
from hlo_inspect.analysis.memory.host_transfers import copied_array
from hlo_inspect.graph.calls import CallGraph, place
from hlo_inspect.graph.view import InstructionPlace, View, Views
from hlo_inspect.hlo.collective_kinds import is_named_as_collective
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import TABLE, Role, opcodes_that_are


class ComputeStep(NamedTuple):
    """A kernel on the compute stream."""

    place: InstructionPlace


class IssueStep(NamedTuple):
    """Work issued to streams of its own. With `waits` the compute stream waits for it at once."""

    place: InstructionPlace
    waits: bool


class WaitStep(NamedTuple):
    """The instruction at `done` waits for the work issued at `place`, in the same run of the computation."""

    place: InstructionPlace
    done: InstructionPlace


class LoopStep(NamedTuple):
    """A loop: `trips` runs of `body` and `trips + 1` of `condition`. `trips` is None if unknown."""

    place: InstructionPlace
    condition: str
    body: str
    trips: int | None


class BranchStep(NamedTuple):
    """A conditional, which runs one of these computations."""

    place: InstructionPlace
    branches: tuple[str, ...]


class CallStep(NamedTuple):
    """A computation runs in place."""

    place: InstructionPlace
    computation: str


Step = ComputeStep | IssueStep | WaitStep | LoopStep | BranchStep | CallStep


class TimedProgram(NamedTuple):
    """The steps of each computation that runs, in the order in which it takes them.

    `parallel` are the computations that run as a whole beside the compute stream, by the place of the issue.
    """

    entry: str
    steps: Mapping[str, Sequence[Step]]
    parallel: Mapping[InstructionPlace, str] = {}


def called_by(step: Step) -> tuple[str, ...]:
    """Return the computations that a step runs on the compute stream."""
    if isinstance(step, LoopStep):
        return step.condition, step.body
    if isinstance(step, BranchStep):
        return step.branches
    return (step.computation,) if isinstance(step, CallStep) else ()


COPIES, TO_HOST, FROM_HOST = "copies", "to host", "from host"
"""The streams of asynchronous copies: within the device's memories, and over the link to the host."""

_HOST_STREAMS = {"to host": TO_HOST, "to device": FROM_HOST}
_ASYNCHRONOUS = "asynchronous"
"""The stream of asynchronous computations that name no thread."""

COPYING = opcodes_that_are("block") | {"bitcast"}
"""Opcodes of copies, which run on a stream of their own if they have a start and a done."""
_STREAM_ANNOTATION = "_xla_stream_annotation"


class IssuedWork(NamedTuple):
    """The steps of a program and its issued work, in the order of the program.

    It holds the streams of issued work other than collectives, and the kernels by place. Collectives are by the places of their
    starts and of the instructions within.
    """

    program: TimedProgram
    streams: Mapping[InstructionPlace, tuple[str, ...]]
    kernels: Mapping[InstructionPlace, Kernel]
    collectives: Mapping[InstructionPlace, Collective]
    inner: Mapping[InstructionPlace, Collective]
    issued: Mapping[InstructionPlace, None]


def issued_work(
    module: Module, views: Views, graph: CallGraph, kernels: Kernels, collectives: Iterable[Collective], *, in_order: bool
) -> IssuedWork:
    """Return the steps of a module that was read with its graph.

    Without a schedule (`in_order` is false), copies run on the compute stream and collectives not at all.
    """
    builder = _StepBuilder(views, graph, kernels, collectives, in_order=in_order)
    entry = module.entry.name if module.entry is not None else ""
    builder.build(entry)
    program = TimedProgram(entry, builder.steps, builder.parallel)
    issued = dict.fromkeys(step.place for steps in builder.steps.values() for step in steps if isinstance(step, IssueStep))
    return IssuedWork(program, builder.streams, builder.kernels, builder.collectives, builder.inner, issued)


class _StepBuilder:
    """Makes the steps of each computation that runs.

    Computations beside the compute stream take their steps one after the other.
    """

    def __init__(
        self, views: Views, graph: CallGraph, kernels: Kernels, collectives: Iterable[Collective], *, in_order: bool
    ) -> None:
        self.steps: dict[str, list[Step]] = {}
        self.parallel: dict[InstructionPlace, str] = {}
        self.streams: dict[InstructionPlace, tuple[str, ...]] = {}
        self.kernels = {kernel.place: kernel for kernel in kernels.launched}
        self.collectives = {place(collective.start): collective for collective in collectives}
        self.inner = {place(collective.inner): collective for collective in self.collectives.values()}
        self._loops = {place(loop.instruction): loop for loop in graph.loops}
        self._views = views
        self._in_order = in_order
        self._waiting: list[tuple[str, bool]] = []

    def build(self, entry: str) -> None:
        self._waiting.append((entry, False))
        while self._waiting:
            name, is_parallel = self._waiting.pop()
            if name not in self.steps and name in self._views.computations:
                view = self._views.for_computation(name)
                self.steps[name] = list(self._sequential_steps(view) if is_parallel else self._scheduled(view))

    # -- on the compute stream ------------------------------------------------------------------------------------------

    def _scheduled(self, view: View) -> Iterator[Step]:
        open_fusions: dict[InstructionPlace, Collective] = {}
        starts = StartRows(view)
        for row, (opcode, position) in enumerate(zip(view.opcodes, view.places, strict=True)):
            if opcode in FREE:
                continue
            entry = TABLE.get(opcode)
            collective = self.collectives.get(position)
            if collective is not None:
                waits = not (collective.is_async or collective.is_point_to_point)
                if not waits and opcode == "fusion":
                    open_fusions[position] = collective
                if self._in_order:
                    yield IssueStep(position, waits)
            elif entry is not None and entry.half == "done":
                yield WaitStep(view.place(starts.start_of(row)), position)
            elif wrapped(opcode) in RUNNERS:
                yield from self._call_steps(view, row, position, is_parallel=False)
            elif open_fusions and opcode == "fusion" and (ended := self._ended_collective(view, row, open_fusions)) is not None:
                del open_fusions[ended]
                yield WaitStep(ended, position)
            elif position in self.kernels:
                yield self._kernel(view, row, position)

    def _kernel(self, view: View, row: int, position: InstructionPlace) -> Step:
        entry = TABLE.get(view.opcodes[row])
        if entry is None or entry.half != "start" or not self._in_order:
            return ComputeStep(position)
        is_copy = entry.base in COPYING
        self.streams[position] = (_copy_stream(view, row) if is_copy else _thread(view.instruction_at(row)),)
        return IssueStep(position, waits=False)

    def _call_steps(self, view: View, row: int, position: InstructionPlace, *, is_parallel: bool) -> Iterator[Step]:
        """Yield the steps of an instruction that runs other computations."""
        called, opcode = _called(view, row), view.opcodes[row]
        if opcode == "async-start" or opcode != wrapped(opcode):
            yield from self._start_step(view, row, position, called, is_parallel=is_parallel)
            return
        self._waiting += [(name, is_parallel) for _, name in called]
        if opcode == "while":
            names = dict(called)
            loop = self._loops.get(position)
            trips = loop.trip_count if loop is not None else None
            yield LoopStep(position, names.get("condition", ""), names.get("body", ""), trips)
        elif opcode == "conditional":
            yield BranchStep(position, tuple(name for _, name in called))
        else:
            yield from (CallStep(position, name) for _, name in called)

    def _start_step(
        self, view: View, row: int, position: InstructionPlace, called: list[tuple[Role, str]], *, is_parallel: bool
    ) -> Iterator[Step]:
        """Yield the step for a computation that starts here and runs on a stream of its own."""
        for _, name in called[:1]:
            self._waiting.append((name, True))
            if is_parallel or not self._in_order:
                yield CallStep(position, name)
                continue
            self.parallel[position] = name
            started = self._views.find(name)
            moves = started is not None and all(opcode in FREE or opcode in COPYING for opcode in started.opcodes)
            stream = _copy_stream(started) if started is not None and moves else _thread(view.instruction_at(row))
            self.streams[position] = (stream,)
            yield IssueStep(position, waits=False)

    def _ended_collective(
        self, view: View, row: int, started: Mapping[InstructionPlace, Collective]
    ) -> InstructionPlace | None:
        """Return the fused collective that a fusion ends: the collective that it holds a copy of, else the first."""
        for _, name in _called(view, row):
            fused = self._views.find(name)
            if fused is None:
                continue
            inner = [fused.instruction(i) for i, opcode in enumerate(fused.opcodes) if opcode == "custom-call"]
            if not any(ASYNC_DONE_TARGET in (instruction.attr("custom_call_target") or "") for instruction in inner):
                continue
            copies = {_identity(fused.instruction(i)) for i, opcode in enumerate(fused.opcodes) if _is_collective(opcode)}
            matches = (position for position, collective in started.items() if _identity(collective.inner) in copies)
            return next(matches, next(iter(started)))
        return None

    # -- other streams---------------------------------------------------------------------------------------------------

    def _sequential_steps(self, view: View) -> Iterator[Step]:
        for row, (opcode, position) in enumerate(zip(view.opcodes, view.places, strict=True)):
            if position in self.collectives or position in self.inner or position in self.kernels:
                yield ComputeStep(position)
            elif wrapped(opcode) in RUNNERS:
                yield from self._call_steps(view, row, position, is_parallel=True)


def _called(view: View, row: int) -> list[tuple[Role, str]]:
    return list(dict.fromkeys((callee.role, callee.name) for callee in view.called_at(row)))


def _copy_stream(view: View, row: int | None = None) -> str:
    """Return the stream of a copy, or of the copies of a computation: the link to the host if one end is in host memory."""
    rows = range(len(view.opcodes)) if row is None else (row,)
    directions = (copied_array(view, copy)[0] for copy in rows)
    return next((_HOST_STREAMS[direction] for direction in directions if direction is not None), COPIES)


def _is_collective(opcode: str) -> bool:
    entry = TABLE.get(opcode)
    return bool(entry.collective) if entry is not None else is_named_as_collective(opcode)


def _identity(instruction: Instruction) -> tuple[object, ...]:
    groups = instruction.attr("replica_groups")
    return instruction.opcode, instruction.attr("channel_id"), None if groups is None else groups.text


def _thread(instruction: Instruction) -> str:
    """Return the stream of an asynchronous computation: the stream that the program chose, else the stream of its thread."""
    chosen = (instruction.attr("frontend_attributes") or {}).get(_STREAM_ANNOTATION)
    return f"stream {chosen}" if chosen else instruction.attr("async_execution_thread") or _ASYNCHRONOUS
