"""Communications and other work of a step that an export has no node or cell for, each with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.program_steps import COPIES, FROM_HOST, TO_HOST
from hlo_inspect.export.plan.communications import Communication
from hlo_inspect.export.plan.step_plan import StepPlan
from hlo_inspect.figure import Number, exact
from hlo_inspect.graph.view import InstructionPlace
from hlo_inspect.hlo.values.shapes import total

NOT_REACHED = "it runs in a branch that the step does not take, or in an asynchronous computation"
BESIDE = "it runs beside the kernels, and the client has one compute unit"


class NotExpressed(NamedTuple):
    """Runs that an export leaves out; None if their number or their bytes are unknown.

    `is_other_work`: they are asynchronous copies or computations, and no collective.
    """

    name: str
    kind: str
    axis: str | None
    runs: Number | None
    executed_operand_bytes: Number | None
    reason: str
    line: int
    is_other_work: bool = False


def find_not_expressed(context: Context, plan: StepPlan) -> list[NotExpressed]:
    """Return the runs without a node, those of collectives first."""
    return [*_communications(context, plan), *_other_work(plan)]


def _communications(context: Context, plan: StepPlan) -> Iterator[NotExpressed]:
    for number, communication in enumerate(plan.program.communications.listed):
        computation = communication.collective.start.computation.name
        runs = exact(context.call_graph.runs(computation))
        counted, named = plan.runs[number], plan.named[number]
        if named:
            yield row_of(communication, None if number in plan.uncertain else named, plan.reasons[number])
        missing = None if runs is None else runs - counted - named
        if missing or (missing is None and not (counted or named or computation in plan.alternatives)):
            yield row_of(communication, missing, communication.reason or NOT_REACHED)


def row_of(communication: Communication, runs: Number | None, reason: str) -> NotExpressed:
    """Return the row of a communication."""
    start = communication.collective.start
    size = communication.collective.operand_bytes
    executed = None if runs is None or size is None else runs * size
    return NotExpressed(start.name, communication.kind, communication.axis, runs, executed, reason, start.line)


def _other_work(plan: StepPlan) -> Iterator[NotExpressed]:
    """Yield asynchronous copies and computations, a row for each kind."""
    by_kind: defaultdict[str, list[InstructionPlace]] = defaultdict(list)
    for place in plan.asynchronous:
        by_kind[_kind(plan, place)].append(place)
    for kind, places in by_kind.items():
        runs = sum(plan.asynchronous[place] for place in places)
        sizes = [_size(plan, place) for place in places]
        whole = total(
            None if size is None else size * plan.asynchronous[place] for size, place in zip(sizes, places, strict=True)
        )
        more = f" (+{len(places) - 1})" if len(places) > 1 else ""
        yield NotExpressed(places[0][2] + more, kind, None, runs, whole, BESIDE, places[0][1], is_other_work=True)


def _kind(plan: StepPlan, place: InstructionPlace) -> str:
    """Return the kind of asynchronous work: a copy with its direction to or from the host, or a computation."""
    (stream,) = plan.program.issued.streams.get(place, ("",))[:1]
    if stream in (TO_HOST, FROM_HOST):
        return f"copy {stream}"
    return "copy" if stream == COPIES else "asynchronous computation"


def _size(plan: StepPlan, place: InstructionPlace) -> int | None:
    """Return the bytes that a copy reads; None for a computation."""
    kernel = plan.program.issued.kernels.get(place)
    if kernel is None:
        return None
    shapes = kernel.view.operand_shapes(kernel.row)[:1]
    return None if not shapes or shapes[0] is None else shapes[0].array_bytes
