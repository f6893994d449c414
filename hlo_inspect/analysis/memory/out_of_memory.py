"""XLA's out-of-memory reports in logs.

TPU's compiler prints `Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm.`, a breakdown, and the largest
allocations with their padding. Its runtime prints `Attempting to reserve 3.95G at the bottom of memory. That was not possible.
There are 1.92G free`, perhaps followed by the same lists. On GPU an allocation that fails prints `BufferAssignment OOM
Debugging.`, the sums of the buffer assignment and the buffers at its peak (`BufferAssignment::ToVerboseString`). A warning of
rematerialization (`hlo_rematerialization.cc`) has the limit and what it could not go below. Printed sizes are rounded; exact
sizes of arrays follow from their shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hlo_inspect.hlo.pasted.logs import OUT_OF_MEMORY
from hlo_inspect.hlo.values.shape_text import ShapeError, parse_shape
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape
from hlo_inspect.lazy_pattern import lazy_pattern

_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate("BKMGTP")}
_SIZE = r"(\d{1,18}(?:\.\d{1,6})?) ?([BKMGTP])(?:iB|B)?(?!\w|\.\d)"
_USED = lazy_pattern(rf"Used {_SIZE} of {_SIZE} \w++\. Exceeded \w++ capacity by {_SIZE}", re.ASCII)
_REMATERIALIZED = lazy_pattern(
    r"Can't reduce memory use below \S{1,20} \((\d{1,18}) bytes\) by rematerialization; only reduced to \S{1,20} "
    r"\((\d{1,18}) bytes\), down from \S{1,20} \((\d{1,18}) bytes\)",
    re.ASCII,
)
_WANTED = lazy_pattern(
    rf"(?:(?i:out of memory)(?: while trying to allocate| allocating)|Attempting to (?:allocate|reserve)) "
    rf"(?:(\d{{1,18}}) bytes|{_SIZE})",
    re.ASCII,
)
_FREE = lazy_pattern(rf"There (?:are|is) {_SIZE} free", re.ASCII)
_STACK = lazy_pattern(r"Ran out of memory in memory space (\w++) while allocating on stack for (%?\S++) = ", re.ASCII)
_PART = lazy_pattern(
    r"(?:^|\s)([A-Za-z][A-Za-z_ ]{0,80}?)(?: ?\([A-Za-z/ ]*+\))?(?: allocation:| fragmentation:)?"
    rf"\s++{_SIZE}(?: \(.{{0,200}}\))?(?: \[[^\]]{{0,200}}+\])?\s*+$",
    re.ASCII,
)
"""A line of the breakdown of a report. Lengths are bounded, since a part can begin at each blank."""
_TOTAL = lazy_pattern(rf"(Total \w++ usage|Program \w++ requirement)(?: >=)? {_SIZE}", re.ASCII)
_OUTPUT = lazy_pattern(rf"Output size {_SIZE}; shares {_SIZE} with arguments", re.ASCII)
_FIRST = lazy_pattern(rf"(?:(?:^|\s)\d{{1,6}}\\?\. )?\bSize: {_SIZE}\s*$", re.ASCII)
_FIELD = lazy_pattern(
    r"\b(Operator|Entry Parameter Subshape|Shape|Unpadded size|XLA [Ll]abel|Allocation type): (.*)|(?:^|\s)(={10,})\s*$"
)
_LISTS = lazy_pattern(r"Largest program allocations in (\w++)|Peak buffers:")
_ATTRIBUTE = lazy_pattern(r'(\w++)=(?:"((?:[^"\\]|\\.)*+)"|(\d{1,9}))', re.ASCII)
_LABEL = lazy_pattern(r"%?([A-Za-z_][\w.\-]*+)(?: = |$)", re.ASCII)

_ROUNDING = 0.006
"""Sizes have at least two digits after the point from 1 on, one in KiB from 10 on."""


class ReportedAllocation(NamedTuple):
    """An allocation of the report: its rounded `printed_bytes`, and the `name` of the instruction, or its opcode."""

    printed_bytes: int
    shape: Shape | None
    shape_text: str
    name: str
    kind: str
    op_name: str
    source: str

    @property
    def size(self) -> int:
        """Bytes with padding: computed from the shape if they round to the printed size."""
        exact = self.shape.padded_bytes if isinstance(self.shape, ArrayShape) else None
        rounds = exact is not None and abs(exact - self.printed_bytes) <= _ROUNDING * self.printed_bytes
        return exact if exact is not None and rounds else self.printed_bytes

    @property
    def padding(self) -> int | None:
        """Padding in bytes, None if the shape does not state it."""
        plain = self.shape.bytes if self.shape is not None else None
        return max(0, self.size - plain) if plain is not None else None


@dataclass(slots=True)
class OutOfMemory:
    """An out-of-memory report. Sizes are bytes, None if the report does not have them.

    `line`: of the input, 1-based. `parts`: the breakdown, in the words of the report. `wanted`: the allocation that failed,
    with `free` bytes left. Without `says_failure` the report quotes only the lines below the failure. `exceeded`: the excess
    that XLA states. `before`: the bytes used before rematerialization, in a warning of it.
    """

    line: int
    space: str
    used: int | None = None
    capacity: int | None = None
    exceeded: int | None = None
    before: int | None = None
    wanted: int | None = None
    free: int | None = None
    wanted_for: str = ""
    says_failure: bool = True
    parts: dict[str, int] = field(default_factory=dict)
    largest: list[ReportedAllocation] = field(default_factory=list)


def read_reports(lines: Iterable[tuple[int, str]]) -> list[OutOfMemory]:
    """Read the reports among numbered lines of a log. Any prefix may precede XLA's words on a line.

    A report that is printed twice, as tracebacks do, is returned once.
    """
    reports: list[OutOfMemory] = []
    reader: _ReportReader | None = None
    for number, line in lines:
        if (warning := _REMATERIALIZED.search(line)) is not None:  # one line, in any other report
            limit, used, before = map(int, warning.groups())
            reports.append(OutOfMemory(number, "hbm", used, limit, max(0, used - limit), before, says_failure=False))
            continue
        mention = OUT_OF_MEMORY.search(line)
        if mention is not None and (reader is None or not reader.continues(mention)):
            reader = _ReportReader(OutOfMemory(number, mention[1] or mention[3] or "hbm", says_failure=not mention[3]))
            reports.append(reader.report)
        if reader is not None:
            reader.take(line)
    return list(_distinct(reports))


def _distinct(reports: Iterable[OutOfMemory]) -> Iterator[OutOfMemory]:
    seen = set()
    for report in reports:
        key = (
            report.space,
            report.used,
            report.before,
            report.wanted,
            report.wanted_for,
            tuple(report.parts.items()),
            tuple(report.largest),
        )
        if key not in seen and (report.used or report.wanted or report.largest or report.wanted_for):
            seen.add(key)
            yield report


class _ReportReader:
    """Reads the lines of one report."""

    def __init__(self, report: OutOfMemory) -> None:
        self.report = report
        self._in_list = False
        self._section = ""
        self._size: int | None = None
        self._fields: dict[str, str] = {}

    def continues(self, mention: re.Match[str]) -> bool:
        """Return True if a mention of memory belongs to this report.

        GPU prints such lines after the allocation that failed, TPU for the breakdown.
        """
        if mention[3]:
            return f"Total {mention[3]} usage" not in self.report.parts
        return bool(mention[2]) and not self.report.largest and self.report.used is None

    def take(self, line: str) -> None:
        if _LISTS.search(line):
            self._in_list = True
        elif self._in_list:
            self._take_allocation(line)
        else:
            self._take_total(line)

    def _take_total(self, line: str) -> None:
        report = self.report
        if (used := _USED.search(line)) is not None:
            report.used, report.capacity, report.exceeded = (_bytes(*used.group(first, first + 1)) for first in (1, 3, 5))
        if (wanted := _WANTED.search(line)) is not None:
            report.wanted = int(wanted[1]) if wanted[1] else _bytes(wanted[2], wanted[3])
        if (free := _FREE.search(line)) is not None:
            report.free = _bytes(free[1], free[2])
        if (stack := _STACK.search(line)) is not None:
            report.space, report.wanted_for = stack[1], stack[2].removeprefix("%")
        if (total := _TOTAL.search(line)) is not None:
            self._section = "program " if total[1].startswith("Program") else ""
            report.parts.setdefault(total[1], _bytes(total[2], total[3]))
        elif (output := _OUTPUT.search(line)) is not None:
            report.parts["output"] = _bytes(output[1], output[2])
            report.parts["output in arguments"] = _bytes(output[3], output[4])
        elif OUT_OF_MEMORY.search(line) is None and (part := _PART.search(line)) is not None:
            report.parts.setdefault(self._section + part[1].strip(), _bytes(part[2], part[3]))

    def _take_allocation(self, line: str) -> None:
        first = _FIRST.search(line)
        if first is not None:
            self._size, self._fields = _bytes(first[1], first[2]), {}
            return
        match = _FIELD.search(line)
        if match is None or self._size is None:
            return
        if match[1]:
            self._fields.setdefault(match[1].lower(), match[2].strip())
        else:
            self.report.largest.append(_reported(self._size, self._fields))
            self._size = None


def _reported(size: int, fields: dict[str, str]) -> ReportedAllocation:
    text = fields.get("shape", fields.get("entry parameter subshape", ""))
    try:
        shape = parse_shape(text) if text else None
    except ShapeError:
        shape = None
    operator = {name: quoted or number for name, quoted, number in _ATTRIBUTE.findall(fields.get("operator", ""))}
    label = _LABEL.match(fields.get("xla label", ""))
    file, line = operator.get("source_file", ""), operator.get("source_line", "")
    kind = fields.get("allocation type", "parameter" if "entry parameter subshape" in fields else "")
    return ReportedAllocation(
        size,
        shape,
        text,
        label[1] if label is not None else "",
        kind,
        operator.get("op_name", ""),
        f"{file}:{line}" if file and line else file,
    )


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit])
