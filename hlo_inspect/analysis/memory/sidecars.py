"""Memory files beside a text in a dump directory. Their figures replace computed figures if the module matches.

Buffer assignments have the form of `BufferAssignment::ToString` and `MemoryUsageReport` (xla/service/buffer_assignment.cc).
Live ranges have the form of `HloLiveRange::ToString` (xla/hlo/utils/hlo_live_range.cc). Files of 2024 have `Total bytes used`
and a list of allocations; files of 2026 have a table for each memory space. Other lines are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.memory.platforms import PRESET_SPACES, Platform
from hlo_inspect.analysis.memory.program_memory import FIGURES, PARTS_OF_NEEDED, ProgramMemory, StatedFigure
from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.lazy_pattern import lazy_pattern

ValueName = tuple[str, ShapeIndex]
"""The instruction that defines a value, and the index into its result."""

_ALLOCATION = lazy_pattern(r"allocation (\d{1,18}): size (\d{1,18})(?:, (.*))?:\s*$", re.ASCII)
_SHAPE = lazy_pattern(r"\|[^|]*+\|")
_COLOR = lazy_pattern(r"(?:^|, )color (\d{1,9})", re.ASCII)
_PARAMETER = lazy_pattern(r"(?:^|, )parameter (\d{1,9}), shape (?: at ShapeIndex \{([\d,]*+)\})?", re.ASCII)
_VALUE = lazy_pattern(
    r"\s*value: <\d{1,18} ([^\s{}<>]++)(?:\{([\d,]*+)\})?(?: \(phi\))?(?: @(\d{1,9}))?> "
    r"\(size=(\d{1,18}),offset=(\d{1,18})\): (.*)",
    re.ASCII,
)
_RANGE = lazy_pattern(r"\s+([^\s{}]++)\{([\d,]*+)\}:(\d{1,18})-(\d{1,18})\s*$", re.ASCII)
_ORDER = lazy_pattern(r"\s+(\d{1,18}):(\S++)\s*$", re.ASCII)
_AT_PEAK = lazy_pattern(r"\s+([^\s{}]++)\{([\d,]*+)\}: (\d{1,18}) bytes", re.ASCII)
_PEAK = lazy_pattern(r"\s*Live ranges at (\d{1,18}) \(peak\)", re.ASCII)
_SPACE = lazy_pattern(r"Memory Space: (.*?) \(color=(\d{1,9})\)", re.ASCII)
_TOTAL = lazy_pattern(r"Total bytes(?: used)?: (\d{1,18})\b", re.ASCII)


class PlacedValue(NamedTuple):
    """A value in an allocation: `size` bytes from `offset` on, of the shape as the file writes it."""

    name: str
    element: ShapeIndex
    color: int
    size: int
    offset: int
    shape: str

    @property
    def is_table(self) -> bool:
        """True for the index table of a tuple."""
        return self.shape.startswith("(")


@dataclass(slots=True)
class PlacedAllocation:
    """An allocation of the file. `parameter` is the number and index of the entry's parameter that it holds."""

    number: int
    size: int
    color: int = 0
    parameter: tuple[int, ShapeIndex] | None = None
    is_constant: bool = False
    is_thread_local: bool = False
    is_live_out: bool = False
    is_temp: bool = False
    values: list[PlacedValue] = field(default_factory=list)


class BufferAssignmentFile(NamedTuple):
    """The content of `-buffer-assignment.txt`."""

    allocations: tuple[PlacedAllocation, ...]

    @property
    def argument_bytes(self) -> int:
        return sum(allocation.size for allocation in self.allocations if allocation.parameter is not None)

    @property
    def output_bytes(self) -> int:
        return sum(allocation.size for allocation in self.allocations if allocation.is_live_out)

    @property
    def alias_bytes(self) -> int:
        return sum(part.size for part in self.allocations if part.is_live_out and part.parameter is not None)

    @property
    def constant_bytes(self) -> int:
        return sum(part.size for part in self.allocations if part.is_constant and not part.is_thread_local)

    @property
    def temp_bytes(self) -> dict[int, int]:
        """Bytes of temporaries by memory space."""
        peaks: dict[int, int] = {}
        for allocation in self.allocations:
            if allocation.is_temp:
                peaks[allocation.color] = peaks.get(allocation.color, 0) + allocation.size
        return peaks

    @property
    def static_bytes(self) -> int:
        """Parameters, constants and outputs, each once."""
        kept = (allocation for allocation in self.allocations if not allocation.is_thread_local)
        return sum(part.size for part in kept if part.parameter is not None or part.is_constant or part.is_live_out)


class LiveRangeFile(NamedTuple):
    """The content of `-live-range.txt`: schedule, live ranges, and the values that XLA lists at its peak.

    That peak counts parameters up to their last use.
    """

    schedule: tuple[str, ...]
    ranges: dict[ValueName, tuple[int, int]]
    peak: int | None
    at_peak: tuple[tuple[ValueName, int], ...]


