"""Consistency of a module: names (`NameCheck`) and roots (`RootCheck`).

Every used name has to be defined exactly once. The native reader sees that while it reads; these checks are for what it leaves
to the readers in Python. They also find the entry parameters without users.

Without a ROOT mark the last instruction is the root, so a missing line changes the root. Its shape is compared with the
computation's signature (`(p: f32[2]) -> f32[2]`), as XLA's parser does. It is also compared with the result in the header's
`entry_computation_layout`, and with the fusion, call or while that runs the computation. Equal shapes may be chance: a reducer
without its sum ends with a parameter. XLA marks the root of every computation that it prints. In a text with XLA's header, an
unmarked computation among marked computations has therefore lost a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import LEFT_OUT, operand_names, operands_end, operands_of
from hlo_inspect.hlo.module import Computation, Module, ParameterReads
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.rows import Rows
from hlo_inspect.hlo.values.shape_text import ShapeError, parse_shape
from hlo_inspect.hlo.values.shapes import Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

_CALLEES = lazy_pattern(rf", (?:{'|'.join(CALLEE_ATTRIBUTES)})=(?:%?([A-Za-z_][\w.\-]*+)|\{{([^{{}}=]*+)\}})", re.ASCII)
_NAME = lazy_pattern(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_INDEX = lazy_pattern(r", index=(\d{1,9})", re.ASCII)

NoteProblem = Callable[[str, str, int | None, str | None], None]
"""Callback that receives code, message, line and subject of a problem."""


class NameCheck:
    """Checks of the names of a module.

    A name may be used before its definition; it is undefined only if no definition follows.
    """

    def __init__(self, note: NoteProblem, computations: Container[str]) -> None:
        """Start with the `computations` so far; a callee usually comes before its caller."""
        self._note = note
        self._known = computations
        self._computation = Computation("", 0, is_entry=False)
        self._names: set[str] = set()
        self._pending: dict[str, int] = {}
        self._outer: list[tuple[Computation, set[str], dict[str, int]]] = []
        self._unknown_callees: dict[str, int] = {}

    def begin(self, computation: Computation) -> None:
        """Start a computation, possibly one in place in another."""
        self._outer.append((self._computation, self._names, self._pending))
        self._computation = computation
        self._names = set()
        self._pending = {}
        if computation.is_entry:
            computation.reads = ParameterReads()

    def check(self, rows: Rows) -> None:
        """Check rows of the current computation: report names with two definitions, record those without one so far."""
        defined = set(rows.names)
        if len(defined) != len(rows.names) or not self._names.isdisjoint(defined):
            self._note_duplicates(rows)
        self._names.update(defined)
        reads, uses = self._computation.reads, set[str]()
        for line, tail, opcode in zip(rows.lines, rows.tails, rows.opcodes, strict=True):
            if opcode in LITERAL_OPCODES:
                continue
            names = _operand_names(tail)
            uses.update(names)
            for name in names if not self._names.issuperset(names) else ():
                if name not in self._names:
                    self._pending.setdefault(name, line)
            if reads is not None and not names and tail.partition(")")[0].strip():
                reads.known = False
        if reads is not None:
            _note_reads(reads, rows, uses)

    def _note_duplicates(self, rows: Rows) -> None:
        seen: set[str] = set()
        for line, name in zip(rows.lines, rows.names, strict=True):
            if name in seen or name in self._names:
                self._note("HI007", f"{name} is defined twice in computation {self._computation.name}", line, name)
            seen.add(name)

    def knows_callees(self, tails: str) -> bool:
        """Return True if every computation that these tails call is defined so far."""
        return all(map(self._known.__contains__, _quick_callees(tails)))

    def note_callees(self, rows: Iterable[tuple[int, str]]) -> None:
        """Record the called computations that have no definition so far. A row is its line and its tail."""
        for line, tail in rows:
            if not self.knows_callees(tail):
                for callee in _precise_callees(tail):
                    self._unknown_callees.setdefault(callee, line)

    def end(self) -> None:
        """End the computation: report names that are still unknown as undefined."""
        for name, line in self._pending.items():
            if name not in self._names:
                message = f"operand {name} is not defined in computation {self._computation.name}"
                self._note("HI008", message, line, name)
        self._computation, self._names, self._pending = self._outer.pop()

    def finish(self) -> None:
        """End the module: report called computations that are undefined."""
        for name, line in self._unknown_callees.items():
            if name not in self._known:
                self._note("HI009", f"computation {name} is called but not defined", line, name)


def _note_reads(reads: ParameterReads, rows: Rows, uses: set[str]) -> None:
    """Record the parameters that the rows define and use."""
    reads.known = reads.known and not any(LEFT_OUT in tail for tail in rows.tails)
    for name, opcode, head in zip(rows.names, rows.opcodes, rows.heads, strict=True):
        if opcode == "parameter":
            reads.unread.add(name)
            if head.startswith("("):
                reads.elements[name] = set()
    reads.unread -= uses
    if not uses.isdisjoint(reads.elements):
        note_elements(reads.elements, zip(rows.tails, rows.opcodes, strict=True))


def note_elements(elements: dict[str, set[int]], rows: Iterable[tuple[str, str]]) -> None:
    """Record the elements that rows read of tuples; drop tuples that are read whole. A row is its tail and its opcode."""
    for tail, opcode in rows:
        if opcode in LITERAL_OPCODES:
            continue
        try:
            operands = operands_of(tail)
        except tokens.ScanError:
            continue
        for operand in operands:
            if operand.name not in elements:
                continue
            index = _INDEX.search(tail) if opcode == "get-tuple-element" else None
            if operand.path:
                elements[operand.name].add(operand.path[0])
            elif index is not None:
                elements[operand.name].add(int(index[1]))
            else:
                elements.pop(operand.name)


def _quick_callees(text: str) -> list[str]:
    """Return the callees named in the attributes of `text`, including names in strings."""
    callees = []
    for name, names in _CALLEES.findall(text):
        callees += [name] if name else [part.strip() for part in names.replace("%", "").split(",") if part.strip()]
    return callees


def _precise_callees(tail: str) -> list[str]:
    callees: list[str] = []
    try:
        for name, value in tokens.attributes(tail, operands_end(tail) + 1):
            text = tokens.without_comments(value)
            if name in CALLEE_ATTRIBUTES and "=" not in text:
                callees += _NAME.findall(text)
    except tokens.ScanError:
        pass  # reported as a separate fault
    return callees


def _operand_names(tail: str) -> list[str]:
    names = operand_names(tail)
    if names is not None:
        return names
    try:
        return [operand.name for operand in operands_of(tail) if operand.name is not None]
    except tokens.ScanError:
        return []  # reported as a separate fault


# -- roots ------------------------------------------------------------------------------------------------------------------

_GIVING = {"calls": "fusion", "to_apply": "call", "body": "while"}
"""Opcodes by attribute: their result is the root of the computation that the attribute names."""

_CALLEE = lazy_pattern(rf", ({'|'.join(_GIVING)})=%?([A-Za-z_][\w.\-]*+)", re.ASCII)


class RootCheck:
    """Checks of roots in the computations of a module that mark none."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._unmarked: dict[str, tuple[Shape, str, int]] = {}
        self._agreeing: dict[str, tuple[str, int]] = {}
        self._count = 0

    def end(self, computation: Computation, signature: str, name: str, shape: Shape | None, line: int) -> None:
        """End a computation without ROOT.

        `signature` is its first line; `name`, `shape` and `line` belong to its last instruction.
        """
        self._count += 1
        self._agreeing[computation.name] = name, line
        if shape is None:
            return
        stated = _stated_result(signature)
        source = "its signature"
        if stated is None and computation.is_entry and self._module.header.entry_layout is not None:
            stated, source = self._module.header.entry_layout[1], "entry_computation_layout"
        if stated is None:
            self._unmarked[computation.name] = shape, name, line
        elif not compatible(stated, shape):
            self._note(computation.name, name, line, shape, source, stated)

    def check_callers(self, rows: Rows) -> None:
        """Compare roots that no signature states with the instructions that run their computations."""
        if not self._unmarked:
            return
        for row, head, tail in zip(rows.names, rows.column.heads, rows.tails, strict=True):
            for attribute, callee in _CALLEE.findall(tail):
                unmarked = self._unmarked.get(callee)
                if unmarked is None or head.opcode != _GIVING[attribute]:
                    continue
                shape, name, line = unmarked
                stated = head.shape
                if stated is not None and not compatible(stated, shape):
                    self._unmarked.pop(callee)
                    self._note(callee, name, line, shape, f"its caller {row}", stated)

    def finish(self, computations: int) -> None:
        """End a module with this number of `computations`.

        Report the computations without a ROOT mark if XLA's printer wrote the header and most computations have the mark.
        """
        if not self._module.header.prints_counts or 2 * self._count >= computations:
            return
        for computation, (name, line) in self._agreeing.items():
            message = f"no instruction of {computation} is marked ROOT, unlike in most computations here; {name} counts as ROOT"
            self._module.note("HI015", message, line, computation)

    def _note(self, computation: str, name: str, line: int, shape: Shape, source: str, stated: Shape) -> None:
        self._agreeing.pop(computation, None)
        last = f"{computation} marks no ROOT, and its last instruction {name} has the shape {_short(shape)}"
        self._module.note("HI014", f"{last}; {source} states {_short(stated)}", line, computation)


def _stated_result(first_line: str) -> Shape | None:
    """Return the shape after the arrow of a computation's first line; None if there is none."""
    _, arrow, result = first_line.rpartition("->")
    if not arrow:
        return None
    try:
        return parse_shape(result.strip().removesuffix("{").strip())
    except ShapeError:
        return None


def compatible(left: Shape, right: Shape) -> bool:
    """Return True if shapes are equal except for layouts and dynamic dimensions, as in `ShapeUtil::Compatible`."""
    waiting = [(left, right)]
    while waiting:
        first, second = waiting.pop()
        if isinstance(first, TupleShape) and isinstance(second, TupleShape) and len(first.elements) == len(second.elements):
            waiting += zip(first.elements, second.elements, strict=True)
        elif not _same_array(first, second):
            return False
    return True


def _same_array(left: Shape, right: Shape) -> bool:
    if isinstance(left, TupleShape) or isinstance(right, TupleShape):
        return False
    return (left.dtype, left.dimensions) == (right.dtype, right.dimensions)


def _short(shape: Shape) -> str:
    text = str(shape)
    return text if len(text) <= 60 else f"{text[:60]}…"
