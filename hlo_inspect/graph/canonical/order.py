"""Orders of rows and of computations in which nothing comes before what it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from hlo_inspect.graph.canonical.hashing import numbers_hash

_COMPARED = 16
"""Operands of which the places are compared, where nothing else tells two users of a row from each other."""

_ROUNDS = 8
"""How often what is known of a row is told to its neighbours, as long as that tells more rows from one another."""

_T = TypeVar("_T")

_Users = dict[int, dict[int, list[int]]]
"""The users of each row, with the numbers of those of their operands that it is."""


def operands_first(starts: Iterable[_T], operands: Callable[[_T], Iterable[_T]]) -> Iterator[_T]:
    """What is reached from `starts`, each behind its operands, in post-order. Where things use one another, the first one that
    is met stands behind the others. There is no recursion, as calls in dumps nest deeper than Python's stack.
    """
    seen: set[_T] = set()
    for start in starts:
        waiting = [(start, iter(operands(start)))] if start not in seen else []
        seen.add(start)
        while waiting:
            row, rest = waiting[-1]
            for following in rest:
                if following not in seen:
                    seen.add(following)
                    waiting.append((following, iter(operands(following))))
                    break
            else:
                yield row
                waiting.pop()


class Traversal:
    """Puts the rows of a computation in an order that does not depend on that of the text. `before` are the rows that each row
    uses, `dataflow` tells the rows from one another.
    """

    def __init__(self, before: Sequence[Sequence[int]], dataflow: Sequence[int]) -> None:
        self._before = before
        self._dataflow = dataflow
        self._order: list[int] = []
        self._places: dict[int, int] = {}

    def order(self, starts: Sequence[int]) -> list[int]:
        """Every row behind what it uses: first what `starts` are made of, then what uses these rows, in the order of the first
        one that it uses, then what has nothing to do with them.
        """
        self._reach(starts)
        if len(self._order) < len(self._before):
            self._reach_rest()
        return self._order

    def _reach(self, starts: Sequence[int]) -> None:
        places = self._places
        missing = [start for start in starts if start not in places]
        for row in operands_first(missing, lambda row: [one for one in self._before[row] if one not in places]):
            places[row] = len(self._order)
            self._order.append(row)

    def _reach_rest(self) -> None:
        rest = [row for row in range(len(self._before)) if row not in self._places]
        users: _Users = {}
        for row in rest:
            for number, one in enumerate(self._before[row]):
                users.setdefault(one, {}).setdefault(row, []).append(number)
        colours = self._colours(rest, users)
        self._reach_users(users, colours, 0)
        for row in sorted(rest, key=lambda row: (row in users, colours[row], row)):  # last rows that use one another
            if row in self._places:
                continue
            done = len(self._order)
            self._reach((row,))
            self._reach_users(users, colours, done)

    def _reach_users(self, users: _Users, colours: dict[int, int], done: int) -> None:
        """What uses the rows from number `done` of the order on, and what uses these users, to the end."""
        while done < len(self._order):
            waiting = [row for row in users.get(self._order[done], ()) if row not in self._places]
            for row in sorted(waiting, key=lambda row: (colours[row], self._places_before(row))):
                self._reach((row,))
            done += 1

    def _colours(self, rows: Sequence[int], users: _Users) -> dict[int, int]:
        """What tells rows that are not reached from one another: what they are made of, and what becomes of them."""
        upwards = [row for row in operands_first(rows, self._before.__getitem__) if row not in self._places]
        downwards = list(operands_first(rows, lambda row: users.get(row, ())))
        colours = {row: self._dataflow[row] for row in rows}
        told_apart = 0
        for _ in range(_ROUNDS):
            for row in upwards:
                before = [colours.get(one, self._places.get(one, 0)) for one in self._before[row]]
                colours[row] = numbers_hash([colours[row], *before])
            for row in downwards:
                used = [numbers_hash([colours[user], *numbers]) for user, numbers in users.get(row, {}).items()]
                colours[row] = numbers_hash([colours[row], *sorted(used)])
            if len(set(colours.values())) == told_apart:
                break
            told_apart = len(set(colours.values()))
        return colours

    def _places_before(self, row: int) -> list[int]:
        last = len(self._before)
        return [self._places.get(one, last) for one in self._before[row][:_COMPARED]]
