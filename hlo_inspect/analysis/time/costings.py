"""Costs of kernels in one step, alone and joined, and their shares of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.cost.figures import CostFigure, countable
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels, sum_of_step
from hlo_inspect.analysis.time.step_times import NO_TIME, RowTimes
from hlo_inspect.figure import Figure, Quantity, exact, least, multiply


class StepCost(NamedTuple):
    """The figures of one row in one step.

    `share` is the share of all rows' time, without a profile of their bytes, or `by_flops` of their FLOPs; None if the whole is
    unknown.
    """

    runs: Quantity
    figures: tuple[Quantity, ...]
    time: RowTimes | None
    share: float | None = None
    by_flops: bool = False

    @property
    def flops(self) -> Quantity:
        return self.figures[0]

    @property
    def matmul_flops(self) -> Quantity:
        return self.figures[1]

    @property
    def size(self) -> Quantity:
        """Bytes, as XLA's cost model counts them."""
        return self.figures[2]

    @property
    def _work(self) -> Quantity:
        return self.flops if self.by_flops else self.size

    @property
    def weight(self) -> float:
        """The part of the whole that the row is: its time with a profile, else its bytes or FLOPs."""
        return least(self._work) if self.time is None else least(self.time.bound)

    @property
    def has_exact_weight(self) -> bool:
        """True if the weight is exact, not a lower bound."""
        return not isinstance(self._work if self.time is None else self.time.bound, Figure)

    @property
    def intensity(self) -> float | None:
        """FLOP per byte."""
        flops, size = exact(self.flops), exact(self.size)
        return None if flops is None or not size else flops / size

    @property
    def order(self) -> tuple[float, ...]:
        """The sort key of the row: the time that it adds to a scheduled step, then its bound, its work, bytes and FLOPs."""
        bound, in_step = (0.0, None) if self.time is None else (self.time.bound, self.time.in_step)
        added = 0.0 if in_step is None else least(in_step)
        return (added, least(bound), least(self._work), least(self.size), least(self.flops))


class Costing(NamedTuple):
    """A row: a kernel, several equal kernels, or costs outside kernels. Rows of one cost share `cost`."""

    kernels: Sequence[Kernel]
    cost: StepCost


TimesOf = Callable[[Kernel], RowTimes]
"""Callback that returns the times of all runs of a kernel."""

FindCostings = Callable[[Kernels, TimesOf | None, bool], list[Costing]]

_FIGURES: tuple[CostFigure, ...] = ("flops", "matmul_flops", "bytes")


def find_costings(kernels: Kernels, times: TimesOf | None, by_flops: bool) -> list[Costing]:
    """Return one row per kernel and one for costs outside kernels, the most expensive first.

    `times` is None without an accelerator.
    """
    costs = step_costs(kernels.launched, times, by_flops)
    rows = [Costing((kernel,), cost) for kernel, cost in zip(kernels.launched, costs, strict=True)]
    return _with_shares([*rows, *_outside(kernels, times, by_flops)])


def find_joined_costings(kernels: Kernels, times: TimesOf | None, by_flops: bool) -> list[Costing]:
    """Return the rows of `find_costings`, joined if they differ in the names of their kernels only."""
    rows: dict[tuple[int, int, int], tuple[list[Kernel], StepCost]] = {}  # kernels and costs keep the objects of the keys
    for kernel, cost in zip(kernels.launched, step_costs(kernels.launched, times, by_flops), strict=True):
        key = kernel.twin, id(cost), id(kernel.shared_labels)
        together = rows.get(key)
        if together is None:
            together = rows[key] = [], cost
        together[0].append(kernel)
    ranks = _ranks(cost for _, cost in rows.values())
    groups: dict[object, list[Costing]] = {}
    for row in sorted(map(Costing._make, rows.values()), key=lambda row: ranks[id(row.cost)], reverse=True):
        groups.setdefault(_without_name(row), []).append(row)
    joined = [_sum(group, ranks) for group in groups.values()]
    return _with_shares([*joined, *_outside(kernels, times, by_flops)])


def step_costs(kernels: Sequence[Kernel], times: TimesOf | None, by_flops: bool) -> list[StepCost]:
    """Return the cost of each kernel in one step, without its share; kernels of one cost and time share an object."""
    cost_of_key: dict[tuple[int, int], StepCost] = {}
    cost_of_twin: dict[int, StepCost] = {}
    for kernel in kernels:
        if kernel.twin in cost_of_twin:
            continue
        time = None if times is None else times(kernel)
        key = id(kernel.parts), id(time)  # kernels and times keep these alive
        cost = cost_of_key.get(key)
        if cost is None or kernel.is_unknown:
            cost = StepCost(countable(kernel.runs), tuple(map(kernel.of_step, _FIGURES)), time, by_flops=by_flops)
            if not kernel.is_unknown:
                cost_of_key[key] = cost
        cost_of_twin[kernel.twin] = cost
    return [cost_of_twin[kernel.twin] for kernel in kernels]


def _outside(kernels: Kernels, times: TimesOf | None, by_flops: bool) -> list[Costing]:
    """Return the row of costs outside kernels; none if there are none."""
    figures = tuple(sum_of_step(kernels.other_costs, figure) for figure in _FIGURES)
    if all(figure == 0 for figure in figures):
        return []
    return [Costing([], StepCost(0, figures, None if times is None else NO_TIME, by_flops=by_flops))]


def _ranks(costs: Iterable[StepCost]) -> dict[int, int]:
    """Return the rank of each cost, by its id: costs of equal order have one, the greatest is the most expensive."""
    orders = {id(cost): cost.order for cost in costs}
    rank_of = {order: rank for rank, order in enumerate(sorted(set(orders.values())))}
    return {key: rank_of[order] for key, order in orders.items()}


def _with_shares(rows: Sequence[Costing]) -> list[Costing]:
    """Return the rows with their shares: the most expensive first, costs outside kernels last."""
    costs = {id(cost): cost for _, cost in rows}
    weights = {key: cost.weight for key, cost in costs.items()}
    is_exact = all(cost.has_exact_weight for cost in costs.values())
    whole = sum([weights[id(cost)] for _, cost in rows]) if is_exact else 0
    shared = {key: cost._replace(share=weights[key] / whole) for key, cost in costs.items()} if whole else costs
    ranks = _ranks(costs.values())
    heaviest = sorted(rows, key=lambda row: ranks[id(row.cost)] if row.kernels else -1, reverse=True)
    return [Costing(kernels, shared[id(cost)]) for kernels, cost in heaviest]


def _without_name(row: Costing) -> object:
    kernel, labels = row.kernels[0], row.kernels[0].shared_labels
    figures = (row.cost.runs, row.cost.figures, kernel.is_unknown)
    return (kernel.kind, labels.kind, str(kernel.shape), labels.phase, labels.source, labels.scope, *figures)


def _sum(rows: Sequence[Costing], ranks: dict[int, int]) -> Costing:
    """Add up rows of equal runs and figures. The most expensive kernels come first, then those that the text has first."""
    costed = [(kernel, row.cost) for row in rows for kernel in row.kernels]
    if len(rows) > 1:
        costed.sort(key=lambda pair: (-ranks[id(pair[1])], pair[0].number))
    kernels = tuple([kernel for kernel, _ in costed])
    cost, count = rows[0].cost, len(kernels)
    times = [cost.time for _, cost in costed if cost.time is not None]
    time = RowTimes.sum(times) if times else None
    figures = tuple([multiply(figure, count) for figure in cost.figures])
    return Costing(kernels, StepCost(multiply(cost.runs, count), figures, time, by_flops=cost.by_flops))
