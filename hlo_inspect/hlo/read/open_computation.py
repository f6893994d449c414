"""The open computation: the parts of its lines that later lines need.

That includes the integer scalars on which a loop's trip count can depend. A counter, its step and its limit are such scalars. A
tuple passes them to the loop, its condition compares them, its body changes them. A callee comes before its caller, so a
condition is read before its loop. A second reading is not possible: the input may be a pipe.

Little has to be kept, though. Conditions, and fusions and calls that compare or count, have an integer scalar as root. The
tuple that a body returns usually starts with one. Few other computations do (3 of 12,249 in a dump of 14 MB). The reader keeps
the text of such skipped computations, if it is short, until a trip count is needed. Of the computations that it reads, it
keeps the instructions that feed the root or the operands of a loop or a call. These are a handful, even in a body of hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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
"""Opcodes whose operands become the parameters of another computation."""

_CONVERTING = frozenset(name for name in OPCODES if TABLE[name].base in {"convert", "copy"})
PASSING_OPCODES = _CONVERTING | {"bitcast", "opt-barrier"}
"""Opcodes that do not change a count: the result is the operand."""

CONDITION_ROOTS = PASSING_OPCODES | (HANDING_OPCODES - {"while"}) | {"compare", "fusion"}
"""Opcodes of the roots of conditions, if the loop's trips can be counted."""

FOLLOWED = CONDITION_ROOTS | HANDING_OPCODES | NAMING | {"add", "subtract"}
"""Opcodes of scalars whose operands feed a trip count, too."""

SCALAR_ROOT = lazy_pattern(r"\(*+(?:pred|[su]\d{1,2})\[\]", re.ASCII)
"""Pattern of the start of a root's shape: an integer or Boolean scalar, or a tuple that starts with such a scalar."""

_SCALAR = lazy_pattern(r" = (?:\(|(?:pred|[su]\d{1,2})\[\])", re.ASCII)  # after a name, or in a string


def without_metadata(row: Row) -> Row:
    """Return a row without its metadata, unless a string comes before them."""
    attributes, mark, _ = row[3].partition(", metadata={")
    return (*row[:3], attributes) if mark and '"' not in attributes else row


def read_skipped(module: Module) -> None:
    """Read the skipped computations into `module.computations`; call it before computing a trip count."""
    skipped, module.skipped = module.skipped, {}
    for name, computation in skipped.items():
        keep_scalars(module, name, computation)


def keep_scalars(module: Module, name: str, skipped: SkippedComputation) -> None:
    """Read a skipped computation into `module.computations`, with its scalars."""
    computation = Computation(name, skipped.line, is_entry=False, shared=module.shared)
    computation.root_opcode = skipped.root_opcode
    opened = OpenComputation(computation, module.heads)
    text = skipped.text
    opened.search_scalars(Span(text, text.index("\n") + 1, len(text), skipped.line + 1))
    computation.keep_scalars(opened.feeding_scalars(None))
    module.computations[name] = computation


class OpenComputation:
    """A computation before its end.

    `reads_all`: all of its lines are wanted.
    `in_place`: it is written among the attributes of an instruction.
    `may_be_entry`: it is needed whole if no computation is marked ENTRY.
    `instructions`: the kept instructions. `columns`: the heads of its rows, if every line is read. `parts`: its rows, if the
    graph is wanted or it may be the entry. All are in text order.
    `signature`: its first line, unless it is in place.
    `counts`: its scalars can decide how often a loop runs.
    `roots`: the number of marked rows. `skipped_root`: True if a marked row was not read. `last`: the last row and its line.
    `parameters`: the number of parameters, in the first computation of a module.
    `unparsed_before`: the number of unreadable lines of the module before it.
    `scalars`: its integer scalars, and tuples with integer scalars.
    `unread_lines`: the last lines, mostly unread. `unread`: the definitions in them, searched on first use.
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

    def define(self, names: Iterable[str], heads: Iterable[Head]) -> None:
        """Store the heads of rows by name."""
        self._read.update(zip(names, heads, strict=True))
        if len(self._read) > MAX_DEFINITIONS:  # drop the oldest half at once; single drops would be quadratic
            self._read = dict(islice(self._read.items(), len(self._read) - MAX_DEFINITIONS // 2, None))

    def get(self, name: str) -> Head | None:
        """Return the head of an instruction that was read or is in the last unread lines."""
        read = self._read.get(name)
        if read is not None or self.unread_lines is None:
            return read
        if self.unread is None:
            text, start, end, _ = self.unread_lines
            self.unread = dict(DEFINITION.findall(text, start - 1, end))
        head = self.unread.get(name)
        return self.heads.find(head) if head is not None else None

    # -- its scalars ----------------------------------------------------------------------------------------------------

    def take_scalars(self, rows: Rows) -> None:
        for row, head, line in zip(rows, rows.column.heads, rows.lines, strict=True):
            if head.holds_scalar:
                self.take_scalar(row, head, line)

    def take_scalar(self, row: Row, head: Head, line: int) -> None:
        self.scalars[row[1]] = (row, head, line)
        self._scalar_root = row[1] if row[0] else self._scalar_root

    def search_scalars(self, lines: Span) -> None:
        """Collect scalars from lines in which nothing else is wanted."""
        text, counted, end, line = lines
        for match in _SCALAR.finditer(text, counted, end):
            begin = text.rfind("\n", counted - 1, match.start()) + 1
            line += text.count("\n", counted, begin)
            counted = begin
            row = read_row(text, begin)
            head = self.heads.find(row[2]) if row is not None else None
            if row is not None and head is not None and head.holds_scalar:
                self.take_scalar(row, head, line)

    def feeding_scalars(self, last: str | None) -> list[tuple[Row, int]]:
        """Return the scalars that feed the root or the operands of loops and calls, with their lines.

        The root is the instruction marked ROOT, else `last`. It counts if it is a scalar, or if the computation can be a
        loop's body, from tuple to tuple. The entry's root feeds nothing.
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
                continue  # reported if the instruction itself is wanted
            kept[name] = without_metadata(("ROOT " if name == root else "", name, text, tail)), line
            if head.opcode in FOLLOWED:
                names += [operand.name for operand in operands]
        return list(kept.values())

    def _may_count(self, root: str) -> bool:
        if root not in self.scalars or not isinstance(self.scalars[root][1].shape, TupleShape):
            return True
        return any(h.opcode == "parameter" and isinstance(h.shape, TupleShape) for _, h, _ in self.scalars.values())
