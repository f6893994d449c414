"""Instruction lines that stand in no computation, as people quote them: a part of a module.

They may be contiguous, or have prose, fences, `...`, the signs of a diff or a label such as `XLA label:` around them. A line is
one only if it has a name, an equal sign, a shape of a type that XLA has, and an opcode that XLA has: lines of Python, MLIR and
LLVM have not. What follows the instruction in its line is left.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import CUT_OFF, PART, UNREADABLE, Module
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.pasted.mended_text import Line, MendedText, relocate
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.shapes import TYPE_NAMES, ShapeError, parse_shape
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

NAME = "quoted_lines"
"""What a module of quoted lines is called."""

MAX_CHARS = 1 << 16
"""An instruction that is written over several lines is followed so far."""

_EQUALS = lazy_pattern(rf"=[ \t]*+(?:\(|/\*[^*\n]*+\*/|b\()*+(?:{TYPE_NAMES})\[", re.ASCII)
_NAME = lazy_pattern(r"(?<![\w.%\-])(?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]*+(?==)", re.ASCII)
_DIRECTIVE = lazy_pattern(r"[ \t]*+(?://|#|;)?[ \t]*+[A-Z0-9_\-]*CHECK[A-Z0-9_\-]*+:", re.ASCII)
"""What a test of a compiler expects (LLVM's FileCheck): patterns, and no text that anything printed."""
_STOP = lazy_pattern(r"\n[ \t]*+(?:\n|```|~~~)")
_AROUND = "`;*<>."  # what may follow a word that is the value of the last attribute
_ELLIPSIS = lazy_pattern(r"(?:\.\.\.|…)[ \t`'\"]*+\Z")
_ELIDED = lazy_pattern(
    r", (?:[A-Za-z_][\w.\-]*+=(?:\{?(?:\.\.\.|…)\}?)|(?:\.\.\.|…))(?=,|$)", re.ASCII
)  # an attribute, or several
_LINE_END = lazy_pattern(r"\s*\n\s*")
_ONLY_BLANK = lazy_pattern(r"[ \t\n,]*+\Z")
_WHOLE_MODULE = frozenset({CUT_OFF, "HI007", "HI008", "HI009", "HI010"})
"""What is wrong with a module and not with a part of one: names that are not defined, or that two computations have."""


class QuotedLine(NamedTuple):
    """An instruction in one line, and why it is not read as a whole."""

    line: Line
    fault: str

    @property
    def number(self) -> int:
        """The line of the input that it begins in."""
        return self.line.origins[0][1]


class QuotedLines:
    """Collects the instructions in text that is no module, as it comes in pieces."""

    def __init__(self) -> None:
        self._found: list[QuotedLine] = []
        self._open: tuple[str, int, int] | None = None  # an instruction that may go on, with its line and column

    def take(self, text: str, line: int) -> None:
        """Whole lines, the first of which has this number; an instruction may go on in the next call."""
        opened, column = self._open, 1
        if opened is not None:
            self._open = None
            if opened[1] + opened[0].count("\n") == line:
                text, line, column = opened[0] + text, opened[1], opened[2]
            else:
                self._search(*opened, is_final=True)
        self._search(text, line, column, is_final=False)

    def finish(self) -> list[QuotedLine]:
        """What was found since the last call."""
        if self._open is not None:
            opened, self._open = self._open, None
            self._search(*opened, is_final=True)
        found, self._found = self._found, []
        return found

    def _search(self, text: str, line: int, column: int, *, is_final: bool) -> None:
        """`column` is that of the first character."""
        counted = end = 0
        starts = _starts(text)
        for start, limit in pairwise([*starts, len(text)]):
            if start < end:
                continue
            found, end = _read(text, start, limit)
            if found is None:
                continue
            line += text.count("\n", counted, start)
            counted = start
            line_start = text.rfind("\n", 0, start) + 1
            at = start - line_start + (column if line_start == 0 else 1)
            if not is_final and end - start < MAX_CHARS and _ONLY_BLANK.match(text, end):
                self._open = text[start:], line, at
                return
            quoted = _placed(found, text, start, line, at)
            if _can_be_read(quoted.line.text):
                self._found.append(quoted)


def _can_be_read(text: str) -> bool:
    """Whether what was put together is an instruction still: a bracket in what was cut off may be closed behind it."""
    try:
        parser.parse_instruction(text, 0)
    except tokens.ScanError:
        return False
    return True


def _starts(text: str) -> list[int]:
    """Where names stand that an equal sign and a shape follow."""
    starts = []
    end = 0
    for equals in _EQUALS.finditer(text):
        line_start = text.rfind("\n", 0, equals.start()) + 1
        names = list(_NAME.finditer(text, max(line_start, end), equals.start() + 1))
        if names and names[-1].end() == equals.start() and not _DIRECTIVE.match(text, line_start, names[-1].start()):
            starts.append(names[-1].start())
        end = equals.end()
    return starts


class _Read(NamedTuple):
    end: int  # in the text
    added: str  # behind it
    fault: str


def _read(text: str, start: int, limit: int) -> tuple[_Read | None, int]:
    """The instruction at `start`, if it is one, and the index behind it. It does not go on behind `limit`."""
    line_end = text.find("\n", start, limit)
    line_end = limit if line_end < 0 else line_end
    stop = _STOP.search(text, start, min(limit, start + MAX_CHARS))
    far_end = max(stop.start() if stop else text.rfind("\n", start, min(limit, start + MAX_CHARS)), line_end)
    is_cut = _ELLIPSIS.search(text, start, line_end) is not None
    for end in (line_end,) if is_cut else dict.fromkeys((line_end, far_end)):
        try:
            found = parser.parse_instruction(text[start:end], 0)
        except tokens.ScanError:
            continue
        if not _is_instruction(found.row):
            return None, line_end
        if found.fault is None or end == far_end or _ends_line(text, start + found.end, line_end):
            read = text[start : start + found.end].rstrip(_AROUND)
            return _Read(start + len(read), "", ""), start + found.end
    return _read_cut(text, start, line_end)


def _ends_line(text: str, position: int, line_end: int) -> bool:
    """Whether what cannot be read is the end of a line that goes on in no other one."""
    rest = text[position:line_end].strip()
    return not rest.startswith(",") or _ELLIPSIS.search(rest) is not None


def _read_cut(text: str, start: int, line_end: int) -> tuple[_Read | None, int]:
    """An instruction of which the end is missing: what there is of it, as far as the operands go."""
    whole = _ELLIPSIS.sub("", text[start:line_end])
    try:
        equals = whole.index("=")
        _, _, opcode, bracket = parser.parse_head(whole, equals + 1)
    except (tokens.ScanError, ValueError):
        return None, line_end
    row = ("", "", whole[equals + 1 : bracket].strip(), "")
    if not _is_instruction(row) or not opcode:
        return None, line_end
    last = bracket + 1
    for _, operand_end in tokens.split_items(whole, bracket + 1):
        if operand_end < len(whole):
            last = operand_end
    left_out = "cut_off)" if last == bracket + 1 else ", cut_off)"
    return _Read(start + last, left_out, "the line is cut off: its operands and attributes are not all there"), line_end


def _is_instruction(row: tokens.Row) -> bool:
    shape, _, opcode = row[2].rpartition(" ")
    if opcode not in TABLE:
        return False
    try:
        parse_shape(shape)
    except ShapeError:
        return False
    return True


def _placed(found: _Read, text: str, start: int, line: int, column: int) -> QuotedLine:
    """What was read from `start`, at this line and column, as one line."""
    pieces: list[Line] = []
    while start < found.end:
        wrap = _LINE_END.search(text, start, found.end)
        stop, following = wrap.span() if wrap else (found.end, found.end)
        pieces.append(Line(f"{text[start:stop]} ", ((0, line, column),), 0))
        line += text.count("\n", stop, following)
        column = following - text.rfind("\n", 0, following)
        start = following
    joined = Line.joined(pieces)
    whole = _ELIDED.sub("", joined.text[:-1]).rstrip(", ") + found.added
    return QuotedLine(joined._replace(text=whole), found.fault)


def part_of_module(lines: list[QuotedLine], path: str, wants: Wants) -> Module:
    """The module of quoted lines: one computation without an end."""
    text = MendedText()
    text.emit(Line.of(f"{NAME} {{", lines[0].number))
    for one in lines:
        text.emit(one.line)
    module = next(read_modules(TextSource(path, iter([text.taken()])), wants))
    module.problems.drop(_WHOLE_MODULE)
    relocate(module, text.places)
    module.quoted_lines = module.lines = len(lines)
    for one in lines:
        if one.fault:
            module.note(UNREADABLE, one.fault, one.number)
    counted = "an instruction line" if len(lines) == 1 else f"{len(lines):,} instruction lines"
    module.note(PART, f"{counted} outside any computation: a part of a module", lines[0].number)
    return module
