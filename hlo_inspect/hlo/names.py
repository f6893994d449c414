"""Whether every name that is used is defined, and once, at the cost of set operations where all is well."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Protocol

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.instruction import CALLEE_ATTRIBUTES, LITERAL_OPCODES, operands_end, parse_operands
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.parameter_reads import ParameterReads

_CALLEES = re.compile(rf", (?:{'|'.join(CALLEE_ATTRIBUTES)})=(?:%?([A-Za-z_][\w.\-]*+)|\{{([^{{}}=]*+)\}})", re.ASCII)

_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_COUNTER = re.compile(r"/\*[^*]*+\*/")  # `/*index=5*/`
_MARKED = re.compile(r"%([A-Za-z_][\w.\-]*+)", re.ASCII)
_OPERANDS_END = re.compile(r"\)(?=, [A-Za-z_][\w.\-]*+=|$)", re.ASCII)  # as printers write what follows the operands
_TIGHT = re.compile(r",(?![\d ])")  # a comma that stands in no shape, and not as printers write it


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
        definitions = lines.definitions
        if len(definitions) != len(lines.rows) or not self._names.isdisjoint(definitions):
            self._note_duplicates(lines)
        self._names.update(definitions)
        uses = _uses(lines)
        if not uses <= self._names:
            uses = self._precisely(lines)
        if self._computation.reads is not None:
            self._computation.reads.take(lines, uses)

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
        for line, (row, head) in enumerate(zip(lines.rows, lines.heads, strict=True), lines.first):
            if head.opcode not in LITERAL_OPCODES:
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


def _uses(lines: Lines) -> set[str]:
    """The names that stand as operands, or strings that are no names where the text is not as printers write it."""
    operands = [
        row[3].partition(")")[0]
        for row, head in zip(lines.rows, lines.heads, strict=True)
        if head.opcode not in LITERAL_OPCODES
    ]
    joined = ", ".join(operands).replace("%", "")
    names: set[str] = set()
    if "(" in joined or "\n" in joined:
        joined, names = _nested_uses(lines)
    if "/*" in joined:
        joined = _COUNTER.sub("", joined)
    names.update(joined.split(", "))
    names.discard("")
    if ("[" in joined or "#" in joined) and not _TIGHT.search(joined):
        # printed shapes stand before the name, tuple indices behind it
        names = {name.rpartition(" ")[2].partition("#")[0] for name in names}
    return names


def _nested_uses(lines: Lines) -> tuple[str, set[str]]:
    """The operands without brackets in one text, and the names in those with brackets: printed tuple shapes, mostly."""
    plain: list[str] = []
    names: set[str] = set()
    for row, head in zip(lines.rows, lines.heads, strict=True):
        if head.opcode in LITERAL_OPCODES:
            continue
        operands = row[3].partition(")")[0]
        if "(" not in operands and "\n" not in operands:
            plain.append(operands)
            continue
        end = _OPERANDS_END.search(row[3])
        if end is not None and "%" in row[3][: end.start()]:
            names.update(_MARKED.findall(row[3], 0, end.start()))
        else:
            names.update(_precise_uses(row[3]))
    return ", ".join(plain).replace("%", ""), names


def _precise_uses(tail: str) -> list[str]:
    try:
        return [operand.name for operand in parse_operands(tail)[1] if operand.name is not None]
    except scan.ScanError:
        return []
