"""Which rows of two computations are the same one.

Rows are matched by what they say and what surrounds them, never by their names: first those whose whole dataflow is the
same, upwards to the parameters or downwards to the root, then those that are alike within two steps, then those that are alike
and are in the same place. What is in the same place and of the same opcode is the same row, changed. Colours are
numbers that stand for all that was compared; rows of one colour are matched in the order of the text, where both sides have as
many.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from hlo_inspect.graph.canonical.computation import CanonicalComputation, defined
from hlo_inspect.hlo.opcodes import COMMUTATIVE, TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

Colour = Hashable

_ROUNDS = 12
"""How often matched rows may make out others; each round ends early where none is found."""

_PLAIN, _ROOT = 1, 2

_RUNNERS = frozenset({"while", "conditional"})
_OP_NAME = lazy_pattern(r'op_name="((?:[^"\\]++|\\.)*+)"')
_NUMBERS = lazy_pattern(r"\d++", re.ASCII)


class MatchingSide:
    """The rows of one of the two computations, and which of them are matched: `mates` has a row's mate on the other side,
    `numbers` by row the number of its pair, -1 where it has none, and `rest` the rows without a mate in their order. `seeds`
    are the colours of rows by themselves: of matched ones those of their pairs.
    """

    def __init__(self, computation: CanonicalComputation) -> None:
        self.canonical = computation
        self.view = computation.view
        self.local = computation.local
        self.opcodes = computation.view.opcodes
        self.operands: Sequence[tuple[int | None, ...]] = computation.operands
        self.size = len(self.local)
        self.mates: dict[int, int] = {}
        self.numbers = [-1] * self.size
        self.seeds = list(self.local)
        self.rest: Sequence[int] = range(self.size)
        self._taken: list[int] = []
        self._near: list[int] = []
        self._far: list[int] = []
        self._sorts = [opcode in COMMUTATIVE for opcode in self.opcodes]
        self.users: list[list[tuple[int, int]]] = [[] for _ in self.local]
        for row, operands in enumerate(self.operands):
            for position, operand in enumerate(operands):
                if operand is not None:
                    self.users[operand].append((row, 0 if self._sorts[row] else position))

    def take(self, row: int, mate: int, number: int) -> None:
        """Notes the mate of a row, and the number of their pair."""
        self.mates[row], self.numbers[row], self.seeds[row] = mate, number, -number - 2
        self._taken.append(row)

    def unmatched(self) -> Sequence[int]:
        """The rows without a mate."""
        if len(self.rest) + len(self.mates) > self.size:
            self.rest = [row for row in self.rest if row not in self.mates]
        return self.rest

    def beside_unmatched(self) -> list[tuple[int, int]]:
        """The matched rows with an operand or a reader that is not, and their mates, in the order in which they were found."""
        beside: set[int | None] = set()
        for row in self.unmatched():
            beside.update(self.operands[row])
            beside.update([user for user, _ in self.users[row]])
        return [pair for pair in self.mates.items() if pair[0] in beside] if beside else []

    def kind(self, row: int) -> str:
        """The opcode, of a start or a done that of what it starts, apart from the other of the two."""
        opcode = TABLE.get(self.opcodes[row])
        return self.opcodes[row] if opcode is None else f"{opcode.base} done" if opcode.half == "done" else opcode.base

    def upwards(self) -> list[int]:
        """Colours that tell rows apart by all that they are made of."""
        colours = list(self.seeds)
        for row in self.canonical.topological_order:
            if self.numbers[row] < 0:
                above = [0 if operand is None else colours[operand] for operand in self.operands[row]]
                if self._sorts[row]:
                    above.sort()
                colours[row] = hash((self.local[row], *above))
        return colours

    def downwards(self) -> list[int]:
        """Colours that tell rows apart by all that becomes of them."""
        root = self.view.root
        colours = list(self.seeds)
        for row in reversed(self.canonical.topological_order):
            if self.numbers[row] < 0:
                below = [(colours[user], position) for user, position in self.users[row]]
                below.sort()
                colours[row] = hash((self.local[row], _ROOT if row == root else _PLAIN, *below))
        return colours

    def within(self) -> tuple[list[int], list[int]]:
        """Colours that tell unmatched rows apart by what surrounds them within one step, and within two. After the first time
        only those are made again that have another neighbour since.
        """
        taken, self._taken = self._taken, []
        if not self._near:
            self._near, self._far = list(self.seeds), list(self.seeds)
            near = far = set(self.unmatched())
        else:
            for row in taken:
                self._near[row] = self._far[row] = self.seeds[row]
            near = self._unmatched_beside(taken)
            far = near | self._unmatched_beside(near)
        self._colour(near, self.seeds, self._near)
        self._colour(far, self._near, self._far)
        return self._near, self._far

    def _unmatched_beside(self, rows: Iterable[int]) -> set[int]:
        """The rows without a mate among the operands of some rows and what reads them."""
        beside: set[int] = set()
        for row in rows:
            beside.update(defined(self.operands[row]))
            beside.update([user for user, _ in self.users[row]])
        return beside.difference(self.mates)

    def _colour(self, rows: Iterable[int], colours: Sequence[int], found: list[int]) -> None:
        """Colours rows in `found` by these colours of their own, of their operands and of what reads them."""
        root, operands, users, sorts = self.view.root, self.operands, self.users, self._sorts
        for row in rows:
            above = [0 if operand is None else colours[operand] for operand in operands[row]]
            if sorts[row]:
                above.sort()
            below = sorted([(colours[user], position) for user, position in users[row]])
            found[row] = hash((colours[row], _ROOT if row == root else _PLAIN, len(above), *above, *below))

    def scope(self, row: int) -> str:
        """The op_name, with `*` for numbers."""
        name = _OP_NAME.search(self.view.tails[row])
        return _NUMBERS.sub("*", name[1]) if name is not None else ""


class RowMatcher:
    """Matches the rows of two computations. `given` are rows that are known to be the same."""

    def __init__(self, old: CanonicalComputation, new: CanonicalComputation, given: Iterable[tuple[int, int]]) -> None:
        self.old, self.new = self._sides = (MatchingSide(old), MatchingSide(new))
        for pair in given:
            self._take(*pair)
        self._up = [side.upwards() for side in self._sides]
        self._walked_from = -1
        self._match()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Rows that are the same, changed or not, in the order of OLD."""
        return sorted(self.old.mates.items())

    def are_twins(self, old: int, new: int) -> bool:
        """Whether two rows have the same value, though each may be matched to another one."""
        return self._up[0][old] == self._up[1][new]

    def _take(self, old: int, new: int) -> None:
        number = len(self.old.mates)
        self.old.take(old, new, number)
        self.new.take(new, old, number)

    def _match(self) -> None:
        self._all_that_is_equal()
        for key in (_place, _operands, _readers, _kind_and_scope, _running):
            for _ in range(_ROUNDS):
                if not self._by(key):
                    break
                self._alike()
            self._walk()
        self._as_many_as_there_are()

    def _all_that_is_equal(self) -> None:
        up, down = self._up, [side.downwards() for side in self._sides]
        both = [list(zip(*colours, strict=True)) for colours in zip(up, down, strict=True)]
        self._by_colours(*both)
        self._by_colours(*up)
        self._by_colours(*down)
        self._by(lambda side, row: side.kind(row) if row == side.view.root else None)
        self._alike()

    def _alike(self) -> None:
        """Those that say the same with the same around them, until no more are found."""
        for _ in range(_ROUNDS):
            if not all(side.unmatched() for side in self._sides):
                return
            near, far = zip(*(side.within() for side in self._sides), strict=True)
            found = self._by_colours(*far) or self._by_colours(*near) or self._by(_one_operand) or self._by(_one_reader)
            if not found:
                return

    def _walk(self) -> None:
        """From each pair to its operands at the same places, and to what alone reads it at the same place, where these are of
        one opcode and have as many operands: along a chain of any length in one go. After a walk that found none there is none
        to find until rows are matched otherwise.
        """
        old, new = self._sides
        if len(old.mates) == self._walked_from:
            return
        self._walked_from = len(old.mates)
        waiting = deque(old.beside_unmatched() if new.unmatched() else ())
        while waiting:
            row, mate = waiting.popleft()
            found = list(zip(old.operands[row], new.operands[mate], strict=False))
            found += _only_readers(old, new, row, mate)
            for one, other in found:
                if one is None or other is None or one in old.mates or other in new.mates:
                    continue
                if old.kind(one) == new.kind(other) and len(old.operands[one]) == len(new.operands[other]):
                    self._take(one, other)
                    waiting.append((one, other))

    def _by_colours(self, old: Sequence[Colour], new: Sequence[Colour]) -> int:
        """Matches the rows of one colour."""
        groups = [
            _rows_by(map(colours.__getitem__, side.unmatched()), side.unmatched())
            for side, colours in zip(self._sides, (old, new), strict=True)
        ]
        return self._match_groups(*groups, as_many=True)

    def _by(self, key: Callable[[MatchingSide, int], Colour | None], *, as_many: bool = True) -> int:
        """Matches the rows with the same key. Rows without a key (`None`) are left."""
        if not all(side.unmatched() for side in self._sides):
            return 0
        groups = [_rows_by([key(side, row) for row in side.unmatched()], side.unmatched()) for side in self._sides]
        return self._match_groups(*groups, as_many=as_many)

    def _match_groups(self, old: Mapping[Colour, list[int]], new: Mapping[Colour, list[int]], *, as_many: bool) -> int:
        """Matches the rows of groups with the same key, in the order of the text; `as_many` only where both sides have as many.
        Says how many were found.
        """
        found = 0
        for colour, rows in old.items():
            others = new.get(colour, ())
            if len(rows) == len(others) or (others and not as_many):
                for pair in zip(rows, others, strict=False):
                    self._take(*pair)
                    found += 1
        return found

    def _as_many_as_there_are(self) -> None:
        """Of rows that say the same as many as there are on both sides, those of one scope first."""
        self._by(lambda side, row: (side.local[row], side.scope(row)), as_many=False)
        self._by(lambda side, row: side.local[row], as_many=False)
        self._alike()


