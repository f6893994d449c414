"""The computation that is being read: what its lines said, as far as later lines need it.

Among that are the integer scalars that a loop's trip count can depend on. A counter, its step and its limit are integer
scalars: handed to the loop in a tuple, compared by its condition, changed by its body. A callee stands before its caller, so a
condition is not known as one when it is read, and a second reading is no way out: the input may be a pipe. What it takes is
little, though. Conditions, and the fusions and calls that compare or count, have an integer scalar as their root, and the tuple
that a body gives starts with one as a rule; few other computations do (3 of 12,249 in a dump of 14 MB). Of those that the
reader skips it keeps the text, if that is short, until a trip count has to be worked out. Of each that it reads, the
instructions stay that feed its root or what it hands to a loop or a call, and no others: a handful, even where the body has
hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction, operands_of
from hlo_inspect.hlo.module import Computation, Module, SkippedComputation
from hlo_inspect.hlo.opcodes import NAMING, OPCODES, TABLE
from hlo_inspect.hlo.read.cursor import Span
from hlo_inspect.hlo.read.fast_path import DEFINITION, read_row
from hlo_inspect.hlo.rows import Head, HeadColumn, HeadTable, Rows
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.shapes import TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_DEFINITIONS = 1 << 20

HANDING_OPCODES = frozenset({"while", "call"})
"""Their operands are another computation's parameters."""

_CONVERTING = frozenset(name for name in OPCODES if TABLE[name].base in {"convert", "copy"})
PASSING_OPCODES = _CONVERTING | {"bitcast", "opt-barrier"}
"""Their result is their operand, as far as a count is concerned."""

CONDITION_ROOTS = PASSING_OPCODES | (HANDING_OPCODES - {"while"}) | {"compare", "fusion"}
"""What the root of a loop's condition can be if the loop's trips can be counted."""

_FOLLOWED = CONDITION_ROOTS | HANDING_OPCODES | NAMING | {"add", "subtract"}

SCALAR_ROOT = lazy_pattern(r"\(*+(?:pred|[su]\d{1,2})\[\]", re.ASCII)
"""How the shape of a root starts that is an integer or truth value, or a tuple that has one first."""

_SCALAR = lazy_pattern(r" = (?:\(|(?:pred|[su]\d{1,2})\[\])", re.ASCII)  # behind a name, or somewhere in a string


def read_skipped(module: Module) -> None:
    """Take the computations that were passed over into `module.computations`. Who works out a trip count needs them."""
    skipped, module.skipped = module.skipped, {}
    for name, computation in skipped.items():
        keep_scalars(module, name, computation)


def keep_scalars(module: Module, name: str, skipped: SkippedComputation) -> None:
    """Take a computation that was passed over into `module.computations`, with its scalars."""
    computation = Computation(name, skipped.line, is_entry=False, shared=module.shared)
    computation.root_opcode = skipped.root_opcode
    opened = OpenComputation(computation, module.heads)
    text = skipped.text
    opened.search_scalars(Span(text, text.index("\n") + 1, len(text), skipped.line + 1))
    computation.keep_scalars(opened.feeding_scalars(None))
    module.computations[name] = computation


