"""Collectives of one computation beside each other: many small collectives, and equal collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collective_results import place_of, runs_of
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.values.op_names import RECOMPUTE, scope_of

MANY = 8
SMALL = 256 << 10
"""Least number of small collectives, and the largest bytes of an operand of each."""


class RelatedCollectives(NamedTuple):
    """Collectives of one computation in the order of its text, and the bytes that a device sends for them in one step."""

    members: tuple[Collective, ...]
    wire_bytes: int


def find_small(views: Views, calls: CallGraph, collectives: Iterable[Collective]) -> Iterator[RelatedCollectives]:
    """Yield `MANY` or more small collectives of one kind, type and groups of which none needs the result of another.

    Gathers of inputs are left out: sharded weights are gathered one by one, each when its layer needs it.
    """
    groups: dict[tuple[str, ...], list[Collective]] = defaultdict(list)
    for collective in collectives:
        is_small = collective.wire_bytes and (collective.operand_bytes or SMALL + 1) <= SMALL
        if is_small and not collective.is_point_to_point and not _gathers_input(views, collective):
            shape = str(collective.result_shape).partition("[")[0]
            key = (collective.start.computation.name, collective.kind, shape, collective.reduction, collective.replica_groups)
            groups[key].append(collective)
    for (computation, *_), members in groups.items():
        if len(members) >= MANY and computation in views.computations:
            for level in _independent(views.for_computation(computation), members):
                if len(level) >= MANY:
                    sent = sum(member.wire_bytes or 0 for member in level)
                    yield RelatedCollectives(tuple(level), sent * runs_of(calls, computation))


def _gathers_input(views: Views, collective: Collective) -> bool:
    place = place_of(views, collective) if collective.kind == "all-gather" else None
    row = place.view.operand_row(place.row, 0) if place is not None else None
    while place is not None and row is not None:
        made = maker_of(views, ViewRow(place.view, row))
        if made.opcode != "convert":
            return made.opcode in {"parameter", "get-tuple-element"}
        place, row = made, made.view.operand_row(made.row, 0)
    return False


def _independent(view: View, members: Sequence[Collective]) -> Iterator[list[Collective]]:
    """Yield the members by the length of the longest chain of members that each depends on."""
    rows = {row: member for member in members if (row := view.index(member.start.name)) is not None}
    depths = [0] * len(view.rows)
    levels: dict[int, list[Collective]] = defaultdict(list)
    for row in range(len(view.rows)):
        below = max((depths[operand] for operand in view.operand_rows(row) if operand is not None), default=0)
        if row in rows:
            levels[below].append(rows[row])
        depths[row] = below + (row in rows)
    yield from levels.values()


def find_repeated(
    views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float
) -> Iterator[RelatedCollectives]:
    """Yield collectives of one kind, groups and operands, without recomputed ones.

    The bytes are those of all but one, `least` or more in one step.
    """
    equal_kinds: dict[tuple[str, ...], list[Collective]] = defaultdict(list)
    for collective in collectives:
        if collective.wire_bytes and not collective.is_point_to_point and not _is_recomputed(collective):
            groups = collective.replica_groups + collective.source_target_pairs
            shape = str(collective.result_shape)
            equal_kinds[collective.start.computation.name, collective.kind, shape, collective.reduction, groups].append(
                collective
            )
    for (computation, *_), members in equal_kinds.items():
        wire = (members[0].wire_bytes or 0) * runs_of(calls, computation) if len(members) > 1 else 0
        if wire * (len(members) - 1) < least:
            continue
        by_operands: dict[tuple[tuple[str, int], ...], list[Collective]] = defaultdict(list)
        for member in members:
            by_operands[_makers(views, member)].append(member)
        for makers, equal in by_operands.items():
            if makers and len(equal) > 1 and wire * (len(equal) - 1) >= least:
                yield RelatedCollectives(tuple(equal), wire * (len(equal) - 1))


def _makers(views: Views, collective: Collective) -> tuple[tuple[str, int], ...]:
    """Return what makes each operand: its computation and row."""
    place = place_of(views, collective)
    if place is None:
        return ()
    rows = [row for row in place.view.operand_rows(place.row) if row is not None]
    makers = [maker_of(views, ViewRow(place.view, row)) for row in rows]
    return tuple((maker.view.computation.name, maker.row) for maker in makers)


def _is_recomputed(collective: Collective) -> bool:
    """Return True if the program or the compiler computes a collective again to save memory."""
    return ".remat" in collective.start.name or scope_of(collective.origin.op_name).phase == RECOMPUTE
