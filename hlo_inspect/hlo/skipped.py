"""Computations in which nothing is wanted: they are passed over, and little is noted of them.

The roots of small ones are, since reducers are among them, and what can be part of a loop.
"""

from __future__ import annotations

import re
import sys
from itertools import pairwise

from hlo_inspect.hlo import rows
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.scalars import SCALAR_ROOT, Scalars

MAX_REDUCER_LINES = 16
MAX_REDUCER_CHARS = 1 << 14
MAX_LINES = 256

_BETWEEN = re.compile(r'[ \t]*+(?:, execution_thread="[^"\n]*+")?[ \t]*+\n++(?!\s*+,)')
"""What may follow the closing brace of a computation before the next one."""

_NO_NAME = frozenset(" \n,/{}")


def skip(module: Module, heads: Heads, text: str, start: int, end: int, line: int) -> int:
    """Passes over the computations in `text[start:end]`, from `start` in line `line`, that are as printers write them.

    Gives the index behind the last one, `start` where there are none. The entry is never passed over, nor is what no other
    computation follows: a brace may close a computation in place.
    """
    segments = text[start:end].split("\n}")
    begin = counted = start
    first = 0
    for segment, following in pairwise(segments):
        behind = _next_start(following)
        if behind is None or not (begin > start or _starts(segment, 0)):
            break
        root = segment.rfind("\n") + 1
        if not segment.startswith("  ROOT ", root):
            root = segment.find("\n  ROOT ") + 1
        scalar = rows.SCALAR_ROOT.match(segment, root) if root else None
        if scalar is not None and segment.count("\n", first) <= MAX_LINES:
            line += text.count("\n", counted, begin)
            counted = begin
            _note(module, heads, segment[first:] + "\n}", (scalar[1], scalar[2]), line)
        module.computation_count += 1
        begin += len(segment) - first + 2 + behind
        first = behind
    return begin


def _next_start(segment: str) -> int | None:
    """Where in what stands behind a closing brace the next computation starts, `None` where none does."""
    if segment[:2] == "\n\n" and segment[2:3] not in _NO_NAME:
        return 2 if _starts(segment, 2) else None
    between = _BETWEEN.match(segment)
    return between.end() if between and _starts(segment, between.end()) else None


def _starts(segment: str, first: int) -> bool:
    """Whether a computation, but not the entry, starts at `first`."""
    line_end = segment.find("\n", first)
    return segment[line_end - 1 : line_end] == "{" and not segment.startswith("ENTRY ", first)


def _note(module: Module, heads: Heads, text: str, root: tuple[str, str], line: int) -> None:
    """Notes a computation whose root has a scalar. Its first line, `line`, is the first of `text`."""
    header = rows.COMPUTATION.match(text)
    if header is None:
        return
    name, opcode = header[2], sys.intern(root[1])
    module.root_opcodes[name] = opcode
    if module.wants.loops and SCALAR_ROOT.match(root[0]):
        scalars = Scalars()
        scalars.search(text, header.end(), len(text) - 1, line + 1, heads)
        computation = Computation(name, line, is_entry=False)
        computation.root_opcode = opcode
        computation.scalars = scalars.kept(computation, None)
        module.computations.setdefault(name, computation)


def small_root(text: str, start: int, end: int) -> str | None:
    """The opcode of the root of the lines between `start` and `end`, where they are few."""
    if end - start > MAX_REDUCER_CHARS or text.count("\n", start, end) > MAX_REDUCER_LINES:
        return None
    at = text.rfind("ROOT ", start, end)
    if at < 0:
        at = text.rfind("\n", start - 1, end - 1) + 1
    match = rows.ROOT_OPCODE.search(text, at, end)
    return sys.intern(match[1]) if match else None
