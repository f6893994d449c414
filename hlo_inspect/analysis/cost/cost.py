"""What one instruction costs, all figures together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlo_inspect.analysis.collectives import KINDS, OLD_NAMES, POINT_TO_POINT
from hlo_inspect.analysis.cost.model import WORK, Figure, Gap, Tally, Work
from hlo_inspect.hlo.opcodes import base_opcode

CUSTOM_CALL = "custom-call"

_COLLECTIVES = frozenset({*KINDS, *POINT_TO_POINT, *OLD_NAMES})
_REDUCTIONS = frozenset({"reduce", "reduce-window", "scan", "select-and-scatter", "sort", "topk"})


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of an instruction; a figure with a gap is not known.

    `work` is by the opcodes that do it: of a fusion those inside of it. `amounts` are the sums, one for each of `FIGURES`,
    and `as_xla` the same without custom calls, but for their matrix multiplications, which XLA does not tell apart.
    """

    opcode: str
    work: Tally
    amounts: tuple[int, ...]
    as_xla: tuple[int, ...]
    kind: str
    gaps: dict[Figure, Gap]

    @classmethod
    def of(cls, opcode: str, work: Tally, size: int | Gap) -> Cost:
        """From the work of an instruction and the bytes that it accesses."""
        gaps: dict[Figure, Gap] = {}
        for figure in WORK if work.gaps else ():
            gap = work.first_gap(figure)
            if gap is not None:
                gaps[figure] = gap
        if isinstance(size, Gap):
            gaps["bytes"] = size
            size = 0
        done = Work(*work.known[: len(WORK)])
        amounts = (*done, size)
        kind = kind_of(opcode, done, work.rows)
        return cls(opcode, work, amounts, _as_xla(opcode, work, amounts), kind, gaps)


def _as_xla(opcode: str, work: Tally, amounts: tuple[int, ...]) -> tuple[int, ...]:
    calls = work.rows.get(CUSTOM_CALL)
    if calls is None:
        return amounts
    flops, transcendentals, matmul_flops, size = amounts
    return (flops - calls[0], transcendentals - calls[1], matmul_flops, 0 if opcode == CUSTOM_CALL else size)


def kind_of(opcode: str, work: Work, inside: Iterable[str]) -> str:
    """What an instruction is for, in a word or two; `inside` are the opcodes that do its work."""
    if work.matmul_flops:
        return "matmul"
    if base_opcode(opcode) in _COLLECTIVES:
        return "collective"
    if opcode == CUSTOM_CALL:
        return "custom call"
    if opcode in _REDUCTIONS or not _REDUCTIONS.isdisjoint(inside):
        return "reduction"
    return "elementwise" if work.flops or work.transcendentals else "data movement"
