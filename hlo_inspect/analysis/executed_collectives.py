"""The collectives of one run of the program: each as often as its computation runs.

A conditional runs one of its branches. Where all branches hold the same collectives, by kind and operand bytes, these count
once; else the totals are not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from hlo_inspect.analysis.calls import Call, CallGraph, recursion
from hlo_inspect.analysis.collectives import Collective

_Amounts = Counter[tuple[str, int | None]]  # collectives of a kind and operand size


@dataclass(frozen=True, slots=True)
class ExecutedCollectives:
    """The collectives of one run of the program and the bytes of their operands; `notes` say why one of them is `None`."""

    count: int | None
    operand_bytes: int | None
    notes: tuple[str, ...] = ()


def executed_totals(graph: CallGraph, collectives: Iterable[Collective]) -> ExecutedCollectives:
    """Collectives × how often their computations run, without send and recv."""
    held: defaultdict[str, _Amounts] = defaultdict(Counter)
    for collective in collectives:
        if not collective.is_point_to_point:
            held[collective.inner.computation.name][collective.kind, collective.operand_bytes] += 1
    unreached = [name for name in held if name not in graph.calls]
    amounts = graph.reason(unreached[0]) if unreached else _amounts(graph, held)
    if isinstance(amounts, str):
        facts = ("collectives.executed_count", "collectives.executed_operand_bytes")
        return ExecutedCollectives(None, None, tuple(f"{fact}: {amounts}" for fact in facts))
    count = sum(amounts.values())
    unknown = sum(times for (_, size), times in amounts.items() if size is None)
    if unknown:
        note = f"collectives.executed_operand_bytes: not known for {unknown} of {count} executed collectives"
        return ExecutedCollectives(count, None, (note,))
    return ExecutedCollectives(count, sum(times * (size or 0) for (_, size), times in amounts.items()))


def _amounts(graph: CallGraph, held: Mapping[str, _Amounts]) -> _Amounts | str:
    """What a run of the entry executes, or why that is not known."""
    recursive = graph.calls.keys() - graph.order
    holds = any(name in held for name in recursive)
    known: dict[str, _Amounts | str] = {name: recursion(name) if holds else Counter() for name in recursive}
    for name in reversed(graph.order):
        known[name] = _executed(held.get(name, Counter()), graph.calls[name], known)
    return next((known[entry] for entry in graph.calls), Counter())


def _executed(own: _Amounts, calls: Iterable[Call], known: Mapping[str, _Amounts | str]) -> _Amounts | str:
    total = Counter(own)
    for _, made in groupby(calls, key=lambda call: call.instruction):
        part = _part(list(made), known)
        if isinstance(part, str):
            return part
        total.update(part)
    return total


def _part(calls: Sequence[Call], known: Mapping[str, _Amounts | str]) -> _Amounts | str:
    """What the calls of one instruction execute."""
    found = [known.get(call.callee, Counter()) for call in calls]
    if calls[0].instruction.opcode == "conditional":
        same = all(amounts == found[0] for amounts in found)
        return found[0] if same else f"{calls[0].reason}, which hold different collectives"
    total: _Amounts = Counter()
    for call, amounts in zip(calls, found, strict=True):
        if not amounts or call.times == 0:
            continue
        if isinstance(amounts, str) or call.times is None:
            return amounts if isinstance(amounts, str) else call.reason
        total.update({key: times * call.times for key, times in amounts.items()})
    return total
