"""What is noted of computations that are skipped: the roots of small ones, since reducers are among them, and what can be part
of a loop.
"""

from __future__ import annotations

import sys

from hlo_inspect.hlo import rows
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.scalars import SCALAR_ROOT, Scalars

MAX_REDUCER_LINES = 16


def note_skipped(module: Module, heads: Heads, text: str, start: int, end: int, line: int) -> None:
    """Notes the small computations with scalar results between `start`, in line `line`, and `end`."""
    counted = start
    for small in rows.SMALL.finditer(text, start - 1, end):
        name, root = small[1], sys.intern(small[4])
        if "[]" in small[3]:  # a reducer gives scalars; most of the other computations do not, and they are many
            module.root_opcodes[name] = root
        if module.wants.loops and SCALAR_ROOT.match(small[3]):
            first = small.start(2)
            line += text.count("\n", counted, first)
            counted = first
            scalars = Scalars()
            scalars.search(text, first, small.end(2), line, heads)
            computation = Computation(name, line - 1, is_entry=False)
            computation.root_opcode = root
            computation.scalars = scalars.kept(computation, None)
            module.computations.setdefault(name, computation)


def small_root(text: str, start: int, end: int) -> str | None:
    """The opcode of the root of the lines between `start` and `end`, where they are few."""
    if text.count("\n", start, end) > MAX_REDUCER_LINES:
        return None
    at = text.rfind("ROOT ", start, end)
    if at < 0:
        at = text.rfind("\n", start - 1, end - 1) + 1
    match = rows.ROOT_OPCODE.search(text, at, end)
    return sys.intern(match[1]) if match else None
