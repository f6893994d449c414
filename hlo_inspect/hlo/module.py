"""What a module's text says, as far as somebody wanted it kept.

`Instruction` is a view: its operands and attributes are parsed from the text each time they are asked for, so that the
many that nobody looks into cost nothing but their text.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from hlo_inspect.errors import Location
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.header import Header, StackFrames
from hlo_inspect.hlo.problems import Problems
from hlo_inspect.hlo.rows import ROW, Row
from hlo_inspect.hlo.shapes import Shape, ShapeError, UnknownTypeError, parse_shape, subshape

LITERAL_OPCODES = frozenset({"constant", "parameter"})
"""Opcodes whose parentheses hold no operands."""

CALLEE_ATTRIBUTES = (
    "calls",
    "to_apply",
    "body",
    "condition",
    "true_computation",
    "false_computation",
    "branch_computations",
    "called_computations",
    "select",
    "scatter",
)

_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)((?:#\d{1,9})*+)", re.ASCII)
_CALLEE = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_UNCOMMON_OPERANDS = re.compile(r"[^\w.\-%, ]|(?<!,) |,(?! )|null", re.ASCII)  # anything but names and their separators
_NESTING = re.compile(r"[(\[{\"'/]")


@dataclass(frozen=True, slots=True)
class Wants:
    """What a pass needs of a module; the reader reads for the union and skips the rest.

    `opcodes`: instructions to keep, wherever they stand, and what calls the computations that hold them.
    `targets`: custom calls to keep beside them, in the same computations.
    `entry`: the entry computation's parameters and root, and which parameters nothing reads.
    `every_line`: each instruction is read: opcodes per computation, names checked, unreadable lines counted.
    `graph`: the text of every computation is kept, for `Computation.body`; implies `every_line`.
    """

    opcodes: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    entry: bool = False
    every_line: bool = False
    graph: bool = False

    @property
    def reads_every_line(self) -> bool:
        return self.every_line or self.graph

    def __or__(self, other: Wants) -> Wants:
        return Wants(
            self.opcodes | other.opcodes,
            self.targets | other.targets,
            self.entry or other.entry,
            self.every_line or other.every_line,
            self.graph or other.graph,
        )


class Head(NamedTuple):
    """The part `shape opcode` of a line, parsed once for all lines that share it. `shape` is `None` where it cannot be read."""

    opcode: str
    shape: Shape | None


@lru_cache(maxsize=1 << 16)
def head_of(text: str) -> Head:
    """The head that `shape opcode` spells; `ShapeError` where the shape is none. An unknown element type leaves no shape."""
    shape_text, _, opcode = text.rpartition(" ")
    try:
        shape = parse_shape(shape_text) if shape_text else None
    except UnknownTypeError:
        shape = None
    return Head(sys.intern(opcode), shape)


class Operand(NamedTuple):
    """A use: the instruction's name with the tuple index of `name#0#1`, and the shape where the text prints it.

    `name` is `None` for what is no name: an instruction written in place, a deleted operand.
    """

    name: str | None
    path: tuple[int, ...]
    shape: Shape | None


class Instruction:
    """One instruction. `definition_shapes` are the shapes of its operands as their definitions print them, where in reach."""

    __slots__ = ("_close", "_tail", "computation", "head", "is_root", "line", "name", "operand_shapes")

    def __init__(self, computation: Computation, row: Row, head: Head, line: int) -> None:
        root, name, _, tail = row
        self.computation = computation
        self.name = name
        self.head = head
        self.line = line
        self.is_root = bool(root)
        self.operand_shapes: tuple[Shape | None, ...] = ()
        self._tail = tail
        self._close = operands_end(tail)

    @property
    def opcode(self) -> str:
        return self.head.opcode

    @property
    def shape(self) -> Shape | None:
        return self.head.shape

    @property
    def operand_text(self) -> str:
        """What stands between the parentheses: operands, a parameter's number, a literal."""
        return self._tail[: self._close]

    @property
    def attributes(self) -> dict[str, str]:
        """The text of each attribute. Where the tail stops making sense the computation notes a fault, and the rest is
        left out.
        """
        found: dict[str, str] = {}
        try:
            for name, value in scan.attributes(self._tail, self._close + 1):
                found.setdefault(name, value)
        except scan.ScanError as error:
            self.computation.faults[self.name] = (self.line, error.message)
        return found

    @property
    def operands(self) -> tuple[Operand, ...]:
        return () if self.opcode in LITERAL_OPCODES else parse_operands(self._tail)[1]

    @property
    def parameter_number(self) -> int | None:
        text = scan.without_comments(self.operand_text).strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def callees(self, attributes: dict[str, str]) -> dict[str, tuple[str, ...]]:
        """The names of the computations that each attribute calls."""
        return {
            name: tuple(_CALLEE.findall(attributes[name]))
            for name in CALLEE_ATTRIBUTES
            if name in attributes and "=" not in attributes[name]
        }

    def resolve_operands(self, definitions: Iterable[dict[str, Head]]) -> None:
        """Fills `operand_shapes`: the printed shape of each operand, else that of its definition."""
        self.operand_shapes = tuple(_operand_shape(operand, definitions) for operand in self.operands)


def operands_end(tail: str) -> int:
    """The index of the parenthesis that closes the operands, in what follows the one that opens them."""
    close = tail.find(")")
    if close >= 0 and not _NESTING.search(tail, 0, close):
        return close
    return scan.balanced_end("(" + tail, 0, holds_lines=True) - 2


