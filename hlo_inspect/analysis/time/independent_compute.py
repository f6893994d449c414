"""The compute that could run while a collective does: what neither makes its operands nor uses its result."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.time.steps import WaitStep
from hlo_inspect.analysis.time.timeline import TICKS
from hlo_inspect.analysis.time.timelines import TimedStep
from hlo_inspect.graph.calls import InstructionPlace, place
from hlo_inspect.graph.view import View, Views, operands_first


class IndependentCompute(NamedTuple):
    """Seconds of the compute stream in all runs of a collective's computation, and the instruction that takes most of them."""

    seconds: float
    longest: str


def independent_computes(step: TimedStep, views: Views, collectives: Sequence[Collective]) -> list[IndependentCompute | None]:
    """What could hide each collective, in its own computation: loops and calls there count with all that they compute. `None`
    where the computation of a collective does not run in the order of a schedule.
    """
    starts = [place(collective.start) for collective in collectives]
    together: defaultdict[str, list[InstructionPlace]] = defaultdict(list)
    for start in starts:
        if start in step.work.issued:
            together[start[0]].append(start)
    found: dict[InstructionPlace, IndependentCompute] = {}
    for name, own in together.items():
        found |= _in_computation(step, views.of(name), own)
    return [found.get(start) for start in starts]


def _in_computation(
    step: TimedStep, view: View, starts: Sequence[InstructionPlace]
) -> dict[InstructionPlace, IndependentCompute]:
    """What could hide the collectives that start at these places of one computation."""
    timeline, steps = step.timeline, step.work.program.steps[starts[0][0]]
    rows = {at: row for row, at in enumerate(zip(repeat(starts[0][0]), view.lines, view.names))}
    dones = {one.place: one.done for one in reversed(steps) if isinstance(one, WaitStep)}
    tied = _tied(view, [(rows[start], rows[dones.get(start, start)]) for start in starts])
    whole: Counter[int] = Counter()  # by the collectives that the steps are tied to, as bits
    longest: dict[int, tuple[int, str]] = {}
    for one in steps:
        ticks = timeline.computing(one)
        if ticks:
            bits = tied[rows[one.place]]
            whole[bits] += ticks
            longest[bits] = max(longest.get(bits, (0, "")), (ticks, one.place[2]))
    found = {}
    for number, start in enumerate(starts):
        free = [bits for bits in whole if not bits >> number & 1]
        seconds = sum([whole[bits] for bits in free]) * timeline.site(start).runs / TICKS
        found[start] = IndependentCompute(seconds, max([longest[bits] for bits in free], default=(0, ""))[1])
    return found


def _tied(view: View, collectives: Sequence[tuple[int, int]]) -> list[int]:
    """By row the collectives, as bits, of whose start it makes an operand or of whose end it uses the result. `collectives` are
    the rows of start and end.
    """
    order = _operands_first(view)
    before, behind = [0] * len(view.rows), [0] * len(view.rows)
    for number, (start, done) in enumerate(collectives):
        before[start] |= 1 << number
        behind[done] |= 1 << number
    for row in order:
        for operand in view.operand_rows(row):
            if operand is not None:
                behind[row] |= behind[operand]
    for row in reversed(order):
        if before[row]:
            for operand in view.operand_rows(row):
                if operand is not None:
                    before[operand] |= before[row]
    return [one | other for one, other in zip(before, behind, strict=True)]


def _operands_first(view: View) -> Sequence[int]:
    """The rows, each behind its operands: in the order of the text, unless that is no schedule although its header says so."""
    rows = range(len(view.rows))
    if all(operand is None or operand < row for row in rows for operand in view.operand_rows(row)):
        return rows
    return list(operands_first(rows, lambda row: [one for one in view.operand_rows(row) if one is not None]))
