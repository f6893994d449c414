"""Selection of wanted text before it is read.

Whole computations are skipped. In the others, only the lines with wanted instructions are picked. The module stores little of
skipped computations: scalar roots, as reducers have, and possible parts of loops.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from itertools import groupby, takewhile
from operator import attrgetter, itemgetter

from hlo_inspect.hlo.collective_kinds import DEVICE_ATTRIBUTES, PREFIXES
from hlo_inspect.hlo.module import MAX_NOTED, Module, SkippedComputation
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES, TABLE
from hlo_inspect.hlo.read.cursor import Span, count_lines
from hlo_inspect.hlo.read.fast_path import CALLS, SHAPE, read_row
from hlo_inspect.hlo.read.open_computation import SCALAR_ROOT, keep_scalars
from hlo_inspect.hlo.tokens import NAME, Row
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_REDUCER_LINES = 16
MAX_REDUCER_CHARS = 1 << 14
MAX_LOOP_LINES = 256
MAX_LOOP_CHARS = 1 << 12
_WINDOW = 1 << 16

_FIRST_LINE = rf"(?!ENTRY )%?{NAME} (?:\([^\n]*)?\{{\n"  # of a computation that is not the entry
_SCALAR_ROOT = rf"  ROOT %?{NAME} = (?=\(*+[a-z]\w*+\[\])({SHAPE}) ([a-z][a-z0-9\-]*+)\([^\n]*+\n"
_SKIPPABLE = lazy_pattern(
    rf"%?({NAME})[^\n]*+\n(?:  (?!ROOT )[^\n]*+\n)*+(?:{_SCALAR_ROOT})?+(?:  [^\n]*+\n)*+"
    rf'\}}(?:, execution_thread="[^"\n]*+")?+\n++(?={_FIRST_LINE})|',
    re.ASCII,
)
"""Pattern of a skippable computation that another one follows, as printers write them.

Its groups are the name and, if the root is a scalar or a tuple that starts with a scalar, its shape and opcode. It matches an
empty text, without groups, if there is none.
"""
_STARTS_COMPUTATION = lazy_pattern(_FIRST_LINE, re.ASCII)
_ROOT_OPCODE = lazy_pattern(rf"ROOT %?{NAME} = {SHAPE} ([a-z][a-z0-9\-]*+)\(", re.ASCII)
_ESCAPED = lazy_pattern(r"\\(.)")
_CUT_ROW = lazy_pattern(
    rf"\n  (?:ROOT )?+%?+{NAME}"
    r"(?: =(?: (?:[^ (\n]++(?: [a-z][a-z0-9\-]*+)?+|\((?![^\n]* [a-z][a-z0-9\-]*+\()[^\n]*+)?+)?+)?+(?=\n)",
    re.ASCII,
)
"""Pattern of an instruction that ends before its operands."""


@lru_cache(maxsize=32)
def _search_for(opcodes: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of instructions of these opcodes, including asynchronous halves.

    With collectives it also finds unknown ones, by their names or attributes. It is compiled once for all modules of an input.
    """
    bases = {TABLE[opcode].base if opcode in TABLE else opcode for opcode in opcodes}
    if opcodes >= STARTING_COLLECTIVES:
        attributes = [f"{name}=" for name in DEVICE_ATTRIBUTES]
        bases = {base for base in bases if not base.startswith(PREFIXES)}.union(PREFIXES, attributes)
    words = sorted(bases)
    by_letter = [(letter, [re.escape(word[1:]) for word in group]) for letter, group in groupby(words, itemgetter(0))]
    spelled = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in by_letter)  # each letter starts few words
    return re.compile(rf" (?:{spelled})(?:[a-z-]*\(|(?<==))[^\n]*+")


