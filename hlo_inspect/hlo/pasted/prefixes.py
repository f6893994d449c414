r"""What stands before each line of a text that went through a log, a mail, a terminal or a diff.

`FORMS` is the table of what is known: each form is a part of a prefix, and a prefix is a row of such parts, as in
`worker-0  | 2024-06-10T12:00:01.1Z [rank0]: `. What no form fits is taken as fixed text in which runs of digits can differ. A
prefix is learned from one line in which HLO begins behind it, and counts as one only if the lines that follow have it too.

A form can name who wrote the line, by the group `key`: lines of several ranks are interleaved. Digits of which nothing tells
what they are can do so too: those that come back after others stood there (`0: `, `1: `, `0: `), other than counters and times.
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
"""What is known of prefixes: a name, and the pattern of one part."""

MAX_PREFIX = 400
"""No prefix is longer."""

WINDOW = 64
"""So many lines are looked at ahead to learn a prefix."""

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
"""Where HLO begins in a line: a header, the first line of a computation, or an instruction."""


_BETWEEN = lazy_pattern(r"[ \t]*+(?:\}|(?:FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*+$)", re.ASCII)
"""Other lines of a module: the end of a computation, and the names of tables."""


class Match(NamedTuple):
    """What was taken off a line: how long it is, and who wrote the line."""

    length: int
    key: tuple[str, ...]


class Prefix(NamedTuple):
    """One learned prefix. `sample` is its text in the line that it was learned from, `keys` are the groups of the pattern that
    name who wrote a line.
    """

    sample: str
    pattern: re.Pattern[str]
    keys: tuple[str, ...]

    def take_off(self, line: str) -> Match | None:
        """What stands before the rest of a line, or nothing."""
        found = self.pattern.match(line)
        if found is None:
            return None
        return Match(found.end(), tuple([found[key] for key in self.keys if found[key] is not None]) if self.keys else ())


def content_start(line: str) -> int | None:
    """The index at which HLO begins in a line."""
    found = CONTENT.search(line[: 2 * MAX_PREFIX].rstrip())
    return found.start() if found is not None and found.start() <= MAX_PREFIX else None


def prefixed_start(line: str) -> int | None:
    """The same where something else stands before it."""
    start = content_start(line)
    return start if start is not None and line[:start].strip() else None


def _is_content(line: str) -> bool:
    """Whether a line is HLO as it stands."""
    return _BETWEEN.match(line) is not None or (content_start(line) is not None and prefixed_start(line) is None)


def learn(line: str, start: int, following: Iterable[str], *, is_cut: bool = False) -> Prefix | None:
    """The prefix of a line in which HLO begins at `start`; `None` where it is none, as the lines that follow do not have it, or
    hold no HLO. That is not looked at where they are `is_cut`, as more of them follow.
    """
    text = line[:start]
    if not text.strip() or "*/" in text:
        return None  # a comment is white space of the module itself
    ahead = [one for one in following if one.strip()]
    is_indented = line.find(" = ", start, start + MAX_PREFIX) >= 0  # some of the blanks are the instruction's own
    spelled, numbers, keys, is_known = _pattern(text, blanks=1 if is_indented else MAX_PREFIX)
    pattern = re.compile(spelled, re.ASCII)
    matches = list(map(pattern.match, ahead))
    matched = [found for found in matches if found is not None]
    near = sum(found is not None for found in matches[:8])
    if ahead and not is_cut and not any(_is_content(found.string[found.end() :]) for found in matched):
        return None
    if text.lstrip().startswith("//") and any(_is_content(one) for one in ahead):
        return None  # comments of a module that stands as it is
    if near < (1 if is_known else min(2, len(ahead))) if ahead else not is_known:
        return None
    returning = [number for number in numbers if _returns([found[number] for found in matched if found[number]])]
    return Prefix(text, pattern, (*keys, *returning))


def _pattern(text: str, blanks: int) -> tuple[str, list[str], list[str], bool]:
    """The pattern of a prefix, its groups of digits, its groups that name who wrote the line, and whether forms make up all."""
    parts: list[str] = []
    numbers: list[str] = []
    keys: list[str] = []
    is_known = True
    body = text.rstrip(" \t")
    at = 0

    def take(pattern: str) -> None:
        def named(group: re.Match[str]) -> str:
            name = f"g{len(numbers) + len(keys)}"
            (keys if group[1] == "key" else numbers).append(name)
            return f"(?P<{name}>"

        parts.append(f"(?:{_GROUP.sub(named, pattern)})")

    while at < len(body):
        gap = _BLANKS.match(body, at)
        if gap is not None:
            parts.append(r"[ \t]*+" if at == 0 else r"[ \t]++")
            at = gap.end()
            continue
        found = next((found for form in _FORMS if (found := form.match(text, at)) is not None), None)
        digits = _DIGITS.match(body, at)
        if found is not None:
            at = found.end()
            take(found.re.pattern)
        elif digits is not None:
            take(rf"{_NUMBER}\d+)")
            at = digits.end()
        else:
            parts.append(re.escape(body[at]))
            is_known = False
            at += 1
    tail = min(len(text) - max(at, len(body)), blanks)
    if at <= len(body):
        parts.append(rf"(?:[ \t]{{1,{tail}}}|(?=\S)|$)" if tail else "")
    return "".join(parts), numbers, keys, is_known


def _returns(values: Sequence[str]) -> bool:
    """Whether values come back after others, and are few: who wrote a line does so, a time and a counter do not."""
    runs = [value for number, value in enumerate(values) if number == 0 or values[number - 1] != value]
    return len(set(runs)) < len(runs) and 3 * len(set(values)) <= len(values) + 3
