"""The order in which XLA numbers instructions and values.

`HloComputation::MakeInstructionPostOrder` (xla/hlo/ir/hlo_computation.cc): depth first from instructions without users,
operands from left to right, control predecessors before them. `HloModule::MakeComputationPostOrder` is the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from hlo_inspect.analysis.memory.schedule import MISSING, ComputationRun, Schedule
from hlo_inspect.graph.view import operands_first
from hlo_inspect.hlo.module import Module


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
        instruction = view.instruction_at(row)
        names = instruction.attr("control-predecessors") or ()
        rows = [view.index(name) for name in names]
        found[run.times[row]] = [run.times[one] for one in rows if one is not None]
    return found


def numbered(orders: Mapping[ComputationRun, Sequence[int]], runs: Iterable[ComputationRun]) -> list[int]:
    """By time the place of an instruction in the orders of these computations, one after the other."""
    places = [0] * sum(map(len, orders.values()))
    for place, time in enumerate(chain.from_iterable(orders[run] for run in runs)):
        places[time] = place
    return places


def in_order_of_text(schedule: Schedule, module: Module) -> list[ComputationRun]:
    """The computations as they stand in the text; one that is not printed stands before the one that runs it."""
    in_text = {name: number for number, name in enumerate(module.computations)}
    found: dict[ComputationRun, float] = {}
    for run in schedule.runs:  # an enclosing one comes before those that it has
        if run.view is not None:
            found[run] = in_text[run.name]
        elif run.enclosing is not None:
            found[run] = found[run.enclosing] - 0.5
    return sorted(schedule.runs, key=found.__getitem__)


def callers_first(schedule: Schedule) -> list[ComputationRun]:
    """The computations in reverse post-order of the call graph (`CallGraph::VisitNodes`): a body before its condition. Buffers
    of one size are assigned in this order.
    """
    calls: dict[ComputationRun, list[ComputationRun]] = {}
    for time in sorted(schedule.called):
        runs = schedule.called[time]
        calls.setdefault(schedule.run_at[time], []).extend(sorted(runs, key=lambda run: run.role == "condition"))
    return list(operands_first(schedule.runs[:1], lambda run: calls.get(run, [])))[::-1]
