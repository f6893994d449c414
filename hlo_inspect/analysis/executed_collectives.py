"""The collectives of one run of the program: each as often as its computation runs.

A conditional runs one of its branches. Where all branches hold the same collectives, by kind and operand bytes, these count
once; else the totals are not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hlo_inspect.analysis.calls import Bounds, CallGraph
from hlo_inspect.analysis.collectives import Collective


@dataclass(frozen=True, slots=True)
class ExecutedCollectives:
    """The collectives of one run of the program and the bytes of their operands; `notes` say why one of them is `None`."""

    count: int | None
    operand_bytes: int | None
    notes: tuple[str, ...] = ()


def executed_totals(graph: CallGraph, collectives: Iterable[Collective]) -> ExecutedCollectives:
    """Collectives × how often their computations run, without send and recv."""
    held: defaultdict[str, Counter[tuple[str, int | None]]] = defaultdict(Counter)
    for collective in collectives:
        if not collective.is_point_to_point:
            held[collective.inner.computation.name][collective.kind, collective.operand_bytes] += 1
    own = {name: {alike: Bounds.exactly(count) for alike, count in counts.items()} for name, counts in held.items()}
    runs = graph.bounds(own)
    reason = next((count.reason for count in runs.values() if not count.is_exact), "")
    if reason:
        facts = ("collectives.executed_count", "collectives.executed_operand_bytes")
        return ExecutedCollectives(None, None, tuple(f"{fact}: {reason}" for fact in facts))
    count = sum(count.least for count in runs.values())
    unknown = sum(count.least for (_, size), count in runs.items() if size is None)
    if unknown:
        note = f"collectives.executed_operand_bytes: not known for {unknown} of {count} executed collectives"
        return ExecutedCollectives(count, None, (note,))
    return ExecutedCollectives(count, sum(count.least * (size or 0) for (_, size), count in runs.items()))
