"""The integer scalars that a loop's trip count can depend on, picked out while the text streams by.

A counter, its step and its limit are integer scalars: handed to the loop in a tuple, compared by its condition, changed by its
body. A callee stands before its caller, so a condition is not known as one when it is read, and a second reading is no way
out: the input may be a pipe. What it takes is little, though. Conditions, and the fusions and calls that compare or count,
have an integer scalar as their root, and the tuple that a body gives starts with one as a rule; few other computations do (3 of
12,249 in a dump of 14 MB), and the reader does not skip those. What holds loops, calls or collectives it reads anyway. Of each,
the instructions stay that feed its root or what it hands to a loop or a call, and no others: a handful, even where the body has
hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.fast_path import read_row
from hlo_inspect.hlo.head_records import HeadRecords
from hlo_inspect.hlo.instruction import Head, Instruction
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.operands import operands_of
from hlo_inspect.hlo.shapes import TupleShape
from hlo_inspect.hlo.tokens import Row

HANDING_OPCODES = frozenset({"while", "call"})
"""Their operands are another computation's parameters."""

PASSING_OPCODES = frozenset({"bitcast", "convert", "copy", "copy-done", "copy-start", "opt-barrier"})
"""Their result is their operand, as far as a count is concerned."""

_FOLLOWED = HANDING_OPCODES | PASSING_OPCODES | {"add", "compare", "fusion", "get-tuple-element", "subtract", "tuple"}

CONDITION_ROOTS = PASSING_OPCODES | {"call", "compare", "fusion"}
"""What the root of a loop's condition can be if the loop's trips can be counted."""

SCALAR_ROOT = re.compile(r"\(*+(?:pred|[su]\d{1,2})\[\]", re.ASCII)
"""How the shape of a root starts that is an integer or truth value, or a tuple that has one first."""

_SCALAR = re.compile(r" = (?:\(|(?:pred|[su]\d{1,2})\[\])", re.ASCII)  # behind a name, or somewhere in a string


class LoopScalars:
    """The integer scalars of one computation, and the tuples that hold some."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Row, Head, int]] = {}
        self._root: str | None = None

    def take(self, rows: Iterable[Row], line: int, heads: HeadRecords) -> None:
        """Picks from rows of which the first is at `line`; their heads are known."""
        records = heads.records
        for number, row in enumerate(rows, line):
            record = records[row[2]]
            if record.holds_scalar:
                self._found[row[1]] = (row, record.head, number)
                self._root = row[1] if row[0] else self._root

    def search(self, text: str, start: int, end: int, line: int, heads: HeadRecords) -> None:
        """Picks from `text[start:end]`, in which nothing else is wanted. `line` is the number of the line at `start`."""
        counted = start
        for match in _SCALAR.finditer(text, start, end):
            begin = text.rfind("\n", counted - 1, match.start()) + 1
            line += text.count("\n", counted, begin)
            counted = begin
            row = read_row(text, begin)
            if row is not None and heads.learn([row[2]]) is not None:
                self.take([row], line, heads)

    def kept(self, computation: Computation, last: str | None) -> dict[str, Instruction]:
        """Those that feed the root or what the computation's loops and calls are handed, by name.

        The root is the one marked so, else the `last` instruction. It counts where it is a scalar, or where the computation can
        be a loop's body: from a tuple to a tuple. The entry's root feeds nothing.
        """
        if not self._found:
            return {}
        root = self._root or last
        names = [o.name for i in computation.instructions if i.opcode in HANDING_OPCODES for o in i.operands]
        if root is not None and not computation.is_entry and self._counts(root):
            names.append(root)
        kept: dict[str, Instruction] = {}
        while names:
            name = names.pop()
            if name is None or name in kept or name not in self._found:
                continue
            row, head, line = self._found[name]
            try:
                instruction = Instruction(computation, ("ROOT " if name == root else "", *row[1:]), head, line)
            except tokens.ScanError:
                continue  # whoever wants the instruction itself notes the fault
            kept[name] = instruction
            if head.opcode in _FOLLOWED:
                names += [operand.name for operand in operands_of(row[3])]  # not kept, as the instruction would
        return kept

    def _counts(self, root: str) -> bool:
        if root not in self._found or not isinstance(self._found[root][1].shape, TupleShape):
            return True
        return any(h.opcode == "parameter" and isinstance(h.shape, TupleShape) for _, h, _ in self._found.values())
