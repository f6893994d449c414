"""The cost of a module, from the entry computation down: by XLA's count, and multiplied by the runs in a step."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from hlo_inspect.analysis.cost.bytes_accessed import FREE
from hlo_inspect.analysis.cost.computation import Costs, get_counted
from hlo_inspect.analysis.cost.figures import (
    CUSTOM_CALL,
    FIGURES,
    NO_LINE,
    CostFigure,
    CostGap,
    InstructionCost,
    MissingAttribute,
    Tally,
    TallyKey,
    UnknownCostError,
    XlaSum,
    countable,
)
from hlo_inspect.analysis.cost.operation import RUNNERS, Counted, callee_names, callees, wrapped
from hlo_inspect.analysis.provenance import InstructionPhase, Labeller, Labels, Provenances
from hlo_inspect.figure import MAX_FIGURE, Figure, Quantity, known_part, least, reason, unknown
from hlo_inspect.graph.calls import Call, CallGraph
from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View, Views
from hlo_inspect.graph.visit_order import xla_order
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import TABLE

if TYPE_CHECKING:
    from hlo_inspect.analysis.cost.custom_calls.step_calls import StepCall
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules

Label = Literal["kind", "phase", "source", "scope"]

_RUNNER_SPELLINGS = frozenset(name for name in TABLE if wrapped(name) in RUNNERS)


# -- runs of computations in one step, with the bounds of unknown ones --------------------------------------------------------

OwnFigures = Mapping[str, Mapping[CostFigure, Quantity]]
"""The figures of one run of each computation, without the computations that it runs."""


RunsByFigure = tuple[Quantity, ...]
"""The runs of a computation in one step, for each of `FIGURES`.

Their lower bound is 0 in a branch of a conditional unless no other branch has less of the figure. So the sum of figures × runs
is a lower bound of each figure.
"""

_ONCE = (1,) * len(FIGURES)
_NEVER = (0,) * len(FIGURES)


def figure_runs(graph: CallGraph, own: OwnFigures) -> dict[str, RunsByFigure]:
    """Return the runs of each computation of `own` for one run of the entry."""
    bounds_by_computation = graph.bounds_of_each(own)
    runs_by_name = dict.fromkeys(graph.order, _NEVER) | dict.fromkeys(graph.order[:1], _ONCE)
    for name in graph.order:
        for _, made in groupby(graph.calls[name], key=lambda call: call.instruction):
            for callee, runs in _runs_of_call(list(made), runs_by_name[name], bounds_by_computation):
                if callee in runs_by_name:
                    both = zip(runs_by_name[callee], runs, strict=True)
                    runs_by_name[callee] = tuple(min(before + more, MAX_FIGURE) for before, more in both)
    reasons = {name: reason(graph.runs(name)) for name in own}
    return {name: tuple([known_part(runs, why) for runs in runs_by_name.get(name, _NEVER)]) for name, why in reasons.items()}


def _runs_of_call(
    calls: Sequence[Call], caller: tuple[int, ...], bounds_by_computation: Mapping[str, Mapping[CostFigure, Quantity]]
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the least runs of the computations that an instruction calls; a conditional runs its cheapest branch."""
    if len(calls) == 1 or calls[0].instruction.opcode != "conditional":
        return [(call.callee, tuple(runs * int(least(call.times)) for runs in caller)) for call in calls]
    figures = {call.callee: bounds_by_computation.get(call.callee, {}) for call in calls}
    chosen = [min(figures, key=lambda callee: least(figures[callee].get(figure, 0))) for figure in FIGURES]
    return [(name, tuple(runs * (name == best) for runs, best in zip(caller, chosen, strict=True))) for name in figures]


