r"""Prefixes of lines, which a log, mail, terminal or diff adds.

Each pattern of `FORMS` is a part of a prefix. A prefix is a row of parts, as in `worker-0  | 2024-06-10T12:00:01.1Z [rank0]: `.
Text that fits no form is fixed, except for runs of digits. A prefix is learned from a line in which HLO follows it, and only if
the next lines have it too.

A form can name the writer of a line by the group `key`: lines of several ranks are interleaved. Other digits can name the
writer too if they return after others (`0: `, `1: `, `0: `), unlike counters and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.hlo.values.shapes import TYPE_NAMES
from hlo_inspect.lazy_pattern import lazy_pattern

_TIME = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_KEY, _NUMBER = "(?P<key>", "(?P<number>"

FORMS: tuple[tuple[str, str], ...] = (
    ("glog, absl", rf"[DIWEF]\d{{4}} [\d:.]++[ \t]++{_NUMBER}\d+) [^\s\]:]++:\d+\]"),
    ("TensorFlow", rf"[DIWEF][ \t]++(?:{_NUMBER}\d+)[ \t]++)?[^\s\]:]++:\d+\]"),
    (
        "date and time",
        rf"[\[(]?(?:\d{{4}}[-/]\d\d[-/]\d\d|[A-Z][a-z]{{2}}[ \t]++\d{{1,2}})[T ]{_TIME}(?:Z|[+-]\d\d:?\d\d)?[\])]?:?",
    ),
    ("time", rf"[\[(]?{_TIME}Z?[\])]?:?(?=[ \t]|$)"),
    ("container runtime", r"(?:stdout|stderr) [FP]"),
    ("kubectl", rf"\[pod/{_KEY}[\w.\-/]++)\]"),
    ("mpirun", rf"\[\d+,{_KEY}\d+)\]<std(?:out|err)>:?"),
    ("ray", rf"\({_KEY}[\w.\-]++ (?:pid|rank)=\d+)(?:, ip=[\d.]++)?\)"),
    ("rank", rf"[\[(](?:default|rank|host|node|worker|proc|process|gpu|device|task)[ _\-]?{_KEY}\d+)[\])]:?"),
    ("rank", rf"(?:rank|host|node|worker|process|task)[ _\-]?{_KEY}\d+)[ \t]*+[:>]"),
    ("compose", rf"{_KEY}[A-Za-z][\w.\-]*+)[ \t]++\|"),
    ("cat -n", rf"{_NUMBER}\d+)(?:\t|$)"),
    ("grep -n", rf"(?:[\w.\-/]++:)?{_NUMBER}\d+)[:\-]"),
    ("logging", r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]?(?:[ \t]*+:[\w.]++:|[ \t]*+:)?+"),
    ("quotation, comment, list or diff", r"(?:>|\+|-(?![\w.])|#|//|;|\||\*)(?!\*)"),
)
"""Name and pattern of each known part of a prefix."""

MAX_PREFIX = 400
"""Longest prefix, in characters."""

WINDOW = 64
"""Number of lines that are read ahead to learn a prefix."""

_FORMS = tuple(lazy_pattern(pattern, re.ASCII) for _, pattern in FORMS)
_BLANKS = lazy_pattern(r"[ \t]++")
_DIGITS = lazy_pattern(r"\d++", re.ASCII)
_GROUP = lazy_pattern(r"\(\?P<(key|number)>")

_NAME = r"%?[A-Za-z_][\w.\-]*+"
CONTENT = lazy_pattern(
    rf"(?<![\w.%\-])(?:HloModule[ \t]++{_NAME}(?=,|:|[ \t]*+(?:$|//|\\n))"
    rf"|ENTRY[ \t]++{_NAME}[ \t]*+[({{]"
    rf"|{_NAME} (?:\{{$|\((?:{_NAME}: |\) -> ))"
    rf"|(?:ROOT )?{_NAME} = (?:\(|/\*[^*\n]*+\*/)*+(?:{TYPE_NAMES})\[)",
    re.ASCII,
)
"""Pattern of the start of HLO in a line: a header, the first line of a computation, or an instruction."""


_BETWEEN = lazy_pattern(r"[ \t]*+(?:\}|(?:FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*+$)", re.ASCII)
"""Pattern of other lines of a module: the end of a computation, and names of tables."""


class Match(NamedTuple):
    """A prefix in a line: its length, and the key of the writer."""

    length: int
    key: tuple[str, ...]


class Prefix(NamedTuple):
    """A learned prefix: its text as it was learned (`sample`), and the groups of the pattern that name the writer (`keys`)."""

    sample: str
    pattern: re.Pattern[str]
    keys: tuple[str, ...]

    def take_off(self, line: str) -> Match | None:
        """Match the prefix of a line; return None if the line has another."""
        match = self.pattern.match(line)
        if match is None:
            return None
        return Match(match.end(), tuple([match[key] for key in self.keys if match[key] is not None]) if self.keys else ())


def content_start(line: str) -> int | None:
    """Return the index of the start of HLO in a line, or None."""
    match = CONTENT.search(line[: 2 * MAX_PREFIX].rstrip())
    return match.start() if match is not None and match.start() <= MAX_PREFIX else None


def prefixed_start(line: str) -> int | None:
    """Return the index of the start of HLO after other text in a line, or None."""
    start = content_start(line)
    return start if start is not None and line[:start].strip() else None


def is_content(line: str) -> bool:
    """Return True if a line is HLO without a prefix."""
    return _BETWEEN.match(line) is not None or (content_start(line) is not None and prefixed_start(line) is None)


def learn(line: str, start: int, following: Iterable[str], *, is_cut: bool = False) -> Prefix | None:
    """Return the prefix of a line in which HLO begins at `start`, or None.

    Return None if the `following` lines lack the prefix, or have no HLO after it. If more lines follow them (`is_cut`), HLO is
    not required.
    """
    text = line[:start]
    if not text.strip() or "*/" in text:
        return None  # a comment is white space of the module itself
    ahead = [text for text in following if text.strip()]
    is_indented = line.find(" = ", start, start + MAX_PREFIX) >= 0  # some of the blanks belong to the instruction
    spelled, numbers, keys, is_known = _pattern(text, blanks=1 if is_indented else MAX_PREFIX)
    pattern = re.compile(spelled, re.ASCII)
    matches = list(map(pattern.match, ahead))
    matched = [match for match in matches if match is not None]
    near = sum(match is not None for match in matches[:8])
    if ahead and not is_cut and not any(is_content(match.string[match.end() :]) for match in matched):
        return None
    if text.lstrip().startswith("//") and any(map(is_content, ahead)):
        return None  # comments of a module without prefixes
    if near < (1 if is_known else min(2, len(ahead))) if ahead else not is_known:
        return None
    returning = [number for number in numbers if _returns([match[number] for match in matched if match[number]])]
    return Prefix(text, pattern, (*keys, *returning))


def _pattern(text: str, blanks: int) -> tuple[str, list[str], list[str], bool]:
    """Return the pattern of a prefix, its groups of digits, its key groups, and True if it is all known forms."""
    parts: list[str] = []
    numbers: list[str] = []
    keys: list[str] = []
    is_known = True
    body = text.rstrip(" \t")
    position = 0

    def take(pattern: str) -> None:
        def named(group: re.Match[str]) -> str:
            name = f"g{len(numbers) + len(keys)}"
            (keys if group[1] == "key" else numbers).append(name)
            return f"(?P<{name}>"

        parts.append(f"(?:{_GROUP.sub(named, pattern)})")

    while position < len(body):
        gap = _BLANKS.match(body, position)
        if gap is not None:
            parts.append(r"[ \t]*+" if position == 0 else r"[ \t]++")
            position = gap.end()
            continue
        known_part = next((match for form in _FORMS if (match := form.match(text, position)) is not None), None)
        digits = _DIGITS.match(body, position)
        if known_part is not None:
            position = known_part.end()
            take(known_part.re.pattern)
        elif digits is not None:
            take(rf"{_NUMBER}\d+)")
            position = digits.end()
        else:
            parts.append(re.escape(body[position]))
            is_known = False
            position += 1
    tail = min(len(text) - max(position, len(body)), blanks)
    if position <= len(body):
        parts.append(rf"(?:[ \t]{{1,{tail}}}|(?=\S)|$)" if tail else "")
    return "".join(parts), numbers, keys, is_known


def _returns(values: Sequence[str]) -> bool:
    """Return True if values are few and return after others: names of writers do, times and counters do not."""
    runs = [value for number, value in enumerate(values) if number == 0 or values[number - 1] != value]
    return len(set(runs)) < len(runs) and 3 * len(set(values)) <= len(values) + 3
