"""Quoted instruction lines outside any computation: a partial module.

They may be contiguous, or have prose, fences, `...`, signs of a diff or a label such as `XLA label:` around them. A line needs
a name, an equal sign, a shape of an XLA type and an XLA opcode. Lines of Python, MLIR and LLVM lack these. Text after an
instruction on its line is ignored.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import PART, TRUNCATED, UNREADABLE, Module
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.pasted.mended_text import Line, MendedText, relocate
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.shape_text import ShapeError, parse_shape
from hlo_inspect.hlo.values.shapes import TYPE_NAMES
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

NAME = "quoted_lines"
"""The name of a module of quoted lines."""

MAX_CHARS = 1 << 16
"""Longest instruction over several lines, in characters."""

_EQUALS = lazy_pattern(rf"=[ \t]*+(?:\(|/\*[^*\n]*+\*/|b\()*+(?:{TYPE_NAMES})\[", re.ASCII)
_NAME = lazy_pattern(r"(?<![\w.%\-])(?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]*+(?==)", re.ASCII)
_DIRECTIVE = lazy_pattern(r"[ \t]*+(?://|#|;)?[ \t]*+[A-Z0-9_\-]*CHECK[A-Z0-9_\-]*+:", re.ASCII)
"""Pattern of an expected line in a compiler test (LLVM's FileCheck), which no program printed."""
_STOP = lazy_pattern(r"\n[ \t]*+(?:\n|```|~~~)")
_AROUND = "`;*<>."  # punctuation after the value of the last attribute
_ELLIPSIS = lazy_pattern(r"(?:\.\.\.|…)[ \t`'\"]*+\Z")
_ELIDED = lazy_pattern(
    r", (?:[A-Za-z_][\w.\-]*+=(?:\{?(?:\.\.\.|…)\}?)|(?:\.\.\.|…))(?=,|$)", re.ASCII
)  # an attribute, or several
_LINE_END = lazy_pattern(r"\s*\n\s*")
_ONLY_BLANK = lazy_pattern(r"[ \t\n,]*+\Z")
_WHOLE_MODULE = frozenset({TRUNCATED, "HI007", "HI008", "HI009", "HI010"})
"""Codes of problems that only a whole module has: its end, its ENTRY and ROOT, repeated and undefined names."""


class QuotedLine(NamedTuple):
    """An instruction on one line. `fault` says why it is incomplete."""

    line: Line
    fault: str

    @property
    def number(self) -> int:
        """The line of the input on which it begins."""
        return self.line.origins[0][1]


class QuotedLines:
    """Collector of instructions in text outside modules, which arrives in pieces."""

    def __init__(self) -> None:
        self._found: list[QuotedLine] = []
        self._open: tuple[str, int, int] | None = None  # an instruction that may continue, with its line and column

    def take(self, text: str, line: int) -> None:
        """Read whole lines; the first line has the number `line`. The next call can continue an instruction."""
        opened, column = self._open, 1
        if opened is not None:
            self._open = None
            if opened[1] + opened[0].count("\n") == line:
                text, line, column = opened[0] + text, opened[1], opened[2]
            else:
                self._search(*opened, is_final=True)
        self._search(text, line, column, is_final=False)

    def finish(self) -> list[QuotedLine]:
        """Return the lines since the last call."""
        if self._open is not None:
            opened, self._open = self._open, None
            self._search(*opened, is_final=True)
        lines, self._found = self._found, []
        return lines

    def _search(self, text: str, line: int, column: int, *, is_final: bool) -> None:
        """Search the text. Its first character is on `line`, in `column`."""
        counted = end = 0
        starts = _starts(text)
        for start, limit in pairwise([*starts, len(text)]):
            if start < end:
                continue
            instruction, end = _read(text, start, limit)
            if instruction is None:
                continue
            line += text.count("\n", counted, start)
            counted = start
            line_start = text.rfind("\n", 0, start) + 1
            start_column = start - line_start + (column if line_start == 0 else 1)
            if not is_final and end - start < MAX_CHARS and _ONLY_BLANK.match(text, end):
                self._open = text[start:], line, start_column
                return
            quoted = _placed(instruction, text, start, line, start_column)
            if _can_be_read(quoted.line.text):
                self._found.append(quoted)


def _can_be_read(text: str) -> bool:
    """Return True if the joined text is still an instruction: a removed part can hold the closing bracket."""
    try:
        parser.parse_instruction(text, 0)
    except tokens.ScanError:
        return False
    return True


def _starts(text: str) -> list[int]:
    """Return the indices of names before an equal sign and a shape."""
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
    added: str  # text to append
    fault: str


def _read(text: str, start: int, limit: int) -> tuple[_Read | None, int]:
    """Return the instruction at `start`, if there is one before `limit`, and the index after it."""
    line_end = text.find("\n", start, limit)
    line_end = limit if line_end < 0 else line_end
    stop = _STOP.search(text, start, min(limit, start + MAX_CHARS))
    far_end = max(stop.start() if stop else text.rfind("\n", start, min(limit, start + MAX_CHARS)), line_end)
    is_cut = _ELLIPSIS.search(text, start, line_end) is not None
    for end in (line_end,) if is_cut else dict.fromkeys((line_end, far_end)):
        try:
            parsed = parser.parse_instruction(text[start:end], 0)
        except tokens.ScanError:
            continue
        if not _is_instruction(parsed.row):
            return None, line_end
        unread = text[start + parsed.end : line_end].strip()
        continues = unread.startswith(",") and _ELLIPSIS.search(unread) is None  # on the next line
        if parsed.fault is None or end == far_end or not continues:
            read = text[start : start + parsed.end].rstrip(_AROUND)
            return _Read(start + len(read), "", ""), start + parsed.end
    return _read_cut(text, start, line_end)


def _read_cut(text: str, start: int, line_end: int) -> tuple[_Read | None, int]:
    """Return the instruction of a truncated line, up to its last whole operand, and the index after the line."""
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
    return _Read(start + last, left_out, "the line is truncated: operands or attributes are missing"), line_end


def _is_instruction(row: tokens.Row) -> bool:
    shape, _, opcode = row[2].rpartition(" ")
    if opcode not in TABLE:
        return False
    try:
        parse_shape(shape)
    except ShapeError:
        return False
    return True


def _placed(instruction: _Read, text: str, start: int, line: int, column: int) -> QuotedLine:
    """Return the instruction at `start` as one line. It starts on `line`, in `column`."""
    pieces: list[Line] = []
    while start < instruction.end:
        wrap = _LINE_END.search(text, start, instruction.end)
        stop, following = wrap.span() if wrap else (instruction.end, instruction.end)
        pieces.append(Line(f"{text[start:stop]} ", ((0, line, column),), 0))
        line += text.count("\n", stop, following)
        column = following - text.rfind("\n", 0, following)
        start = following
    joined = Line.joined(pieces)
    whole = _ELIDED.sub("", joined.text[:-1]).rstrip(", ") + instruction.added
    return QuotedLine(joined._replace(text=whole), instruction.fault)


def part_of_module(lines: list[QuotedLine], path: str, wants: Wants) -> Module:
    """Build the module of quoted lines: one computation without an end."""
    text = MendedText()
    text.emit(Line.from_input(f"{NAME} {{", lines[0].number))
    for quoted in lines:
        text.emit(quoted.line)
    module = next(read_modules(TextSource(path, iter([text.taken()])), wants))
    module.problems.drop(_WHOLE_MODULE)
    relocate(module, text.places)
    module.quoted_lines = module.lines = len(lines)
    for quoted in lines:
        if quoted.fault:
            module.note(UNREADABLE, quoted.fault, quoted.number)
    counted = "an instruction line" if len(lines) == 1 else f"{len(lines):,} instruction lines"
    module.note(PART, f"this partial module has {counted} outside any computation", lines[0].number)
    return module
