"""Match the rows of two computations.

Rows are matched by content and surroundings, never by name. First come rows whose whole dataflow is equal, upwards to the
parameters or downwards to the root. Then come rows that are equal within two steps, then equal rows with the same neighbours. A
row with the same neighbours and opcode but other content is the same row, changed. Colours are numbers that stand for all that
was compared. Rows of one colour are matched in the order of the text, if both sides have the same number.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from hlo_inspect.graph.canonical.canonical_computation import CanonicalComputation, defined
from hlo_inspect.hlo.opcodes import COMMUTATIVE, TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

Colour = Hashable

_ROUNDS = 12
"""Limit of rounds in which matched rows identify others; each loop of rounds ends early if none is found."""

_PLAIN, _ROOT = 1, 2

_RUNNERS = frozenset({"while", "conditional"})
_OP_NAME = lazy_pattern(r'op_name="((?:[^"\\]++|\\.)*+)"')
_NUMBERS = lazy_pattern(r"\d++", re.ASCII)


class MatchingSide:
    """The rows of one of the two computations, and their matches.

    `mates` has a row's mate on the other side, `numbers` by row the number of its pair (-1 without). `rest` are the rows
    without a mate in order. `seeds` are the colours of rows by themselves; for matched rows those of their pairs.
    """

    def __init__(self, computation: CanonicalComputation) -> None:
        self.canonical = computation
        self.view = computation.view
        self.local = computation.local
        self.opcodes = computation.view.opcodes
        self.operands: Sequence[tuple[int | None, ...]] = computation.operands
        self.size = len(computation.rows)
        self.mates: dict[int, int] = {}
        self.numbers = [-1] * len(self.local)
        self.seeds = list(self.local)
        self.rest: Sequence[int] = computation.rows
        self._taken: list[int] = []
        self._near: list[int] = []
        self._far: list[int] = []
        self._sorts = [opcode in COMMUTATIVE for opcode in self.opcodes]
        self.users: list[list[tuple[int, int]]] = [[] for _ in self.local]
        for row in computation.rows:
            for position, operand in enumerate(self.operands[row]):
                if operand is not None:
                    self.users[operand].append((row, 0 if self._sorts[row] else position))

    def take(self, row: int, mate: int, number: int) -> None:
        """Record the mate of a row, and the number of their pair."""
        self.mates[row], self.numbers[row], self.seeds[row] = mate, number, -number - 2
        self._taken.append(row)

    def unmatched(self) -> Sequence[int]:
        """Return the rows without a mate."""
        if len(self.rest) + len(self.mates) > self.size:
            self.rest = [row for row in self.rest if row not in self.mates]
        return self.rest

    def pairs_near_unmatched(self) -> list[tuple[int, int]]:
        """Return the pairs whose row has an unmatched operand or user, in the order in which they were matched."""
        near: set[int | None] = set()
        for row in self.unmatched():
            near.update(self.operands[row])
            near.update([user for user, _ in self.users[row]])
        return [pair for pair in self.mates.items() if pair[0] in near] if near else []

    def kind(self, row: int) -> str:
        """Return the opcode; the starts of a kind share one, and so do its dones."""
        opcode = TABLE.get(self.opcodes[row])
        return self.opcodes[row] if opcode is None else f"{opcode.base} done" if opcode.half == "done" else opcode.base

    def upwards(self) -> list[int]:
        """Return colours that tell rows apart by all that they are made of."""
        colours = list(self.seeds)
        for row in self.canonical.topological_order:
            if self.numbers[row] < 0:
                above = [0 if operand is None else colours[operand] for operand in self.operands[row]]
                if self._sorts[row]:
                    above.sort()
                colours[row] = hash((self.local[row], *above))
        return colours

    def downwards(self) -> list[int]:
        """Return colours that tell rows apart by all that becomes of them."""
        root = self.view.root
        colours = list(self.seeds)
        for row in reversed(self.canonical.topological_order):
            if self.numbers[row] < 0:
                below = [(colours[user], position) for user, position in self.users[row]]
                below.sort()
                colours[row] = hash((self.local[row], _ROOT if row == root else _PLAIN, *below))
        return colours

    def neighbour_colours(self) -> tuple[list[int], list[int]]:
        """Return colours of unmatched rows by their neighbours within one step, and within two.

        After the first call only rows with newly matched neighbours are computed again.
        """
        taken, self._taken = self._taken, []
        if not self._near:
            self._near, self._far = list(self.seeds), list(self.seeds)
            near = far = set(self.unmatched())
        else:
            for row in taken:
                self._near[row] = self._far[row] = self.seeds[row]
            near = self._unmatched_near(taken)
            far = near | self._unmatched_near(near)
        self._colour(near, self.seeds, self._near)
        self._colour(far, self._near, self._far)
        return self._near, self._far

    def _unmatched_near(self, rows: Iterable[int]) -> set[int]:
        """Return the unmatched rows among the operands and users of some rows."""
        near: set[int] = set()
        for row in rows:
            near.update(defined(self.operands[row]))
            near.update([user for user, _ in self.users[row]])
        return near.difference(self.mates)

    def _colour(self, rows: Iterable[int], colours: Sequence[int], result: list[int]) -> None:
        """Write into `result` the colours of rows, made of their own colours and those of their operands and users."""
        root, operands, users, sorts = self.view.root, self.operands, self.users, self._sorts
        for row in rows:
            above = [0 if operand is None else colours[operand] for operand in operands[row]]
            if sorts[row]:
                above.sort()
            below = sorted([(colours[user], position) for user, position in users[row]])
            result[row] = hash((colours[row], _ROOT if row == root else _PLAIN, len(above), *above, *below))

    def scope(self, row: int) -> str:
        """Return the op_name, with `*` for numbers."""
        name = _OP_NAME.search(self.view.tails[row])
        return _NUMBERS.sub("*", name[1]) if name is not None else ""


class RowMatcher:
    """Match the rows of two computations. `given` are pairs that are known in advance."""

    def __init__(self, old: CanonicalComputation, new: CanonicalComputation, given: Iterable[tuple[int, int]]) -> None:
        self.old, self.new = self._sides = (MatchingSide(old), MatchingSide(new))
        for pair in given:
            self._take(*pair)
        self._up = [side.upwards() for side in self._sides]
        self._walked_from = -1
        self._match()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The matched rows, changed or not, in the order of OLD."""
        return sorted(self.old.mates.items())

    def are_twins(self, old: int, new: int) -> bool:
        """Return True if two rows have the same value, though each may be matched to another row."""
        return self._up[0][old] == self._up[1][new]

    def _take(self, old: int, new: int) -> None:
        number = len(self.old.mates)
        self.old.take(old, new, number)
        self.new.take(new, old, number)

    def _match(self) -> None:
        self._match_equal_rows()
        for key in (_place, _operands, _readers, _kind_and_scope, _running):
            for _ in range(_ROUNDS):
                if not self._match_by_key(key):
                    break
                self._match_by_neighbours()
            self._walk()
        # equal rows though their numbers differ, those of one scope first
        self._match_by_key(lambda side, row: (side.local[row], side.scope(row)), same_size=False)
        self._match_by_key(lambda side, row: side.local[row], same_size=False)
        self._match_by_neighbours()

    def _match_equal_rows(self) -> None:
        up, down = self._up, [side.downwards() for side in self._sides]
        both = [list(zip(*colours, strict=True)) for colours in zip(up, down, strict=True)]
        self._by_colours(*both)
        self._by_colours(*up)
        self._by_colours(*down)
        self._match_by_key(lambda side, row: side.kind(row) if row == side.view.root else None)
        self._match_by_neighbours()

    def _match_by_neighbours(self) -> None:
        """Match equal rows with equal neighbours, until none is left."""
        for _ in range(_ROUNDS):
            if not all(side.unmatched() for side in self._sides):
                return
            near, far = zip(*(side.neighbour_colours() for side in self._sides), strict=True)
            if not (
                self._by_colours(*far)
                or self._by_colours(*near)
                or self._match_by_key(_one_operand)
                or self._match_by_key(_one_reader)
            ):
                return

    def _walk(self) -> None:
        """Match along chains of any length: from each pair to its operands and single users in the same positions.

        They must have the same opcode and number of operands. Repeated calls return at once until other rows are matched.
        """
        old, new = self._sides
        if len(old.mates) == self._walked_from:
            return
        self._walked_from = len(old.mates)
        waiting = deque(old.pairs_near_unmatched() if new.unmatched() else ())
        while waiting:
            row, mate = waiting.popleft()
            candidates = list(zip(old.operands[row], new.operands[mate], strict=False))
            candidates += _only_readers(old, new, row, mate)
            for near, other in candidates:
                if near is None or other is None or near in old.mates or other in new.mates:
                    continue
                if old.kind(near) == new.kind(other) and len(old.operands[near]) == len(new.operands[other]):
                    self._take(near, other)
                    waiting.append((near, other))

    def _by_colours(self, old: Sequence[Colour], new: Sequence[Colour]) -> int:
        """Match the rows of one colour, and return how many pairs there are."""
        groups = [
            _rows_by(map(colours.__getitem__, side.unmatched()), side.unmatched())
            for side, colours in zip(self._sides, (old, new), strict=True)
        ]
        return self._match_groups(*groups, same_size=True)

    def _match_by_key(self, key: Callable[[MatchingSide, int], Colour | None], *, same_size: bool = True) -> int:
        """Match the rows with the same key, and return how many pairs there are. Skip rows without a key (None)."""
        if not all(side.unmatched() for side in self._sides):
            return 0
        groups = [_rows_by([key(side, row) for row in side.unmatched()], side.unmatched()) for side in self._sides]
        return self._match_groups(*groups, same_size=same_size)

    def _match_groups(self, old: Mapping[Colour, list[int]], new: Mapping[Colour, list[int]], *, same_size: bool) -> int:
        """Match rows of equal keys in text order, with `same_size` only of equally many; return the number of pairs."""
        pairs = 0
        for colour, rows in old.items():
            others = new.get(colour, ())
            if len(rows) == len(others) or (others and not same_size):
                for pair in zip(rows, others, strict=False):
                    self._take(*pair)
                    pairs += 1
        return pairs