def _rows_by(keys: Iterable[Colour | None], rows: Iterable[int]) -> dict[Colour, list[int]]:
    """The rows by their keys."""
    groups: defaultdict[Colour, list[int]] = defaultdict(list)
    for key, row in zip(keys, rows, strict=True):
        groups[key].append(row)
    groups.pop(None, None)
    return groups


def _numbers_above(side: MatchingSide, row: int) -> list[int]:
    """The pairs that the operands of a row belong to, -1 for one that is not matched."""
    numbers = side.numbers
    above = [-1 if operand is None else numbers[operand] for operand in side.operands[row]]
    return sorted(above) if side.opcodes[row] in COMMUTATIVE else above


def _numbers_below(side: MatchingSide, row: int) -> list[tuple[int, int]]:
    return sorted((side.numbers[user], position) for user, position in side.users[row])


def _one_operand(side: MatchingSide, row: int) -> Colour | None:
    """What it says, and the first of its operands that is matched."""
    first = next(((at, number) for at, number in enumerate(_numbers_above(side, row)) if number >= 0), None)
    return None if first is None else (side.local[row], first)


def _one_reader(side: MatchingSide, row: int) -> Colour | None:
    """What it says, and the first of its readers that is matched."""
    first = next((one for one in _numbers_below(side, row) if one[0] >= 0), None)
    return None if first is None else (side.local[row], first)


