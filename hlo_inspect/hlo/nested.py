"""What is written in place: computations among the attributes (`to_apply={ ROOT … }`, and the bodies that canonical text
repeats at every caller), and instructions among the operands (`broadcast(f32[] constant(6))`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.hlo import parser, tokens
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.operands import operands_end
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_DEPTH = 64
"""Instructions and computations that are in more others than this stay text: each is read once more for what it is in."""

_BODY = lazy_pattern(rf",\s*+(?:{'|'.join(CALLEE_ATTRIBUTES)})=\s*+\{{", re.ASCII)
_OPERATION = lazy_pattern(r"(?<![\w.\-%])[a-z][a-z0-9\-]*+\s*+\(", re.ASCII)


class NestedComputation(NamedTuple):
    """The text between the braces of a computation in place, the line where it starts, and how many others it is in."""

    name: str
    text: str
    line: int
    depth: int = 0


def nested_computations(row: Row, line: int, depth: int = 0) -> Iterator[NestedComputation]:
    """The computations in place among the attributes of an instruction at `line`, which is in so many others."""
    tail = row[3]
    if _BODY.search(tail) is None:
        return
    start = operands_end(tail) + 1
    for name, value in tokens.attributes(tail, start):
        if name in CALLEE_ATTRIBUTES and value.startswith("{") and "=" in tokens.without_comments(value):
            at = line + tail.count("\n", 0, tail.index(value, start))
            inside = value[1:-1]
            if not inside.lstrip().startswith("{"):
                yield NestedComputation(f"{row[1]}.{name}", inside, at, depth)
                continue
            counted = 0
            for number, (begin, end) in enumerate(tokens.split_items(inside)):
                at, counted = at + inside.count("\n", counted, begin), begin
                yield NestedComputation(f"{row[1]}.{name}.{number}", inside[begin:end].strip()[1:-1], at, depth)


def with_nested_operands(row: Row) -> list[Row]:
    """A row, behind the instructions that are its operands in place, innermost first. Each of these is named after its user and
    its number there (`sum.operand-0`), and the user names it so.
    """
    found: list[Row] = []
    waiting = [(row, 0)]
    while waiting:  # a user comes before its operands here, and behind them in the result
        (root, name, head, tail), depth = waiting.pop()
        operands, tail = _split_off(name, head, tail) if depth < MAX_DEPTH else ([], tail)
        found.append((root, name, head, tail))
        waiting += [(operand, depth + 1) for operand in operands]
    found.reverse()
    return found


def _split_off(name: str, head: str, tail: str) -> tuple[list[Row], str]:
    """The operands of a tail that are instructions in place, and the tail with their names instead."""
    close = operands_end(tail)
    if head.rpartition(" ")[2] in LITERAL_OPCODES or _OPERATION.search(tail, 0, close) is None:
        return [], tail
    rows: list[Row] = []
    parts: list[str] = []
    done = 0
    for number, (begin, end) in enumerate(tokens.split_items(tail, 0, close)):
        start = tokens.skip_space(tail, begin)
        if _OPERATION.search(tail, start, end) is None:
            continue
        try:
            shape_start, shape_end, opcode, bracket = parser.parse_head(tail, start)
            after = tokens.balanced_end(tail, bracket)
        except tokens.ScanError:
            continue
        if tail[after:end].strip():
            continue
        shape = tail[shape_start:shape_end]
        operand = f"{name}.operand-{number}"
        rows.append(("", operand, f"{shape} {opcode}", tail[bracket + 1 : after]))
        parts += [tail[done:start], f"{shape} %{operand}" if shape else f"%{operand}"]
        done = end
    return rows, "".join(parts) + tail[done:]