class OpenComputation:
    """What is known of a computation before its end.

    `reads_all`: each of its lines is wanted.
    `in_place`: it is written among the attributes of an instruction.
    `may_be_entry`: it is needed whole in case that no computation is marked ENTRY.
    `instructions` are those that are kept, `columns` the heads of its rows where every line is read, `parts` the rows where the
    graph is wanted or it may be the entry: all in the order of the text.
    `signature`: its first line, where it is not in place.
    `counts`: its scalars can say how often a loop runs.
    `roots` counts the rows that are marked, `skipped_root` is whether one was not read; `last` is the last row, with its
    line.
    `parameters`: how many it has, of the first computation of a module.
    `unparsed_before`: how many lines of the module before it cannot be read.
    `scalars`: its integer scalars, and the tuples that hold some.
    `unread_lines`: the last lines of which most were not read; `unread` is what they define, found when it is asked for.
    """

    def __init__(
        self,
        computation: Computation,
        heads: HeadTable,
        *,
        in_place: bool = False,
        may_be_entry: bool = False,
        signature: str = "",
    ) -> None:
        self.computation = computation
        self.heads = heads
        self.reads_all = True
        self.in_place = in_place
        self.may_be_entry = may_be_entry
        self.signature = signature
        self.counts = True
        self.roots = 0
        self.skipped_root = False
        self.last: tuple[Row, int] | None = None
        self.parameters = 0
        self.unparsed_before = 0
        self.instructions: list[Instruction] = []
        self.columns: list[HeadColumn] = []
        self.parts: list[Rows] = []
        self.scalars: dict[str, tuple[Row, Head, int]] = {}
        self.unread_lines: Span | None = None
        self.unread: Mapping[str, str] | None = None
        self._read: dict[str, Head] = {}
        self._scalar_root: str | None = None

    # -- the heads of its instructions by name --------------------------------------------------------------------------

    def define(self, rows: Rows) -> None:
        """Takes the heads of rows."""
        self._read.update(zip(rows.names, rows.column.heads, strict=True))
        if len(self._read) > MAX_DEFINITIONS:  # the first ones go, many at once: taking one after the other is quadratic
            self._read = dict(islice(self._read.items(), len(self._read) - MAX_DEFINITIONS // 2, None))

    def get(self, name: str) -> Head | None:
        """The head of an instruction: one that was read, or in the last lines that were not."""
        known = self._read.get(name)
        if known is not None or self.unread_lines is None:
            return known
        if self.unread is None:
            text, start, end, _ = self.unread_lines
            self.unread = dict(DEFINITION.findall(text, start - 1, end))
        head = self.unread.get(name)
        return self.heads.find(head) if head is not None else None

    # -- its scalars ----------------------------------------------------------------------------------------------------

    def take_scalars(self, rows: Rows) -> None:
        for row, head, line in zip(rows, rows.column.heads, rows.lines, strict=True):
            if head.holds_scalar:
                self._take_scalar(row, head, line)

    def _take_scalar(self, row: Row, head: Head, line: int) -> None:
        self.scalars[row[1]] = (row, head, line)
        self._scalar_root = row[1] if row[0] else self._scalar_root

    def search_scalars(self, lines: Span) -> None:
        """Picks from lines in which nothing else is wanted."""
        text, counted, end, line = lines
        for match in _SCALAR.finditer(text, counted, end):
            begin = text.rfind("\n", counted - 1, match.start()) + 1
            line += text.count("\n", counted, begin)
            counted = begin
            row = read_row(text, begin)
            head = self.heads.find(row[2]) if row is not None else None
            if row is not None and head is not None and head.holds_scalar:
                self._take_scalar(row, head, line)

    def feeding_scalars(self, last: str | None) -> list[tuple[Row, int]]:
        """The scalars that feed the root or what the computation's loops and calls are handed, with their lines.

        The root is the one marked so, else the `last` instruction. It counts where it is a scalar, or where the computation can
        be a loop's body: from a tuple to a tuple. The entry's root feeds nothing.
        """
        computation, root = self.computation, self._scalar_root or last
        names = [o.name for i in computation.with_opcodes(HANDING_OPCODES) for o in i.read_operands()]
        if root is not None and not computation.is_entry and self._may_count(root):
            names.append(root)
        kept: dict[str, tuple[Row, int]] = {}
        while names:
            name = names.pop()
            if name is None or name in kept or name not in self.scalars:
                continue
            (_, _, text, tail), head, line = self.scalars[name]
            try:
                operands = operands_of(tail)
            except tokens.ScanError:
                continue  # whoever wants the instruction itself notes the fault
            attributes, mark, _ = tail.partition(", metadata={")
            if mark and '"' not in attributes:
                tail = attributes
            kept[name] = ("ROOT " if name == root else "", name, text, tail), line
            if head.opcode in _FOLLOWED:
                names += [operand.name for operand in operands]
        return list(kept.values())

    def _may_count(self, root: str) -> bool:
        if root not in self.scalars or not isinstance(self.scalars[root][1].shape, TupleShape):
            return True
        return any(h.opcode == "parameter" and isinstance(h.shape, TupleShape) for _, h, _ in self.scalars.values())
