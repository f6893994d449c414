"""What a computation that runs itself costs: the entry, what it calls, the bodies of its loops and its branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.computation import Costs, called, found
from hlo_inspect.analysis.cost.cost import Cost
from hlo_inspect.analysis.cost.memory import FREE
from hlo_inspect.analysis.cost.model import FIGURES, Figure, Gap, Tally, UnknownCostError
from hlo_inspect.analysis.cost.operation import RUNNERS, Operation
from hlo_inspect.analysis.cost.xla_sum import XlaSum
from hlo_inspect.analysis.metadata import origin
from hlo_inspect.hlo.header import StackFrames

NOT_TOLD = "(not told)"
"""The source of what has no metadata."""


@dataclass(slots=True)
class Running:
    """The cost of one run of a computation that starts at a line of the input.

    `opcodes`, `kinds` and `sources` hold that of its own instructions by those labels, without the computations that they
    run. `as_xla` is what XLA counts, with those computations and without custom calls.
    """

    line: int
    opcodes: Tally = field(default_factory=Tally)
    kinds: Tally = field(default_factory=Tally)
    sources: Tally = field(default_factory=Tally)
    as_xla: XlaSum = field(default_factory=XlaSum)


class Sources:
    """Lines of source by what metadata says of them; each is looked up once."""

    def __init__(self, frames: StackFrames) -> None:
        self._frames = frames
        self._known: dict[str, str] = {}

    def of(self, op: Operation) -> str:
        metadata = op.attributes.get("metadata", "")
        place = max(metadata.find("source_file="), metadata.find("stack_frame_id="))
        key = metadata[place:] if place >= 0 else ""
        if key not in self._known:
            self._known[key] = origin({"metadata": key}, self._frames).source or NOT_TOLD
        return self._known[key]


def count_running(body: Body, costs: Costs, runs: Mapping[str, Running], sources: Sources) -> Running:
    """The cost of a computation. `runs` are the computations that it runs; one that is missing leaves a gap."""
    running = Running(body.computation.line)
    for index in body.in_xla_order():
        opcode = body.opcodes[index]
        if opcode in FREE:
            continue
        source = NOT_TOLD
        try:
            op = body.operation(index)
            source = sources.of(op)
            if op.opcode in RUNNERS:
                _add_run(running.as_xla, op, runs)
            else:
                _add_own(running, costs.cost(op), source)
        except UnknownCostError as error:
            _miss(running, dict.fromkeys(FIGURES, body.gap(index, error)), (opcode, opcode, source))
    return running


def _add_run(total: XlaSum, op: Operation, runs: Mapping[str, Running]) -> None:
    """`HloCostAnalysis::HandleWhile` (body and condition once), `HandleConditional` (of each figure the largest branch),
    `HandleCall` and `HandleAsyncStart`.
    """
    sums = [found(runs, name).as_xla for name in called(op, "running")]
    whole = XlaSum()
    if op.opcode == "conditional":
        whole.add_largest(sums)
    else:
        for one in sums:
            whole.add_sum(one)
    total.add_sum(whole)


def _add_own(running: Running, cost: Cost, source: str) -> None:
    running.opcodes.add_all(cost.work)
    running.opcodes.add_one(cost.opcode, FIGURES.index("bytes"), cost.amounts[-1])
    running.kinds.add(cost.kind, cost.amounts)
    running.sources.add(source, cost.amounts)
    running.as_xla.add(cost.as_xla)
    if cost.gaps:
        _miss(running, cost.gaps, (cost.opcode, cost.kind, source))


def _miss(running: Running, gaps: Mapping[Figure, Gap], labels: tuple[str, str, str]) -> None:
    """Notes what is not known under an opcode, a kind and a source."""
    for figure, gap in gaps.items():
        running.as_xla.miss((figure,), gap)
        for tally, label in zip((running.opcodes, running.kinds, running.sources), labels, strict=True):
            tally.miss(label, (figure,), gap)
