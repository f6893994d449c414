"""The figures of costs, and sums of them that keep gaps apart."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from typing import Literal, NamedTuple

from hlo_inspect.figure import MAX_FIGURE, Quantity, at_least, known_part, least

CostFigure = Literal["flops", "transcendentals", "matmul_flops", "bytes"]

WORK: tuple[CostFigure, ...] = ("flops", "transcendentals", "matmul_flops")
WORK_WITHOUT_MATMULS = WORK[:2]
FIGURES: tuple[CostFigure, ...] = (*WORK, "bytes")

MAX_COUNT = MAX_FIGURE
"""Larger than any program's count: a sum above it is unknown.

Runs have the same limit, so that sums over tables and over the step stop at the same number.
"""
MAX_XLA_SUM = 2**127
"""Larger than a float32, in which XLA sums: a sum above it is unknown."""
TOO_LARGE = "more than can be counted"

CUSTOM_CALL = "custom-call"
MASKED = "masked"
"""The unit of FLOPs that a static mask leaves out. A kernel may skip them, so they take no time in a lower bound."""

SHARED = "shared"
"""The unit of FLOPs of overlapping windows. A partial result that two windows share needs only one computation.

So these FLOPs take no time in a lower bound.
"""

SPACE = "space."
NOT_MOVED = -1
"""The memory space of bytes that XLA's model counts and no memory moves: tables of pointers, results that others write."""

_EXACT = FIGURES.index("matmul_flops")
EXACT_UP_TO = 2**24
"""The largest integer up to which float32 rounds none."""

NO_LINE = 0


def countable(amount: Quantity) -> Quantity:
    """Return an amount without upper bound, and a reason, if it is too large to count."""
    return at_least(MAX_COUNT, TOO_LARGE) if least(amount) > MAX_COUNT else amount


