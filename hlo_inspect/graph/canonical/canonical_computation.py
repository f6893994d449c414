"""A computation without its names: a fingerprint of each row, and of the whole."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import count
from typing import cast

from hlo_inspect.graph.canonical.spelling import Spelling
from hlo_inspect.graph.canonical.tuple_elements import equal_elements, rows_with_elements
from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import COMMUTATIVE

_COMPARED = 16
"""Limit of operands whose positions are compared to order the users of a row."""

_ROUNDS = 8
"""Limit of rounds in which the colours of rows spread to their neighbours."""

_MAX_TRIED = 100_000
"""Limit of visited rows, over all attempts to separate rows with equal neighbours."""

_Users = dict[int, dict[int, list[int]]]
"""The users of each row, with the operand numbers at which they use the row."""

_Colours = dict[int, int]
"""Numbers that tell rows apart."""


class Traversal:
    """Order the rows of a computation independently of the order of the text.

    `before` are the rows that each row uses. `dataflow` tells the rows apart. `interchangeable` maps each row that uses equal
    rows in arbitrary order to the numbers of its operands; equal operands have one number.
    """

    def __init__(
        self,
        before: Sequence[Sequence[int]],
        dataflow: Sequence[int],
        interchangeable: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self._dependencies = before
        self._dataflow = dataflow
        self._interchangeable = interchangeable or {}
        self._order: list[int] = []
        self._places: dict[int, int] = {}
        self._left = _MAX_TRIED

    def order(self, starts: Sequence[int]) -> list[int]:
        """Return the rows, operands before users.

        First come `starts` with the rows that they depend on. Then come their users, in the order of their first operand, then
        unconnected rows.
        """
        if self._interchangeable:
            self._sort_interchangeable(starts)
        self._reach(starts)
        if len(self._order) < len(self._dependencies):
            self._reach_rest()
        return self._order

    def _reach(self, starts: Sequence[int]) -> None:
        places = self._places
        missing = [start for start in starts if start not in places]
        for row in operands_first(missing, lambda row: [used for used in self._dependencies[row] if used not in places]):
            places[row] = len(self._order)
            self._order.append(row)

    def _reach_rest(self) -> None:
        rest = [row for row in range(len(self._dependencies)) if row not in self._places]
        users = self._users(rest)
        colours = self._refine_colours(rest, users, {row: self._dataflow[row] for row in rest})
        ranks = self._ranks(rest, users, colours)

        def reach_users(done: int) -> None:
            """Reach the users of the rows from number `done` of the order on, and their users, to the end."""
            while done < len(self._order):
                waiting = [row for row in users.get(self._order[done], ()) if row not in self._places]
                for row in sorted(waiting, key=lambda row: (colours[row], self._places_before(row), ranks.get(row, ()))):
                    self._reach((row,))
                done += 1

        reach_users(0)
        for row in sorted(rest, key=lambda row: (row in users, colours[row], ranks.get(row, ()), row)):  # in cycles last
            if row not in self._places:
                done = len(self._order)
                self._reach((row,))
                reach_users(done)

    def _places_before(self, row: int) -> list[int]:
        last = len(self._dependencies)
        return [self._places.get(used, last) for used in self._dependencies[row][:_COMPARED]]

    def _sort_interchangeable(self, starts: Sequence[int]) -> None:
        """Sort the equal rows that a row uses in arbitrary order by their users."""
        rows = range(len(self._dependencies))
        users = self._users(rows)
        colours = dict(enumerate(self._dataflow))
        colours |= {row: numbers_hash([colours[row], number]) for number, row in enumerate(starts)}
        colours = self._refine_colours(rows, users, colours)
        ranks = self._ranks(rows, users, colours)
        sorted_before = list(self._dependencies)
        for row, numbers in self._interchangeable.items():
            used = list(zip(numbers, self._dependencies[row], strict=True))
            used.sort(key=lambda use: (use[0], colours[use[1]], ranks.get(use[1], ()), use[1]))
            sorted_before[row] = [used_row for _, used_row in used]
        self._dependencies, self._interchangeable = sorted_before, {}

    # -- telling rows from one another ----------------------------------------------------------------------------------

    def _users(self, rows: Sequence[int]) -> _Users:
        users: _Users = {}
        for row in rows:
            for number, used in zip(self._interchangeable.get(row) or count(), self._dependencies[row], strict=False):
                users.setdefault(used, {}).setdefault(row, []).append(number)
        return users

    def _refine_colours(self, rows: Sequence[int], users: _Users, colours: _Colours) -> _Colours:
        """Mix the colours of operands and users into the colour of each unreached row.

        Stop when this separates no more rows.
        """
        upwards = [row for row in operands_first(rows, self._dependencies.__getitem__) if row not in self._places]
        downwards = list(operands_first(rows, lambda row: users.get(row, ())))
        told_apart = 0
        for _ in range(_ROUNDS):
            for row in upwards:
                before = [colours.get(used, self._places.get(used, 0)) for used in self._dependencies[row]]
                if row in self._interchangeable:
                    before = [colour for _, colour in sorted(zip(self._interchangeable[row], before, strict=True))]
                colours[row] = numbers_hash([colours[row], *before])
            for row in downwards:
                used = [numbers_hash([colours[user], *numbers]) for user, numbers in users.get(row, {}).items()]
                colours[row] = numbers_hash([colours[row], *sorted(used)])
            if len(set(colours.values())) == told_apart:
                break
            told_apart = len(set(colours.values()))
        return colours

    def _ranks(self, rows: Sequence[int], users: _Users, colours: _Colours) -> dict[int, tuple[int, int, int]]:
        """Rank rows of equal colours: first by their connected part, then within it."""
        ranks: dict[int, tuple[int, int, int]] = {}
        if len(set(colours.values())) == len(colours):
            return ranks
        for row in rows:
            if row in ranks:
                continue
            part = {row: colours[row]}
            waiting = [row]
            for member in waiting:
                neighbours = {
                    other for other in (*self._dependencies[member], *users.get(member, ())) if other in colours
                } - part.keys()
                part |= {other: colours[other] for other in neighbours}
                waiting += neighbours
            part = self._separate_rows(part, users)
            signature = numbers_hash(sorted(part.values()))
            ranks |= {member: (signature, row, colour) for member, colour in part.items()}
        return ranks

    def _separate_rows(self, part: _Colours, users: _Users) -> _Colours:
        """Give different colours to the rows of a connected part.

        Rows with the same operands and users keep one colour. It marks one of several equal rows and spreads the colours again.
        It keeps the mark that gives the lowest colours.
        """
        while True:
            equal: dict[int, dict[tuple[tuple[int, ...], tuple[int, ...]], int]] = {}
            for row, colour in part.items():
                equal.setdefault(colour, {})[tuple(self._dependencies[row]), tuple(users.get(row, ()))] = row
            tied = min((colour for colour, rows in equal.items() if len(rows) > 1), default=None)
            if tied is None or self._left < len(part) * len(equal[tied]):
                return part
            self._left -= len(part) * len(equal[tied])
            tries = [
                self._refine_colours(list(part), users, part | {row: numbers_hash([part[row], 1])})
                for row in equal[tied].values()
            ]
            part = min(tries, key=lambda colours: sorted(colours.values()))


def text_hash(text: str) -> int:
    """Return a hash of a text, 64 bits."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def numbers_hash(numbers: Sequence[int]) -> int:
    """Return a hash of numbers below 2 ** 64 in their order, 64 bits."""
    return int.from_bytes(blake2b(struct.pack(f"<{len(numbers)}Q", *numbers), digest_size=8).digest(), "little")


