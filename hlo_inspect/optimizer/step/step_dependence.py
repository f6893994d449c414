"""The inputs of a region on which values depend.

Inputs are bits of integers, which are joined at no cost. A clipped gradient holds the norms of all gradients: a set for each
would take the square of the number of weights.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import opcodes_that_give
from hlo_inspect.optimizer.graph import with_bits

EVERYTHING = -1
"""All possible inputs: the assumption for a place with too many to follow."""

_OF_ONE_RESULT = opcodes_that_give("element") | {"async-update", "call"}
"""Opcodes that pass on one of several results, whole. Any other opcode depends on all operands, even if it only moves one."""


_SPECIAL = _OF_ONE_RESULT | {"parameter", "recv"}
"""Opcodes of rows that do not depend on all their operands, or on more."""

_MANY = 1000
"""Places to follow one by one; above it most rows are read anyway, and reading all of them in their order is faster."""

_PLAIN_BITS = 32
_Key = int | Place
"""A place; that of a whole result is one integer, frame and row, as almost all are: integers are found faster."""


def _key_of(place: Place) -> _Key:
    frame, row, index = place
    return place if index or row < 0 else frame << _PLAIN_BITS | row


def _place_of(key: _Key) -> Place:
    return key if isinstance(key, tuple) else (key >> _PLAIN_BITS, key & (1 << _PLAIN_BITS) - 1, ())


class InputDependence:
    """The inputs on which a place depends: through products of matrices, reductions, loops and collectives.

    Instructions are followed one by one; a fusion with one result, a loop or a conditional counts as depending on all its
    operands. With `marked`, bits of instructions by frame and row, it returns the bits of the instructions that a place depends
    on.
    """

    def __init__(self, frames: Frames, marked: Mapping[tuple[int, int], int] | None = None) -> None:
        self._frames = frames
        self._marked = marked
        self._bits: dict[Input, int] = {}
        self._known: dict[_Key, int] = {}
        self._filled: dict[int, int] = {}  # rows of frames that were read in the order of the text
        self._joined: dict[tuple[int, int], int] = {}

    def bit(self, source: Input) -> int:
        """Return the bit of an input."""
        return 1 << self._bits.setdefault(source, len(self._bits))

    def inputs(self, place: Place) -> int:
        """Return the inputs, as bits, on which the value of a place depends."""
        bits, asked = self._known, _key_of(place)
        if asked not in bits and not self._follow(asked, _MANY):
            self._fill(*place[:2])
            self._follow(asked)
        return bits[asked]

    def forget_places(self) -> None:
        """Free the memory of the places that were followed. The same places have the same bits afterwards."""
        self._known.clear()
        self._filled.clear()

    def _fill(self, frame: int, stop: int) -> None:
        """Read the rows of a frame up to `stop` in the order of the text, operands first as compilers print them.

        Other rows are left out until something asks for them: those behind which more than operands stands.
        """
        view, bits = self._frames[frame].view, self._known
        first = frame << _PLAIN_BITS
        for row in range(self._filled.get(frame, 0), stop):
            operands = self._operands(view, row)
            if operands is None or first | row in bits or (operands and max(operands) >= row):
                continue
            total = 0 if self._marked is None else self._marked.get((frame, row), 0)
            for operand in operands:
                of_operand = bits.get(first | operand)
                if of_operand is None:
                    self._follow(first | operand)
                    of_operand = bits[first | operand]
                if of_operand is not total:
                    total = with_bits(total, of_operand)
            bits[first | row] = total
        self._filled[frame] = max(stop, self._filled.get(frame, 0))

    @staticmethod
    def _operands(view: View, row: int) -> tuple[int, ...] | None:
        """Return the rows on which a whole result depends; None if these are not the operands, or not all."""
        opcode = view.opcodes[row]
        return view.whole_operands(row) if opcode not in _SPECIAL and not opcode.endswith("-done") else None

    def _follow(self, asked: _Key, most: int = sys.maxsize) -> bool:
        """Find the inputs of a place. Return False if they depend on `most` places or more that are not read yet."""
        bits, marked = self._known, self._marked
        stack = [asked]
        followed: dict[_Key, Sequence[_Key]] = {}
        begun = len(bits)
        while stack:
            top = stack[-1]
            if top in bits:
                stack.pop()
                continue
            before = followed.get(top)
            if len(followed) >= most:
                return False
            if before is None:
                is_over = begun + len(followed) >= self._frames.max_places  # the way down counts
                if is_over and not self._frames.is_cut_short:
                    self._frames.give_up(_place_of(top), "depends on too many others")
                sources = EVERYTHING if is_over else self._sources(top)
                if isinstance(sources, int):
                    bits[top] = sources
                    continue
                before = followed[top] = sources
                missing = [source for source in sources if source not in bits and source not in followed]
                if missing:
                    stack += missing
                    continue
            total = 0 if marked is None else marked.get(_place_of(top)[:2], 0)
            for source in before:
                total = with_bits(total, bits.get(source, 0))
            bits[top] = total
            stack.pop()
            if isinstance(top, tuple) and top[2] and len(before) > 1:  # so these are all operands
                self._joined[top[:2]] = total
        return True

    def _sources(self, key: _Key) -> int | Sequence[_Key]:
        """Return the places that a place depends on, or the bit of an input."""
        if isinstance(key, int):
            frame, row = divmod(key, 1 << _PLAIN_BITS)
            operands = self._operands(self._frames[frame].view, row)
            if operands is not None:  # as most
                return [key - row + operand for operand in operands]
        sources = self._other_sources(_place_of(key))
        return sources if isinstance(sources, int) else [*map(_key_of, sources)]

    def _other_sources(self, place: Place) -> int | tuple[Place, ...]:
        frames = self._frames
        opcode = frames.opcode(place)
        if not opcode:
            return 0
        if opcode == "parameter":
            argument, source = frames.step_back(place), frames.input(place)
            if argument is not None:
                return (argument,)
            return self.bit(source) if source is not None and self._marked is None else 0
        if place[2] or opcode in _OF_ONE_RESULT or opcode.endswith("-done"):
            before = frames.step_back(place)
            if before is not None:
                return (before,)
        if opcode == "recv":
            sent = frames.sent(place)
            return (sent,) if sent is not None else 0
        joined = self._joined.get(place[:2]) if place[2] else None  # each result of a sum over devices depends on all operands
        return frames.operands(place) if joined is None else joined
