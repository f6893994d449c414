"""Collectives of one computation beside each other: many small collectives, and equal collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import place_of, runs_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_behind, maker_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.values.op_names import RECOMPUTE, scope_of
from hlo_inspect.hlo.values.shapes import ArrayShape

PhaseOf = Callable[[Collective], str]
MANY = 8
SMALL = 256 << 10
"""Least number of small collectives, and the largest bytes of an operand of each."""


class RelatedCollectives(NamedTuple):
    """Collectives of one computation in the order of its text, and the bytes that a device sends for them in one step."""

    members: tuple[Collective, ...]
    wire_bytes: int


def find_small(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[RelatedCollectives]:
    """Yield `MANY` or more small collectives of one kind, type and groups of which none needs the result of another.

    Together they send `least` bytes or more in one step. Gathers of inputs count together if their readers do not wait for each
    other either. Sharded weights are gathered one by one, each when its layer needs it.
    """
    groups: dict[tuple[str, bool, Hashable], list[Collective]] = defaultdict(list)
    for collective in collectives:
        is_small = collective.wire_bytes and (collective.operand_bytes or SMALL + 1) <= SMALL
        if is_small and not collective.is_point_to_point:
            dtype = str(collective.result_shape).partition("[")[0]
            kind = (collective.kind, dtype, collective.reduction, _groups(collective))
            groups[collective.start.computation.name, _gathers_input(views, collective), kind].append(collective)
    for (computation, is_input, _), members in groups.items():
        runs = runs_of(calls, computation)
        if len(members) >= MANY and _sent(members) * runs >= least and computation in views.computations:
            for level in (_read_together if is_input else _independent)(views.for_computation(computation), members):
                if len(level) >= MANY and _sent(level) * runs >= least:
                    yield RelatedCollectives(tuple(level), _sent(level) * runs)


def _sent(members: Iterable[Collective]) -> int:
    return sum(member.wire_bytes or 0 for member in members)


def _groups(collective: Collective) -> Hashable:
    """Return the device groups and pairs; equal groups are equal in any spelling."""
    return collective.participants.key, collective.source_target_pairs


def _gathers_input(views: Views, collective: Collective) -> bool:
    place = place_of(views, collective) if collective.kind == "all-gather" else None
    made = maker_behind(views, place.operand(0) if place is not None else None, {"convert"})
    return made is not None and made.opcode in {"parameter", "get-tuple-element"}


def _independent(view: View, members: Sequence[Collective]) -> Iterable[list[Collective]]:
    """Return the members by the length of the longest chain of members that each depends on."""
    rows = _rows(view, members)
    depths: dict[int, int] = {}  # of rows behind a member
    levels: dict[int, list[Collective]] = defaultdict(list)
    operands_of_rows = view.operands_of_rows
    for row in range(min(rows, default=0), max(rows, default=-1) + 1):
        depth = _depth(depths, operands_of_rows[row])
        if row in rows:
            levels[depth].append(rows[row])
            depth += 1
        if depth:
            depths[row] = depth
    return levels.values()


def _depth(depths: Mapping[int, int], operands: Iterable[int | None]) -> int:
    """Return the largest depth of operands; 0 if they have none."""
    if depths.keys().isdisjoint(operands):
        return 0
    return max([depths[operand] for operand in operands if operand is not None and operand in depths])


def _read_together(view: View, members: Sequence[Collective]) -> Iterable[list[Collective]]:
    """Return the members by the length of the longest chain of readers of members that ends with their first reader."""
    rows = _rows(view, members)
    passed_on = {row: row for row in rows}
    level_of: dict[int, int] = {}
    depths: dict[int, int] = {}  # of rows behind a reader of a member
    operands_of_rows = view.operands_of_rows
    for row in range(min(rows, default=0), len(view.rows)):
        operands = operands_of_rows[row]
        is_reader = not passed_on.keys().isdisjoint(operands)
        read = {passed_on[operand] for operand in operands if operand in passed_on} if is_reader else set()
        if row not in rows and read and len({*operands} - {None}) == 1:  # a conversion, or the end of an asynchronous pair
            passed_on[row] = read.pop()
        elif row not in rows:
            depth = _depth(depths, operands) + is_reader
            if depth:
                depths[row] = depth
            for member in read:
                level_of.setdefault(member, depth)
            if len(level_of) == len(rows):
                break
    levels: dict[int, list[Collective]] = defaultdict(list)
    for row, collective in rows.items():
        levels[level_of.get(row, 0)].append(collective)
    return levels.values()


def _rows(view: View, members: Sequence[Collective]) -> dict[int, Collective]:
    rows = {view.row_at(member.start.line, member.start.name): member for member in members}
    return {row: member for row, member in rows.items() if row is not None}


class _SentArray(NamedTuple):
    """An array that a collective sends: one of `operands` operands, and the bytes that a device sends for it in one run."""

    collective: Collective
    wire_bytes: int
    number: int
    operands: int

    @property
    def phase(self) -> str:
        """The phase that the collective's name states for it, if several names are combined in one; else empty."""
        parts = scope_of(self.collective.origin.op_name).parts
        return parts[self.number] if len(parts) == self.operands else ""