def _rows_by(keys: Iterable[Colour | None], rows: Iterable[int]) -> dict[Colour, list[int]]:
    """Group the rows by key; leave out those without one."""
    groups: defaultdict[Colour, list[int]] = defaultdict(list)
    for key, row in zip(keys, rows, strict=True):
        groups[key].append(row)
    groups.pop(None, None)
    return groups


def _numbers_above(side: MatchingSide, row: int) -> list[int]:
    """Return the numbers of the operands' pairs, -1 for an unmatched one."""
    numbers = side.numbers
    above = [-1 if operand is None else numbers[operand] for operand in side.operands[row]]
    return sorted(above) if side.opcodes[row] in COMMUTATIVE else above


def _numbers_below(side: MatchingSide, row: int) -> list[tuple[int, int]]:
    return sorted((side.numbers[user], position) for user, position in side.users[row])


def _one_operand(side: MatchingSide, row: int) -> Colour | None:
    """Return the content, and the first of the operands that is matched."""
    first = next(((position, number) for position, number in enumerate(_numbers_above(side, row)) if number >= 0), None)
    return None if first is None else (side.local[row], first)


def _one_reader(side: MatchingSide, row: int) -> Colour | None:
    """Return the content, and the first of the users that is matched."""
    first = next((user for user in _numbers_below(side, row) if user[0] >= 0), None)
    return None if first is None else (side.local[row], first)


