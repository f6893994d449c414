"""The time of all collectives of one run of the program, together and by level of links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hlo_inspect.analysis.calls import NOTHING, Bounds, CallGraph
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.time.collective_times import CollectiveTime

_OF_A_SECOND = 10**18
"""Sums over runs are of whole attoseconds, as they are for all other figures of one run."""

ALL = ""


def collective_seconds(
    collectives: Sequence[Collective], times: Sequence[CollectiveTime], graph: CallGraph
) -> dict[str, Seconds]:
    """The least time of the collectives of one run, each alone: of all together (`ALL`) and on each level of links. Data that
    comes from another slice is what that one sends, and counts there.
    """
    own: defaultdict[str, dict[str, Bounds]] = defaultdict(dict)
    unknown = []
    for collective, time in zip(collectives, times, strict=True):
        if time.bound_s is None:
            unknown.append(time.reason)
        if collective.transfer is not None and collective.kind != "send":
            continue
        figures = own[collective.start.computation.name]
        for level, seconds in ((ALL, time.bound_s or 0.0), *time.levels):
            figures[level] = figures.get(level, NOTHING).plus(Bounds.exactly(round(seconds * _OF_A_SECOND)))
    missing = f"{len(unknown)} of {len(times)} collectives have no bound: {unknown[0]}" if unknown else ""
    found = {ALL: NOTHING} | graph.bounds(own)
    return {level: Seconds(amount.least / _OF_A_SECOND, amount.reason or missing) for level, amount in found.items()}
