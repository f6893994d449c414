"""Edits between the instructions of two modules: new, gone and changed instructions.

Computations that run are compared in pairs, from the entry on: bodies and conditions of matched loops, branches, calls. A
fusion with another body has the edits inside of it. A consequence of another edit is no edit: the user of a removed instruction
reads something else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hlo_inspect.compare.changes import Aspect, differing
from hlo_inspect.compare.row_matching import MatchingSide, RowMatcher
from hlo_inspect.graph.canonical.canonical_computation import CanonicalComputation, defined
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.canonical.spelling import Spelling
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import COMMUTATIVE, Role, callee_roles
from hlo_inspect.hlo.values.shapes import Shape, array_leaves

What = Literal["new", "gone", "changed"]

_RUNNING: tuple[Role, ...] = ("run", "body", "condition", "branch")
_APPLIED: tuple[Role, ...] = ("applied",)
_INSIDE: tuple[Role, ...] = ("fused", "applied")
_FOLLOWING = frozenset({"backend_config", "frontend_attributes", "window", "slice", "dynamic_slice_sizes", "literal"})
"""Attributes that follow from the shape, if that changed."""

_MAX_DEPTH = 8
"""Depth to which fusions inside of fusions are compared."""

_MAX_OPERANDS = 8
"""Limit of changed operands that are named."""


class EditPlace(NamedTuple):
    """A row of a computation."""

    computation: str
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """An instruction that is new, gone or changed; `inside` are the edits of a changed fusion's body."""

    what: What
    old: EditPlace | None
    new: EditPlace | None
    aspects: tuple[Aspect, ...] = ()
    inside: tuple[Edit, ...] = ()

    @property
    def places(self) -> list[tuple[int, EditPlace]]:
        """Its places, each with the side: 0 is OLD, 1 is NEW."""
        return [(side, place) for side, place in enumerate((self.old, self.new)) if place is not None]

    def leaves(self) -> Iterator[Edit]:
        """Yield the edits inside of it, and those inside of fusions inside of it."""
        for edit in self.inside:
            if edit.inside and not edit.aspects:
                yield from edit.leaves()
            else:
                yield edit


