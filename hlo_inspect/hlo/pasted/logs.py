"""Measurements and out-of-memory reports in the text around modules.

The log of a search has such measurements: `Mean cost: 147.64 ms (std: 4.85 ms)`. A number counts only after a key and a colon
or an equal sign. Numbers in brackets, also over several lines, take key and unit of the first `key: value` on the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlo_inspect.hlo.module import Measurement
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_KEPT = 1 << 17
"""Limit of measurements that are kept between two modules."""

MAX_LIST_CHARS = 1 << 20

_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})++|\d{1,300})?(?:\.\d{1,300})?(?:[eE][+-]?\d{1,4})?"
_UNIT = (
    r"%|(?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?|hours?|cycles?"
    r"|[KMGTP]i?B|[KMGT](?![A-Za-z])|[Bb]ytes?|B"
    r"|(?:[KMGTP]i?)?B/s|[KMGTP]?FLOPS?(?:/s)?|[KMGTP]?FLOPs|(?:tokens?|samples?|steps?|it|images?|examples?)/s(?:ec)?|W)\b"
)
_PAIR = lazy_pattern(
    r"(?:^|[,;|(\[\]]|:(?=[ \t])|[ \t](?=[\w./\-]+=))[ \t]*+"
    rf"(?P<key>[A-Za-z_][^:=,;|(){{}}\[\]\"'`<>\n]{{0,80}}?)[ \t]*+[:=][ \t]*+"
    rf"(?P<value>(?=[+-]?\.?\d){_NUMBER})(?:/(?P<of>\d{{1,18}}))?(?:[ \t]?(?P<unit>{_UNIT}))?(?![\w:/\-]|\.\d)",
    re.ASCII,
)
_CANDIDATE = lazy_pattern(r"[:=][ \t]*+[+-]?\.?\d|^[ \t]*+\[[ \t]*+[+-]?\.?\d", re.ASCII | re.MULTILINE)
_LIST_START = lazy_pattern(r"[ \t]*+\[(?=[ \t]*+[+-]?\.?\d)", re.ASCII)
_NUMBERS = lazy_pattern(rf"(?:[ \t,]*+(?=[+-]?\.?\d){_NUMBER}(?=[ \t,\]]|$))*+[ \t,]*+", re.ASCII)
_ELEMENT = lazy_pattern(rf"(?=[+-]?\.?\d){_NUMBER}", re.ASCII)
_CODE = lazy_pattern(
    r"[ \t]*+(?:def|class|return|import|from|for|while|if|elif|else|with|assert|@|>>>|#include|//|/\*|raise|print)\b"
    r"|[ \t]*+[\w.]++[ \t]++=[ \t]++[+-]?[\d.]++[ \t]*+(?:#|;|$)|.*\w\([^()]*=[^()]*\)|[ \t]*+(?:ROOT )?%[\w.\-]++ = ",
    re.ASCII,
)
_FILE = lazy_pattern(r"\.(?:cc|py|h|cpp|cu|rs|go|txt)$|//|^https?$", re.ASCII)

OUT_OF_MEMORY = lazy_pattern(
    r"Ran out of memory in memory space (\w++)|(BufferAssignment OOM Debugging)"
    r"|(?i:out of memory)(?: while trying to allocate| allocating) |Attempting to (?:allocate|reserve) \d"
    r"|Total (\w++) usage >= |Can't reduce memory use below \S{1,20} \("
)
"""Pattern of the start of XLA's out-of-memory report; the second and third groups also continue it."""

BUFFER_ASSIGNMENT = lazy_pattern(r"(?<![\w-])BufferAssignment:\s*$", re.MULTILINE)
"""Pattern of the first line of a buffer assignment that is quoted in other text."""

MAX_LINES = 50_000
"""Limit of lines that are kept of such reports."""

MAX_LINE_CHARS = 1 << 14


class Measurements:
    """Collector of measurements in text outside modules, which arrives in pieces of whole lines."""

    def __init__(self) -> None:
        self._found: list[Measurement] = []
        self._open: tuple[list[float], list[int], int] | None = None  # a list that is not closed
        self._closed: tuple[list[float], list[int]] | None = None  # a closed list whose next line is unknown
        self._next_line = 0

    def take(self, text: str, line: int) -> None:
        """Read whole lines; the first line has the number `line`."""
        if line != self._next_line:
            self._open = self._closed = None
        self._next_line = line + text.count("\n")
        position = 0
        while position < len(text):
            if self._open is None and self._closed is None:
                candidate = _CANDIDATE.search(text, position)
                if candidate is None:
                    return
                start = text.rfind("\n", 0, candidate.start()) + 1
                line += text.count("\n", position, start)
                position = start
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            self._take_line(text[position:end], line)
            position, line = end + 1, line + 1

    def finish(self) -> list[Measurement]:
        """Return the measurements since the last call."""
        measurements, self._found = self._found, []
        self._open = self._closed = None
        return measurements

    def _take_line(self, text: str, line: int) -> None:
        if self._open is not None:
            self._go_on(text, line)
            return
        closed, self._closed = self._closed, None
        pairs = [] if len(text) > 4096 or _CODE.match(text) else list(_pairs(text, line))
        if closed is not None and pairs:
            for element, (value, value_line) in enumerate(zip(*closed, strict=True)):
                self._keep(Measurement(value_line, pairs[0].key, value, pairs[0].unit, element))
        for pair in pairs:
            self._keep(pair)
        begin = _LIST_START.match(text)
        if begin is not None:
            self._open = [], [], 0
            self._go_on(text[begin.end() :], line)

    def _go_on(self, text: str, line: int) -> None:
        """Read a line of a list of numbers; any other line ends the list and discards it."""
        opened = self._open
        numbers = _NUMBERS.match(text)
        end = numbers.end() if numbers is not None else 0
        rest = text[end:].strip()
        self._open = None
        if opened is None or rest not in ("", "]"):
            return
        values, lines, size = opened
        elements = [float(number.replace(",", "")) for number in _ELEMENT.findall(text, 0, end)]
        values += elements
        lines += [line] * len(elements)
        if rest:
            self._closed = values, lines
        elif size + len(text) < MAX_LIST_CHARS:
            self._open = values, lines, size + len(text)

    def _keep(self, measurement: Measurement) -> None:
        if len(self._found) < MAX_KEPT:
            self._found.append(measurement)


def _pairs(text: str, line: int) -> Iterator[Measurement]:
    """Yield the numbers of a line that have a key."""
    for pair in _PAIR.finditer(text):
        key = " ".join(pair["key"].split())
        if not _FILE.search(key):
            unit = f"of {pair['of']}" if pair["of"] else pair["unit"] or ""
            yield Measurement(line, key, _number(pair["value"]), unit)


def _number(text: str) -> float:
    """Parse a number; return an integer if it has digits only."""
    text = text.replace(",", "")
    return int(text) if text.lstrip("+-").isdigit() and len(text) < 19 else float(text)


def take_memory_lines(lines: list[tuple[int, str]], text: str, line: int) -> None:
    """Add the numbered lines of `text`, outside any module, from the first sign of such a report or assignment on."""
    if not lines and OUT_OF_MEMORY.search(text) is None and BUFFER_ASSIGNMENT.search(text) is None:
        return
    for number, report_line in enumerate(text.splitlines(), line):
        if len(lines) >= MAX_LINES:
            break
        if lines or OUT_OF_MEMORY.search(report_line) or BUFFER_ASSIGNMENT.search(report_line):
            lines.append((number, report_line[:MAX_LINE_CHARS]))