def parse_operands(tail: str) -> tuple[int, tuple[Operand, ...]]:
    """The operands of a tail, and the index of the parenthesis behind them."""
    close = operands_end(tail)
    if not _UNCOMMON_OPERANDS.search(tail, 0, close):
        names = tail[:close].replace("%", "")
        return close, tuple(Operand(name, (), None) for name in names.split(", ")) if names else ()
    return close, tuple(_operand(tail[start:end]) for start, end in scan.split_items(tail, 0, close))


def _operand(text: str) -> Operand:
    """One item of an operand list: `[shape] [%]name[#i…]`; anything else has no name."""
    text = scan.without_comments(text).strip()
    before, _, last = text.rpartition(" ")
    match = _NAME.fullmatch(last)
    if match is None or (not before and last == "null"):
        return Operand(None, (), _shape_or_none(text))
    path = tuple(int(i) for i in match[2].split("#")[1:])
    return Operand(match[1], path, _shape_or_none(before) if before else None)


def _shape_or_none(text: str) -> Shape | None:
    try:
        return parse_shape(text)
    except ShapeError:
        return None


def _operand_shape(operand: Operand, definitions: Iterable[dict[str, Head]]) -> Shape | None:
    if operand.shape is not None or operand.name is None:
        return operand.shape
    for heads in definitions:
        head = heads.get(operand.name)
        if head is not None and head.shape is not None:
            return subshape(head.shape, operand.path)
    return None


class Computation:
    """One computation, as far as it is kept.

    `opcodes`: one opcode per instruction where every line was read, else nothing.
    `instructions`: those that were kept; `faults` those of them whose attributes make no sense, with line and reason.
    `unread`: the entry's parameters that no instruction reads, where asked for; `read_elements`: of tuples that are only taken
    apart which elements are read; both hold only if `reads_known`.
    `chunks`: the text, with the number of its first line, where the graph is wanted.
    `is_cut_off`: its end is not in the text.
    """

    __slots__ = (
        "chunks",
        "faults",
        "instructions",
        "is_cut_off",
        "is_entry",
        "line",
        "name",
        "opcodes",
        "read_elements",
        "reads_known",
        "root_opcode",
        "unread",
    )

    def __init__(self, name: str, line: int, *, is_entry: bool) -> None:
        self.name = name
        self.line = line
        self.is_entry = is_entry
        self.opcodes: list[str] = []
        self.root_opcode: str | None = None
        self.instructions: list[Instruction] = []
        self.unread: set[str] = set()
        self.read_elements: dict[str, set[int]] = {}
        self.reads_known = True
        self.is_cut_off = False
        self.faults: dict[str, tuple[int, str]] = {}
        self.chunks: list[tuple[int, str | Row]] = []

    def body(self) -> list[Instruction]:
        """Every instruction, made anew at each call: whole graphs are kept as text, which takes the least room."""
        found: list[Instruction] = []
        for line, chunk in self.chunks:
            rows = ROW.findall(chunk) if isinstance(chunk, str) else [chunk]
            found += [Instruction(self, row, head_of(row[2]), line + n) for n, row in enumerate(rows)]
        if found and not any(instruction.is_root for instruction in found):
            found[-1].is_root = True
        return found

    @property
    def parameters(self) -> list[Instruction]:
        """The kept parameters, by number."""
        kept = [i for i in self.instructions if i.opcode == "parameter" and i.parameter_number is not None]
        return sorted(kept, key=lambda i: i.parameter_number or 0)

    @property
    def root(self) -> Instruction | None:
        """The kept root: the one marked so, else the last instruction."""
        marked = [i for i in self.instructions if i.is_root]
        return marked[-1] if marked else None


@dataclass
class Module:
    """One module, as far as it was read.

    `computations` are those in which something was kept (all of them where every line was read); `root_opcodes` tells the
    root of the small ones besides, since reducers are among them. `partitioning_targets` are the custom-call targets
    that tell a module before partitioning, `tiling` is the first sharding over devices where the header does not count them. Line counts are of the input, line ends included.
    """

    header: Header
    path: str
    first_line: int
    wants: Wants
    lines: int = 0
    bytes: int = 0
    frames: StackFrames = field(default_factory=StackFrames)
    computations: dict[str, Computation] = field(default_factory=dict)
    root_opcodes: dict[str, str] = field(default_factory=dict)
    entry: Computation | None = None
    computation_count: int = 0
    partitioning_targets: set[str] = field(default_factory=set)
    tiling: str = ""
    unparsed_lines: int = 0
    problems: Problems = field(default_factory=Problems)

    @property
    def name(self) -> str:
        return self.header.name

    def location(self, line: int | None, column: int | None = None) -> Location:
        return Location(self.path, line, column)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Every kept instruction, in the order of the text."""
        return tuple(i for computation in self.computations.values() for i in computation.instructions)

    def with_opcodes(self, opcodes: frozenset[str]) -> Iterable[Instruction]:
        return (i for i in self.instructions if i.opcode in opcodes)

    @cached_property
    def opcode_counts(self) -> Counter[str]:
        """Instructions of each opcode over all computations, where every line was read."""
        counts: Counter[str] = Counter()
        for computation in self.computations.values():
            counts.update(computation.opcodes)
        return counts
