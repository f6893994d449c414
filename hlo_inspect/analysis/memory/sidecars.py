"""The files about memory beside a text in a dump directory: which there are, whether they are of the same module, and their
figures in the place of computed ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.memory.platforms import PRESET_SPACES, Platform
from hlo_inspect.analysis.memory.program_memory import ProgramMemory
from hlo_inspect.analysis.memory.sidecar_files import (
    BufferAssignmentFile,
    LiveRangeFile,
    peak_bytes,
    read_buffer_assignment,
    read_live_range,
)
from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern

_ENDS = ("", ".gz", ".bz2", ".xz", ".zst")
_STEM = lazy_pattern(r"(.+?)(?:\.txt|\.hlo)?(?:\.gz|\.bz2|\.xz|\.zst)?", re.ASCII)
ASSIGNMENT, RANGES = "-buffer-assignment.txt", "-live-range.txt"

_LEAST_KNOWN = 0.9
"""The share of the values of a file that the module has to define."""

_File = TypeVar("_File")


@dataclass(frozen=True, slots=True)
class Sidecars:
    """What the files say. `found` are their names; `refused` says why files beside the text are not used."""

    assignment: BufferAssignmentFile | None = None
    ranges: LiveRangeFile | None = None
    found: tuple[str, ...] = ()
    refused: str = ""

    @property
    def peak_bytes(self) -> int | None:
        """Static part and highest point of the heap; `None` where the files do not state it."""
        if self.assignment is None or self.ranges is None:
            return None
        if any(one.color in PRESET_SPACES for one in self.assignment.allocations):
            return None  # the heaps of memories on the chip compete with that of space 0 for the peak
        return peak_bytes(self.assignment, self.ranges)


NO_SIDECARS = Sidecars()


def find_sidecars(module: Module, views: Views) -> Sidecars:
    """The files beside the text of a module, as far as their values are those of the module."""
    path = Path(module.path)
    if module.first_line > _HEADER_LINES or not _is_file(path):
        return NO_SIDECARS
    found: list[str] = []

    def read(end: str, reader: Callable[[Iterator[str]], _File]) -> _File | None:
        beside = _beside(path, end)
        if beside is None:
            return None
        try:
            content = reader(_lines(beside))
        except HloInspectError:
            return None
        found.append(beside.name)
        return content

    assignment = read(ASSIGNMENT, read_buffer_assignment)
    ranges = read(RANGES, read_live_range)
    refused = _why_refused(assignment, ranges, views)
    if refused:
        return Sidecars(found=tuple(found), refused=refused)
    return Sidecars(assignment, ranges, tuple(found))


def files_beside(text: str) -> list[Path]:
    """The files about memory beside the text of that name, of this module or of another one."""
    return [beside for end in (ASSIGNMENT, RANGES) if (beside := _beside(Path(text), end)) is not None]


def _beside(text: Path, end: str) -> Path | None:
    """The file beside a text whose name ends so, compressed or not; `None` where there is none."""
    match = _STEM.fullmatch(text.name)
    if match is None:
        return None
    return next((beside for compressed in _ENDS if _is_file(beside := text.with_name(match[1] + end + compressed))), None)


_HEADER_LINES = 100
"""A text that starts later in its file is one of several, or in a log."""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _lines(path: Path) -> Iterator[str]:
    for piece in open_source(path).pieces():
        yield from piece.splitlines()


def _why_refused(assignment: BufferAssignmentFile | None, ranges: LiveRangeFile | None, views: Views) -> str:
    """Why files are not of the module: most of their instructions are not in it."""
    named = {value.name for one in assignment.allocations for value in one.values} if assignment is not None else set()
    named |= {name for name, _ in ranges.ranges} if ranges is not None else set()
    if not named:
        return ""
    defined = {row.removeprefix("%") for computation in views.computations.values() for row in computation.rows.names}
    known = len(named & defined)
    if known < _LEAST_KNOWN * len(named):
        return f"{len(named) - known} of the {len(named)} instructions that they name are not in the module"
    return ""


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
