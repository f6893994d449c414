"""What kernels cost in one step, one by one and equal ones together, with their shares of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from hlo_inspect.analysis.calls import NOTHING, Bounds
from hlo_inspect.analysis.cost.figures import Figure, countable
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels, sum_of_step
from hlo_inspect.analysis.time.step_times import NO_TIME, RowTimes


class Costing(NamedTuple):
    """One row: a kernel, or several equal ones, or what is no kernel; its figures in one step. `share` is that of the time of
    all rows, without a profile of their bytes; `None` where the whole is not known.
    """

    kernels: Sequence[Kernel]
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


_FIGURES: tuple[Figure, ...] = ("flops", "matmul_flops", "bytes")


def find_costings(kernels: Kernels, times: Callable[[Kernel], RowTimes] | None) -> list[Costing]:
    """A row for each kernel and one for what costs something without being one; what weighs most comes first. `times` are
    those of all runs of a kernel, where there is an accelerator.
    """
    figures_of = _Figures()
    rows = [Costing((one,), *figures_of(one), None if times is None else times(one)) for one in kernels.found]
    if kernels.beside:
        figures = tuple(sum_of_step(kernels.beside, figure) for figure in _FIGURES)
        if any(figure != NOTHING for figure in figures):
            rows.append(Costing((), NOTHING, figures, None if times is None else NO_TIME))
    return _weighed(rows)


class _Figures:
    """The runs and figures of kernels, once for those that share what they cost and how often they run."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Bounds, tuple[Bounds, ...]]] = {}

    def __call__(self, kernel: Kernel) -> tuple[Bounds, tuple[Bounds, ...]]:
        known = self._known.get(id(kernel.parts))
        if known is None or kernel.is_unknown:
            known = countable(kernel.runs), tuple(map(kernel.of_step, _FIGURES))
            if not kernel.is_unknown:
                self._known[id(kernel.parts)] = known
        return known


def _weighed(rows: list[Costing]) -> list[Costing]:
    """The rows with their shares, those that weigh most first."""
    whole = sum(row.weight for row in rows) if all(row.has_exact_weight for row in rows) else 0

    def share(row: Costing) -> float | None:
        return row.weight / whole if whole else None

    def order(row: Costing) -> tuple[float, ...]:
        time = 0.0 if row.time is None else row.time.bound.least
        return (bool(row.kernels), time, row.size.least, row.flops.least)

    return [Costing(row.kernels, row.runs, row.figures, row.time, share(row)) for row in sorted(rows, key=order, reverse=True)]


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
    labels, shape = kernel.labels, kernel.instruction.shape
    figures = (row.runs, row.figures, kernel.is_unknown)
    return (kernel.kind, labels.kind, str(shape), labels.phase, labels.source, labels.scope, *figures)


def _sum(rows: Sequence[Costing]) -> Costing:
    """Rows of equal runs and figures together."""
    first, count = rows[0], Bounds.exactly(len(rows))
    kernels = tuple([kernel for row in rows for kernel in row.kernels])
    times = [row.time for row in rows if row.time is not None]
    time = reduce(RowTimes.plus, times) if times else None
    return Costing(kernels, first.runs.times(count), tuple([figure.times(count) for figure in first.figures]), time)
