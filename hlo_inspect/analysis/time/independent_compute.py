"""The compute that could run while a collective does: what neither makes its operands nor uses its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hlo_inspect.analysis.calls import place
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.time.steps import WaitStep
from hlo_inspect.analysis.time.timeline import TICKS
from hlo_inspect.analysis.time.timelines import TimedStep
from hlo_inspect.analysis.view import Views


class IndependentCompute(NamedTuple):
    """Seconds of the compute stream in all runs of a collective's computation, and the instruction that takes most of them."""

    seconds: float
    longest: str


def independent_compute(step: TimedStep, views: Views, collective: Collective) -> IndependentCompute | None:
    """What could hide a collective, in its own computation: loops and calls there count with all that they compute. `None`
    where its computation does not run in the order of a schedule.
    """
    start = place(collective.start)
    steps = step.work.program.steps.get(start[0])
    if steps is None or start not in step.work.issued:
        return None
    view = views.of(start[0])
    rows = {(start[0], view.lines[row], view.rows[row][1]): row for row in range(len(view.rows))}
    done = next((one.done for one in steps if isinstance(one, WaitStep) and one.place == start), start)
    tied = _reached(rows[start], view.operand_rows) | _reached(rows[done], view.users.__getitem__)
    free = [(step.timeline.computing(one), one.place[2]) for one in steps if rows[one.place] not in tied]
    ticks, name = max(free, default=(0, ""))
    runs = step.timeline.site(start).runs
    return IndependentCompute(sum(one for one, _ in free) * runs / TICKS, name if ticks else "")


def _reached(row: int, following: Callable[[int], Iterable[int | None]]) -> set[int]:
    """A row, and those that are reached from it."""
    reached, waiting = {row}, [row]
    while waiting:
        new = {one for one in following(waiting.pop()) if one is not None and one not in reached}
        reached |= new
        waiting += new
    return reached
