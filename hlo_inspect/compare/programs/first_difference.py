"""The first instruction of a program that deviates from another one: in the order of the schedule, the innermost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from hlo_inspect.compare.pairing import surplus
from hlo_inspect.graph.canonical.canonical_computation import CanonicalComputation
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.canonical.spelling import Spelling
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.values.op_names import origin_of

_MOST_NESTED = 64
"""Limit of calls inside of calls that are compared."""

_LONGEST = 60


class InstructionPlace(NamedTuple):
    """An instruction of a module. `source` is its line of Python, empty if unknown."""

    name: str
    line: int
    source: str
    spelling: Spelling


class InstructionDifference(NamedTuple):
    """The first instruction that deviates, and what stands there in the other program; None if nothing does."""

    own: InstructionPlace | None
    usual: InstructionPlace | None

    @property
    def text(self) -> str:
        """The value that differs, with both values."""
        if self.own is None or self.usual is None:
            return ""
        return describe(self.own.spelling, self.usual.spelling)


NO_DIFFERENCE = InstructionDifference(None, None)


class FirstDifference:
    """Search for the first instruction of `own` that deviates from `usual`.

    Rows are compared by position if both modules are scheduled. Otherwise the first row counts whose value the other program
    lacks.
    """

    def __init__(self, own: CanonicalModule, usual: CanonicalModule) -> None:
        self._own, self._usual = own, usual
        self._is_scheduled = own.module.header.is_scheduled and usual.module.header.is_scheduled
        self._equal: set[tuple[int, int]] = set()

    def find(self) -> InstructionDifference:
        """Return the first difference; NO_DIFFERENCE if the instructions are equal."""
        entries = self._own.module.entry, self._usual.module.entry
        if entries[0] is None or entries[1] is None:
            return NO_DIFFERENCE
        return self._first(entries[0].name, entries[1].name, 0) or NO_DIFFERENCE

    def _first(self, own: str, usual: str, depth: int) -> InstructionDifference | None:
        first, second = self._own.computation(own), self._usual.computation(usual)
        key = id(first), id(second)  # both modules stay alive, so the ids stay unique
        if key in self._equal or depth > _MOST_NESTED:
            return None
        for row, mate in self._pairs(first, second):
            inner = self._inside(first, second, row, mate, depth)
            if inner is not None:
                return inner
            if row is None or mate is None or self._deviates(first, second, row, mate):
                return InstructionDifference(_place(self._own, own, row), _place(self._usual, usual, mate))
        self._equal.add(key)
        return None

    def _pairs(self, first: CanonicalComputation, second: CanonicalComputation) -> Iterator[tuple[int | None, int | None]]:
        """Yield rows and what stands there in the other program, None if nothing does."""
        if not self._is_scheduled:  # the first rows whose value the other computation lacks, if there are any
            own, usual = (
                next(surplus(side.topological_order, other.dataflow, side.dataflow.__getitem__), None)
                for side, other in ((first, second), (second, first))
            )
            if own is not None or usual is not None:
                yield own, usual
            return
        yield from zip_longest(first.rows, second.rows)

    def _deviates(self, first: CanonicalComputation, second: CanonicalComputation, row: int, mate: int) -> bool:
        if not self._is_scheduled:
            return True
        return (
            first.local[row] != second.local[mate]
            or first.read_places(row) != second.read_places(mate)
            or (first.view.root == row) != (second.view.root == mate)
        )

    def _inside(
        self, first: CanonicalComputation, second: CanonicalComputation, row: int | None, mate: int | None, depth: int
    ) -> InstructionDifference | None:
        """Return the first difference in the computations that both rows call. What a collective applies is part of it."""
        if row is None or mate is None:
            return None
        spellings = first.spellings[row], second.spellings[mate]
        opcode = TABLE.get(spellings[0].opcode)
        if not spellings[0].callees or spellings[0].opcode != spellings[1].opcode or (opcode and opcode.collective):
            return None
        names = [[name for callees in spelling.callees for name in callees.names] for spelling in spellings]
        if len(names[0]) != len(names[1]):
            return None
        for own, usual in zip(*names, strict=True):
            if own in self._own and usual in self._usual:
                inner = self._first(own, usual, depth + 1)
                if inner is not None:
                    return InstructionDifference(
                        _with_source(inner.own, _place(self._own, first.view.computation.name, row)),
                        _with_source(inner.usual, _place(self._usual, second.view.computation.name, mate)),
                    )
        return None


def _place(module: CanonicalModule, computation: str, row: int | None) -> InstructionPlace | None:
    if row is None:
        return None
    view = module.view(computation)
    origin = origin_of(view.metadata(row), module.module.frames)
    spelling = module.computation(computation).spellings[row]
    return InstructionPlace(view.names[row], view.lines[row], origin.source, spelling)


def _with_source(place: InstructionPlace | None, caller: InstructionPlace | None) -> InstructionPlace | None:
    """Return the place with the source line of its caller if it has none."""
    if place is None or caller is None or place.source:
        return place
    return place._replace(source=caller.source)


# -- words ------------------------------------------------------------------------------------------------------------------


def describe(own: Spelling, usual: Spelling) -> str:
    """Describe how two instructions differ: opcode, shape, literal, else an attribute or the operands."""
    for what, value, other in _aspects(own, usual):
        if value != other:
            return contrast(what, value, other)
    return "it reads other operands, or calls another computation"


def contrast(what: str, own: str, usual: str) -> str:
    """Return a value with that of the majority."""
    return f"{what} {_shortened(own) or 'none'}, in the majority {_shortened(usual) or 'none'}"


def _aspects(own: Spelling, usual: Spelling) -> Iterator[tuple[str, str, str]]:
    if own.opcode != usual.opcode:
        yield "opcode", own.opcode, usual.opcode
    yield "shape", own.shape, usual.shape
    yield ("parameter" if own.opcode == "parameter" else own.opcode), own.literal, usual.literal
    attributes = dict(own.attributes), dict(usual.attributes)
    for name in dict.fromkeys((*attributes[0], *attributes[1])):
        yield name, attributes[0].get(name, ""), attributes[1].get(name, "")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def first_unequal(own: Sequence[object], usual: Sequence[object]) -> int | None:
    """Return the first position at which two sequences differ; None if they are equal."""
    for position, (value, other) in enumerate(zip(own, usual, strict=False)):
        if value != other:
            return position
    return min(len(own), len(usual)) if len(own) != len(usual) else None
