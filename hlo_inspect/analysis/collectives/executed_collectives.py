"""Collectives of one step, multiplied by the runs of their computations.

A conditional runs one of its branches. If all branches hold the same collectives, by kind and operand bytes, these count once.
Otherwise the figures are unknown, and the branch with the smallest figure is their lower bound.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.figure import Figure, Quantity, at_least, between, greatest, least, multiply
from hlo_inspect.graph.calls import CallGraph, add_figures

_Label = TypeVar("_Label", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ExecutedTotals:
    """The runs of some collectives in one step, and the bytes that one device reads and sends for them."""

    count: Quantity
    operand_bytes: Quantity
    wire_bytes: Quantity

    def beside(self, missing: str) -> ExecutedTotals:
        """Return the totals as lower bounds if collectives may be `missing` for this reason."""
        figures = (self.count, self.operand_bytes, self.wire_bytes)
        return ExecutedTotals(*(at_least(least(figure), missing) for figure in figures)) if missing else self


_FIGURES = ("count", "operand_bytes", "wire_bytes")
NOT_EXECUTED = ExecutedTotals(0, 0, 0)

PhaseRuns = str | Sequence[tuple[str, Quantity]]
"""The phase of a collective, or the runs in each phase if calls of its computation are in several phases."""
_Size = tuple[str, int | None]
_Sizes = tuple[str, int | None, int | None, int | None]
"""Kind, operand bytes, sent bytes and their upper bound.

