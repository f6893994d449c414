"""What logs say in the text around modules: measurements, and memory that did not suffice.

A measurement is as in the log of a search: `Mean cost: 147.64 ms (std: 4.85 ms)`. A number counts only if a key stands before
it, with a colon or an equal sign between them; what nothing names is left. Numbers in brackets, also over several lines, take
key and unit of the first `key: value` in the line directly after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlo_inspect.hlo.module import Measurement
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_KEPT = 1 << 17
"""So many measurements of the text between two modules are kept."""

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
    r"|Total (\w++) usage >= "
)
"""How a report of XLA's on memory that did not suffice begins; with the second and the third group it also goes on."""

MAX_LINES = 50_000
"""So many lines of such reports are kept."""

MAX_LINE_CHARS = 1 << 14


class Measurements:
    """Collects the measurements in text that is no module, as it comes in pieces of whole lines."""

    def __init__(self) -> None:
        self._found: list[Measurement] = []
        self._open: tuple[list[float], list[int], int] | None = None  # a list that is not closed
        self._closed: tuple[list[float], list[int]] | None = None  # one whose next line is not known
        self._next_line = 0
        self.left_out = 0

    def take(self, text: str, line: int) -> None:
        """Whole lines, the first of which has this number."""
        if line != self._next_line:
            self._open = self._closed = None
        self._next_line = line + text.count("\n")
        at = 0
        while at < len(text):
            if self._open is None and self._closed is None:
                candidate = _CANDIDATE.search(text, at)
                if candidate is None:
                    return
                start = text.rfind("\n", 0, candidate.start()) + 1
                line += text.count("\n", at, start)
                at = start
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            self._take_line(text[at:end], line)
            at, line = end + 1, line + 1

    def finish(self) -> list[Measurement]:
        """What was found since the last call."""
        found, self._found = self._found, []
        self._open = self._closed = None
        return found

    def _take_line(self, text: str, line: int) -> None:
        if self._open is not None:
            self._go_on(text, line)
            return
        closed, self._closed = self._closed, None
        pairs = [] if len(text) > 4096 or _CODE.match(text) else list(_pairs(text, line))
        if closed is not None and pairs:
            for element, (value, at) in enumerate(zip(*closed, strict=True)):
                self._keep(Measurement(at, pairs[0].key, value, pairs[0].unit, element))
        for pair in pairs:
            self._keep(pair)
        begin = _LIST_START.match(text)
        if begin is not None:
            self._open = [], [], 0
            self._go_on(text[begin.end() :], line)

    def _go_on(self, text: str, line: int) -> None:
        """One line of a list of numbers: anything else ends it, and it is none."""
        opened = self._open
        numbers = _NUMBERS.match(text)
        end = numbers.end() if numbers is not None else 0
        rest = text[end:].strip()
        self._open = None
        if opened is None or rest not in ("", "]"):
            return
        values, lines, size = opened
        found = [float(number.replace(",", "")) for number in _ELEMENT.findall(text, 0, end)]
        values += found
        lines += [line] * len(found)
        if rest:
            self._closed = values, lines
        elif size + len(text) < MAX_LIST_CHARS:
            self._open = values, lines, size + len(text)

    def _keep(self, measurement: Measurement) -> None:
        if len(self._found) < MAX_KEPT:
            self._found.append(measurement)
        else:
            self.left_out += 1


def _pairs(text: str, line: int) -> Iterator[Measurement]:
    """The numbers of a line that have a key."""
    for pair in _PAIR.finditer(text):
        key = " ".join(pair["key"].split())
        if not _FILE.search(key):
            unit = f"of {pair['of']}" if pair["of"] else pair["unit"] or ""
            yield Measurement(line, key, _number(pair["value"]), unit)


def _number(text: str) -> float:
    """An integer where it is written as one."""
    text = text.replace(",", "")
    return int(text) if text.lstrip("+-").isdigit() and len(text) < 19 else float(text)


def take_memory_lines(lines: list[tuple[int, str]], text: str, line: int) -> None:
    """Adds the lines from the first one on that mentions memory that did not suffice, with their numbers, of whole lines that
    belong to no module. The first has the number `line`.
    """
    if not lines and OUT_OF_MEMORY.search(text) is None:
        return
    for number, one in enumerate(text.splitlines(), line):
        if len(lines) >= MAX_LINES:
            break
        if lines or OUT_OF_MEMORY.search(one):
            lines.append((number, one[:MAX_LINE_CHARS]))
