"""What a computation that runs itself costs: the entry, what it calls, the bodies of its loops and its branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.computation import Costs, called, found
from hlo_inspect.analysis.cost.cost import Cost
from hlo_inspect.analysis.cost.labels import Labeller, Labels
from hlo_inspect.analysis.cost.memory import FREE
from hlo_inspect.analysis.cost.model import UnknownCostError
from hlo_inspect.analysis.cost.operation import RUNNERS, Operation, wrapped
from hlo_inspect.analysis.cost.xla_sum import XlaSum


@dataclass(slots=True)
class Running:
    """The cost of one run of a computation that starts at a line of the input.

    `costs` counts its own instructions by cost and labels, without the computations that they run. `as_xla` is what XLA
    counts, with those computations and without custom calls.
    """

    line: int
    costs: Counter[tuple[Cost, Labels]] = field(default_factory=Counter)
    as_xla: XlaSum = field(default_factory=XlaSum)


def count_running(body: Body, costs: Costs, runs: Mapping[str, Running], labeller: Labeller) -> Running:
    """The cost of a computation. `runs` are the computations that it runs; one that is missing leaves a gap."""
    running = Running(body.computation.line)
    for index in body.in_xla_order():
        opcode = body.opcodes[index]
        if opcode in FREE:
            continue
        try:
            if wrapped(opcode) in RUNNERS:
                _add_run(running.as_xla, body.operation(index), runs)
                continue
            cost = costs.of_row(body, index)
        except UnknownCostError as error:
            cost = Cost.unknown(opcode, body.gap(index, error))
        running.costs[cost, labeller.of(body, index)] += 1
        running.as_xla.add(cost.as_xla)
        for figure, gap in cost.gaps_of_xla.items():
            running.as_xla.miss((figure,), gap)
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
