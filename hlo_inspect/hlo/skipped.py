"""Computations in which nothing is wanted: they are passed over, and little is noted of them.

The roots of small ones are, since reducers are among them, and what can be part of a loop.
"""

from __future__ import annotations

import re
import sys

from hlo_inspect.hlo import rows
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.scalars import SCALAR_ROOT, Scalars

MAX_REDUCER_LINES = 16
MAX_REDUCER_CHARS = 1 << 14
MAX_LINES = 256


def skip(module: Module, heads: Heads, text: str, start: int, end: int, line: int) -> int:
    """Passes over the computations in `text[start:end]`, from `start` in line `line`, that are as printers write them.

    Gives the index behind the last one, `start` where there are none. The entry is never passed over, nor is what no other
    computation follows: a brace may close a computation in place.
    """
    counted = start
    if not rows.FIRST_LINE.match(text, start):
        return start
    while (block := rows.BLOCK.match(text, start, end)) is not None:
        if block[2] is not None and text.count("\n", start, block.end()) <= MAX_LINES:
            line += text.count("\n", counted, start)
            counted = start
            _note(module, heads, block, line)
        module.computation_count += 1
        start = block.end()
    return start


def _note(module: Module, heads: Heads, block: re.Match[str], line: int) -> None:
    """Notes a computation whose root has a scalar. Its first line is `line`."""
    name, shape, opcode = block[1], block[2], sys.intern(block[3])
    module.root_opcodes[name] = opcode
    if module.wants.loops and SCALAR_ROOT.match(shape):
        scalars = Scalars()
        scalars.search(block.string, block.string.index("\n", block.start()) + 1, block.end(), line + 1, heads)
        computation = Computation(name, line, is_entry=False, values=module.values)
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