_UNDEFINED = 0
"""Number of an operand that the computation does not define."""


class CanonicalComputation:
    """The fingerprints of one computation, as numbers of 64 bits; rows are those of its `View`.

    `view` has a row for each element of a tuple (`tuple_elements.with_elements`). `spellings` are the contents of its rows;
    `callee` returns the fingerprint of a called computation. Names, metadata and channel numbers are in none of the
    fingerprints. `cache` holds fingerprints of the module's rows by content.
    """

    def __init__(
        self, view: View, spellings: Sequence[Spelling], callee: Callable[[str], int], cache: dict[Hashable, int]
    ) -> None:
        self.view = view
        self.spellings = spellings
        self._callee = callee
        self._cache = cache

    @cached_property
    def callees(self) -> list[str]:
        """The called computations in the order of the rows, each once."""
        return list(
            dict.fromkeys(name for spelling in self.spellings for callees in spelling.callees for name in callees.names)
        )

    @cached_property
    def elements(self) -> dict[int, int]:
        """The rows that take an element of a tuple and do nothing else, each with the first equal one; not the root."""
        return equal_elements(self.spellings, self.view.operands_of_rows, self.predecessors, self.view.root)

    def origin(self, row: int | None) -> int | None:
        """Return the tuple that an element is of, also through other elements; another row itself."""
        while row is not None and row in self.elements:
            row = self.operands[row][0]
        return row

    @cached_property
    def rows(self) -> Sequence[int]:
        """The rows in the order of the text, those of elements before their first users; without unused or repeated ones."""
        return rows_with_elements(self.operands, self.elements)

    @cached_property
    def operands(self) -> Sequence[tuple[int | None, ...]]:
        """The row that defines each operand of a row, of equal elements the first; None for an operand that nothing defines."""
        elements, operands = self.elements, self.view.operands_of_rows
        if all(row == first for row, first in elements.items()):
            return operands
        return [tuple([None if row is None else elements.get(row, row) for row in rows]) for rows in operands]

    @cached_property
    def predecessors(self) -> list[tuple[int, ...]]:
        """The control predecessors of each row."""
        index = self.view.index
        return [
            tuple(row for name in spelling.predecessors if (row := index(name)) is not None) if spelling.predecessors else ()
            for spelling in self.spellings
        ]

    @cached_property
    def local(self) -> list[int]:
        """Hash of each row without its operands: shape, opcode, literal, attributes, and the fingerprints of its callees."""
        cache, hashes = self._cache, []
        for shape, opcode, _, literal, attributes, callees, _, channel, rest in self.spellings:
            called = [(attribute, [self._callee(name) for name in names]) for attribute, names, _ in callees] if callees else ()
            key = (shape, opcode, literal, attributes, *[(name, *numbers) for name, numbers in called], bool(channel), rest)
            number = cache.get(key)
            if number is None:
                parts = [f"{name}={value}" for name, value in (*attributes, *called)]
                text = "\n".join((shape, opcode, literal, *parts, "channel" if channel else "", rest))
                number = cache[key] = text_hash(text)
            hashes.append(number)
        return hashes

    @cached_property
    def dataflow(self) -> list[int]:
        """Hash of each row and the dataflow of its operands, unordered for commutative opcodes."""
        local, cache = self.local, self._cache
        hashes = [_UNDEFINED] * len(local)  # unused elements keep it
        for row in self.topological_order:
            spelling = self.spellings[row]
            values = [_UNDEFINED if operand is None else hashes[operand] for operand in self.operands[row]]
            if spelling.operands and any(operand.path for operand in spelling.operands):
                values = [numbers_hash([value, *use.path]) for value, use in zip(values, spelling.operands, strict=True)]
            if spelling.opcode in COMMUTATIVE:
                values.sort()
            predecessors = sorted(map(hashes.__getitem__, self.predecessors[row]))
            numbers = (local[row], len(values), *values, *predecessors)
            number = cache.get(numbers)
            if number is None:
                number = cache[numbers] = numbers_hash(numbers)
            hashes[row] = number
        return hashes

    @cached_property
    def topological_order(self) -> Sequence[int]:
        """The rows, operands and predecessors before users; in the order of `rows` if that order fits."""
        rows, places = self.rows, self.places
        if all(places[before] < place for place, row in enumerate(rows) for before in self._dependencies[row]):
            return rows
        return list(operands_first(rows, self._dependencies.__getitem__))

    @cached_property
    def places(self) -> Mapping[int, int] | range:
        """The position of each row in `rows`."""
        return self.rows if isinstance(self.rows, range) else dict(zip(self.rows, count()))

    @cached_property
    def _dependencies(self) -> list[Sequence[int]]:
        """The operands of each row that the computation defines, and its predecessors behind them."""
        return [
            [*defined(rows), *predecessors] if None in rows or predecessors else cast("tuple[int, ...]", rows)
            for rows, predecessors in zip(self.operands, self.predecessors, strict=True)
        ]

    @cached_property
    def fingerprint(self) -> int:
        """Hash of the computation; it ignores the order of rows and of operands of commutative opcodes."""
        root = self.view.root
        dataflow = self.dataflow
        return numbers_hash([_UNDEFINED if root is None else dataflow[root], *sorted(map(dataflow.__getitem__, self.rows))])

    @cached_property
    def ordered(self) -> int:
        """Hash of the computation with its rows and operands in the order of the text."""
        root, places = self.view.root, self.places
        numbers = [_UNDEFINED if root is None else places[root]]
        for row in self.rows:
            numbers += (self.local[row], len(self.operands[row]), *self.read_places(row))
        return numbers_hash(numbers)

    def read_places(self, row: int) -> list[int]:
        """Return the positions in `rows` of a row's operands, counted from 1, and of its control predecessors."""
        places = self.places
        operands = [_UNDEFINED if operand is None else places[operand] + 1 for operand in self.operands[row]]
        return operands + sorted([places[before] for before in self.predecessors[row]])

    @cached_property
    def canonical_order(self) -> Sequence[int]:
        """The rows in an order that does not depend on the order of the text.

        Parameters come first, by number; then the other rows, operands before users.
        """
        dataflow = self.dataflow
        parameters = [index for index, opcode in enumerate(self.view.opcodes) if opcode == "parameter"]
        parameters.sort(key=lambda index: (self._parameter_number(index), dataflow[index]))
        root = self.view.root
        before = list(self._dependencies)
        interchangeable: dict[int, Sequence[int]] = {}
        for row, predecessors in enumerate(self.predecessors):
            if len(predecessors) > 1:
                operands = before[row][: -len(predecessors)]
                before[row] = [*operands, *sorted(predecessors, key=dataflow.__getitem__)]
                values = [*range(len(operands)), *sorted(map(dataflow.__getitem__, predecessors))]
                if len(set(values)) < len(values):
                    interchangeable[row] = list(map(values.index, values))
        starts = parameters if root is None else [*parameters, root]
        if len(self.rows) == len(before):
            return Traversal(before, dataflow, interchangeable).order(starts)
        rows, places = self.rows, self.places
        order = Traversal(
            [[places[used] for used in before[row]] for row in rows],
            [dataflow[row] for row in rows],
            {places[row]: values for row, values in interchangeable.items()},
        ).order([places[row] for row in starts])
        return [rows[place] for place in order]

    def _parameter_number(self, index: int) -> int:
        number = self.view.parameter_number(index)
        return len(self.view.rows) if number is None else number


def defined(rows: Iterable[int | None]) -> Iterator[int]:
    """Yield the operands that the computation defines."""
    return (row for row in rows if row is not None)
