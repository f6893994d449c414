"""Small HLO modules of every opcode, at random but valid, to be costed by XLA and by the rules here.

Shapes are inferred with rules of HLO written out below, not with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

_UNARY = """
abs acos acosh asin asinh atanh cbrt ceil copy cosine cosh erf exponential exponential-minus-one floor log log-plus-one logistic
negate round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh
"""
UNARY = _UNARY.split()
BINARY = ["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"]
INTEGER_UNARY = ["count-leading-zeros", "not", "popcnt"]
INTEGER_BINARY = ["and", "or", "xor", "shift-left", "shift-right-arithmetic", "shift-right-logical"]


class Shape(NamedTuple):
    """An array shape; `order` is minor to major."""

    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...]

    def __str__(self) -> str:
        layout = "{" + ",".join(map(str, self.order)) + "}" if self.dims else ""
        return f"{self.dtype}[{','.join(map(str, self.dims))}]{layout}"

    def with_dtype(self, dtype: str) -> Shape:
        return Shape(dtype, self.dims, self.order)


def listed(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"


def array(dims: Sequence[int], dtype: str = "f32") -> Shape:
    return Shape(dtype, tuple(dims), tuple(reversed(range(len(dims)))))


class Block:
    """A computation while it is written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.inputs: list[object] = []

    def input(self, shape: object) -> str:
        self.inputs.append(shape)
        return self.op(shape, "parameter", str(len(self.inputs) - 1))

    def op(self, shape: object, opcode: str, operands: str = "", attributes: str = "") -> str:
        name = f"%{self.name}_{len(self.lines)}"
        self.lines.append(f"{name} = {shape} {opcode}({operands}){attributes and ', ' + attributes}")
        return name

    def root(self, name: str) -> None:
        """Make an earlier instruction the root."""
        self.lines.append(self.lines.pop(next(i for i, line in enumerate(self.lines) if line.startswith(f"{name} = "))))

    def text(self, *, entry: bool = False) -> str:
        rows = [*self.lines[:-1], "ROOT " + self.lines[-1]]
        return ("ENTRY " if entry else "") + f"%{self.name} {{\n" + "".join(f"  {row}\n" for row in rows) + "}\n"


class Modules:
    """Writes modules. Each method of `MAKERS` adds the instructions of one opcode to a block."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - no secrets
        self.done: list[str] = []
        self.blocks = 0

    def module(self, maker: Callable[[Modules, Block], None]) -> str:
        self.done = []
        main = Block("main")
        maker(self, main)
        return "HloModule generated\n\n" + "\n".join([*self.done, main.text(entry=True)])

    # -- pieces ---------------------------------------------------------------------------------------------------------

    def size(self) -> int:
        return self.random.randint(1, 7)

    def shuffled(self, count: int) -> list[int]:
        return self.random.sample(range(count), count)

    def shape(self, low: int = 0, high: int = 3, dtype: str = "f32") -> Shape:
        dims = [self.size() for _ in range(self.random.randint(low, high))]
        return Shape(dtype, tuple(dims), tuple(self.shuffled(len(dims))))

    def block(self) -> Block:
        self.blocks += 1
        return Block(f"c{self.blocks}")

    def close(self, block: Block) -> str:
        self.done.append(block.text())
        return f"%{block.name}"

    def reducer(self, count: int = 1, opcode: str | None = None) -> str:
        """Write a computation of 2 × count scalars; it computes a few things more than it has to."""
        block = self.block()
        scalars = [block.input(array([])) for _ in range(2 * count)]
        for _ in range(self.random.randint(0, 2)):
            block.op(array([]), self.random.choice(UNARY), scalars[0])
        results = [
            block.op(array([]), opcode or self.random.choice(BINARY), f"{scalars[i]}, {scalars[i + count]}")
            for i in range(count)
        ]
        if count > 1:
            block.op(f"({', '.join(['f32[]'] * count)})", "tuple", ", ".join(results))
        return self.close(block)

    def comparison(self, dtype: str = "f32") -> str:
        block = self.block()
        a, b = block.input(array([], dtype)), block.input(array([], dtype))
        block.op(array([], "pred"), "compare", f"{a}, {b}", "direction=LT")
        return self.close(block)

    def window(self, rank: int, *, dilate: bool = True) -> tuple[list[tuple[int, ...]], str]:
        """(size, stride, low, high, window dilation, base dilation) of each dimension, and the attribute."""
        pick = self.random.randint
        steps: list[tuple[int, ...]] = [
            (pick(1, 4), pick(1, 3), pick(-1, 3), pick(-1, 3), pick(1, 2 if dilate else 1), pick(1, 3 if dilate else 1))
            for _ in range(rank)
        ]
        if not steps:
            return [], ""
        columns = list(zip(*steps, strict=True))
        pads = "x".join(f"{low}_{high}" for low, high in zip(columns[2], columns[3], strict=True))
        fields = {"size": columns[0], "stride": columns[1], "rhs_dilate": columns[4], "lhs_dilate": columns[5]}
        listed = [f"{name}={'x'.join(map(str, column))}" for name, column in fields.items()]
        return steps, f"window={{{' '.join([*listed, 'pad=' + pads])}}}"


def windowed(size: int, step: tuple[int, ...]) -> int:
    """Positions of a window over a dimension (`window_util::StridedBound`)."""
    window, stride, low, high, dilation, base = step
    whole = max(0, (size - 1) * base + 1) + low + high
    span = (window - 1) * dilation + 1
    return 0 if span > whole else (whole - span) // stride + 1
