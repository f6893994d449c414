"""Fusions that were split, merged or made anew: edited kernels whose bodies hold together the same instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from hlo_inspect.analysis.canonical.computation import CanonicalComputation
from hlo_inspect.analysis.canonical.module import CanonicalModule
from hlo_inspect.compare.edits import Edit, EditPlace

_REPEATED = frozenset(
    {"parameter", "constant", "broadcast", "bitcast", "tuple", "get-tuple-element", "iota", "reshape", "convert"}
)
"""What costs nothing to have in several fusions."""

Content = Counter[tuple[str, str]]
"""How many instructions of each opcode and shape, without layouts."""


class RegroupedKernels(NamedTuple):
    """Kernels of OLD and NEW that hold the same instructions: one that was split, several that were merged."""

    what: Literal["split", "merged", "rewritten"]
    edits: tuple[Edit, ...]


class Regions:
    """The edited kernels in groups of neighbours. `regrouped` are those that were split or merged, `explained` their edits."""

    def __init__(self, old: CanonicalModule, new: CanonicalModule, edits: Sequence[Edit]) -> None:
        self._sides = (old, new)
        self._edits = edits
        self.regrouped: list[RegroupedKernels] = []
        self.explained: set[Edit] = set()
        for find in (self._found, self._in_two, self._rewritten):
            for one in find():
                if self.explained.isdisjoint(one.edits):
                    self.regrouped.append(one)
                    self.explained.update(one.edits)

    def _found(self) -> Iterator[RegroupedKernels]:
        for group in self._groups():
            edits = tuple(self._edits[at] for at in group)
            sides = [[place for edit in edits if (place := (edit.old, edit.new)[at]) is not None] for at in (0, 1)]
            if sorted((min(len(sides[0]), 2), min(len(sides[1]), 2))) != [1, 2]:
                continue
            held = [self._content(at, sides[at]) for at in (0, 1)]
            is_split = len(sides[0]) == 1
            if _holds(*held) if is_split else _holds(*reversed(held)):
                yield RegroupedKernels("split" if is_split else "merged", edits)

    def _in_two(self) -> Iterator[RegroupedKernels]:
        """Kernels that are gone or new, and hold what two neighbours hold on the other side, whatever is around."""
        for side in (0, 1):
            whole = self._by_content(side)
            rows = dict(self._alone(1 - side))
            for place, edit in rows.items():
                for other in self._read(1 - side, place):
                    held = frozenset((self._content(1 - side, [place]) + self._content(1 - side, [other])).items())
                    waiting = whole.get(held, ()) if other in rows else ()
                    if waiting and other != place and self.explained.isdisjoint((edit, rows[other], waiting[0])):
                        both = (rows[other], edit)
                        yield (
                            RegroupedKernels("split", (waiting[0], *both))
                            if side == 0
                            else RegroupedKernels("merged", (*both, waiting[0]))
                        )
                        whole[held] = waiting[1:]

    def _rewritten(self) -> Iterator[RegroupedKernels]:
        """Kernels that are gone and hold what a new one holds, as a dot that is in a fusion of its own."""
        new = self._by_content(1)
        for place, edit in self._alone(0):
            waiting = new.get(frozenset(self._content(0, [place]).items()), [])
            if waiting and edit not in self.explained:
                yield RegroupedKernels("rewritten", (edit, waiting.pop(0)))

    def _by_content(self, side: int) -> dict[frozenset[tuple[tuple[str, str], int]], list[Edit]]:
        found: dict[frozenset[tuple[tuple[str, str], int]], list[Edit]] = {}
        for place, edit in self._alone(side):
            held = frozenset(self._content(side, [place]).items())
            if held and edit not in self.explained:
                found.setdefault(held, []).append(edit)
        return found

    def _alone(self, side: int) -> Iterator[tuple[EditPlace, Edit]]:
        """What is gone, or new, with its place."""
        for edit in self._edits:
            place = (edit.old, edit.new)[side]
            if place is not None and edit.what != "changed":
                yield place, edit

    def _groups(self) -> list[list[int]]:
        """Positions of edits that are neighbours: one reads what the other makes, or both hold the same."""
        parents = list(range(len(self._edits)))

        def top(at: int) -> int:
            while parents[at] != at:
                parents[at] = parents[parents[at]]
                at = parents[at]
            return at

        for side in (0, 1):
            rows: dict[EditPlace, int] = {}
            for at, edit in enumerate(self._edits):
                place = (edit.old, edit.new)[side]
                if place is not None:
                    rows[place] = at
            for place, at in rows.items():
                for other in self._read(side, place):
                    if other in rows:
                        parents[top(at)] = top(rows[other])
        groups: dict[int, list[int]] = {}
        for at in range(len(self._edits)):
            groups.setdefault(top(at), []).append(at)
        return self._joined(list(groups.values()))

    def _joined(self, groups: list[list[int]]) -> list[list[int]]:
        """Groups of OLD alone and of NEW alone that hold the same are one."""
        found, waiting = [], dict[frozenset[tuple[tuple[str, str], int]], list[list[int]]]()
        for group in groups:
            sides = {(edit.old is not None, edit.new is not None) for edit in (self._edits[at] for at in group)}
            if len(sides) > 1 or (True, True) in sides:
                found.append(group)
                continue
            side = 1 if (False, True) in sides else 0
            places = [place for at in group if (place := (self._edits[at].old, self._edits[at].new)[side]) is not None]
            held = frozenset(self._content(side, places).items())
            mates = waiting.setdefault(held, [])
            mate = next((one for one in mates if (self._edits[one[0]].old is not None) != (side == 0)), None)
            if held and mate is not None:
                mates.remove(mate)
                found.append([*mate, *group])
            else:
                mates.append(group)
        return found

    def _content(self, side: int, places: Sequence[EditPlace]) -> Content:
        found: Content = Counter()
        for place in places:
            found += content(self._sides[side], place)
        return found

    def _read(self, side: int, place: EditPlace) -> Iterator[EditPlace]:
        """The rows that a row reads, through what only forwards values."""
        computation = self._sides[side].of(place.computation)
        waiting, seen = [place.row], {place.row}
        while waiting:
            for operand in computation.operands[waiting.pop()]:
                if operand is None or operand in seen:
                    continue
                seen.add(operand)
                if computation.view.opcodes[operand] in _REPEATED - {"constant", "parameter", "convert"}:
                    waiting.append(operand)
                yield EditPlace(place.computation, operand)


def _holds(whole: Content, parts: Content) -> bool:
    """Whether parts are what one was: with all that it held and nothing else, though they may both do some of it."""
    return bool(whole) and whole <= parts and whole.keys() == parts.keys() and (parts - whole).total() <= whole.total()


def content(module: CanonicalModule, place: EditPlace) -> Content:
    """What a kernel computes: the instructions of its body, or itself."""
    computation = module.of(place.computation)
    spelling = computation.spellings[place.row]
    if spelling.opcode != "fusion":
        return _counted(computation, [place.row])
    found: Content = Counter()
    for name in (name for callees in spelling.callees for name in callees.names):
        if name in module:
            body = module.of(name)
            found += _counted(body, range(len(body.spellings)))
    return found


def _counted(computation: CanonicalComputation, rows: Sequence[int]) -> Content:
    view = computation.view
    return Counter((view.opcodes[row], str(view.shapes[row])) for row in rows if view.opcodes[row] not in _REPEATED)
