"""What one instruction costs, all figures together."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.analysis.cost.model import WORK, Figure, Gap, Part, Tally

CUSTOM_CALL = "custom-call"


@dataclass(frozen=True, slots=True, eq=False)
class Cost:
    """The cost of one run of an instruction; a figure with a gap is not known. Instructions that are alike share one.

    `work` is by the opcodes that do it: of a fusion those inside of it. `amounts` are the sums, one for each of `FIGURES`.
    `as_xla` and `gaps_of_xla` are the same without custom calls, but for their matrix multiplications, which XLA does not tell
    apart.
    """

    opcode: str
    work: Tally
    amounts: tuple[int, ...]
    gaps: dict[Figure, Gap]
    as_xla: tuple[int, ...]
    gaps_of_xla: dict[Figure, Gap]

    @classmethod
    def of(cls, opcode: str, work: Tally, size: int | Gap) -> Cost:
        """From the work of an instruction and the bytes that it accesses."""
        amounts, gaps = _figures(work, size)
        called = [part for part in (*work.rows, *(part for part, _ in work.gaps)) if part.label == CUSTOM_CALL]
        if not called:
            return cls(opcode, work, amounts, gaps, amounts, gaps)
        counted = Tally()
        counted.rows = {part: row for part, row in work.rows.items() if part.label != CUSTOM_CALL}
        counted.gaps = {place: gap for place, gap in work.gaps.items() if place[0].label != CUSTOM_CALL}
        (flops, transcendentals, *_, moved), gaps_of_xla = _figures(counted, 0 if opcode == CUSTOM_CALL else size)
        if "matmul_flops" in gaps:
            gaps_of_xla["matmul_flops"] = gaps["matmul_flops"]
        return cls(opcode, work, amounts, gaps, (flops, transcendentals, amounts[2], moved), gaps_of_xla)

    @classmethod
    def unknown(cls, opcode: str, gap: Gap) -> Cost:
        """The cost of an instruction of which nothing can be told."""
        work = Tally()
        work.miss(Part(opcode), WORK, gap)
        return cls.of(opcode, work, gap)


def _figures(work: Tally, size: int | Gap) -> tuple[tuple[int, ...], dict[Figure, Gap]]:
    """The amounts of all figures, and why some of them are not known."""
    gaps: dict[Figure, Gap] = {}
    for figure in WORK if work.gaps else ():
        gap = work.first_gap(figure)
        if gap is not None:
            gaps[figure] = gap
    if isinstance(size, Gap):
        gaps["bytes"] = size
        size = 0
    return (*work.known[: len(WORK)], size), gaps