# -- costs --------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RunningComputation:
    """A computation that runs itself.

    `rows` are its own instructions in XLA's order, without those that run other computations. `costs` holds the cost of one run
    of each. Those of one class share it, unless it has gaps; `classes` has the class of each row of `view`. `as_xla` is XLA's
    count of one run, with those computations and without custom calls.
    """

    view: View
    rows: Sequence[int]
    costs: Sequence[InstructionCost]
    classes: Sequence[int]
    as_xla: XlaSum

    @property
    def figures(self) -> dict[CostFigure, Quantity]:
        """The figures of one run of `rows`."""
        sums, gaps = [0] * len(FIGURES), dict[CostFigure, CostGap]()
        for cost, count in Counter(self.costs).items():
            for i, amount in enumerate(cost.amounts):
                sums[i] += amount * count
            for figure, gap in cost.gaps.items():
                gaps[figure] = min(gap, gaps.get(figure, gap))
        return {figure: known_part(amount, str(gaps.get(figure, ""))) for figure, amount in zip(FIGURES, sums, strict=True)}


@dataclass(frozen=True)
class ModuleCost:
    """The cost of a module.

    `as_xla` is the cost of the entry computation by XLA's HloCostAnalysis: a loop counts once, a custom call not at all. `step`
    is the cost of one step: loops with all iterations, custom calls with a rule, one branch of a conditional. `running` are the
    computations that run themselves, `runs` the number of their runs, by name. `calls` are the custom calls, in the order of
    the text. `has_xla_order`: the text shows the order in which XLA adds up `as_xla`. `missing_attributes`: attributes that
    costs depend on and the text lacks.
    """

    as_xla: XlaSum
    step: Mapping[CostFigure, Quantity]
    labeller: Labeller
    running: Mapping[str, RunningComputation] = field(default_factory=dict)
    runs: Mapping[str, RunsByFigure] = field(default_factory=dict)
    calls: tuple[StepCall, ...] = ()
    has_xla_order: bool = True
    missing_attributes: tuple[MissingAttribute, ...] = ()
    _by_label: dict[Label, Tally] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def unknown_calls(self) -> tuple[StepCall, ...]:
        """The custom calls whose work is unknown."""
        return tuple(call for call in self.calls if call.is_unknown)

    @cached_property
    def opcodes(self) -> Tally:
        """The figures of one step by opcode. The work of a fusion counts in the opcodes inside it, its bytes in the fusion."""
        tally = Tally()
        for name, running in self.running.items():
            for cost, count in Counter(running.costs).items():
                _add_cost(tally, None, cost, count, self.runs[name])
        return tally

    def tally(self, label: Label) -> Tally:
        """Return the figures of one step by the values of a label."""
        tally = self._by_label.get(label)
        if tally is None:
            tally = self._by_label[label] = self._find_by(label)
        return tally

    def _find_by(self, label: Label) -> Tally:
        if label == "phase":
            return self._find_by_phase()
        tally, value_of = Tally(), attrgetter(label)
        for name, counts in self.counts_by_labels.items():
            counts_by_value: Counter[tuple[InstructionCost, str]] = Counter()
            for (cost, labels), count in counts.items():
                counts_by_value[cost, value_of(labels)] += count
            for (cost, value), count in counts_by_value.items():
                _add_cost(tally, value, cost, count, self.runs[name])
        return tally

    def _find_by_phase(self) -> Tally:
        tally = Tally()
        for name, counts in self.counts_by_phase.items():
            for (cost, phase), count in counts.items():
                if not phase.runs:
                    _add_cost(tally, phase.phase, cost, count, self.runs[name])
                for of_runs, runs in phase.runs:
                    _add_cost(tally, of_runs, cost, count, (runs,) * len(FIGURES))
        return tally

    @cached_property
    def counts_by_phase(self) -> dict[str, Counter[tuple[InstructionCost, InstructionPhase]]]:
        """The number of rows of each computation of `running` that have the same cost and phase, whatever their sources are."""
        return {
            name: Counter(zip(running.costs, self.labeller.phases(running.view, running.rows), strict=True))
            for name, running in self.running.items()
        }

    @cached_property
    def counts_by_labels(self) -> dict[str, Counter[tuple[InstructionCost, Labels]]]:
        """The number of rows of each computation of `running` that have the same cost and labels."""
        return {
            name: Counter(zip(running.costs, self.labeller.of_rows(running.view, running.rows), strict=True))
            for name, running in self.running.items()
        }


