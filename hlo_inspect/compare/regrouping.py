"""Fusions that were split, merged or made anew: edited kernels whose bodies hold together the same instructions."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from hlo_inspect.compare.edits import Edit, EditPlace
from hlo_inspect.graph.canonical.module import CanonicalModule
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, opcodes_that_are

_CHEAP = opcodes_that_are("cheap")
_REPEATED = _CHEAP | {"convert"}
"""What costs nothing to have in several fusions."""

_FORWARDING = _CHEAP - LITERAL_OPCODES

Content = Counter[tuple[str, str]]
"""How many instructions of each opcode and shape, without layouts."""

Held = frozenset[tuple[tuple[str, str], int]]
"""The same as a key."""


class RegroupedKernels(NamedTuple):
    """Kernels of OLD and NEW that hold the same instructions: one that was split, several that were merged."""

    what: Literal["split", "merged", "rewritten"]
    edits: tuple[Edit, ...]


class Regrouping:
    """Which of the edited kernels hold together what others held: `found` has those, `explained` their edits."""

    def __init__(self, old: CanonicalModule, new: CanonicalModule, edits: Sequence[Edit]) -> None:
        self._sides = (old, new)
        self._edits = edits
        self.found: list[RegroupedKernels] = []
        self.explained: set[Edit] = set()
        for find in (self._neighbours, self._in_two, self._rewritten):
            for one in find():
                if self.explained.isdisjoint(one.edits):
                    self.found.append(one)
                    self.explained.update(one.edits)

    def _neighbours(self) -> Iterator[RegroupedKernels]:
        """Groups of neighbours with one kernel on one side and several on the other."""
        for group in self._groups():
            edits = tuple(self._edits[at] for at in group)
            places = [[place for edit in edits for at, place in edit.places if at == side] for side in (0, 1)]
            if sorted((min(len(places[0]), 2), min(len(places[1]), 2))) != [1, 2]:
                continue
            held = [self._content(side, *places[side]) for side in (0, 1)]
            is_split = len(places[0]) == 1
            if _holds(*held) if is_split else _holds(*reversed(held)):
                yield RegroupedKernels("split" if is_split else "merged", edits)

    def _in_two(self) -> Iterator[RegroupedKernels]:
        """Kernels that are gone or new, and hold what two neighbours hold on the other side, whatever is around."""
        for side in (0, 1):
            whole = self._by_content(side)
            rows = dict(self._alone(1 - side))
            for place, edit in rows.items():
                for other in filter(rows.__contains__, self._read(1 - side, place)):
                    held = self._held(1 - side, place, other)
                    waiting = whole[held]
                    if waiting and self.explained.isdisjoint((edit, rows[other], waiting[0])):
                        both = (rows[other], edit)
                        yield (
                            RegroupedKernels("split", (waiting[0], *both))
                            if side == 0
                            else RegroupedKernels("merged", (*both, waiting[0]))
                        )
                        waiting.popleft()

    def _rewritten(self) -> Iterator[RegroupedKernels]:
        """Kernels that are gone and hold what a new one holds, as a dot that is in a fusion of its own."""
        new = self._by_content(1)
        for place, edit in self._alone(0):
            waiting = new[self._held(0, place)]
            if waiting and edit not in self.explained:
                yield RegroupedKernels("rewritten", (edit, waiting.popleft()))

    def _by_content(self, side: int) -> defaultdict[Held, deque[Edit]]:
        found: defaultdict[Held, deque[Edit]] = defaultdict(deque)
        for place, edit in self._alone(side):
            held = self._held(side, place)
            if held and edit not in self.explained:
                found[held].append(edit)
        return found

    def _alone(self, side: int) -> Iterator[tuple[EditPlace, Edit]]:
        """What is gone, or new, with its place."""
        for edit in self._edits:
            if edit.what != "changed":
                yield from ((place, edit) for at, place in edit.places if at == side)

    def _groups(self) -> list[list[int]]:
        """Positions of edits that are neighbours: one reads what the other makes, or both hold the same."""
        parents = list(range(len(self._edits)))

        def top(at: int) -> int:
            while parents[at] != at:
                parents[at] = parents[parents[at]]
                at = parents[at]
            return at

        numbers = {one: at for at, edit in enumerate(self._edits) for one in edit.places}
        for (side, place), at in numbers.items():
            for other in self._read(side, place):
                if (side, other) in numbers:
                    parents[top(at)] = top(numbers[side, other])
        groups: dict[int, list[int]] = {}
        for at in range(len(self._edits)):
            groups.setdefault(top(at), []).append(at)
        return self._joined(list(groups.values()))

    def _joined(self, groups: list[list[int]]) -> list[list[int]]:
        """Groups of OLD alone and of NEW alone that hold the same are one."""
        found: list[list[int]] = []
        waiting: defaultdict[tuple[Held, int], deque[list[int]]] = defaultdict(deque)
        for group in groups:
            places = [one for at in group for one in self._edits[at].places]
            side = places[0][0]
            if any(one[0] != side for one in places):
                found.append(group)
                continue
            held = self._held(side, *[place for _, place in places])
            mates = waiting[held, 1 - side]
            if held and mates:
                found.append([*mates.popleft(), *group])
            else:
                waiting[held, side].append(group)
        return found

    def _held(self, side: int, *places: EditPlace) -> Held:
        return frozenset(self._content(side, *places).items())

    def _content(self, side: int, *places: EditPlace) -> Content:
        """What kernels compute: the instructions of their bodies, or themselves."""
        module, found = self._sides[side], Content()
        for place in places:
            computation = module.of(place.computation)
            spelling = computation.spellings[place.row]
            if spelling.opcode != "fusion":
                found.update(_counted(computation.view, [place.row]))
                continue
            for body in (module.of(name) for callees in spelling.callees for name in callees.names if name in module):
                found.update(_counted(body.view, range(len(body.spellings))))
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
                if computation.view.opcodes[operand] in _FORWARDING:
                    waiting.append(operand)
                yield EditPlace(place.computation, operand)


def _holds(whole: Content, parts: Content) -> bool:
    """Whether parts are what one was: with all that it held and nothing else, though they may both do some of it."""
    return bool(whole) and whole <= parts and whole.keys() == parts.keys() and (parts - whole).total() <= whole.total()


def _counted(view: View, rows: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Opcode and shape of the rows that cost something."""
    return ((view.opcodes[row], str(view.shapes[row])) for row in rows if view.opcodes[row] not in _REPEATED)
