"""The events of the timeline of a step, each with what it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.calls import place
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.op_names import origin_of
from hlo_inspect.analysis.time.steps import Place
from hlo_inspect.analysis.time.timeline_events import StreamEvent, timeline_events
from hlo_inspect.analysis.time.timelines import Timelines
from hlo_inspect.hlo.instruction import Instruction


class EventRow(NamedTuple):
    """An event with what it is about: an instruction, of a kernel or a collective with what it costs."""

    event: StreamEvent
    kind: str
    op_name: str
    source: str
    phase: str | None
    bytes: int | None
    flops: int | None


def described_events(context: Context, timelines: Timelines) -> Iterator[EventRow]:
    """The events of one step by the model."""
    return map(_Descriptions(context).row, timeline_events(timelines.estimate.timeline))


class _Descriptions:
    """What the events of one instruction are about, which is looked up once for each."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kernels = {place(kernel.instruction): kernel for kernel in context.kernels.found}
        self._known: dict[Place, EventRow] = {}

    def row(self, event: StreamEvent) -> EventRow:
        known = self._known.get(event.place)
        if known is None:
            known = self._known[event.place] = self._describe(event)
        return known._replace(event=event)

    def _describe(self, event: StreamEvent) -> EventRow:
        context, timelines = self._context, self._context.on_machine.timelines
        collective = timelines.estimate.collective_at(event.place) if timelines is not None else None
        if collective is not None:
            origin = collective.origin
            phase = context.phases.of(collective.inner).phase
            sent = collective.wire_bytes
            return EventRow(event, collective.kind, origin.op_name, origin.source, phase, sent, None)
        kernel = self._kernels.get(event.place)
        if kernel is not None:
            labels = kernel.labels
            return EventRow(event, kernel.kind, labels.op_name, labels.source, labels.phase, *_cost(kernel))
        instruction = self._instruction(event.place)
        if instruction is None:
            return EventRow(event, "", "", "", None, None, None)
        origin = origin_of(instruction, context.module.frames)
        return EventRow(event, instruction.opcode, origin.op_name, origin.source, None, None, None)

    def _instruction(self, at: Place) -> Instruction | None:
        computation = self._context.module.computations.get(at[0])
        found = computation.instructions if computation is not None else ()
        return next((one for one in found if place(one) == at), None)


def _cost(kernel: Kernel) -> tuple[int | None, int | None]:
    """Bytes and FLOPs of one run; `None` where they are not known."""
    cost = kernel.parts[0].cost
    moved = None if "bytes" in cost.gaps and kernel.started is None else sum(size for _, size in kernel.moved)
    return moved, None if kernel.is_unknown or "flops" in cost.gaps else cost.amounts[0]