Collectives of a computation with the same four count together under any label.
"""
_Key = tuple[Hashable, str | _Size]
"""A figure of a label, or the number of its collectives of one kind and operand size."""


class _CollectiveKey(NamedTuple):
    """The key of the collectives of a computation that count together."""

    label: Hashable
    kind: str
    operand_bytes: int | None
    wire_bytes: int | None
    most_sent: int | None


class ExecutedCollectives:
    """The collectives of one step, in total and by label. send and recv count in their kind only."""

    def __init__(
        self, graph: CallGraph, collectives: Sequence[Collective], axes: Sequence[str | None], phases: Sequence[PhaseRuns]
    ) -> None:
        """Take the axes and the phase of each of `collectives`."""
        self._graph = graph
        self._collectives = collectives
        self._axes = axes
        self._phases = phases
        self._in_totals = [not c.is_point_to_point for c in collectives]
        self._computations = [c.inner.computation.name for c in collectives]
        numbers: dict[_Sizes, int] = {}
        self._numbers = [numbers.setdefault(_sizes(c), len(numbers)) for c in collectives]
        self._sizes = list(numbers)

    # a walk for each kind of label: a single walk would hold the figures of all kinds at once for every computation

    @cached_property
    def total(self) -> ExecutedTotals:
        return self.by_label([""] * len(self._collectives), self._in_totals).get("", NOT_EXECUTED)

    @cached_property
    def kinds(self) -> Mapping[str, ExecutedTotals]:
        """Figures by kind, send and recv included."""
        return self.by_label([c.kind for c in self._collectives], [True] * len(self._collectives))

    @cached_property
    def axes(self) -> Mapping[str | None, ExecutedTotals]:
        """Figures by mesh axes, None if these are unknown; bytes sent between slices included."""
        return self.by_label(self._axes, [c.sends_to_slices or not c.is_point_to_point for c in self._collectives])

    @cached_property
    def slice_sends(self) -> ExecutedTotals:
        """Figures of the sends between slices, which are in no total."""
        sends = [c.sends_to_slices for c in self._collectives]
        return self.by_label([""] * len(self._collectives), sends).get("", NOT_EXECUTED)

    @cached_property
    def phases(self) -> Mapping[str, ExecutedTotals]:
        """Figures by phase. A collective that calls of several phases run counts in each with the runs of that phase."""
        single = [phase if isinstance(phase, str) else "" for phase in self._phases]
        counted = compress(zip(self._collectives, self._phases, strict=True), self._in_totals)
        split = ((c, phase, runs) for c, phases in counted if not isinstance(phases, str) for phase, runs in phases)
        is_single = [is_in and phase != "" for is_in, phase in zip(self._in_totals, single, strict=True)]
        return self.by_label(single, is_single, split)

    def by_label(
        self, labels: Sequence[_Label], chosen: Sequence[bool], split: Iterable[tuple[Collective, _Label, Quantity]] = ()
    ) -> dict[_Label, ExecutedTotals]:
        """Return the figures of the `chosen` collectives by label, in the order in which labels occur.

        `labels` holds the label of each collective. `split` adds further collectives, each with its label and its runs in one
        step.
        """
        keys_by_computation: defaultdict[str, list[tuple[_CollectiveKey, int]]] = defaultdict(list)
        cache: dict[tuple[int, _Label], _CollectiveKey] = {}
        seen: dict[_Label, None] = {}
        counts = Counter(compress(zip(self._computations, self._numbers, labels, strict=True), chosen))
        for (computation, number, label), count in counts.items():
            key = cache.get((number, label))
            if key is None:
                key = cache[number, label] = _CollectiveKey(label, *self._sizes[number])
                seen[label] = None
            keys_by_computation[computation].append((key, count))
        del counts
        own = _own_figures(keys_by_computation, self._first_unknown(labels, chosen))
        entry = next(iter(self._graph.order), "")
        entry_figures = dict(own.get(entry, {}))
        for c, label, runs in split:
            figures = _figures(_CollectiveKey(label, *_sizes(c)), 1, c)
            more: dict[_Key, Quantity] = {(label, figure): multiply(amount, runs) for figure, amount in figures}
            add_figures(entry_figures, more)
            seen[label] = None
        own[entry] = entry_figures
        bounds = self._graph.bounds(own)
        differing: dict[Hashable, str] = {}
        for (total_label, figure), amount in bounds.items():
            if not isinstance(figure, str) and isinstance(amount, Figure):
                differing.setdefault(total_label, amount.reason)
        for (total_label, figure), amount in bounds.items():
            if total_label in differing:  # the executed collectives are unknown
                bounds[total_label, figure] = Figure(least(amount), greatest(amount), differing[total_label])
        return {label: ExecutedTotals(*(bounds[label, figure] for figure in _FIGURES)) for label in seen}

    def _first_unknown(self, labels: Sequence[Hashable], chosen: Sequence[bool]) -> dict[_CollectiveKey, Collective]:
        """Return the first chosen collective of each key whose bytes are not all known."""
        if not any(None in sizes[:3] for sizes in self._sizes):
            return {}
        first: dict[_CollectiveKey, Collective] = {}
        for c, label in compress(zip(self._collectives, labels, strict=True), chosen):
            if c.operand_bytes is None or c.wire_bytes is None:
                first.setdefault(_CollectiveKey(label, *_sizes(c)), c)
        return first


def _sizes(collective: Collective) -> _Sizes:
    return collective.kind, collective.operand_bytes, collective.wire_bytes, collective.most_sent


def _own_figures(
    keys_by_computation: Mapping[str, Sequence[tuple[_CollectiveKey, int]]], unknown: Mapping[_CollectiveKey, Collective]
) -> dict[str, dict[_Key, Quantity]]:
    """Return the figures of each computation. Computations with equal collectives share them."""
    cache: dict[tuple[tuple[_CollectiveKey, int], ...], dict[_Key, Quantity]] = {}
    own: dict[str, dict[_Key, Quantity]] = {}
    for name, counts in keys_by_computation.items():
        key = tuple(counts)
        figures = cache.get(key)
        if figures is None:
            figures = cache[key] = {}
            for size_key, count in counts:
                of_key = _figures(size_key, count, unknown.get(size_key))
                add_figures(figures, {(size_key.label, figure): amount for figure, amount in of_key})
        own[name] = figures
    return own


def _figures(key: _CollectiveKey, count: int, first: Collective | None) -> Iterator[tuple[str | _Size, Quantity]]:
    """Yield the figures of `count` equal collectives. If bytes are unknown, `first` is the first of the collectives.

    An unknown opcode may stand for several collectives, so their number is a lower bound.
    """
    reason_unknown, uncounted = (first.reason_unknown, first.reason_uncounted) if first is not None else ("", "")
    yield (key.kind, key.operand_bytes), count
    yield "count", at_least(count, uncounted) if uncounted else count
    most_sent = None if key.most_sent is None else key.most_sent * count
    for name, size, most in (("operand_bytes", key.operand_bytes, None), ("wire_bytes", key.wire_bytes, most_sent)):
        yield name, between(0, most, reason_unknown) if size is None else size * count