class ProgramEdits:
    """The edits between two modules that were read with their graphs.

    `lines` maps the line of each matched instruction in OLD to that in NEW. `parameters` are pairs of rows of the two entries
    that are the same parameter.
    """

    def __init__(
        self, old: CanonicalModule, new: CanonicalModule, entries: tuple[str, str], parameters: Iterable[tuple[int, int]]
    ) -> None:
        self._old, self._new = old, new
        self.lines: dict[int, int] = {}
        self.found: list[Edit] = []
        self._matchers: dict[tuple[int, int, tuple[tuple[int, int], ...]], RowMatcher] = {}
        self._waiting = deque([(*entries, list(parameters))])
        self._begun = {entries[0]}
        while self._waiting:
            self.found += self._compare(*self._waiting.popleft())

    def _compare(self, first: str, second: str, given: list[tuple[int, int]]) -> Iterator[Edit]:
        """Yield the edits of two computations that run."""
        matched = self._matched(self._old.computation(first), self._new.computation(second), given)
        lines, other_lines = self._old.view(first).lines, self._new.view(second).lines
        for row, mate in matched.pairs:
            if self._are_printed(first, row, second, mate):
                self.lines[lines[row]] = other_lines[mate]
            if matched.old.canonical.spellings[row].callees:
                self._follow(row, mate, first, second)
        yield from self._edits(matched, first, second)

    def _matched(self, old: CanonicalComputation, new: CanonicalComputation, given: list[tuple[int, int]]) -> RowMatcher:
        """Match the rows of two computations, once for all that differ only in names."""
        key = (id(old), id(new), tuple(given))  # both modules stay alive, so the ids stay unique
        if key not in self._matchers:
            self._matchers[key] = RowMatcher(old, new, given)
        return self._matchers[key]

    def _follow(self, row: int, mate: int, first: str, second: str) -> None:
        """Queue the computations that a matched row runs for comparison."""
        called = _callees(self._old.computation(first), row, _RUNNING), _callees(self._new.computation(second), mate, _RUNNING)
        for callee, other in zip(*called, strict=False):
            if callee not in self._begun and self._has(callee, other):
                self._begun.add(callee)
                parameters = parameters_by_number(self._old.computation(callee).view, self._new.computation(other).view)
                self._waiting.append((callee, other, parameters))

    def _has(self, old: str, new: str) -> bool:
        return old in self._old and new in self._new

    def _are_printed(self, first: str, row: int, second: str, mate: int) -> bool:
        return self._old.is_printed(first, row) and self._new.is_printed(second, mate)

    def _edits(self, matched: RowMatcher, first: str, second: str, depth: int = 0) -> Iterator[Edit]:
        old, new = matched.old, matched.new
        names = self._old.view(first).names, self._new.view(second).names
        for row, mate in matched.pairs:
            if not self._are_printed(first, row, second, mate):
                continue
            is_other = old.local[row] != new.local[mate]
            aspects = tuple(self._aspects(old, new, row, mate)) if is_other else ()
            aspects = aspects or tuple(_other_operands(matched, row, mate, *names))
            aspects = aspects or tuple(self._other_elements(matched, row, mate, first, second))
            inside = tuple(self._callee_edits(old, new, row, mate, depth)) if is_other and depth < _MAX_DEPTH else ()
            if aspects or inside:
                yield Edit("changed", EditPlace(first, row), EditPlace(second, mate), aspects, inside)
        gone = (row for row in old.unmatched() if self._old.is_printed(first, row))
        added = (row for row in new.unmatched() if self._new.is_printed(second, row))
        yield from (Edit("gone", EditPlace(first, row), None) for row in gone)
        yield from (Edit("new", None, EditPlace(second, row)) for row in added)

    def _other_elements(self, matched: RowMatcher, row: int, mate: int, first: str, second: str) -> Iterator[Aspect]:
        """Yield operands that are other elements of matched tuples, if a text writes `x#1`: their rows have no edits."""
        old, new = matched.old, matched.new
        for position, (was, now) in enumerate(zip(old.operands[row], new.operands[mate], strict=False)):
            if was is None or now is None or self._are_printed(first, was, second, now) or matched.are_twins(was, now):
                continue
            is_other = old.mates.get(was) != now or old.local[was] != new.local[now]
            if is_other and old.canonical.origin(was) in old.mates and new.canonical.origin(now) in new.mates:
                yield Aspect(f"operand {position}", self._old.view(first).names[was], self._new.view(second).names[now])

    def _aspects(self, old: MatchingSide, new: MatchingSide, row: int, mate: int) -> Iterator[Aspect]:
        """Yield the changed properties of an instruction, apart from its operands."""
        before, after = old.canonical.spellings[row], new.canonical.spellings[mate]
        has_other_shape = before.shape != after.shape
        if has_other_shape:
            yield shape_aspect(before.shape, after.shape, old.view.shapes[row], new.view.shapes[mate])
        for aspect in changed_aspects(before, after):
            if not (has_other_shape and aspect.name in _FOLLOWING):
                yield aspect
        yield from self._applied(old, new, row, mate)

    def _applied(self, old: MatchingSide, new: MatchingSide, row: int, mate: int) -> Iterator[Aspect]:
        """Yield the change of the operation that a reduction, a sort or a scatter applies, by the opcode of its root."""
        names = _callees(old.canonical, row, _APPLIED), _callees(new.canonical, mate, _APPLIED)
        for callee, other in zip(*names, strict=False):
            if self._has(callee, other):
                was, now = _root_opcode(self._old.computation(callee)), _root_opcode(self._new.computation(other))
                if was != now:
                    yield Aspect("to_apply", was, now)

    def _callee_edits(self, old: MatchingSide, new: MatchingSide, row: int, mate: int, depth: int) -> Iterator[Edit]:
        """Yield the edits between the bodies of two fusions, or between computations that two instructions apply."""
        for callee, other in zip(_callees(old.canonical, row, _INSIDE), _callees(new.canonical, mate, _INSIDE), strict=False):
            if not self._has(callee, other):
                continue
            bodies = self._old.computation(callee), self._new.computation(other)
            if bodies[0].fingerprint != bodies[1].fingerprint:
                given = parameters_by_operand(old, new, row, mate, bodies[0].view, bodies[1].view)
                yield from self._edits(self._matched(*bodies, given), callee, other, depth + 1)