def _add_cost(tally: Tally, label: str | None, cost: InstructionCost, count: int, runs: RunsByFigure) -> None:
    """Add `count` instructions of one cost and label, multiplied by the runs of their computation."""
    for key, row in cost.work.rows.items():
        _add_runs(tally, key if label is None else TallyKey(label, key.unit), row, count, runs)
    named = label or cost.opcode
    if cost.spaces:
        for unit, size in cost.bytes_by_unit:
            _add_runs(tally, TallyKey(named, unit), (0, 0, 0, size), count, runs)
    elif cost.amounts[-1]:
        _add_runs(tally, TallyKey(named), (0, 0, 0, cost.amounts[-1]), count, runs)
    if cost.gaps and any(runs):
        for (key, figure), gap in cost.work.gaps.items():
            tally.miss(key if label is None else TallyKey(label, key.unit), (figure,), gap)
        if "bytes" in cost.gaps:
            tally.miss(TallyKey(named), ("bytes",), cost.gaps["bytes"])


def _add_runs(tally: Tally, key: TallyKey, amounts: Sequence[int], count: int, runs: RunsByFigure) -> None:
    if isinstance(runs[0], Figure):
        tally.add_runs(key, amounts, [count * int(least(of_figure)) for of_figure in runs], CostGap(NO_LINE, runs[0].reason))
    else:
        tally.add(key, amounts, count * int(runs[0]))


def module_cost(
    module: Module,
    graph: CallGraph,
    views: Views | None = None,
    user_rules: UserRules = (),
    labeller: Labeller | None = None,
) -> ModuleCost:
    """Return the cost of a module whose whole graph was read.

    `user_rules` are the user's rules for custom calls. `labeller` labels costs; without it names alone give the labels.
    """
    labeller = labeller or Labeller(Provenances(module.frames))
    counter = _ModuleCounter(module, views or Views(module.computations), user_rules)
    if module.entry is None:
        gap, as_xla = CostGap(module.first_line, "the module has no entry computation"), XlaSum()
        as_xla.miss(FIGURES, gap)
        counter.count_custom_calls(module.computations)
        figures = dict.fromkeys(FIGURES, unknown(str(gap)))
        return ModuleCost(as_xla, figures, labeller, calls=_step_calls(counter, graph))
    counter.count_from(module.entry.name)
    own = {name: running.figures for name, running in counter.runs.items()}
    step = graph.bounds(own)
    return ModuleCost(
        counter.runs[module.entry.name].as_xla,
        {figure: countable(step.get(figure, 0)) for figure in FIGURES},
        labeller,
        counter.runs,
        figure_runs(graph, own),
        _step_calls(counter, graph),
        has_xla_order=counter.has_xla_order,
        missing_attributes=tuple(counter.costs.missing.values()),
    )


def _step_calls(counter: _ModuleCounter, graph: CallGraph) -> tuple[StepCall, ...]:
    """Return the custom calls that were counted, in the order of the text."""
    counted = counter.costs.calls.values()
    if not counted:
        return ()
    from hlo_inspect.analysis.cost.custom_calls.step_calls import StepCall

    calls = [StepCall(instruction, cost, graph.runs(instruction.computation.name)) for instruction, cost in counted]
    return tuple(sorted(calls, key=lambda call: call.line))


