"""From the entry computation down: the cost of a module as XLA counts it, and as often as it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from hlo_inspect.analysis.cost.bytes_accessed import FREE
from hlo_inspect.analysis.cost.computation import BrokenCall, Costs, UnknownCall, found
from hlo_inspect.analysis.cost.figures import FIGURES, Gap, InstructionCost, Tally, TallyKey, UnknownCostError, XlaSum
from hlo_inspect.analysis.cost.labels import Labeller, Labels
from hlo_inspect.analysis.cost.operation import (
    CALLER_SPELLINGS,
    RUNNERS,
    Counted,
    callee_names,
    callees,
    row_gap,
    wrapped,
)
from hlo_inspect.analysis.view import View, Views
from hlo_inspect.hlo.module import Module

Label = Literal["kind", "phase", "source"]


class ExecutedCost(NamedTuple):
    """Instructions with one cost and the same labels; `times` is how often one run of the program runs them, taken together."""

    cost: InstructionCost
    labels: Labels
    times: int | Gap


@dataclass(frozen=True)
class ModuleCost:
    """The cost of a module.

    `as_xla` is that of the entry computation as XLA's HloCostAnalysis counts it: a loop once, a custom call not at all.
    `executed` is what one run of the program does: loops as often as they run, and custom calls with a rule.
    `unknown_calls` are the others, `broken_calls` those whose `backend_config` cannot be used, in the order of the text.
    """

    as_xla: XlaSum
    executed: Sequence[ExecutedCost]
    unknown_calls: tuple[UnknownCall, ...] = ()
    broken_calls: tuple[BrokenCall, ...] = ()

    @cached_property
    def opcodes(self) -> Tally:
        """One run by opcode: the work of a fusion stands with the opcodes inside of it, its bytes with the fusion."""
        return self._of_one_run(None)

    def by(self, label: Label) -> Tally:
        """One run by one of its labels."""
        return self._of_one_run(label)

    def _of_one_run(self, label: Label | None) -> Tally:
        tally = Tally()
        for cost, labels, times in self.executed:
            name = None if label is None else getattr(labels, label)
            tally.add_all(cost.work, times, name)
            _add_bytes(tally, cost.opcode if name is None else name, cost, times)
        return tally


def _add_bytes(tally: Tally, label: str, cost: InstructionCost, times: int | Gap) -> None:
    size, gap = cost.amounts[-1], cost.gaps.get("bytes")
    if isinstance(times, Gap) and (size or gap):
        tally.miss(TallyKey(label), ("bytes",), times)
    elif gap is not None and times != 0:
        tally.miss(TallyKey(label), ("bytes",), gap)
    elif not isinstance(times, Gap):
        tally.add_one(TallyKey(label), FIGURES.index("bytes"), size * times)


def module_cost(
    module: Module, executions: Mapping[str, int | None], reason: Callable[[str], str], views: Views | None = None
) -> ModuleCost:
    """The cost of a module whose whole graph was read.

    `executions` says how often each computation runs for one run of the entry, `None` where that is not known; `reason` says
    why it is not.
    """
    if module.entry is None:
        gap, as_xla = Gap(module.first_line, "the module has no entry computation"), XlaSum()
        as_xla.miss(FIGURES, gap)
        return ModuleCost(as_xla, [ExecutedCost(InstructionCost.unknown("(no entry)", gap), Labels("", "", ""), 1)])
    counter = _ModuleCounter(module, views or Views(module.computations, module.heads))
    counter.count_from(module.entry.name)
    executed = []
    for name, running in counter.runs.items():
        known = executions.get(name)
        for (cost, labels), count in running.costs.items():
            times = Gap(running.line, reason(name)) if known is None else known * count
            executed.append(ExecutedCost(cost, labels, times))
    calls, broken = counter.costs.unknown_calls.values(), counter.costs.broken_calls.values()
    return ModuleCost(
        counter.runs[module.entry.name].as_xla,
        executed,
        tuple(sorted(calls, key=lambda call: call.line)),
        tuple(sorted(broken, key=lambda call: call.line)),
    )


@dataclass(slots=True)
class Running:
    """The cost of one run of a computation that starts at a line of the input.

    `costs` counts its own instructions by cost and labels, without the computations that they run. `as_xla` is what XLA
    counts, with those computations and without custom calls.
    """

    line: int
    costs: Counter[tuple[InstructionCost, Labels]] = field(default_factory=Counter)
    as_xla: XlaSum = field(default_factory=XlaSum)


class _ModuleCounter:
    """Counts computations, callees first and each once for each way in which it counts. Of fused and applied computations with
    the same fingerprint only the first is counted.

    There is no recursion, as calls in dumps nest deeper than Python's stack. The cost of a computation that calls itself is not
    known when it is asked for, which leaves a gap.
    """

    def __init__(self, module: Module, views: Views) -> None:
        self.costs = Costs(views.fingerprints)
        self.runs: dict[str, Running] = {}
        self._views = views
        self._labeller = Labeller(module.frames)

    def count_from(self, entry: str) -> None:
        """Counts a computation that runs itself, and all that it needs."""
        waiting: list[tuple[Counted, str]] = [("running", entry)]
        opened: set[tuple[Counted, str]] = set()
        while waiting:
            counted, name = waiting[-1]
            if (counted, name) not in opened and not self._is_known(counted, name):
                opened.add((counted, name))
                needed = _needed(self._views.of(name), counted)
                waiting += [
                    c for c in needed if c[1] in self._views.computations and c not in opened and not self._is_known(*c)
                ]
                continue
            waiting.pop()
            if (counted, name) in opened:
                opened.remove((counted, name))
                if not self._is_known(counted, name):
                    self._count(counted, self._views.of(name))

    def _is_known(self, counted: Counted, name: str) -> bool:
        """Whether a computation was counted, or one with the same fingerprint."""
        if counted == "running":
            return name in self.runs
        return self.costs.knows_fused(name) if counted == "fused" else self.costs.knows_applied(name)

    def _count(self, counted: Counted, view: View) -> None:
        if counted == "running":
            self.runs[view.computation.name] = self._run(view)
        elif counted == "fused":
            self.costs.fuse(view)
        else:
            self.costs.apply(view)

    def _run(self, view: View) -> Running:
        """The cost of a computation that runs itself; a computation that it runs leaves a gap where its cost is not known."""
        running = Running(view.computation.line)
        for row in xla_order(view):
            opcode = view.opcodes[row]
            if opcode in FREE:
                continue
            try:
                if wrapped(opcode) in RUNNERS:
                    running.as_xla.add_sum(self._sum_of_run(view, row))
                    continue
                cost = self.costs.of_row(view, row)
            except UnknownCostError as error:
                cost = InstructionCost.unknown(opcode, row_gap(view, row, error))
            running.costs[cost, self._labeller.of(view, row)] += 1
            running.as_xla.add(cost.as_xla)
            for figure, gap in cost.gaps_of_xla.items():
                running.as_xla.miss((figure,), gap)
        return running

    def _sum_of_run(self, view: View, row: int) -> XlaSum:
        """`HloCostAnalysis::HandleWhile` (body and condition once), `HandleConditional` (of each figure the largest branch),
        `HandleCall` and `HandleAsyncStart`.
        """
        sums = [found(self.runs, name).as_xla for name in callee_names(view, row)]
        whole = XlaSum()
        if wrapped(view.opcodes[row]) == "conditional":
            whole.add_largest(sums)
        else:
            for one in sums:
                whole.add_sum(one)
        return whole


def _needed(view: View, counted: Counted) -> dict[tuple[Counted, str], None]:
    """The computations whose costs are parts of that of a computation, as far as the text names them."""
    needed: dict[tuple[Counted, str], None] = {}
    for row, opcode in enumerate(view.opcodes):
        if opcode in CALLER_SPELLINGS:
            try:
                needed |= dict.fromkeys(callees(view, row, counted))
            except UnknownCostError:  # raised again where the row is counted
                continue
    return needed


def xla_order(view: View) -> Iterator[int]:
    """Every row in the order of `HloComputation::Accept`: depth first, operands before their users, first from what nothing
    uses and last from the root. Control dependencies are ignored.
    """
    count = len(view.rows)
    operands = [[i for i in view.operand_rows(row) if i is not None] for row in range(count)]
    used = {i for sources in operands for i in sources} | {view.root}
    state = bytearray(count)  # 1 where the operands are on their way, 2 where all is done
    ends = [i for i in range(count) if i not in used]
    roots = [view.root] if view.root is not None else []
    for end in (*ends, *roots, *range(count)):  # the last for what uses itself, as no program does
        pending = [end]
        while pending:
            row = pending[-1]
            if state[row] == 0:
                state[row] = 1
                pending += [i for i in reversed(operands[row]) if state[i] != 2]
                continue
            pending.pop()
            if state[row] == 1:
                state[row] = 2
                yield row
