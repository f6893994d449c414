"""The order in which XLA numbers instructions and values.

`HloComputation::MakeInstructionPostOrder` (xla/hlo/ir/hlo_computation.cc): depth first from instructions without users,
operands from left to right, control predecessors before them. `HloModule::MakeComputationPostOrder` is the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from hlo_inspect.analysis.canonical.order import operands_first
from hlo_inspect.analysis.memory.schedule import MISSING, ComputationRun, Schedule
from hlo_inspect.hlo import tokens


def post_orders(schedule: Schedule) -> dict[ComputationRun, list[int]]:
    """The times of each computation's instructions in post-order."""
    members: dict[ComputationRun, list[int]] = {run: [] for run in schedule.runs}
    for time, run in enumerate(schedule.run_at):
        members[run].append(time)
    used = set(chain.from_iterable(schedule.operands))
    return {
        run: list(
            operands_first((time for time in times if time not in used), _before(schedule, run, has_missing=MISSING in used))
        )
        for run, times in members.items()
    }


def _before(schedule: Schedule, run: ComputationRun, *, has_missing: bool) -> Callable[[int], Sequence[int]]:
    """What comes before each instruction of a computation."""
    operands, predecessors = schedule.operands, _predecessors(run)
    if not predecessors and not has_missing:
        return operands.__getitem__
    return lambda time: [*reversed(predecessors.get(time, ())), *(one for one in operands[time] if one != MISSING)]


def _predecessors(run: ComputationRun) -> dict[int, list[int]]:
    """The control predecessors of the instructions that have some."""
    view, found = run.view, {}
    if view is None:
        return {}
    for row, tail in enumerate(view.tails):
        if "control-predecessors=" not in tail:
            continue
        try:
            names = view.instruction(row).attr("control-predecessors") or ()
        except tokens.ScanError:
            continue
        rows = [view.index(name) for name in names]
        found[run.times[row]] = [run.times[one] for one in rows if one is not None]
    return found


def computation_order(schedule: Schedule, order_in_text: Mapping[str, int]) -> dict[ComputationRun, float]:
    """The place of each computation in the text; one that is not printed stands before the one that runs it."""
    found: dict[ComputationRun, float] = {}
    for run in schedule.runs:  # an enclosing one comes before those that it has
        if run.view is not None:
            found[run] = order_in_text[run.name]
        elif run.enclosing is not None:
            found[run] = found[run.enclosing] - 0.5
    return found
