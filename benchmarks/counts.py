"""Counts of a dump by regular expressions, without the package's code. Reports have to agree with them.

It reads text as XLA's printers write it, one instruction a line. TPU splits one collective over lines of several fusions, which
a count of lines cannot join: `count_dump` refuses such text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

NAME = r"[A-Za-z_][\w.\-]*"

COMPUTATION = re.compile(rf"^(ENTRY )?%?({NAME}) [^\n]*\{{[ \t]*\n(.*?)^\}}[^\n]*\n", re.ASCII | re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(rf"^\s+(ROOT )?%?({NAME}) = (\(.*?\)|\S+) ([a-z][a-z0-9-]*)\(([^)\n]*)", re.ASCII | re.MULTILINE)
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]", re.ASCII)
_OPERAND = re.compile(rf"({NAME})(#\d+)?(?:,|$)", re.ASCII)
_FUSED_ON_TPU = re.compile(r'custom_call_target="AsyncCollectiveStart"|^%?all-reduce-scatter', re.MULTILINE)

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
)


class Line(NamedTuple):
    """Instruction of one line; `operands` is the text up to the first closing parenthesis."""

    root: str
    name: str
    shape: str
    opcode: str
    operands: str


class Counts(NamedTuple):
    """Figures of one text. `operand_bytes` are by kind of collective, over `collectives` of that kind."""

    computations: int
    opcodes: Counter[str]
    entry_opcodes: Counter[str]
    collectives: Counter[str]
    operand_bytes: Counter[str]


def lines(body: str) -> list[Line]:
    """Yield the instructions in a computation's text, in order."""
    return [Line(*groups) for groups in _INSTRUCTION.findall(body)]


def count_dump(text: str) -> Counts:
    """Return the figures of the module in `text`. Raise ValueError if its collectives cannot be counted by lines."""
    if _FUSED_ON_TPU.search(text):
        raise ValueError("collectives inside of TPU fusions: counting lines does not tell how many transfers they are")
    counts = Counts(0, Counter(), Counter(), Counter(), Counter())
    computations = 0
    for computation in COMPUTATION.finditer(text):
        computations += 1
        body = lines(computation[3])
        opcodes = Counter(line.opcode for line in body)
        counts.opcodes.update(opcodes)
        if computation[1]:
            counts.entry_opcodes.update(opcodes)
        for kind, size in _transfers(body):
            counts.collectives[kind] += 1
            counts.operand_bytes[kind] += size
    return counts._replace(computations=computations)


def _transfers(body: list[Line]) -> Iterator[tuple[str, int]]:
    """Yield kind and operand bytes of each collective of a computation; a `-start` stands for its `-done`."""
    collectives = [line for line in body if line.opcode.removesuffix("-start") in COLLECTIVES]
    shapes = {line.name: line.shape for line in body} if collectives else {}
    for line in collectives:
        sizes = [_operand_bytes(shapes[name], index) for name, index in _OPERAND.findall(line.operands)]
        yield line.opcode.removesuffix("-start"), sum(sizes)


def _operand_bytes(shape: str, index: str) -> int:
    """Return the bytes of a shape, or of the element of a flat tuple that `#i` behind the operand names."""
    arrays = _ARRAY.findall(shape)
    if index:
        arrays = [arrays[int(index[1:])]]
    return sum(array_bytes(dtype, dimensions) for dtype, dimensions in arrays)


def array_bytes(dtype: str, dimensions: str) -> int:
    """Return the elements times the bytes of one element: from the bits in the type's name, 1 for `pred`, 0 for `token`."""
    bits = re.search(r"\d+", dtype)
    size = -(-int(bits[0]) // 8) if bits else int(dtype == "pred")
    for dimension in dimensions.split(",") if dimensions else ():
        size *= int(dimension)
    return size
