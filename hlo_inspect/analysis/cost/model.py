"""What costs are counted in, and sums of them by a label that keep apart what could not be counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


class Tally:
    """Sums of the figures by label (an opcode, a kind, a line of source), and which of them have gaps.

    A row holds one amount for each of `FIGURES`.
    """

    __slots__ = ("gaps", "rows")

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.gaps: dict[tuple[str, Figure], Gap] = {}

    def add(self, label: str, amounts: Sequence[int]) -> None:
        """Adds amounts of the first few figures."""
        row = self.rows.get(label)
        if row is None:
            row = self.rows[label] = [0] * len(FIGURES)
        for i, amount in enumerate(amounts):
            row[i] += amount

    def add_one(self, label: str, column: int, amount: int) -> None:
        row = self.rows.get(label)
        if row is None:
            row = self.rows[label] = [0] * len(FIGURES)
        row[column] += amount

    def miss(self, label: str, figures: Iterable[Figure], gap: Gap) -> None:
        """Notes that figures of this label are not known."""
        for figure in figures:
            self.gaps.setdefault((label, figure), gap)

    def add_all(self, other: Tally, times: int | Gap = 1) -> None:
        """Adds the sums and gaps of `other` so many times. Where that is not known, all that is not 0 becomes unknown."""
        for label, row in other.rows.items():
            if isinstance(times, Gap):
                self.miss(label, [figure for figure, amount in zip(FIGURES, row, strict=True) if amount], times)
            else:
                self.add(label, row if times == 1 else [amount * times for amount in row])
        if times != 0:
            for (label, figure), gap in other.gaps.items():
                self.miss(label, (figure,), gap)

    def add_largest(self, others: Sequence[Tally]) -> None:
        """Adds of each figure the tally in which it is largest, and the gaps of all."""
        for i in range(len(FIGURES) if others else 0):
            amounts = [other.known[i] for other in others]
            for label, row in others[amounts.index(max(amounts))].rows.items():
                self.add_one(label, i, row[i])
        for other in others:
            for (label, figure), gap in other.gaps.items():
                self.miss(label, (figure,), gap)

    def get(self, label: str, figure: Figure) -> int | None:
        """The sum of a label, `None` where part of it is not known."""
        row = self.rows.get(label)
        amount = row[FIGURES.index(figure)] if row else 0
        return None if (label, figure) in self.gaps or amount > MAX_COUNT else amount

    def total(self, figure: Figure) -> int | None:
        """The sum over all labels, `None` where part of it is not known."""
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
        """The sums over all labels, one for each of `FIGURES`, as far as they are known."""
        return tuple(map(sum, zip(*self.rows.values(), strict=True))) or (0,) * len(FIGURES)

    @property
    def labels(self) -> set[str]:
        """Every label of which something is not 0, or not known."""
        return {label for label, row in self.rows.items() if any(row)} | {label for label, _ in self.gaps}

    @property
    def work(self) -> Work:
        """The work of all labels; raises `UnknownCostError` where part of it is not known."""
        for figure in WORK:
            gap = self.first_gap(figure)
            if gap is not None:
                raise UnknownCostError(gap.reason, gap)
        return Work(*self.known[: len(WORK)])
