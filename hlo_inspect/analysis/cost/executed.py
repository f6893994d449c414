"""How often computations run in one run of the program, and what they cost then, with the bounds of what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.calls import MAX_FIGURE, NOTHING, Bounds, Call, CallGraph
from hlo_inspect.analysis.cost.figures import FIGURES, MAX_COUNT, NO_LINE, TOO_LARGE, Figure, Gap

OwnFigures = Mapping[str, Mapping[Figure, Bounds]]
"""The figures of one run of each computation, without the computations that it runs."""


class FigureRuns(NamedTuple):
    """How often a computation runs. `least` is how often at least, for each of `FIGURES`; `gap` says why it is not known.

    `least` is 0 in a branch of a conditional, except for the figures of which no other branch has less: so the sum of
    figures × `least` is a lower bound of each figure.
    """

    least: tuple[int, ...]
    gap: Gap | None = None


_ONCE = (1,) * len(FIGURES)
_NEVER = (0,) * len(FIGURES)


def figure_runs(graph: CallGraph, own: OwnFigures) -> dict[str, FigureRuns]:
    """How often each computation of `own` runs for one run of the entry."""
    each = graph.bounds_of_each(own)
    least = dict.fromkeys(graph.order, _NEVER) | dict.fromkeys(graph.order[:1], _ONCE)
    for name in graph.order:
        for _, made in groupby(graph.calls[name], key=lambda call: call.instruction):
            for callee, runs in _runs_of_call(list(made), least[name], each):
                if callee in least:
                    both = zip(least[callee], runs, strict=True)
                    least[callee] = tuple(min(before + more, MAX_FIGURE) for before, more in both)
    found = {}
    for name in own:
        known = graph.runs(name)
        gap = None if known.is_exact else Gap(NO_LINE, known.reason)
        found[name] = FigureRuns(least.get(name, _NEVER), gap)
    return found


def _runs_of_call(
    calls: Sequence[Call], caller: tuple[int, ...], each: Mapping[str, Mapping[Figure, Bounds]]
) -> list[tuple[str, tuple[int, ...]]]:
    """How often at least the calls of one instruction run what they call: of a conditional the cheapest branch."""
    if len(calls) == 1 or calls[0].instruction.opcode != "conditional":
        return [(call.callee, tuple(runs * call.times.least for runs in caller)) for call in calls]
    chosen = [min(calls, key=lambda call: _least(each, call.callee, figure)).callee for figure in FIGURES]
    names = dict.fromkeys(call.callee for call in calls)
    return [(name, tuple(runs * (name == best) for runs, best in zip(caller, chosen, strict=True))) for name in names]


def _least(each: Mapping[str, Mapping[Figure, Bounds]], name: str, figure: Figure) -> int:
    amount = each.get(name, {}).get(figure)
    return 0 if amount is None else amount.least


def step_figures(graph: CallGraph, own: OwnFigures) -> dict[Figure, Bounds]:
    """The figures of one run of the program."""
    found = graph.bounds(own)
    return {figure: countable(found.get(figure, NOTHING)) for figure in FIGURES}


def countable(amount: Bounds) -> Bounds:
    """An amount; one that is more than can be counted has no upper bound, and a reason."""
    return Bounds(MAX_COUNT, None, TOO_LARGE) if amount.least > MAX_COUNT else amount
