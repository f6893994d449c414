"""What costs are counted in, and sums of them by a label that keep apart what could not be counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

Figure = Literal["flops", "transcendentals", "matmul_flops", "bytes"]

WORK: tuple[Figure, ...] = ("flops", "transcendentals", "matmul_flops")
FIGURES: tuple[Figure, ...] = (*WORK, "bytes")


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
    """Sums of the four figures by label (an opcode, a kind, a line of source), and where they have gaps."""

    __slots__ = ("gaps", "sums")

    def __init__(self) -> None:
        self.sums: dict[Figure, dict[str, int]] = {figure: {} for figure in FIGURES}
        self.gaps: dict[Figure, dict[str, Gap]] = {figure: {} for figure in FIGURES}

    def add(self, figure: Figure, label: str, amount: int) -> None:
        if amount:
            sums = self.sums[figure]
            sums[label] = sums.get(label, 0) + amount

    def add_work(self, label: str, work: Work) -> None:
        for figure, amount in zip(WORK, work, strict=True):
            self.add(figure, label, amount)

    def miss(self, figures: Iterable[Figure], label: str, gap: Gap) -> None:
        """Notes that a figure of this label is not known."""
        for figure in figures:
            self.gaps[figure].setdefault(label, gap)

    def add_all(
        self, other: Tally, *, figures: Iterable[Figure] = FIGURES, times: int | Gap = 1, under: str | None = None
    ) -> None:
        """Adds the sums and gaps of `other` so many times, all `under` one label if that is given.

        Where the number of times is not known (a `Gap`), whatever is not 0 becomes unknown.
        """
        for figure in figures:
            for label, amount in other.sums[figure].items():
                if isinstance(times, Gap):
                    self.miss((figure,), under or label, times)
                else:
                    self.add(figure, under or label, amount * times)
            for label, gap in other.gaps[figure].items():
                if times != 0:
                    self.miss((figure,), under or label, gap)

    def add_largest(self, others: Iterable[Tally]) -> None:
        """Adds of each figure the tally in which it is largest."""
        known = list(others)
        for figure in FIGURES:
            if known:
                largest = max(known, key=lambda tally: sum(tally.sums[figure].values()))
                self.add_all(largest, figures=(figure,))
            for other in known:
                self.gaps[figure] = other.gaps[figure] | self.gaps[figure]

    def get(self, figure: Figure, label: str) -> int | None:
        """The sum of a label, `None` where part of it is not known."""
        return None if label in self.gaps[figure] else self.sums[figure].get(label, 0)

    def total(self, figure: Figure) -> int | None:
        """The sum over all labels, `None` where part of it is not known."""
        return None if self.gaps[figure] else sum(self.sums[figure].values())

    def first_gap(self, figure: Figure) -> Gap | None:
        """The gap that stands first in the text."""
        return min(self.gaps[figure].values(), default=None)

    def labels(self) -> set[str]:
        """Every label of which something is not 0, or not known."""
        return {label for table in (self.sums, self.gaps) for figure in FIGURES for label in table[figure]}

    @property
    def work(self) -> Work:
        """The work of all labels; raises `UnknownCostError` where part of it is not known."""
        for figure in WORK:
            gap = self.first_gap(figure)
            if gap is not None:
                raise UnknownCostError(gap.reason, gap)
        return Work(*(sum(self.sums[figure].values()) for figure in WORK))
