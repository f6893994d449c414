"""The collectives of one run of the program: each as often as its computation runs.

A conditional runs one of its branches. Where all branches hold the same collectives, by kind and operand bytes, these count
once. Else the figures are not known, and each is at least that of the branch where it is least.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.graph.calls import Bounds, CallGraph

_Label = TypeVar("_Label", bound=Hashable)


class ExecutedFigure(NamedTuple):
    """A figure of one run: `exact` is `None` where `reason` says why it is not known; what it is at least, and what at most
    where that is known, as of a conditional.
    """

    exact: int | None
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
_Size = tuple[str, int | None]
_Sizes = tuple[str, int | None, int | None]
"""Kind, operand and wire bytes: what collectives of a computation agree on that count together under any label."""
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
        self._in_totals = [not c.is_point_to_point for c in collectives]
        self._computations = [c.inner.computation.name for c in collectives]
        numbers: dict[_Sizes, int] = {}
        self._numbers = [numbers.setdefault((c.kind, c.operand_bytes, c.wire_bytes), len(numbers)) for c in collectives]
        self._sizes = list(numbers)

    # each way of dividing them is a walk of its own: one for all ways holds figures of all at once for every computation

    @cached_property
    def total(self) -> Executed:
        return self.by([""] * len(self._collectives), self._in_totals).get("", NOT_EXECUTED)

    @cached_property
    def kinds(self) -> Mapping[str, Executed]:
        """By kind, with send and recv."""
        return self.by([c.kind for c in self._collectives], [True] * len(self._collectives))

    @cached_property
    def axes(self) -> Mapping[str | None, Executed]:
        """By the mesh axes that they run over, `None` where that is not known; with what is sent between slices."""
        return self.by(self._axes, [c.sends_to_slices or not c.is_point_to_point for c in self._collectives])

    @cached_property
    def between_slices(self) -> Executed:
        """What is sent between slices, which is in no total."""
        return self.by([""] * len(self._collectives), [c.sends_to_slices for c in self._collectives]).get("", NOT_EXECUTED)

    @cached_property
    def phases(self) -> Mapping[str, Executed]:
        """By phase; a collective that calls of several phases run counts with each as often as that runs it."""
        in_one = [phase if isinstance(phase, str) else "" for phase in self._phases]
        counted = compress(zip(self._collectives, self._phases, strict=True), self._in_totals)
        split = ((c, one, runs) for c, phase in counted if not isinstance(phase, str) for one, runs in phase)
        return self.by(in_one, [is_in and phase != "" for is_in, phase in zip(self._in_totals, in_one, strict=True)], split)

    def by(
        self,
        labels: Sequence[_Label],
        chosen: Sequence[bool],
        split: Iterable[tuple[Collective, _Label, Bounds]] = (),
    ) -> dict[_Label, Executed]:
        """The `chosen` collectives by their labels, in the order in which labels occur. There is a label for each collective;
        `split` are more, which run so often in one run of the program.
        """
        held: defaultdict[str, list[tuple[_Alike, int]]] = defaultdict(list)
        known: dict[tuple[int, _Label], _Alike] = {}
        met: dict[_Label, None] = {}
        counts = Counter(compress(zip(self._computations, self._numbers, labels, strict=True), chosen))
        for (computation, number, label), count in counts.items():
            alike = known.get((number, label))
            if alike is None:
                alike = known[number, label] = _Alike(label, *self._sizes[number])
                met[label] = None
            held[computation].append((alike, count))
        del counts
        own = _own_figures(held, self._first_unknown(labels, chosen))
        entry = next(iter(self._graph.order), "")
        beside = dict(own.get(entry, {}))
        for c, label, runs in split:
            for figure, amount in _figures(_Alike(label, c.kind, c.operand_bytes, c.wire_bytes), 1, c):
                before, added = beside.get((label, figure)), amount.times(runs)
                beside[label, figure] = added if before is None else before.plus(added)
            met[label] = None
        own[entry] = beside
        bounds = self._graph.bounds(own)
        differing: dict[Hashable, str] = {}
        for (of, figure), amount in bounds.items():
            if not isinstance(figure, str) and not amount.is_exact:
                differing.setdefault(of, amount.reason)
        return {
            label: Executed(*(_figure(bounds[label, figure], differing.get(label, "")) for figure in _FIGURES)) for label in met
        }

    def _first_unknown(self, labels: Sequence[Hashable], chosen: Sequence[bool]) -> dict[_Alike, Collective]:
        """The first of the chosen collectives of each kind whose bytes are not all known."""
        if not any(None in sizes for sizes in self._sizes):
            return {}
        found: dict[_Alike, Collective] = {}
        for c, label in compress(zip(self._collectives, labels, strict=True), chosen):
            if c.operand_bytes is None or c.wire_bytes is None:
                found.setdefault(_Alike(label, c.kind, c.operand_bytes, c.wire_bytes), c)
        return found


def _own_figures(
    held: Mapping[str, Sequence[tuple[_Alike, int]]], unknown: Mapping[_Alike, Collective]
) -> dict[str, dict[_Key, Bounds]]:
    """The figures of each computation; those that hold the same share them, as most do in a large module."""
    known: dict[tuple[tuple[_Alike, int], ...], dict[_Key, Bounds]] = {}
    own: dict[str, dict[_Key, Bounds]] = {}
    for name, counts in held.items():
        key = tuple(counts)
        figures = known.get(key)
        if figures is None:
            figures = known[key] = {}
            for alike, count in counts:
                for figure, amount in _figures(alike, count, unknown.get(alike)):
                    before = figures.get((alike.label, figure))
                    figures[alike.label, figure] = amount if before is None else before.plus(amount)
        own[name] = figures
    return own


def _figures(alike: _Alike, count: int, first: Collective | None) -> Iterator[tuple[str | _Size, Bounds]]:
    """What so many collectives add. Where bytes are not known, `first` is the first of them."""
    why_unknown = first.why_unknown if first is not None else ""
    yield (alike.kind, alike.operand_bytes), Bounds.exactly(count)
    yield "count", Bounds.exactly(count)
    for name, size in (("operand_bytes", alike.operand_bytes), ("wire_bytes", alike.wire_bytes)):
        yield name, Bounds(0, None, why_unknown) if size is None else Bounds.exactly(size * count)


def _figure(amount: Bounds, differing: str) -> ExecutedFigure:
    """`differing` says why it is not known which collectives run; empty where it is."""
    if amount.is_exact and not differing:
        return ExecutedFigure(amount.least, amount.least)
    return ExecutedFigure(None, amount.least, differing or amount.reason, amount.greatest)