def find_repeated(
    views: Views, calls: CallGraph, collectives: Iterable[Collective], phase_of: PhaseOf, least: float
) -> Iterator[RelatedCollectives]:
    """Yield collectives of one kind and groups that send the same arrays, without recomputed ones.

    The bytes are those of all but the first of each array, `least` or more in one step. The forward and the backward pass count
    apart: between them a sharded weight is gathered again to save memory. A combined collective may send an array twice.
    """
    candidates: dict[tuple[str, Hashable], list[Collective]] = defaultdict(list)
    for collective in collectives:
        if collective.wire_bytes and not collective.is_point_to_point and not _is_of_compiler(collective):
            sends_parts = collective.properties.sends == "(n-1)/n"  # others if cut along another dimension
            parts = str(collective.result_shape) if sends_parts else ""
            kind = (collective.kind, collective.reduction, _groups(collective), parts)
            candidates[collective.start.computation.name, kind].append(collective)
    for (computation, _), members in candidates.items():
        runs = runs_of(calls, computation)
        if _sent(members) * runs >= least:
            for related in _send_again(views, members, phase_of, runs):
                if related.wire_bytes >= least:
                    yield related


def _send_again(views: Views, members: Iterable[Collective], phase_of: PhaseOf, runs: int) -> Iterator[RelatedCollectives]:
    arrays: dict[Hashable, list[_SentArray]] = defaultdict(list)
    for member in members:
        for maker, array in _sent_arrays(views, member):
            arrays[maker].append(array)
    again: dict[tuple[int, ...], list[list[_SentArray]]] = defaultdict(list)
    for sent in arrays.values():
        for same in _by_phase(sent, phase_of) if len(sent) > 1 else ():
            again[tuple(id(array.collective) for array in same)].append(same)
    for groups in again.values():
        wire_bytes = sum(array.wire_bytes for same in groups for array in same[1:])
        yield RelatedCollectives(tuple(array.collective for array in groups[0]), wire_bytes * runs)


def _sent_arrays(views: Views, collective: Collective) -> Iterator[tuple[Hashable, _SentArray]]:
    """Yield the arrays of a collective, each with what makes it and its bytes."""
    place = place_of(views, collective)
    if place is None:
        return
    operands = [operand for operand in place.operands if operand is not None]
    sizes = [operand.bytes for operand in operands]
    for number, (operand, size) in enumerate(zip(operands, sizes, strict=True)):
        if size:
            wire = (collective.wire_bytes or 0) * size // sum(sizes)
            yield (_maker(views, operand), size), _SentArray(collective, wire, number, len(operands))


def _by_phase(sent: Iterable[_SentArray], phase_of: PhaseOf) -> Iterator[list[_SentArray]]:
    """Yield the arrays of each phase that are sent more than once there; recomputation is none."""
    phases: dict[str, list[_SentArray]] = defaultdict(list)
    for array in sent:
        phases[array.phase or phase_of(array.collective)].append(array)
    yield from (same for phase, same in phases.items() if len(same) > 1 and phase != RECOMPUTE)


def _maker(views: Views, place: ViewRow) -> tuple[str, int, str]:
    """Return what makes a value, its computation and row, and the type to which it is converted: CPU converts each operand."""
    made = maker_of(views, place)
    converted = made.operand(0) if made.opcode == "convert" else None
    before = maker_of(views, converted) if converted is not None else made
    return *before.key, made.shape.dtype if isinstance(made.shape, ArrayShape) else ""


def _is_of_compiler(collective: Collective) -> bool:
    """Return True if the compiler added a collective to save memory, or if TPU's partitioner did, which marks it."""
    marks = collective.inner.attr("frontend_attributes") or {}
    return ".remat" in collective.start.name or marks.get("is_spmd_generated") == "true"