class CostGap(NamedTuple):
    """The reason for a missing count; `line` is the line of the input, `NO_LINE` if the reason names the place."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


class UnknownCostError(Exception):
    """A rule lacks a shape, an attribute or a computation. `gap` is set if the cause lies in another instruction."""

    def __init__(self, reason: str, gap: CostGap | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.gap = gap


class MissingAttributeError(UnknownCostError):
    """The text lacks an attribute that every instruction of the opcode has."""

    def __init__(self, attribute: str) -> None:
        super().__init__(f"its {attribute} is not in the text")
        self.attribute = attribute


class MissingAttribute(NamedTuple):
    """An instruction printed without an attribute that its cost depends on."""

    line: int
    name: str
    attribute: str


class Work(NamedTuple):
    """The work of an instruction. `matmul_flops` is the part of its FLOPs in matrix multiplications."""

    flops: int = 0
    transcendentals: int = 0
    matmul_flops: int = 0

    def times(self, count: int) -> Work:
        return Work(self.flops * count, self.transcendentals * count, self.matmul_flops * count)

    def plus(self, other: Work) -> Work:
        return Work(*map(add, self, other))


class TallyKey(NamedTuple):
    """The key of a sum: a label (an opcode, a phase, a source line) and the unit of the hardware that does the work.

    A unit has the name of a hardware profile's figure, `matmul.bf16`, `vector.f32`, and is empty if unknown. For bytes it is
    the memory space, `space.1` for `S(1)`, and empty for the default one. `operands` are the types that a product multiplies.
    """

    label: str
    unit: str = ""
    operands: str = ""


class Tally:
    """Sums of the figures by label and unit, with their gaps.

    A row holds the known amount of each of `FIGURES`.
    """

    __slots__ = ("gaps", "rows")

    def __init__(self) -> None:
        self.rows: dict[TallyKey, list[int]] = {}
        self.gaps: dict[tuple[TallyKey, CostFigure], CostGap] = {}

    def add(self, key: TallyKey, amounts: Sequence[int], times: int = 1) -> None:
        """Add `times` the amounts of figures, in the order of `FIGURES`; further figures get nothing."""
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = [0] * len(FIGURES)
        for i, amount in enumerate(amounts):
            row[i] += amount * times

    def add_one(self, key: TallyKey, column: int, amount: int) -> None:
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = [0] * len(FIGURES)
        row[column] += amount

    def miss(self, key: TallyKey, figures: Iterable[CostFigure], gap: CostGap) -> None:
        """Note that figures of a key are unknown."""
        for figure in figures:
            self.gaps.setdefault((key, figure), gap)

    def add_all(self, other: Tally) -> None:
        """Add the sums and gaps of `other`."""
        for key, row in other.rows.items():
            self.add(key, row)
        for (key, figure), gap in other.gaps.items():
            self.miss(key, (figure,), gap)

    def add_runs(self, key: TallyKey, amounts: Sequence[int], least: Sequence[int], gap: CostGap) -> None:
        """Add the amounts of all figures times their `least` runs. Every figure that is not 0 gets the gap."""
        self.add(key, [amount * runs for amount, runs in zip(amounts, least, strict=True)])
        self.miss(key, [figure for figure, amount in zip(FIGURES, amounts, strict=True) if amount], gap)

    def add_largest(self, others: Sequence[Tally]) -> None:
        """Add, for each figure, the tally in which it is largest; and the gaps of all."""
        for i in range(len(FIGURES) if others else 0):
            amounts = [other.known[i] for other in others]
            for key, row in others[amounts.index(max(amounts))].rows.items():
                self.add_one(key, i, row[i])
        for other in others:
            for (key, figure), gap in other.gaps.items():
                self.miss(key, (figure,), gap)

    def by_label(self) -> Iterator[tuple[str, Tally]]:
        """Return the tally of each label. Labels whose figures are all 0 and known are left out."""
        split: dict[str, Tally] = {}
        for key, row in self.rows.items():
            if any(row):
                split.setdefault(key.label, Tally()).rows[key] = row
        for (key, figure), gap in self.gaps.items():
            split.setdefault(key.label, Tally()).gaps[key, figure] = gap
        return iter(split.items())

    def bounds(self, figure: CostFigure) -> Quantity:
        """Return the sum over all keys. If a part is unknown, the sum of the known parts is the lower bound."""
        column, gap = FIGURES.index(figure), self.first_gap(figure)
        whole = sum([row[column] for row in self.rows.values()])
        return countable(whole) if gap is None else at_least(min(whole, MAX_COUNT), str(gap))

    def first_gap(self, figure: CostFigure) -> CostGap | None:
        """Return the first gap of a figure in the order of the text."""
        return min((gap for (_, missing), gap in self.gaps.items() if missing == figure), default=None) if self.gaps else None

    @property
    def known(self) -> tuple[int, ...]:
        """The known sums over all keys, one for each of `FIGURES`."""
        if len(self.rows) == 1:  # as most
            return tuple(*self.rows.values())
        return tuple(map(sum, zip(*self.rows.values(), strict=True))) or (0,) * len(FIGURES)

    @property
    def work(self) -> Work:
        """The work of all keys. Raise UnknownCostError if a part is unknown."""
        for figure in WORK:
            gap = self.first_gap(figure)
            if gap is not None:
                raise UnknownCostError(gap.reason, gap)
        return Work(*self.known[: len(WORK)])


@dataclass(slots=True, eq=False)  # frozen ones take three times as long to make
class InstructionCost:
    """The cost of one run of an instruction; a figure with a gap is unknown. Equal instructions share one.

    `work` is by the opcodes that do it, for a fusion those inside it. `amounts` are the sums, one for each of `FIGURES`.
    `as_xla` and `gaps_of_xla` leave out custom calls, except in `matmul_flops`, which is no figure of XLA's. `spaces` holds the
    bytes outside the default memory, by number of the memory space.
    """

    opcode: str
    work: Tally
    amounts: tuple[int, ...]
    gaps: dict[CostFigure, CostGap]
    as_xla: tuple[int, ...]
    gaps_of_xla: dict[CostFigure, CostGap]
    spaces: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def from_work(
        cls, opcode: str, work: Tally, size: int | CostGap, spaces: Mapping[int, int] | None = None
    ) -> InstructionCost:
        """Make the cost from the work of an instruction and the bytes that it accesses."""
        amounts, gaps = _figures(work, size)
        limited = _limit_spaces(spaces or {}, amounts[-1])
        if opcode != CUSTOM_CALL and CUSTOM_CALL not in {key.label for key in (*work.rows, *(key for key, _ in work.gaps))}:
            return cls(opcode, work, amounts, gaps, amounts, gaps, limited)
        counted = Tally()
        counted.rows = {key: row for key, row in work.rows.items() if key.label != CUSTOM_CALL}
        counted.gaps = {(key, figure): gap for (key, figure), gap in work.gaps.items() if key.label != CUSTOM_CALL}
        (flops, transcendentals, *_, moved), gaps_of_xla = _figures(counted, 0 if opcode == CUSTOM_CALL else size)
        if "matmul_flops" in gaps:
            gaps_of_xla["matmul_flops"] = gaps["matmul_flops"]
        return cls(opcode, work, amounts, gaps, (flops, transcendentals, amounts[2], moved), gaps_of_xla, limited)

    def counted_by_xla_as(self, cost: InstructionCost) -> InstructionCost:
        """Return this cost with XLA's figures of another; FLOPs of matrix multiplications are no figure of XLA's."""
        (flops, transcendentals, *_, moved) = cost.as_xla
        gaps = dict(cost.gaps_of_xla)
        gaps.pop("matmul_flops", None)
        if "matmul_flops" in self.gaps:
            gaps["matmul_flops"] = self.gaps["matmul_flops"]
        return replace(self, as_xla=(flops, transcendentals, self.amounts[2], moved), gaps_of_xla=gaps)

    @property
    def bytes_by_unit(self) -> Iterator[tuple[str, int]]:
        """The bytes of each memory space, named as a unit of `TallyKey`."""
        return bytes_by_unit(self.amounts[-1], self.spaces)

    @classmethod
    def unknown(cls, opcode: str, gap: CostGap) -> InstructionCost:
        """Make the cost of an instruction whose figures are all unknown."""
        work = Tally()
        work.miss(TallyKey(opcode), WORK, gap)
        return cls.from_work(opcode, work, gap)


def bytes_by_unit(size: int, spaces: Mapping[int, int]) -> Iterator[tuple[str, int]]:
    """Yield the bytes in the default memory and in each other memory space, under the name of a unit."""
    yield "", size - sum(spaces.values())
    yield from ((f"{SPACE}{space}", part) for space, part in spaces.items())


def _limit_spaces(spaces: Mapping[int, int], size: int) -> Mapping[int, int]:
    """Limit the bytes of memory spaces to `size`: a custom call may state that it moves less than its operands."""
    limited: dict[int, int] = {}
    for space, part in spaces.items():
        limited[space] = min(part, size)
        size -= limited[space]
    return limited


def _figures(work: Tally, size: int | CostGap) -> tuple[tuple[int, ...], dict[CostFigure, CostGap]]:
    """Return the amounts of all figures, and the gaps of the unknown ones."""
    gaps: dict[CostFigure, CostGap] = {}
    for figure in WORK if work.gaps else ():
        gap = work.first_gap(figure)
        if gap is not None:
            gaps[figure] = gap
    if isinstance(size, CostGap):
        gaps["bytes"] = size
        size = 0
    return (*work.known[: len(WORK)], size), gaps


class XlaSum:
    """Sums of the four figures with their gaps, added as in XLA: in float32, one instruction after the other.

    Rounding drops amounts that are small relative to the sum, up to some millionths of the whole. With the same order and
    rounding the sums equal `compiled.cost_analysis()` of JAX, in nearly all modules to the last digit. The FLOPs of matrix
    multiplications, which XLA does not sum, are exact.
    """

    __slots__ = ("amounts", "gaps")

    def __init__(self) -> None:
        self.amounts: list[float] = [0] * len(FIGURES)
        self.gaps: dict[CostFigure, CostGap] = {}

    def add(self, *rows: Sequence[float]) -> None:
        """Add rows of the four figures, one row after the other."""
        for i, column in enumerate(zip(*rows, strict=True)):
            try:
                whole = sum(column, self.amounts[i])
                is_exact = whole <= EXACT_UP_TO or i == _EXACT
                self.amounts[i] = whole if is_exact else _rounded_sum(self.amounts[i], column)
            except OverflowError:
                self.amounts[i] = math.inf

    def miss(self, figures: Iterable[CostFigure], gap: CostGap) -> None:
        for figure in figures:
            self.gaps[figure] = min(gap, self.gaps.get(figure, gap))

    def add_sum(self, other: XlaSum) -> None:
        self.add(other.amounts)
        self.miss_all(other.gaps)

    def add_largest(self, others: Sequence[XlaSum]) -> None:
        """Add the largest sum of each figure, and the gaps of all."""
        if others:
            self.add([max(amounts) for amounts in zip(*(other.amounts for other in others), strict=True)])
        for other in others:
            self.miss_all(other.gaps)

    def miss_all(self, gaps: Mapping[CostFigure, CostGap]) -> None:
        for figure, gap in gaps.items():
            self.miss((figure,), gap)

    def bounds(self, figure: CostFigure) -> Quantity:
        """Return the sum. If a part is unknown, the sum of the known parts is the lower bound."""
        amount = self.amounts[FIGURES.index(figure)]
        reason = str(self.gaps.get(figure, TOO_LARGE if amount > MAX_XLA_SUM else ""))
        return known_part(int(min(amount, MAX_XLA_SUM)), reason)


def _rounded_sum(start: float, addends: Sequence[float]) -> float:
    """Add to `start` one addend after the other, each and each sum rounded to float32. Raise OverflowError above that.

    A sum of two of them is exact enough in float64 to be rounded once more.
    """
    numbers = set(addends)
    rounded = dict(zip(numbers, array("f", numbers), strict=True))
    whole = array("f", [start])
    for addend in map(rounded.__getitem__, filter(None, addends)):
        whole[0] += addend
    if whole[0] == math.inf:
        raise OverflowError
    return whole[0]
