"""What costs are counted in, and sums of them that keep apart what could not be counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

Figure = Literal["flops", "transcendentals", "matmul_flops", "bytes"]

WORK: tuple[Figure, ...] = ("flops", "transcendentals", "matmul_flops")
FIGURES: tuple[Figure, ...] = (*WORK, "bytes")

MAX_COUNT = 2**127
"""More than a float32 holds, and than any program computes: such a sum is not told."""
TOO_LARGE = "more than can be counted"


class Gap(NamedTuple):
    """Why something could not be counted; `line` is that of the input."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class UnknownCostError(Exception):
    """A rule lacks what it needs: a shape, an attribute, a computation. `gap` is set where the fault lies elsewhere."""

    def __init__(self, reason: str, gap: Gap | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.gap = gap


class Work(NamedTuple):
    """What an instruction computes. `matmul_flops` are those of its FLOPs that are matrix multiplications."""

    flops: int = 0
    transcendentals: int = 0
    matmul_flops: int = 0

    def times(self, count: int) -> Work:
        return Work(self.flops * count, self.transcendentals * count, self.matmul_flops * count)

    def plus(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.matmul_flops + other.matmul_flops,
        )


class Part(NamedTuple):
    """What a sum is for: a label (an opcode, a phase, a line of source) and the unit of the hardware that does the work.

    A unit is named as in hardware profiles: `matmul.bf16`, `vector.f32`; empty for bytes, and where nothing tells.
    """

    label: str
    unit: str = ""


class Tally:
    """Sums of the figures by part, and which of them have gaps.

    A row holds one amount for each of `FIGURES`.
    """

    __slots__ = ("gaps", "rows")

    def __init__(self) -> None:
        self.rows: dict[Part, list[int]] = {}
        self.gaps: dict[tuple[Part, Figure], Gap] = {}

    def add(self, part: Part, amounts: Sequence[int], times: int = 1) -> None:
        """Adds amounts of the first few figures."""
        row = self.rows.get(part)
        if row is None:
            row = self.rows[part] = [0] * len(FIGURES)
        for i, amount in enumerate(amounts):
            row[i] += amount * times

    def add_one(self, part: Part, column: int, amount: int) -> None:
        row = self.rows.get(part)
        if row is None:
            row = self.rows[part] = [0] * len(FIGURES)
        row[column] += amount

    def miss(self, part: Part, figures: Iterable[Figure], gap: Gap) -> None:
        """Notes that figures of this part are not known."""
        for figure in figures:
            self.gaps.setdefault((part, figure), gap)

    def add_all(self, other: Tally, times: int | Gap = 1, label: str | None = None) -> None:
        """Adds the sums and gaps of `other` so many times, under another label where one is given. Where it is not known how
        many times, all that is not 0 becomes unknown.
        """
        for part, row in other.rows.items():
            named = part if label is None else Part(label, part.unit)
            if isinstance(times, Gap):
                self.miss(named, [figure for figure, amount in zip(FIGURES, row, strict=True) if amount], times)
            else:
                self.add(named, row, times)
        if times != 0:
            for (part, figure), gap in other.gaps.items():
                self.miss(part if label is None else Part(label, part.unit), (figure,), gap)

    def add_largest(self, others: Sequence[Tally]) -> None:
        """Adds of each figure the tally in which it is largest, and the gaps of all."""
        for i in range(len(FIGURES) if others else 0):
            amounts = [other.known[i] for other in others]
            for part, row in others[amounts.index(max(amounts))].rows.items():
                self.add_one(part, i, row[i])
        for other in others:
            for (part, figure), gap in other.gaps.items():
                self.miss(part, (figure,), gap)

    def by_label(self) -> Iterator[tuple[str, Tally]]:
        """The tally of each label of which something is not 0, or not known."""
        split: dict[str, Tally] = {}
        for part, row in self.rows.items():
            if any(row):
                split.setdefault(part.label, Tally()).rows[part] = row
        for (part, figure), gap in self.gaps.items():
            split.setdefault(part.label, Tally()).gaps[part, figure] = gap
        return iter(split.items())

    def total(self, figure: Figure) -> int | None:
        """The sum over all parts, `None` where some of it is not known."""
        return None if self.why_unknown(figure) else self.known[FIGURES.index(figure)]

    def why_unknown(self, figure: Figure) -> str:
        """Why a figure has no total; nothing where it has one."""
        gap = self.first_gap(figure)
        if gap is not None:
            return str(gap)
        return TOO_LARGE if any(row[FIGURES.index(figure)] > MAX_COUNT for row in self.rows.values()) else ""

    def first_gap(self, figure: Figure) -> Gap | None:
        """The gap that stands first in the text."""
        return min((gap for (_, of), gap in self.gaps.items() if of == figure), default=None) if self.gaps else None

    @property
    def known(self) -> tuple[int, ...]:
        """The sums over all parts, one for each of `FIGURES`, as far as they are known."""
        return tuple(map(sum, zip(*self.rows.values(), strict=True))) or (0,) * len(FIGURES)

    @property
    def work(self) -> Work:
        """The work of all parts; raises `UnknownCostError` where some of it is not known."""
        for figure in WORK:
            gap = self.first_gap(figure)
            if gap is not None:
                raise UnknownCostError(gap.reason, gap)
        return Work(*self.known[: len(WORK)])
