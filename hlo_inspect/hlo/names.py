"""Whether every name that is used is defined, and once, at the cost of set operations where all is well."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Protocol

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.module import CALLEE_ATTRIBUTES, LITERAL_OPCODES, Computation, Head, parse_operands
from hlo_inspect.hlo.parameter_reads import ParameterReads
from hlo_inspect.hlo.rows import Row

_CALLEES = re.compile(rf", (?:{'|'.join(CALLEE_ATTRIBUTES)})=(?:%?([A-Za-z_][\w.\-]*+)|\{{([^{{}}=]*+)\}})", re.ASCII)

_COUNTER = re.compile(r"/\*[^*]*+\*/")  # `/*index=5*/`
_TIGHT = re.compile(r",(?![\d ])")  # a comma that stands in no shape, and not as printers write it


class Complain(Protocol):
    def problem(self, code: str, message: str, line: int | None, subject: str | None = None) -> None: ...


class NameCheck:
    """Follows the names of one module. A name may be used before its line: only one that never comes is undefined."""

    def __init__(self, complain: Complain, known: Container[str]) -> None:
        """`known` are the computations so far; a callee comes before its caller, but need not."""
        self._complain = complain
        self._known = known
        self._computation = Computation("", 0, is_entry=False)
        self._reads = ParameterReads(self._computation)
        self._names: set[str] = set()
        self._pending: dict[str, int] = {}
        self._unknown_callees: dict[str, int] = {}

    def begin(self, computation: Computation) -> None:
        self._computation = computation
        self._reads = ParameterReads(computation)
        self._names = set()
        self._pending = {}

    def check(self, found: Sequence[Row], heads: Sequence[Head], definitions: dict[str, Head], line: int) -> None:
        """Takes rows of the computation that was begun, the first at `line`."""
        if len(definitions) != len(found) or not self._names.isdisjoint(definitions):
            self._note_duplicates(found, line)
        self._names.update(definitions)
        uses = _uses(found, heads)
        if not uses <= self._names:
            uses = self._precisely(found, heads, line)
        if self._computation.is_entry:
            self._reads.take(found, heads, uses)
        self._note_callees(found, line)

    def _note_duplicates(self, found: Sequence[Row], line: int) -> None:
        seen: set[str] = set()
        for index, row in enumerate(found):
            if row[1] in seen or row[1] in self._names:
                message = f"{row[1]} is defined twice in computation {self._computation.name}"
                self._complain.problem("HI007", message, line + index, row[1])
            seen.add(row[1])

    def _precisely(self, found: Sequence[Row], heads: Sequence[Head], line: int) -> set[str]:
        """The uses, operand by operand; notes which are not defined so far."""
        uses: set[str] = set()
        for index, (row, head) in enumerate(zip(found, heads, strict=True)):
            if head.opcode not in LITERAL_OPCODES:
                names = _precise_uses(row[3])
                uses.update(names)
                self._computation.reads_known &= bool(names) or not row[3].partition(")")[0].strip()
                for name in names:
                    if name not in self._names:
                        self._pending.setdefault(name, line + index)
        return uses

    def _note_callees(self, found: Sequence[Row], line: int) -> None:
        tails = "\n".join([row[3] for row in found])
        if all(callee in self._known for callee in _callees(tails)):
            return
        for index, row in enumerate(found):
            for callee in _callees(row[3]):
                if callee not in self._known:
                    self._unknown_callees.setdefault(callee, line + index)

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
    """The names of the computations that stand in attributes of `text`."""
    callees = []
    for name, names in _CALLEES.findall(text):
        callees += [name] if name else [part.strip() for part in names.replace("%", "").split(",") if part.strip()]
    return callees


def _uses(found: Sequence[Row], heads: Sequence[Head]) -> set[str]:
    """The names that stand as operands, or strings that are no names where the text is not as printers write it."""
    plain: list[str] = []
    names: set[str] = set()
    for row, head in zip(found, heads, strict=True):
        if head.opcode not in LITERAL_OPCODES:
            operands = row[3].partition(")")[0]
            if "(" in operands or "\n" in operands:
                names.update(_precise_uses(row[3]))
            else:
                plain.append(operands)
    joined = ", ".join(plain).replace("%", "")
    if "/*" in joined:
        joined = _COUNTER.sub("", joined)
    names.update(joined.split(", "))
    if ("[" in joined or "#" in joined) and not _TIGHT.search(joined):
        # printed shapes stand before the name, tuple indices behind it
        names = {name.rpartition(" ")[2].partition("#")[0] for name in names}
    names.discard("")
    return names


def _precise_uses(tail: str) -> list[str]:
    try:
        return [operand.name for operand in parse_operands(tail)[1] if operand.name is not None]
    except scan.ScanError:
        return []
