"""The figures of XLA's own files about memory in the place of computed ones, and where the two differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.analysis.memory.program_memory import ProgramMemory
from hlo_inspect.analysis.memory.sidecars import Sidecars

TOLERANCES: Mapping[str, float] = {
    "argument_bytes": 0.0,
    "output_bytes": 0.0,
    "alias_bytes": 0.0,
    "constant_bytes": 0.0,
    "temp_bytes": 0.01,
    "peak_bytes": 0.01,
}
"""The accuracy with which figures are worked out, as a share of what XLA says."""


class StatedFigure(NamedTuple):
    """A figure that XLA's files state, beside the one that was worked out, `None` where it could not be."""

    name: str
    stated: int
    computed: int | None

    @property
    def differs(self) -> bool:
        """Whether the two differ by more than the accuracy of the computed one."""
        if self.computed is None:
            return False
        return abs(self.stated - self.computed) > TOLERANCES[self.name] * self.stated


def stated_figures(sidecars: Sidecars, platform: Platform) -> dict[str, int]:
    """What the files say. On TPU the temporaries of `memory_analysis()` are not those of the buffer assignment."""
    assignment = sidecars.assignment
    if assignment is None:
        return {}
    found = {
        "argument_bytes": assignment.argument_bytes,
        "output_bytes": assignment.output_bytes,
        "alias_bytes": assignment.alias_bytes,
        "constant_bytes": assignment.constant_bytes,
    }
    if not platform.is_tpu:
        found["temp_bytes"] = assignment.temp_bytes.get(0, 0)
        peak = sidecars.peak_bytes
        if peak is not None:
            found["peak_bytes"] = peak
    return found


def with_stated(memory: ProgramMemory, sidecars: Sidecars) -> tuple[ProgramMemory, list[StatedFigure]]:
    """The memory of a program with the figures that XLA's files state, and these beside what was worked out."""
    stated = stated_figures(sidecars, memory.platform)
    figures = [StatedFigure(name, size, memory.figures.get(name)) for name, size in stated.items()]
    if not figures:
        return memory, []
    known = {**memory.figures, **stated}
    parts = [known[name] for name in ("argument_bytes", "output_bytes", "alias_bytes", "constant_bytes", "temp_bytes")]
    if known.get("needed_bytes") is None or any(one.differs for one in figures):
        argument, output, alias, constant, temp = parts
        if None not in parts:
            known["needed_bytes"] = (argument or 0) + (output or 0) - (alias or 0) + (constant or 0) + (temp or 0)
    reasons = {name: reason for name, reason in memory.reasons.items() if known.get(name) is None}
    return replace(memory, figures=known, reasons=reasons), figures