@lru_cache(maxsize=32)
def _search_noted(opcodes: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of rows of these opcodes, however they are printed."""
    return re.compile(rf"\s(?:{'|'.join(map(re.escape, sorted(opcodes)))})[a-z-]*\s*\(")


class Selection:
    """Search for the `wants` of a module in its text.

    `holders`: the computations other than the entry with kept instructions, whose callers are wanted too.
    """

    def __init__(self, module: Module, holders: set[str]) -> None:
        wants = module.wants
        self.is_empty = not wants.opcodes
        self._module = module
        self._holders = holders
        self._opcodes = _search_for(wants.opcodes)
        self._targets = re.compile("|".join(map(re.escape, sorted(wants.targets)))) if wants.targets else None
        self._clear = self._uncut = ("", 0)

    def skip(self, text: str, start: int, line: int) -> tuple[int, int]:
        """Skip the computations from `start`, on `line`, without wanted instructions, if printed in the usual way.

        Return the index after the last of them and its line; `start` and `line` if there is none. Never skip the entry, nor a
        computation that no other follows: its brace may close a computation in place.
        """
        if self.is_empty or not _STARTS_COMPUTATION.match(text, start):
            return start, line
        matches = _SKIPPABLE.finditer(text, start, self._clear_end(text, start))
        skipped = list(takewhile(attrgetter("lastindex"), matches))
        if not skipped:
            return start, line
        end, counted = skipped[-1].end(), start
        wants_loops, roots = self._module.wants.loops, self._module.root_opcodes
        for match in skipped:
            self.note(match[1], match.string, match.start(), match.end())
            if match.lastindex == 1:
                continue
            name, shape, opcode = match.groups()
            if wants_loops and SCALAR_ROOT.match(shape) and text.count("\n", match.start(), match.end()) <= MAX_LOOP_LINES:
                line += count_lines(text, counted, match.start())
                counted = match.start()
                if name in self._module.computations or name in self._module.skipped:
                    continue  # the first computation of a name counts
                passed = SkippedComputation.compress(sys.intern(opcode), line, match[0])
                if len(match[0]) > MAX_LOOP_CHARS:  # its text takes more memory than its few scalars
                    keep_scalars(self._module, name, passed)
                else:
                    self._module.skipped[name] = passed
            else:
                roots[name] = sys.intern(opcode)
        self._module.computation_count += len(skipped)
        self._module.device_marks.note(text, start, end)
        return end, line + count_lines(text, counted, end)

    def note(self, computation: str, text: str, start: int, end: int) -> None:
        """Note a computation if its lines from `start` to `end` hold an opcode of `wants.noted`."""
        noted = self._module.noted
        if noted is not None and len(noted) < MAX_NOTED and _search_noted(self._module.wants.noted).search(text, start, end):
            noted.add(computation)

    def _clear_end(self, text: str, start: int) -> int:
        """Return an index before which nothing from `start` is wanted.

        If calls have to be checked, it is at most `_WINDOW` further.
        """
        cleared_text, end = self._clear
        if cleared_text is not text or end < start:
            hit = self._opcodes.search(text, start)
            if self._uncut[0] is not text or self._uncut[1] < start:
                cut = _CUT_ROW.search(text, start - 1)
                self._uncut = text, cut.start() + 1 if cut else len(text)
            self._clear = text, min(hit.start() if hit else len(text), self._uncut[1])
        if not self._holders:
            return self._clear[1]
        end = min(self._clear[1], start + _WINDOW)
        return next((call.start() for call in CALLS.finditer(text, start, end) if call[1] in self._holders), end)

    def pick(self, lines: Span) -> list[tuple[int, Row]] | None:
        """Return index and row of the lines that may have to be kept.

        Return None if such a line is not as printers write it, or is in a string or comment over several lines. Also return
        None if a line ends before its opcode.
        """
        text, start, end, _ = lines
        if _opens_comment(text, start, end):
            return None
        if self.is_empty:
            return []
        if _CUT_ROW.search(text, start - 1, end):
            return None
        hits = list(map(re.Match.start, self._opcodes.finditer(text, start, end)))
        if self._holders:
            hits += [call.start() for call in CALLS.finditer(text, start, end) if call[1] in self._holders]
        if not hits:
            return []
        if self._targets is not None:
            hits += [target.start() for target in self._targets.finditer(text, start, end)]
        rows: list[tuple[int, Row]] = []
        counted = start
        for line in sorted({text.rfind("\n", start - 1, position) + 1 for position in hits}):
            quotes = text.count('"', counted, line)
            escape = text.find("\\", counted, line)
            if escape >= 0:
                quotes -= _ESCAPED.findall(text, escape, text.rfind("\\", escape, line) + 2).count('"')
            row = None if quotes % 2 or _opens_comment(text, counted, line) else read_row(text, line)
            if row is None:
                return None
            rows.append((line, row))
            counted = line
        return rows


def _opens_comment(text: str, start: int, end: int) -> bool:
    """Return True if `text[start:end]` leaves a comment open. None may be open at `start`."""
    comment = text.rfind("/*", start, text.rfind("*", start, end) + 1)  # a search for one character is much faster
    return comment >= 0 and text.find("*/", comment + 2, end) < 0


def small_root(text: str, start: int, end: int) -> str | None:
    """Return the opcode of the root in the lines from `start` to `end`; None if they are many or show no root."""
    if end - start > MAX_REDUCER_CHARS or text.count("\n", start, end) > MAX_REDUCER_LINES:
        return None
    line_start = text.rfind("ROOT ", start, end)
    if line_start < 0:
        line_start = text.rfind("\n", start - 1, end - 1) + 1
    match = _ROOT_OPCODE.search(text, line_start, end)
    return sys.intern(match[1]) if match else None
