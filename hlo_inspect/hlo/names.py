"""Whether every name that is used is defined, and once, at the cost of set operations where all is well."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Protocol

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.operands import operands_end, operands_of
from hlo_inspect.hlo.parameter_reads import ParameterReads
from hlo_inspect.hlo.regions import Block, Region

_CALLEES = re.compile(rf", (?:{'|'.join(CALLEE_ATTRIBUTES)})=(?:%?([A-Za-z_][\w.\-]*+)|\{{([^{{}}=]*+)\}})", re.ASCII)

_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_COUNTER = re.compile(r"/\*[^*]*+\*/")  # `/*index=5*/`
_MARKED = re.compile(r"%([A-Za-z_][\w.\-]*+)", re.ASCII)
_PRINTED_SHAPE = re.compile(r"(?<![^ \n])[^ \n]*+(?<!,) (?=[A-Za-z_])", re.ASCII)  # what stands before a name, but another name
_INDEX = re.compile(r"#[\d#]*+", re.ASCII)  # of `name#0#1`

_WITHOUT_NAMES = dict.fromkeys(LITERAL_OPCODES, "") | {"": "\n"}  # the last is the first line of a computation


class Complain(Protocol):
    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None: ...


class Silence:
    """Takes complaints of names that were checked before."""

    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None:
        pass


class NameCheck:
    """Follows the names of one module. A name may be used before its line: only one that never comes is undefined."""

    def __init__(self, complain: Complain, known: Container[str]) -> None:
        """`known` are the computations so far; a callee comes before its caller, but need not."""
        self._complain = complain
        self._known = known
        self._computation = Computation("", 0, is_entry=False)
        self._names: set[str] = set()
        self._pending: dict[str, int] = {}
        self._unknown_callees: dict[str, int] = {}

    def begin(self, computation: Computation) -> None:
        self._computation = computation
        self._names = set()
        if computation.is_entry:
            computation.reads = ParameterReads()
        self._pending = {}

    def check(self, lines: Lines) -> None:
        """Takes rows of the computation that was begun."""
        defined = set(lines.names)
        if len(defined) != len(lines.rows) or not self._names.isdisjoint(defined):
            self._note_duplicates(lines)
        self._names.update(defined)
        (uses,) = operand_names(lines.tails, lines.opcodes)
        if not uses <= self._names:
            uses = self._precisely(lines)
        if self._computation.reads is not None:
            self._computation.reads.take(lines, uses)

    def doubtful(self, region: Region, opcodes: Sequence[str], blocks: Sequence[Block]) -> Iterator[int]:
        """Those of whole computations, by number, that may define a name twice or use one that they do not define."""
        uses = operand_names(region.tails, opcodes, len(blocks))
        for number, (_, _, first, behind, _) in enumerate(blocks):
            defined = set(region.names[first:behind])
            if len(defined) != behind - first or not uses[number + 1] <= defined:
                yield number

    def _note_duplicates(self, lines: Lines) -> None:
        seen: set[str] = set()
        for line, row in enumerate(lines.rows, lines.first):
            if row[1] in seen or row[1] in self._names:
                message = f"{row[1]} is defined twice in computation {self._computation.name}"
                self._complain.problem("HI007", message, line, row[1])
            seen.add(row[1])

    def _precisely(self, lines: Lines) -> set[str]:
        """The uses, operand by operand; notes which are not defined so far."""
        uses: set[str] = set()
        for line, (row, opcode) in enumerate(zip(lines.rows, lines.opcodes, strict=True), lines.first):
            if opcode not in LITERAL_OPCODES:
                names = _precise_uses(row[3])
                uses.update(names)
                if self._computation.reads is not None and not names and row[3].partition(")")[0].strip():
                    self._computation.reads.known = False
                for name in names:
                    if name not in self._names:
                        self._pending.setdefault(name, line)
        return uses

    def knows_callees(self, text: str) -> bool:
        """Whether every computation that `text` calls is defined so far."""
        return all(callee in self._known for callee in _callees(text))

    def note_callees(self, lines: Lines) -> None:
        """Notes the computations that are called and not defined so far."""
        for line, row in enumerate(lines.rows, lines.first):
            if any(callee not in self._known for callee in _callees(row[3])):
                for callee in _precise_callees(row[3]):
                    self._unknown_callees.setdefault(callee, line)

    def end(self) -> None:
        """Behind the computation's last row: what is still unknown is undefined."""
        for name, line in self._pending.items():
            if name not in self._names:
                message = f"operand {name} is not defined in computation {self._computation.name}"
                self._complain.problem("HI008", message, line, name)

    def finish(self) -> None:
        """Behind the module's last computation."""
        for name, line in self._unknown_callees.items():
            if name not in self._known:
                self._complain.problem("HI009", f"computation {name} is called and not defined", line, name)


def _callees(text: str) -> list[str]:
    """The names of the computations that stand in attributes of `text`; strings may hold others."""
    callees = []
    for name, names in _CALLEES.findall(text):
        callees += [name] if name else [part.strip() for part in names.replace("%", "").split(",") if part.strip()]
    return callees


def _precise_callees(tail: str) -> list[str]:
    callees: list[str] = []
    try:
        for name, value in scan.attributes(tail, operands_end(tail) + 1):
            text = scan.without_comments(value)
            if name in CALLEE_ATTRIBUTES and "=" not in text:
                callees += _NAME.findall(text)
    except scan.ScanError:
        pass  # a fault of its own
    return callees


def operand_names(tails: Sequence[str], opcodes: Sequence[str], starts: int = 0) -> list[set[str]]:
    """The names in the operands of some rows, as the text from behind the opening parenthesis of each.

    Without an opcode are the first lines of computations, as many as `starts`. There is one more set than these, since that of
    the rows before the first one comes first.
    """
    joined = _operand_text(tails, opcodes)
    if joined.count("\n") != starts:  # an instruction on several lines
        texts = [_WITHOUT_NAMES.get(opcode) or ", ".join(_precise_uses(t)) for t, opcode in zip(tails, opcodes, strict=True)]
        joined = ", ".join(texts)
    joined = joined.replace("%", "")
    if "/*" in joined:
        joined = _COUNTER.sub("", joined)
    if "[" in joined:
        joined = _PRINTED_SHAPE.sub("", joined)
    if "#" in joined:
        joined = _INDEX.sub("", joined)
    names = [set(text.split(", ")) for text in joined.split("\n")]
    for found in names:
        found.discard("")
    return names


def _operand_text(tails: Sequence[str], opcodes: Sequence[str]) -> str:
    """The operands of all rows, with `, ` between them, if the text is as printers write it."""
    without = _WITHOUT_NAMES
    texts = [without[o] if o in without else tail.partition(")")[0] for tail, o in zip(tails, opcodes, strict=True)]
    joined = ", ".join(texts)
    if "(" not in joined:
        return joined
    return ", ".join([_nested_names(tail) if "(" in text else text for tail, text in zip(tails, texts, strict=True)])


def _nested_names(tail: str) -> str:
    """The names in operands that hold brackets."""
    try:
        end = operands_end(tail)
    except scan.ScanError:
        return ""
    return ", ".join(_MARKED.findall(tail, 0, end) if "%" in tail[:end] else _precise_uses(tail))


def _precise_uses(tail: str) -> list[str]:
    try:
        return [operand.name for operand in operands_of(tail) if operand.name is not None]
    except scan.ScanError:
        return []