def _only_readers(old: MatchingSide, new: MatchingSide, row: int, mate: int) -> list[tuple[int, int]]:
    """What reads two rows and is the only such thing on its side that is not matched: by its opcode and the place."""
    readers: list[dict[tuple[str, int], list[int]]] = [{}, {}]
    for side, one, found in zip((old, new), (row, mate), readers, strict=True):
        for user, position in side.users[one]:
            if user not in side.mates:
                found.setdefault((side.kind(user), position), []).append(user)
    return [
        (users[0], others[0])
        for place, users in readers[0].items()
        if len(users) == 1 == len(others := readers[1].get(place, []))
    ]


def _place(side: MatchingSide, row: int) -> Colour | None:
    """Its opcode and all its neighbours, where all are matched."""
    above, below = _numbers_above(side, row), _numbers_below(side, row)
    if -1 in above or any(number < 0 for number, _ in below) or not (above or below):
        return None
    return (side.kind(row), tuple(above), tuple(below), row == side.view.root)


def _operands(side: MatchingSide, row: int) -> Colour | None:
    """Its opcode and its operands, where some are matched."""
    above = _numbers_above(side, row)
    return (side.kind(row), tuple(above)) if any(number >= 0 for number in above) else None


def _readers(side: MatchingSide, row: int) -> Colour | None:
    """Its opcode and what reads it, where some of that is matched."""
    below = _numbers_below(side, row)
    return (side.kind(row), tuple(below)) if any(number >= 0 for number, _ in below) else None


def _kind_and_scope(side: MatchingSide, row: int) -> Colour | None:
    """Its opcode and its op_name, where it has one."""
    scope = side.scope(row)
    return (side.kind(row), scope) if scope else None


def _running(side: MatchingSide, row: int) -> Colour | None:
    """Its opcode, of what runs other computations: a loop that carries other values is still that loop."""
    return side.kind(row) if side.opcodes[row] in _RUNNERS else None
