"""What kernels cost in one step, one by one and equal ones together, with their shares of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.cost.figures import Figure, countable
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels, sum_of_step
from hlo_inspect.analysis.time.step_times import NO_TIME, RowTimes
from hlo_inspect.graph.calls import NOTHING, Bounds


class StepCost(NamedTuple):
    """The figures of one row in one step. `share` is that of the time of all rows, without a profile of their bytes; `None`
    where the whole is not known.
    """

    runs: Bounds
    figures: tuple[Bounds, ...]
    time: RowTimes | None
    share: float | None = None

    @property
    def flops(self) -> Bounds:
        return self.figures[0]

    @property
    def matmul_flops(self) -> Bounds:
        return self.figures[1]

    @property
    def size(self) -> Bounds:
        """Bytes, as XLA's cost model counts them."""
        return self.figures[2]

    @property
    def weight(self) -> float:
        """What the row is ordered by: its time with a profile, else its bytes."""
        return self.size.least if self.time is None else self.time.bound.least

    @property
    def has_exact_weight(self) -> bool:
        """Whether the weight is the time or the bytes, and no lower bound of them."""
        return (self.size if self.time is None else self.time.bound).exact is not None

    @property
    def intensity(self) -> float | None:
        """FLOP per byte."""
        flops, size = self.flops.exact, self.size.exact
        return None if flops is None or not size else flops / size

    @property
    def order(self) -> tuple[float, ...]:
        return (0.0 if self.time is None else self.time.bound.least, self.size.least, self.flops.least)


class Costing(NamedTuple):
    """One row: a kernel, or several equal ones, or what is no kernel. Rows that cost the same have one `cost`."""

    kernels: Sequence[Kernel]
    cost: StepCost


_FIGURES: tuple[Figure, ...] = ("flops", "matmul_flops", "bytes")


def find_costings(kernels: Kernels, times: Callable[[Kernel], RowTimes] | None) -> list[Costing]:
    """A row for each kernel and one for what costs something without being one; what weighs most comes first. `times` are
    those of all runs of a kernel, where there is an accelerator.
    """
    known: dict[tuple[int, int], StepCost] = {}
    rows: list[Costing] = []
    for kernel in kernels.found:
        time = None if times is None else times(kernel)
        alike = id(kernel.parts), id(time)  # which the kernels and the times keep
        cost = known.get(alike)
        if cost is None or kernel.is_unknown:
            cost = StepCost(countable(kernel.runs), tuple(map(kernel.of_step, _FIGURES)), time)
            if not kernel.is_unknown:
                known[alike] = cost
        rows.append(Costing((kernel,), cost))
    if kernels.beside:
        figures = tuple(sum_of_step(kernels.beside, figure) for figure in _FIGURES)
        if any(figure != NOTHING for figure in figures):
            rows.append(Costing((), StepCost(NOTHING, figures, None if times is None else NO_TIME)))
    return _weighed(rows)


def _weighed(rows: Sequence[Costing]) -> list[Costing]:
    """The rows with their shares, those that weigh most first, and last what is no kernel."""
    costs = {id(row.cost): row.cost for row in rows}
    whole = sum([row.cost.weight for row in rows]) if all(cost.has_exact_weight for cost in costs.values()) else 0
    shared = {key: cost._replace(share=cost.weight / whole) for key, cost in costs.items()} if whole else costs
    orders = {key: cost.order for key, cost in costs.items()}
    heaviest = sorted(rows, key=lambda row: (bool(row.kernels), orders[id(row.cost)]), reverse=True)
    return [Costing(row.kernels, shared[id(row.cost)]) for row in heaviest]


def join_costings(rows: Sequence[Costing]) -> list[Costing]:
    """The rows with those joined that differ in their names only."""
    groups: dict[object, list[Costing]] = {}
    for row in rows:
        groups.setdefault(_without_name(row), []).append(row)
    return _weighed([_sum(group) for group in groups.values()])


def _without_name(row: Costing) -> object:
    if not row.kernels:
        return ()
    kernel = row.kernels[0]
    labels = kernel.labels
    figures = (row.cost.runs, row.cost.figures, kernel.is_unknown)
    return (kernel.kind, labels.kind, str(kernel.shape), labels.phase, labels.source, labels.scope, *figures)


def _sum(rows: Sequence[Costing]) -> Costing:
    """Rows of equal runs and figures together."""
    cost, count = rows[0].cost, Bounds.exactly(len(rows))
    kernels = tuple([kernel for row in rows for kernel in row.kernels])
    times = [row.cost.time for row in rows if row.cost.time is not None]
    time = RowTimes.sum(times) if times else None
    return Costing(kernels, StepCost(cost.runs.times(count), tuple([figure.times(count) for figure in cost.figures]), time))
