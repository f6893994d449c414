"""The files about memory beside a text in a dump directory: which there are, and whether they are of the same module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hlo_inspect.analysis.memory.platforms import PRESET_SPACES
from hlo_inspect.analysis.memory.sidecar_files import (
    BufferAssignmentFile,
    LiveRangeFile,
    peak_bytes,
    read_buffer_assignment,
    read_live_range,
)
from hlo_inspect.analysis.view import Views
from hlo_inspect.errors import HloInspectError
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.source import open_source
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
        """Static part and highest point of the heap; `None` where the files do not tell."""
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