def _only_readers(old: MatchingSide, new: MatchingSide, row: int, mate: int) -> list[tuple[int, int]]:
    """Pair unmatched users of two rows that are the only ones on their side with their opcode and operand position."""
    readers: list[dict[tuple[str, int], list[int]]] = [{}, {}]
    for side, own, by_position in zip((old, new), (row, mate), readers, strict=True):
        for user, position in side.users[own]:
            if user not in side.mates:
                by_position.setdefault((side.kind(user), position), []).append(user)
    return [
        (users[0], others[0])
        for place, users in readers[0].items()
        if len(users) == 1 == len(others := readers[1].get(place, []))
    ]


def _place(side: MatchingSide, row: int) -> Colour | None:
    """Return opcode and neighbours, if all of these are matched."""
    above, below = _numbers_above(side, row), _numbers_below(side, row)
    if -1 in above or any(number < 0 for number, _ in below) or not (above or below):
        return None
    return (side.kind(row), tuple(above), tuple(below), row == side.view.root)


def _operands(side: MatchingSide, row: int) -> Colour | None:
    """Return opcode and operands, if some of these are matched."""
    above = _numbers_above(side, row)
    return (side.kind(row), tuple(above)) if any(number >= 0 for number in above) else None


def _readers(side: MatchingSide, row: int) -> Colour | None:
    """Return opcode and users, if some of these are matched."""
    below = _numbers_below(side, row)
    return (side.kind(row), tuple(below)) if any(number >= 0 for number, _ in below) else None


def _kind_and_scope(side: MatchingSide, row: int) -> Colour | None:
    """Return opcode and op_name, if there is one."""
    scope = side.scope(row)
    return (side.kind(row), scope) if scope else None


def _running(side: MatchingSide, row: int) -> Colour | None:
    """Return the opcode of a loop or conditional: with other values it is still the same one."""
    return side.kind(row) if side.opcodes[row] in _RUNNERS else None
