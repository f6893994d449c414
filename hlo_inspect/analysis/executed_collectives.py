"""The collectives of one run of the program: each as often as its computation runs.

A conditional runs one of its branches. Where all branches hold the same collectives, by kind and operand bytes, these count
once. Else the figures are not known, and each is at least that of the branch where it is least.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hlo_inspect.analysis.calls import Bounds, CallGraph
from hlo_inspect.analysis.collectives import Collective

Group = tuple[Literal["all", "kind", "axis", "phase"], str | None]
"""Collectives that are counted together: those of a kind, along an axis, or of a phase."""

ALL: Group = ("all", None)
"""All collectives, without send and recv."""


class ExecutedFigure(NamedTuple):
    """A figure of one run: its value, `None` where `reason` says why it is not known, and what it is at least."""

    value: int | None
    least: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Executed:
    """How often the collectives of a group run in one run of the program, and what one device then reads and sends."""

    count: ExecutedFigure
    operand_bytes: ExecutedFigure
    wire_bytes: ExecutedFigure

    def figures(self) -> dict[str, ExecutedFigure]:
        return {figure: getattr(self, figure) for figure in _FIGURES}


_FIGURES = ("count", "operand_bytes", "wire_bytes")

NOT_EXECUTED = Executed(*[ExecutedFigure(0, 0)] * 3)


class _Alike(NamedTuple):
    """What the collectives of a computation agree on that count together."""

    kind: str
    axis: str | None
    phase: str
    operand_bytes: int | None
    wire_bytes: int | None
    is_point_to_point: bool

    @property
    def groups(self) -> tuple[Group, ...]:
        if self.is_point_to_point:
            return (("kind", self.kind),)
        return (ALL, ("kind", self.kind), ("axis", self.axis), ("phase", self.phase))


_Size = tuple[str, int | None]
_Key = tuple[Group, str | _Size]
"""A figure of a group, or how many of its collectives are of one kind and operand size."""


def executed_collectives(
    graph: CallGraph, collectives: Iterable[Collective], axes: Iterable[str | None], phases: Iterable[str]
) -> Mapping[Group, Executed]:
    """The collectives of one run by group; `axes` and `phases` are those of each of `collectives`. Groups that the module does
    not hold are not there.
    """
    held: defaultdict[str, Counter[_Alike]] = defaultdict(Counter)
    first: dict[_Alike, Collective] = {}
    for c, axis, phase in zip(collectives, axes, phases, strict=True):
        alike = _Alike(c.kind, axis, phase, c.operand_bytes, c.wire_bytes, c.is_point_to_point)
        held[c.inner.computation.name][alike] += 1
        first.setdefault(alike, c)
    bounds = graph.bounds({name: _own(counts, first) for name, counts in held.items()})
    differing: dict[Group, str] = {}
    for (group, figure), amount in bounds.items():
        if not isinstance(figure, str) and not amount.is_exact:
            differing.setdefault(group, amount.reason)
    executed = {group: _executed(group, bounds, differing.get(group, "")) for group, _ in bounds}
    return {ALL: NOT_EXECUTED} | executed


def _own(counts: Counter[_Alike], first: Mapping[_Alike, Collective]) -> dict[_Key, Bounds]:
    """The figures of one computation."""
    figures: dict[_Key, Bounds] = {}
    for alike, count in counts.items():
        amounts = dict(_figures(alike, count, first[alike]))
        for group in alike.groups:
            for figure, amount in amounts.items():
                before = figures.get((group, figure))
                figures[group, figure] = amount if before is None else before.plus(amount)
    return figures


def _figures(alike: _Alike, count: int, first: Collective) -> Iterator[tuple[str | _Size, Bounds]]:
    """What so many collectives add, the first of which is `first`."""
    yield (alike.kind, alike.operand_bytes), Bounds.exactly(count)
    yield "count", Bounds.exactly(count)
    for name, size in (("operand_bytes", alike.operand_bytes), ("wire_bytes", alike.wire_bytes)):
        yield name, Bounds(0, None, first.why_unknown) if size is None else Bounds.exactly(size * count)


def _executed(group: Group, bounds: Mapping[_Key, Bounds], differing: str) -> Executed:
    """`differing` says why it is not known which collectives run; empty where it is."""
    return Executed(*(_figure(bounds[group, figure], differing) for figure in _FIGURES))


def _figure(amount: Bounds, differing: str) -> ExecutedFigure:
    if amount.is_exact and not differing:
        return ExecutedFigure(amount.least, amount.least)
    return ExecutedFigure(None, amount.least, differing or amount.reason)