class UsageReportFile(NamedTuple):
    """`-memory-usage-report.txt`: all bytes of each memory space, by its number; a file of 2024 counts them together as 0."""

    totals: dict[int, int]
    names: dict[int, str]


def read_buffer_assignment(lines: Iterable[str]) -> BufferAssignmentFile:
    """Return the allocations with their values. Stop before the descriptions of values in the older form."""
    allocations: list[PlacedAllocation] = []
    for line in lines:
        if line.startswith("allocation "):
            allocation = _allocation(line)
            if allocation is not None:
                allocations.append(allocation)
        elif allocations and (value := _VALUE.match(line)) is not None:
            name, index, color, size, offset, shape = value.groups()
            allocations[-1].values.append(PlacedValue(name, _index(index), int(color or 0), int(size), int(offset), shape))
        elif line.startswith("Used values:"):
            break
    return BufferAssignmentFile(tuple(allocations))


def _allocation(line: str) -> PlacedAllocation | None:
    match = _ALLOCATION.match(_SHAPE.sub("", line))
    if match is None:
        return None
    number, size, words = match[1], match[2], match[3] or ""
    color, parameter = _COLOR.search(words), _PARAMETER.search(words)
    listed = words.split(", ")
    return PlacedAllocation(
        int(number),
        int(size),
        int(color[1]) if color else 0,
        (int(parameter[1]), _index(parameter[2])) if parameter else None,
        "constant" in listed,
        "thread-local" in listed,
        "maybe-live-out" in listed,
        "preallocated-temp" in listed,
    )


def read_live_range(lines: Iterable[str]) -> LiveRangeFile:
    """Read the schedule, the live ranges and XLA's own peak."""
    schedule: list[str] = []
    ranges: dict[ValueName, tuple[int, int]] = {}
    peak: int | None = None
    at_peak: list[tuple[ValueName, int]] = []
    for line in lines:
        if peak is not None:
            if (value := _AT_PEAK.match(line)) is not None:
                at_peak.append(((value[1], _index(value[2])), int(value[3])))
        elif (match := _RANGE.match(line)) is not None:
            ranges[match[1], _index(match[2])] = (int(match[3]), int(match[4]))
        elif (order := _ORDER.match(line)) is not None:
            schedule.append(order[2])
        elif (moment := _PEAK.match(line)) is not None:
            peak = int(moment[1])
    return LiveRangeFile(tuple(schedule), ranges, peak, tuple(at_peak))


def read_usage_report(lines: Iterable[str]) -> UsageReportFile:
    """Read the bytes of each memory space."""
    totals: dict[int, int] = {}
    names: dict[int, str] = {}
    color = 0
    for line in lines:
        if (space := _SPACE.match(line)) is not None:
            color = int(space[2])
            names[color] = space[1]
        elif (total := _TOTAL.match(line)) is not None:
            totals[color] = totals.get(color, 0) + int(total[1])
    return UsageReportFile(totals, names)


def _index(text: str | None) -> ShapeIndex:
    return tuple(int(part) for part in text.split(",") if part and len(part) < 10) if text else ()


# -- the peak ---------------------------------------------------------------------------------------------------------------


def peak_bytes(assignment: BufferAssignmentFile, ranges: LiveRangeFile) -> int:
    """Return the static allocations plus the peak of the heap in space 0 (`ComputePeakMemoryImpl`).

    Values at one offset that are live at once share a buffer, which is as large as the largest. No heap holds index tables of
    tuples.
    """
    heap = [
        value
        for allocation in assignment.allocations
        if allocation.is_temp and allocation.color == 0
        for value in allocation.values
    ]
    spans = {value: ranges.ranges.get((value.name, value.element)) for value in heap if not value.is_table}
    stated = {value: span for value, span in spans.items() if span is not None}
    time = _highest(stated)
    at_offset: dict[int, int] = {}
    for value, (start, end) in stated.items():
        if start <= time <= end:
            at_offset[value.offset] = max(at_offset.get(value.offset, 0), value.size)
    return assignment.static_bytes + sum(at_offset.values())


def _highest(spans: dict[PlacedValue, tuple[int, int]]) -> int:
    """Return the first time at which the values take most bytes; values at one offset count once."""
    by_offset: dict[int, list[tuple[int, int, int]]] = {}
    for value, (start, end) in spans.items():
        by_offset.setdefault(value.offset, []).append((start, end, value.size))
    changes: dict[int, int] = {}
    for values in by_offset.values():
        for start, end, size in _join_spans(sorted(values)):
            changes[start] = changes.get(start, 0) + size
            changes[end + 1] = changes.get(end + 1, 0) - size
    live = highest = time = 0
    for moment in sorted(changes):
        live += changes[moment]
        if live > highest:
            highest, time = live, moment
    return time


