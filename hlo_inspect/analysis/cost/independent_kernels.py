"""Kernels that can run while a collective does: those of its computation that neither feed it nor read its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hlo_inspect.analysis.collectives.collective_results import place_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.graph.view import Views


class IndependentKernels:
    """Kernels of a module by computation; `kernels` are without collectives."""

    def __init__(self, views: Views, kernels: Iterable[Kernel]) -> None:
        self._views = views
        self._by_computation: dict[str, list[Kernel]] = {}
        for kernel in kernels:
            self._by_computation.setdefault(kernel.place[0], []).append(kernel)

    def beside(self, collective: Collective) -> list[Kernel]:
        """Return the kernels that can run at the same time; those that stand between start and done do already."""
        place = place_of(self._views, collective)
        if place is None:
            return []
        view, start = place
        before = _reachable(start, view.operands_of_rows)
        after = _reachable(start, view.users)
        ends = (row for row in after if view.opcodes[row].endswith(("-done", "-update")) and start in view.operand_rows(row))
        bound = before | after | set(range(start, min(ends, default=start) + 1))
        return [kernel for kernel in self._by_computation.get(view.computation.name, ()) if kernel.row not in bound]


def _reachable(start: int, neighbors: Mapping[int, Iterable[int | None]] | Sequence[Iterable[int | None]]) -> set[int]:
    """Return the rows that lead to a row, or that it leads to, the row included."""
    reached, waiting = {start}, [start]
    while waiting:
        for row in neighbors[waiting.pop()]:
            if row is not None and row not in reached:
                reached.add(row)
                waiting.append(row)
    return reached
