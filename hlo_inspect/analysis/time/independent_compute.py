"""The compute that could run while a collective does: what neither makes its operands nor uses its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from hlo_inspect.analysis.calls import Place, place
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.time.steps import Step, WaitStep
from hlo_inspect.analysis.time.timeline import TICKS
from hlo_inspect.analysis.time.timelines import TimedStep
from hlo_inspect.analysis.view import Views


class IndependentCompute(NamedTuple):
    """Seconds of the compute stream in all runs of a collective's computation, and the instruction that takes most of them."""

    seconds: float
    longest: str


class _Computing(NamedTuple):
    """What the compute stream does in one run of a computation: ticks, name and row of each step, the longest first, the ticks
    of each row and of all together.
    """

    longest: Sequence[tuple[int, str, int]]
    ticks: Mapping[int, int]
    whole: int


class IndependentComputes:
    """What could hide each collective, in its own computation: loops and calls there count with all that they compute."""

    def __init__(self, step: TimedStep, views: Views) -> None:
        self._step = step
        self._views = views
        self._rows: dict[str, Mapping[Place, int]] = {}
        self._known: dict[str, _Computing] = {}

    def of(self, collective: Collective) -> IndependentCompute | None:
        """`None` where the computation of the collective does not run in the order of a schedule."""
        start = place(collective.start)
        timeline, work = self._step.timeline, self._step.work
        steps = work.program.steps.get(start[0])
        if steps is None or start not in work.issued:
            return None
        view, rows = self._views.of(start[0]), self._rows_of(start[0])
        done = next((one.done for one in steps if isinstance(one, WaitStep) and one.place == start), start)
        tied = _reached(rows[start], view.operand_rows) | _reached(rows[done], view.users.__getitem__)
        computing = self._computing_in(start[0], steps)
        free = computing.whole - sum([computing.ticks[row] for row in tied if row in computing.ticks])
        longest = next((name for _, name, row in computing.longest if row not in tied), "")
        return IndependentCompute(free * timeline.site(start).runs / TICKS, longest)

    def _computing_in(self, computation: str, steps: Sequence[Step]) -> _Computing:
        known = self._known.get(computation)
        if known is None:
            rows, computing = self._rows_of(computation), self._step.timeline.computing
            found = [(ticks, one.place[2], rows[one.place]) for one in steps if (ticks := computing(one))]
            by_row: Counter[int] = Counter()
            for ticks, _, row in found:
                by_row[row] += ticks
            known = self._known[computation] = _Computing(sorted(found, reverse=True), by_row, by_row.total())
        return known

    def _rows_of(self, computation: str) -> Mapping[Place, int]:
        known = self._rows.get(computation)
        if known is None:
            view = self._views.of(computation)
            places = zip(repeat(computation), view.lines, view.names)
            known = self._rows[computation] = {one: row for row, one in enumerate(places)}
        return known


def _reached(row: int, following: Callable[[int], Iterable[int | None]]) -> set[int]:
    """A row, and those that are reached from it."""
    reached, waiting = {row}, [row]
    while waiting:
        for one in following(waiting.pop()):
            if one is not None and one not in reached:
                reached.add(one)
                waiting.append(one)
    return reached