def _join_spans(spans: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    joined: list[tuple[int, int, int]] = []
    for start, end, size in spans:
        if joined and start <= joined[-1][1]:
            first, last, largest = joined[-1]
            joined[-1] = (first, max(last, end), max(largest, size))
        else:
            joined.append((start, end, size))
    return joined


_ENDS = ("", ".gz", ".bz2", ".xz", ".zst")
_STEM = lazy_pattern(r"(.+?)(?:\.txt|\.hlo)?(?:\.gz|\.bz2|\.xz|\.zst)?", re.ASCII)
ASSIGNMENT, RANGES = "-buffer-assignment.txt", "-live-range.txt"

_LEAST_KNOWN = 0.9
"""The share of the values of a file that the module has to define."""

_File = TypeVar("_File")


class Sidecars(NamedTuple):
    """The content of the files. `found` are their names; `refused` says why they are not used."""

    assignment: BufferAssignmentFile | None = None
    ranges: LiveRangeFile | None = None
    found: tuple[str, ...] = ()
    refused: str = ""

    @property
    def peak_bytes(self) -> int | None:
        """The static part plus the peak of the heap; None if the files do not state it."""
        if self.assignment is None or self.ranges is None:
            return None
        if any(allocation.color in PRESET_SPACES for allocation in self.assignment.allocations):
            return None  # the heaps of memories on the chip compete with the heap of space 0 for the peak
        return peak_bytes(self.assignment, self.ranges)


NO_SIDECARS = Sidecars()


def find_sidecars(module: Module, views: Views) -> Sidecars:
    """Read the files beside the text of a module, unless most of their values are not in the module."""
    path = Path(module.path)
    if module.first_line > _HEADER_LINES or not _is_file(path):
        return NO_SIDECARS
    names: list[str] = []

    def read(end: str, reader: Callable[[Iterator[str]], _File]) -> _File | None:
        sidecar = _sidecar_path(path, end)
        if sidecar is None:
            return None
        try:
            content = reader(_lines(sidecar))
        except HloInspectError:
            return None
        names.append(sidecar.name)
        return content

    assignment = read(ASSIGNMENT, read_buffer_assignment)
    ranges = read(RANGES, read_live_range)
    refused = _refusal_reason(assignment, ranges, views)
    if refused:
        return Sidecars(found=tuple(names), refused=refused)
    return Sidecars(assignment, ranges, tuple(names))


def files_beside(text: str) -> list[Path]:
    """Return the files about memory beside the text of that name, of this module or of another one."""
    return [path for end in (ASSIGNMENT, RANGES) if (path := _sidecar_path(Path(text), end)) is not None]


def _sidecar_path(text: Path, end: str) -> Path | None:
    """Return the file beside a text with this end of its name, compressed or not; None if there is none."""
    match = _STEM.fullmatch(text.name)
    if match is None:
        return None
    return next((path for compressed in _ENDS if _is_file(path := text.with_name(match[1] + end + compressed))), None)


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


def _refusal_reason(assignment: BufferAssignmentFile | None, ranges: LiveRangeFile | None, views: Views) -> str:
    """Return the reason to refuse files: most of their instructions are not in the module. Empty if they match."""
    allocations = assignment.allocations if assignment is not None else ()
    named = {value.name for allocation in allocations for value in allocation.values}
    named |= {name for name, _ in ranges.ranges} if ranges is not None else set()
    if not named:
        return ""
    defined = {row.removeprefix("%") for computation in views.computations.values() for row in computation.rows.names}
    common = len(named & defined)
    if common < _LEAST_KNOWN * len(named):
        return f"{len(named) - common} of the {len(named)} instructions that they name are not in the module"
    return ""


def stated_figures(sidecars: Sidecars, platform: Platform) -> dict[str, int]:
    """Return the figures of the files. On TPU, `memory_analysis()` has other temporaries than the buffer assignment."""
    assignment = sidecars.assignment
    if assignment is None:
        return {}
    figures = {name: int(getattr(assignment, name)) for name in FIGURES[:4]}
    if not platform.is_tpu:
        figures["temp_bytes"] = assignment.temp_bytes.get(0, 0)
        peak = sidecars.peak_bytes
        if peak is not None:
            figures["peak_bytes"] = peak
    return figures


def with_stated(memory: ProgramMemory, sidecars: Sidecars) -> ProgramMemory:
    """Return the memory with the figures that XLA's files state."""
    sizes = stated_figures(sidecars, memory.platform)
    stated = tuple(StatedFigure(name, size, memory.figures.get(name)) for name, size in sizes.items())
    if not stated:
        return memory
    figures = {**memory.figures, **sizes}
    if "temp_bytes" in sizes:
        figures["xla_temp_bytes"] = sizes["temp_bytes"]
    parts = [figures[name] for name in PARTS_OF_NEEDED]
    if None not in parts and (figures.get("needed_bytes") is None or any(figure.differs for figure in stated)):
        figures["needed_bytes"] = sum(part or 0 for part in parts) - (figures["alias_bytes"] or 0)
    reasons = {name: reason for name, reason in memory.reasons.items() if figures.get(name) is None}
    return memory._replace(figures=figures, reasons=reasons, stated=stated)
