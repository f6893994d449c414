"""On which inputs of a region a place depends, however: through products of matrices, reductions, loops and collectives.

Instructions are followed one by one; a fusion with one result, a loop or a conditional counts as depending on all that goes in.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.optimizer.flow import Flow
from hlo_inspect.analysis.optimizer.graph import Input, Place

EVERYTHING = -1
"""All inputs there can be: what is said of a place where there are too many to follow."""

MAX_PLACES = 500_000


class Reach:
    """Sets of inputs as bits of integers."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._bits: dict[Input, int] = {}
        self._known: dict[Place, int] = {}
        self._joined: dict[tuple[int, str], int] = {}

    def bit(self, one: Input) -> int:
        """The bit of one input."""
        return 1 << self._bits.setdefault(one, len(self._bits))

    def inputs(self, place: Place) -> int:
        """The inputs on which the values at a place depend."""
        known = self._known
        stack = [place]
        followed: dict[Place, Sequence[Place]] = {}
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            before = followed.get(top)
            sources = EVERYTHING if len(known) >= MAX_PLACES else self._sources(top) if before is None else before
            if isinstance(sources, int):
                known[top] = sources
                continue
            if before is None:
                missing = [source for source in sources if source not in known and source not in followed]
                followed[top] = sources
                if missing:
                    stack += missing
                    continue
            total = 0
            for source in sources:
                total |= known.get(source, 0)
            known[top] = total
            if len(sources) > 1:  # so these are all operands
                self._joined[top[0], top[1]] = total
        return known[place]

    def _sources(self, place: Place) -> int | tuple[Place, ...]:
        """The places from which a place follows, or the bit of an input."""
        flow = self._flow
        statement = flow.statement(place)
        if statement is None:
            return 0
        if statement.opcode == "parameter":
            target = flow.behind(place, statement)
            number = statement.parameter_number
            if target is not None or number is None:
                return (target,) if target is not None else 0
            return self.bit((place[0], number, place[2]))
        if statement.opcode != "fusion" or place[2]:
            target = flow.behind(place, statement)
            if target is not None:
                return (target,)
        joined = self._joined.get((place[0], place[1]))  # of a sum over devices each result depends on all operands
        return flow.operands(place, statement) if joined is None else joined
