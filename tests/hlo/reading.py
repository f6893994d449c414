"""Readers of HLO texts for tests. Their results are plain tuples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.input.source import Openable, open_source
from hlo_inspect.hlo.instruction import Instruction, operands_end
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.rows import HeadTable, Rows
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.wants import Wants

EVERYTHING = Wants(entry=True, checked=True)


def modules(source: Openable, wants: Wants = EVERYTHING) -> list[Module]:
    return list(read_modules(open_source(source), wants))


def module(source: Openable, wants: Wants = EVERYTHING) -> Module:
    (only,) = modules(source, wants)
    return only


def problems(parsed: Module) -> list[tuple[str, int | None, int | None, str, int]]:
    """Return code, line, column, message and count of each fault, in the order of the text."""
    kept = [(p.code, p.location.line, p.location.column, p.message, p.times) for p in parsed.problems]
    return sorted(kept, key=lambda fault: (fault[1] or 0, fault[2] or 0))


def codes(parsed: Module) -> list[str]:
    return [fault[0] for fault in problems(parsed)]


def kept_instructions(parsed: Module) -> list[tuple[str, str, str]]:
    """Return computation, name and opcode of each kept instruction, sorted."""
    return sorted((i.computation.name, i.name, i.opcode) for i in parsed.instructions)


def rows_of(rows: Iterable[Row], line: int, heads: HeadTable | None = None) -> Rows:
    """Return rows by columns, the first of them on `line`."""
    marks, names, texts, tails = zip(*rows, strict=True)
    return Rows(names, (heads or HeadTable()).column(texts, marks), tails, range(line, line + len(names)))


def body(computation: Computation) -> list[Instruction]:
    """Return every instruction of a computation whose rows were kept."""
    rows = computation.rows
    instructions = [Instruction(computation.enclosing(), *row) for row in zip(rows, rows.column.heads, rows.lines, strict=True)]
    if instructions and not any(instruction.is_root for instruction in instructions):
        instructions[-1].is_root = True
    return instructions


def texts(instruction: Instruction) -> dict[str, str]:
    """Return the text of each attribute."""
    tail = instruction.tail
    return dict(tokens.attributes(tail, operands_end(tail) + 1))


def contents(parsed: Module) -> dict[str, Any]:
    """Return all contents on which two readings of a text must agree. Positions are left out."""
    return {
        "name": parsed.name,
        "attributes": dict(parsed.header.attributes),
        "computations": parsed.computation_count,
        "entry": parsed.entry.name if parsed.entry else None,
        "opcodes": {name: sorted(c.opcodes) for name, c in parsed.computations.items()},
        "instructions": [
            (c.name, i.name, i.opcode, str(i.shape), i.is_root, i.operands, tuple(map(str, i.operand_shapes or ())), texts(i))
            for c in parsed.computations.values()
            for i in c.instructions
        ],
        "unread": {name: sorted(c.reads.unread) for name, c in parsed.computations.items() if c.reads is not None},
        "roots": {name: c.root_opcode for name, c in parsed.computations.items()},
        "unparsed_lines": parsed.unparsed_lines,
        "problems": sorted((p.code, p.message, p.subject or "", p.times) for p in parsed.problems),
    }
