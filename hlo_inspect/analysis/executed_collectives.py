"""The collectives of one run of the program: each as often as its computation runs.

A conditional runs one of its branches. Where all branches hold the same collectives, by kind and operand bytes, these count
once. Else the figures are not known, and each is at least that of the branch where it is least.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from hlo_inspect.analysis.calls import Bounds, CallGraph
from hlo_inspect.analysis.collectives import Collective

_Label = TypeVar("_Label", bound=Hashable)


class ExecutedFigure(NamedTuple):
    """A figure of one run: its value, `None` where `reason` says why it is not known, what it is at least, and what at most
    where that is known, as of a conditional.
    """

    value: int | None
    least: int
    reason: str = ""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Executed:
    """How often some collectives run in one run of the program, and what one device then reads and sends for them."""

    count: ExecutedFigure
    operand_bytes: ExecutedFigure
    wire_bytes: ExecutedFigure

    def figures(self) -> dict[str, ExecutedFigure]:
        return {figure: getattr(self, figure) for figure in _FIGURES}


_FIGURES = ("count", "operand_bytes", "wire_bytes")
NOT_EXECUTED = Executed(*[ExecutedFigure(0, 0)] * 3)

PhaseRuns = str | Sequence[tuple[str, Bounds]]
"""The phase of a collective; where calls of its computation are in several phases, how often it runs in each."""
_Way = Literal["all", "kind", "axis", "slices", "phase"]
"""How collectives are divided."""
_Size = tuple[str, int | None]
_Key = tuple[Hashable, str | _Size]
"""A figure of a label, or how many of its collectives are of one kind and operand size."""


class _Alike(NamedTuple):
    """What the collectives of a computation agree on that count together."""

    label: Hashable
    kind: str
    operand_bytes: int | None
    wire_bytes: int | None


class ExecutedCollectives:
    """The collectives of one run, together and by label. send and recv are counted by their kind alone."""

    def __init__(
        self, graph: CallGraph, collectives: Sequence[Collective], axes: Sequence[str | None], phases: Sequence[PhaseRuns]
    ) -> None:
        """`axes` and `phases` are those of each of `collectives`."""
        self._graph = graph
        self._collectives = collectives
        self._axes = axes
        self._phases = phases

    @cached_property
    def total(self) -> Executed:
        return self._of("all").get("", NOT_EXECUTED)

    @cached_property
    def kinds(self) -> Mapping[str, Executed]:
        """By kind, with send and recv."""
        return self._of("kind")

    @cached_property
    def axes(self) -> Mapping[str | None, Executed]:
        """By the mesh axes that they run over, `None` where that is not known; with what is sent between slices."""
        return self._of("axis")

    @cached_property
    def between_slices(self) -> Executed:
        """What is sent between slices, which is in no total."""
        return self._of("slices").get("", NOT_EXECUTED)

    @cached_property
    def phases(self) -> Mapping[str, Executed]:
        return self._of("phase")

    def _of(self, way: _Way) -> dict[Any, Executed]:
        return {label: executed for (of, label), executed in self._by_each.items() if of == way}

    @cached_property
    def _by_each(self) -> dict[tuple[_Way, str | None], Executed]:
        """By each way of dividing them, in one walk over the calls of the program."""
        return self.by(self._labelled(), self._split())

    def _labelled(self) -> Iterator[tuple[Collective, tuple[_Way, str | None]]]:
        for collective, axis, phase in zip(self._collectives, self._axes, self._phases, strict=True):
            yield collective, ("kind", collective.kind)
            if collective.sends_to_slices:
                yield collective, ("slices", "")
            if collective.sends_to_slices or not collective.is_point_to_point:
                yield collective, ("axis", axis)
            if not collective.is_point_to_point:
                yield collective, ("all", "")
                if isinstance(phase, str):
                    yield collective, ("phase", phase)

    def _split(self) -> Iterator[tuple[Collective, tuple[_Way, str | None], Bounds]]:
        """The collectives that calls of several phases run, with how often each does."""
        for collective, phase in zip(self._collectives, self._phases, strict=True):
            if not isinstance(phase, str) and not collective.is_point_to_point:
                for one, runs in phase:
                    yield collective, ("phase", one), runs

    def by(
        self,
        labelled: Iterable[tuple[Collective, _Label]],
        split: Iterable[tuple[Collective, _Label, Bounds]] = (),
    ) -> dict[_Label, Executed]:
        """Those collectives by their labels, in the order in which labels occur; `split` are more, which run so often in one
        run of the program.
        """
        held: defaultdict[str, Counter[_Alike]] = defaultdict(Counter)
        first: dict[_Alike, Collective] = {}
        labels: dict[_Label, None] = {}
        for c, label in labelled:
            alike = _Alike(label, c.kind, c.operand_bytes, c.wire_bytes)
            held[c.inner.computation.name][alike] += 1
            first.setdefault(alike, c)
            labels[label] = None
        own = {name: _own(counts, first) for name, counts in held.items()}
        for c, label, runs in split:
            entry = own.setdefault(next(iter(self._graph.order), ""), {})
            for figure, amount in _figures(_Alike(label, c.kind, c.operand_bytes, c.wire_bytes), 1, c):
                before, added = entry.get((label, figure)), amount.times(runs)
                entry[label, figure] = added if before is None else before.plus(added)
            labels[label] = None
        bounds = self._graph.bounds(own)
        differing: dict[Hashable, str] = {}
        for (of, figure), amount in bounds.items():
            if not isinstance(figure, str) and not amount.is_exact:
                differing.setdefault(of, amount.reason)
        return {label: _executed(label, bounds, differing.get(label, "")) for label in labels}


def _own(counts: Counter[_Alike], first: Mapping[_Alike, Collective]) -> dict[_Key, Bounds]:
    """The figures of one computation."""
    figures: dict[_Key, Bounds] = {}
    for alike, count in counts.items():
        for figure, amount in _figures(alike, count, first[alike]):
            before = figures.get((alike.label, figure))
            figures[alike.label, figure] = amount if before is None else before.plus(amount)
    return figures


def _figures(alike: _Alike, count: int, first: Collective) -> Iterator[tuple[str | _Size, Bounds]]:
    """What so many collectives add, the first of which is `first`."""
    yield (alike.kind, alike.operand_bytes), Bounds.exactly(count)
    yield "count", Bounds.exactly(count)
    for name, size in (("operand_bytes", alike.operand_bytes), ("wire_bytes", alike.wire_bytes)):
        yield name, Bounds(0, None, first.why_unknown) if size is None else Bounds.exactly(size * count)


def _executed(label: Hashable, bounds: Mapping[_Key, Bounds], differing: str) -> Executed:
    """`differing` says why it is not known which collectives run; empty where it is."""
    return Executed(*(_figure(bounds[label, figure], differing) for figure in _FIGURES))


def _figure(amount: Bounds, differing: str) -> ExecutedFigure:
    if amount.is_exact and not differing:
        return ExecutedFigure(amount.least, amount.least)
    return ExecutedFigure(None, amount.least, differing or amount.reason, amount.greatest)
