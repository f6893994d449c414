"""From the entry computation down: the cost of a module as XLA counts it, and as often as it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.computation import Costs, UnknownCall
from hlo_inspect.analysis.cost.model import FIGURES, Gap, Tally
from hlo_inspect.analysis.cost.operation import Role, callees
from hlo_inspect.analysis.cost.running import Running, Sources, count_running
from hlo_inspect.analysis.cost.xla_sum import XlaSum
from hlo_inspect.hlo.module import Module


@dataclass(frozen=True, slots=True)
class ModuleCost:
    """The cost of a module.

    `as_xla` is that of the entry computation as XLA's HloCostAnalysis counts it: a loop once, a custom call not at all.
    `opcodes`, `kinds` and `sources` are what one run of the program costs, by those labels: loops as often as they run, and
    custom calls with a rule. `unknown_calls` are the others, in the order of the text.
    """

    as_xla: XlaSum
    opcodes: Tally
    kinds: Tally
    sources: Tally
    unknown_calls: tuple[UnknownCall, ...]


def module_cost(module: Module, executions: Mapping[str, int | None], reason: Callable[[str], str]) -> ModuleCost:
    """The cost of a module whose whole graph was read.

    `executions` tells how often each computation runs for one run of the entry, `None` where that is not known, and `reason`
    why not.
    """
    counter = _Counter(module)
    as_xla, opcodes, kinds, sources = XlaSum(), Tally(), Tally(), Tally()
    if module.entry is not None:
        counter.count_from(module.entry.name)
        as_xla = counter.runs[module.entry.name].as_xla
    else:
        gap = Gap(module.first_line, "the module has no entry computation")
        as_xla.miss(FIGURES, gap)
        for tally in (opcodes, kinds, sources):
            tally.miss("(no entry)", FIGURES, gap)
    for name, running in counter.runs.items():
        known = executions.get(name)
        times = Gap(running.line, reason(name)) if known is None else known
        opcodes.add_all(running.opcodes, times)
        kinds.add_all(running.kinds, times)
        sources.add_all(running.sources, times)
    calls = tuple(sorted(counter.costs.unknown_calls.values(), key=lambda call: call.line))
    return ModuleCost(as_xla, opcodes, kinds, sources, calls)


class _Counter:
    """Counts computations, each once in each role, callees first.

    There is no recursion, as dumps can nest deeper than Python does. A computation that calls itself is not yet known when
    it is counted.
    """

    def __init__(self, module: Module) -> None:
        self.costs = Costs()
        self.runs: dict[str, Running] = {}
        self._computations = module.computations
        self._sources = Sources(module.frames)

    def count_from(self, entry: str) -> None:
        """Counts a computation that runs itself, and all that it needs."""
        waiting: list[tuple[Role, str]] = [("running", entry)]
        opened: dict[tuple[Role, str], Body] = {}
        while waiting:
            role, name = waiting[-1]
            if self._is_known(role, name):
                waiting.pop()
                continue
            body = opened.get((role, name))
            if body is None:
                body = opened[role, name] = Body(self._computations[name])
                needed = dict.fromkeys(callee for op in body.callers for callee in callees(op, role))
                waiting += [c for c in needed if c[1] in self._computations and c not in opened]
            else:
                self._count(role, name, body)
                del opened[role, name]
                waiting.pop()

    def _is_known(self, role: Role, name: str) -> bool:
        if role == "running":
            return name in self.runs
        return name in (self.costs.fused if role == "fused" else self.costs.applied)

    def _count(self, role: Role, name: str, body: Body) -> None:
        if role == "running":
            self.runs[name] = count_running(body, self.costs, self.runs, self._sources)
        elif role == "fused":
            self.costs.fuse(name, body)
        else:
            self.costs.apply(name, body)
