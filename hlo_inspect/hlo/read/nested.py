"""What is written in place: computations among the attributes (`to_apply={ ROOT … }`, and the bodies that canonical text
repeats at every caller), and instructions among the operands (`broadcast(f32[] constant(6))`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.read import parser, tokens
from hlo_inspect.hlo.read.operands import operands_end
from hlo_inspect.hlo.read.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_DEPTH = 64
"""Instructions and computations that are in more others than this stay text: each is read once more for what it is in."""

_BODY = lazy_pattern(rf",\s*+(?:{'|'.join(CALLEE_ATTRIBUTES)})=\s*+\{{", re.ASCII)
_LIST = lazy_pattern(r"\{|%?[\w.\-]++\s*+,", re.ASCII)
_ATTRIBUTE_NAME = lazy_pattern(r",\s*+([a-z_]++)\s*+=\s*+\Z", re.ASCII)
_OPERATION = lazy_pattern(r"(?<![\w.\-%])[a-z][a-z0-9\-]*+\s*+\(", re.ASCII)


class NestedComputation(NamedTuple):
    """A computation in place: its name, the text between its braces, the line where that starts, and where its braces start and
    end in the tail of its caller.
    """

    name: str
    text: str
    line: int
    start: int
    end: int


def nested_computations(row: Row, line: int) -> Iterator[NestedComputation]:
    """The computations in place among the attributes of an instruction at `line`."""
    tail = row[3]
    if _BODY.search(tail) is None:
        return
    position, counted = operands_end(tail) + 1, 0
    for name, value in tokens.attributes(tail, position):
        start = tail.index(value, position)
        position = start + len(value)
        if name in CALLEE_ATTRIBUTES and value.startswith("{") and "=" in tokens.without_comments(value):
            is_list = _LIST.match(tail, tokens.skip_space(tail, start + 1)) is not None
            items = tokens.split_items(tail, start + 1, position - 1) if is_list else [(start, position)]
            for number, (item, _) in enumerate(items):
                begin = tokens.skip_space(tail, item)
                if tail[begin] != "{":  # a name
                    continue
                end = tokens.balanced_end(tail, begin, holds_lines=True)
                line, counted = line + tail.count("\n", counted, begin), begin
                called = f"{row[1]}.{name}.{number}" if is_list else f"{row[1]}.{name}"
                yield NestedComputation(called, tail[begin + 1 : end - 1], line, begin, end)


def with_names(row: Row, nested: Sequence[NestedComputation], names: Sequence[str]) -> Row:
    """A row whose attributes name the computations that are written in place in it."""
    parts: list[str] = []
    done = 0
    for one, name in zip(nested, names, strict=True):
        parts += [_ATTRIBUTE_NAME.sub(r", \1=", row[3][done : one.start]), f"%{name}"]
        done = one.end
    return *row[:3], "".join(parts) + row[3][done:]


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