def changed_aspects(old: Spelling, new: Spelling) -> Iterator[Aspect]:
    """Yield the differences of two instructions, apart from shapes, operands and callees."""
    if old.opcode != new.opcode:
        yield Aspect("opcode", old.opcode, new.opcode)
    if old.literal != new.literal:
        yield Aspect("value", old.literal, new.literal)
    yield from differing(dict(old.attributes), dict(new.attributes))
    if old.rest != new.rest:
        yield Aspect("text", old.rest, new.rest)


def shape_aspect(old_text: str, new_text: str, old: Shape | None, new: Shape | None) -> Aspect:
    """Return the change of a shape: its types, its layout, or all of it."""
    before, after = _types(old), _types(new)
    if old is None or new is None or _dimensions(old) != _dimensions(new):
        return Aspect("shape", old_text, new_text)
    return Aspect("layout", old_text, new_text) if before == after else Aspect("type", before, after)


def _types(shape: Shape | None) -> str:
    return ", ".join(dict.fromkeys(leaf.dtype for _, leaf in array_leaves(shape)))


def _dimensions(shape: Shape | None) -> list[Sequence[int | None]]:
    return [leaf.dimensions for _, leaf in array_leaves(shape)]


def _other_operands(
    matched: RowMatcher, row: int, mate: int, old_names: Sequence[str], new_names: Sequence[str]
) -> Iterator[Aspect]:
    """Yield operands that both modules have, but in other positions.

    Names are those of the compared computations, as `matched` has only the first of equal kernels.
    """
    old, new = matched.old, matched.new
    if new.operands[mate] == tuple([None if operand is None else old.mates.get(operand) for operand in old.operands[row]]):
        return
    before, after = list(defined(old.operands[row])), list(defined(new.operands[mate]))
    if len(before) < len(old.operands[row]) or any(operand not in old.mates for operand in before):
        return
    if len(after) < len(new.operands[mate]) or any(operand not in new.mates for operand in after):
        return
    expected = [old.mates[operand] for operand in before]
    if expected == after or (old.opcodes[row] in COMMUTATIVE and sorted(expected) == sorted(after)):
        return
    if len(expected) != len(after):
        yield Aspect("operands", str(len(expected)), str(len(after)))
        return
    columns = enumerate(zip(before, expected, after, strict=True))
    moved = [position for position, (was, follower, now) in columns if follower != now and not matched.are_twins(was, now)]
    for position in moved[:_MAX_OPERANDS]:
        yield Aspect(f"operand {position}", old_names[before[position]], new_names[after[position]])


def parameters_by_number(old: View, new: View) -> list[tuple[int, int]]:
    """Return the pairs of parameters of two computations with the same number."""
    rows = new.parameters_by_number
    return [(row, rows[number]) for number, row in old.parameters_by_number.items() if number in rows]


def parameters_by_operand(
    old: MatchingSide, new: MatchingSide, row: int, mate: int, first: View, second: View
) -> list[tuple[int, int]]:
    """Return the pairs of parameters of two fusions' bodies whose operands are matched."""
    if len(old.operands[row]) == len(new.operands[mate]):
        return parameters_by_number(first, second)
    places = {operand: position for position, operand in enumerate(new.operands[mate])}
    numbers = {
        position: places[follower]
        for position, operand in enumerate(old.operands[row])
        if operand is not None and (follower := old.mates.get(operand)) in places
    }
    rows = second.parameters_by_number
    pairs = ((row, numbers.get(number)) for number, row in first.parameters_by_number.items())
    return [(row, rows[number]) for row, number in pairs if number in rows]


def _callees(side: CanonicalComputation, row: int, roles: Container[Role]) -> list[str]:
    """Return the computations that a row calls in one of these roles."""
    spelling = side.spellings[row]
    role_of = callee_roles(spelling.opcode)
    return [name for callees in spelling.callees if role_of.get(callees.attribute) in roles for name in callees.names]


def _root_opcode(computation: CanonicalComputation) -> str:
    root = computation.view.root
    return "" if root is None else computation.view.opcodes[root]
