"""From the entry computation down: the cost of a module as XLA counts it, and as often as it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.computation import BrokenCall, Costs, UnknownCall
from hlo_inspect.analysis.cost.cost import Cost
from hlo_inspect.analysis.cost.labels import Labeller, Labels
from hlo_inspect.analysis.cost.model import FIGURES, Gap, Part, Tally
from hlo_inspect.analysis.cost.operation import Role
from hlo_inspect.analysis.cost.running import Running, count_running
from hlo_inspect.analysis.cost.xla_sum import XlaSum
from hlo_inspect.analysis.view import Views
from hlo_inspect.hlo.module import Module

Label = Literal["kind", "phase", "source"]


class Executed(NamedTuple):
    """Instructions of one cost and the same labels, and how often one run of the program runs them all together."""

    cost: Cost
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
    executed: Sequence[Executed]
    unknown_calls: tuple[UnknownCall, ...] = ()
    broken_calls: tuple[BrokenCall, ...] = ()

    @cached_property
    def opcodes(self) -> Tally:
        """One run by opcode: the work of a fusion stands with the opcodes inside of it, its bytes with the fusion."""
        tally = Tally()
        for cost, _, times in self.executed:
            tally.add_all(cost.work, times)
            _add_bytes(tally, cost.opcode, cost, times)
        return tally

    def by(self, label: Label) -> Tally:
        """One run by one of its labels."""
        tally = Tally()
        column = Labels._fields.index(label)
        for cost, labels, times in self.executed:
            name = labels[column]
            tally.add_all(cost.work, times, name)
            _add_bytes(tally, name, cost, times)
        return tally


def _add_bytes(tally: Tally, label: str, cost: Cost, times: int | Gap) -> None:
    size, gap = cost.amounts[-1], cost.gaps.get("bytes")
    if isinstance(times, Gap) and (size or gap):
        tally.miss(Part(label), ("bytes",), times)
    elif gap is not None and times != 0:
        tally.miss(Part(label), ("bytes",), gap)
    elif not isinstance(times, Gap):
        tally.add_one(Part(label), FIGURES.index("bytes"), size * times)


def module_cost(
    module: Module, executions: Mapping[str, int | None], reason: Callable[[str], str], views: Views | None = None
) -> ModuleCost:
    """The cost of a module whose whole graph was read.

    `executions` tells how often each computation runs for one run of the entry, `None` where that is not known, and `reason`
    why not.
    """
    if module.entry is None:
        gap, as_xla = Gap(module.first_line, "the module has no entry computation"), XlaSum()
        as_xla.miss(FIGURES, gap)
        return ModuleCost(as_xla, [Executed(Cost.unknown("(no entry)", gap), Labels("", "", ""), 1)])
    counter = _Counter(module, views or Views(module.computations))
    counter.count_from(module.entry.name)
    executed = []
    for name, running in counter.runs.items():
        known = executions.get(name)
        for (cost, labels), count in running.costs.items():
            times = Gap(running.line, reason(name)) if known is None else known * count
            executed.append(Executed(cost, labels, times))
    calls, broken = counter.costs.unknown_calls.values(), counter.costs.broken_calls.values()
    return ModuleCost(
        counter.runs[module.entry.name].as_xla,
        executed,
        tuple(sorted(calls, key=lambda call: call.line)),
        tuple(sorted(broken, key=lambda call: call.line)),
    )


class _Counter:
    """Counts computations, each once in each role, callees first; of fused and applied ones that are alike only the first.

    There is no recursion, as dumps can nest deeper than Python does. A computation that calls itself is not yet known when
    it is counted.
    """

    def __init__(self, module: Module, views: Views) -> None:
        self.costs = Costs(views.fingerprints)
        self.runs: dict[str, Running] = {}
        self._views = views
        self._computations = module.computations
        self._labeller = Labeller(module.frames)

    def count_from(self, entry: str) -> None:
        """Counts a computation that runs itself, and all that it needs."""
        waiting: list[tuple[Role, str]] = [("running", entry)]
        opened: dict[tuple[Role, str], Body] = {}
        while waiting:
            role, name = waiting[-1]
            body = opened.get((role, name))
            if body is None and not self._is_known(role, name):
                body = opened[role, name] = Body(self._views.of(name))
                needed = dict.fromkeys(callee for index in body.callers for callee in body.callees(index, role))
                waiting += [c for c in needed if c[1] in self._computations and c not in opened and not self._is_known(*c)]
                continue
            waiting.pop()
            if body is not None:
                del opened[role, name]
                if not self._is_known(role, name):
                    self._count(role, name, body)

    def _is_known(self, role: Role, name: str) -> bool:
        """Whether a computation was counted, or one that is like it."""
        if role == "running":
            return name in self.runs
        return name in (self.costs.fused if role == "fused" else self.costs.applied) or self.costs.is_alike(role, name)

    def _count(self, role: Role, name: str, body: Body) -> None:
        if role == "running":
            self.runs[name] = count_running(body, self.costs, self.runs, self._labeller)
        elif role == "fused":
            self.costs.fuse(name, body)
        else:
            self.costs.apply(name, body)