class _ModuleCounter:
    """Counts computations, callees first, each once for each of its roles.

    If fused or applied computations share a fingerprint, only the first is counted. A computation that calls itself has no
    known cost at the call, which leaves a gap.
    """

    def __init__(self, module: Module, views: Views, user_rules: UserRules) -> None:
        self.costs = Costs(views.classes, user_rules)
        self.runs: dict[str, RunningComputation] = {}
        self.has_xla_order = True
        self._views = views

    def count_from(self, entry: str) -> None:
        """Count a computation that runs itself, and all computations that it runs."""
        for name in operands_first([entry], self._run_by):
            self.runs[name] = self._run(self._views.for_computation(name))

    def count_custom_calls(self, names: Iterable[str]) -> None:
        """Count the custom calls of computations of which the text does not say how often they run."""
        for view in map(self._views.for_computation, names):
            for row, opcode in enumerate(view.opcodes):
                if opcode == CUSTOM_CALL:
                    with suppress(UnknownCostError):
                        self.costs.of_row(view, row)

    def _run_by(self, name: str) -> list[str]:
        """Return the computations that a computation runs, as far as the text has them."""
        view = self._views.for_computation(name)
        runners = [row for row in view.rows.column.calling if view.opcodes[row] in _RUNNER_SPELLINGS]
        return [callee for _, callee in self._called(view, runners, "running") if callee in self._views.computations]

    def _count_callees(self, view: View, row: int) -> None:
        """Count the fused or applied computations whose costs are parts of the cost of a row."""
        called = self._called(view, (row,), "running")
        for counted, name in operands_first(called, self._needed) if called else ():
            if self._is_missing((counted, name)):  # none of the same class was counted since
                self.costs.count(counted, self._views.for_computation(name))

    def _needed(self, role_and_name: tuple[Counted, str]) -> list[tuple[Counted, str]]:
        """Return the uncounted computations whose costs are parts of the cost of a fused or applied computation."""
        if not self._is_missing(role_and_name):
            return []
        counted, name = role_and_name
        view = self._views.for_computation(name)
        return list(filter(self._is_missing, self._called(view, view.rows.column.calling, counted)))

    def _called(self, view: View, rows: Iterable[int], caller: Counted) -> list[tuple[Counted, str]]:
        """Return the computations that rows call, each with its role, the last one first."""
        called: dict[tuple[Counted, str], None] = {}
        for row in rows:
            with suppress(UnknownCostError):  # raised again when the row is counted
                called |= dict.fromkeys(callees(view, row, caller))
        return list(reversed(called))

    def _is_missing(self, role_and_name: tuple[Counted, str]) -> bool:
        """Return True if a fused or applied computation is in the text and not counted yet."""
        counted, name = role_and_name
        return name in self._views.computations and not self.costs.copy_counted(counted, name)

    def _run(self, view: View) -> RunningComputation:
        """Return the cost of a computation that runs itself; an uncounted computation that it runs leaves a gap."""
        opcodes, classes, by_class = view.opcodes, self.costs.classes.of_rows(view), self.costs.by_class
        order = array("I", [row for row in xla_order(view) if opcodes[row] not in FREE])
        shared = map(by_class.get, map(classes.__getitem__, order))  # they see the costs that later rows add
        as_xla = XlaSum()
        counted = [cost or self._count_row(view, row, as_xla) for row, cost in zip(order, shared, strict=True)]
        as_xla.add(*[part.amounts if isinstance(part, XlaSum) else part.as_xla for part in counted])
        rows = array("I", [row for row, cost in zip(order, counted, strict=True) if isinstance(cost, InstructionCost)])
        costs = [cost for cost in counted if isinstance(cost, InstructionCost)]
        self.has_xla_order = self.has_xla_order and not view.has_undefined_operands
        return RunningComputation(view, rows, costs, classes, as_xla)

    def _count_row(self, view: View, row: int, as_xla: XlaSum) -> InstructionCost | XlaSum:
        """Return the cost of a row, or XLA's count of what it runs. Note its gaps in `as_xla`."""
        opcode = view.opcodes[row]
        try:
            if opcode in _RUNNER_SPELLINGS:
                part = self._sum_of_run(view, row)
                as_xla.miss_all(part.gaps)
                return part
            self._count_callees(view, row)
            cost = self.costs.of_row(view, row)
        except UnknownCostError as error:
            cost = InstructionCost.unknown(opcode, self.costs.gap(view, row, error))
        as_xla.miss_all(cost.gaps_of_xla)
        return cost

    def _sum_of_run(self, view: View, row: int) -> XlaSum:
        """Sum XLA's counts of the computations that a row runs.

        These are body and condition of a loop once (`HloCostAnalysis::HandleWhile`), the largest branch for each figure
        (`HandleConditional`), or the callee (`HandleCall`, `HandleAsyncStart`).
        """
        sums = [get_counted(self.runs, name).as_xla for name in callee_names(view, row)]
        whole = XlaSum()
        if wrapped(view.opcodes[row]) == "conditional":
            whole.add_largest(sums)
        else:
            for part in sums:
                whole.add_sum(part)
        return whole
