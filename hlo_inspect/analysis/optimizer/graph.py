"""One graph of expressions in which equal expressions are one node.

A node is an integer. What changes no value (convert, reshape, broadcast of a scalar, a call) makes no node: see `flow.py`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

LEAVES = frozenset({"input", "opaque", "constant"})
"""Nodes without operands: an array that goes into the region, what is not looked into, a number."""

COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or"})


class Graph:
    """Nodes by number: `ops`, `args` (nodes), `attributes`, `sizes` (elements, 1 for a scalar, 0 where unknown), and whether a
    node holds a constant that was rounded to 16 bits, `coarse`.
    """

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.attributes: list[Hashable] = []
        self.sizes: list[int] = []
        self.coarse: list[bool] = []
        self._numbers: dict[tuple[str, tuple[int, ...], Hashable], int] = {}

    def make(self, op: str, args: tuple[int, ...] = (), attribute: Hashable = None, size: int | None = None) -> int:
        """The node of that operation; its size is that of its largest operand unless given."""
        if op in COMMUTATIVE and len(args) == 2 and args[0] > args[1]:
            args = (args[1], args[0])
        elif op == "select":
            condition, then, other = args
            if then == other:
                return then
            if self.ops[condition] == "not":
                args = (self.args[condition][0], other, then)
        key = (op, args, attribute)
        found = self._numbers.get(key)
        if found is not None:
            return found
        number = len(self.ops)
        self._numbers[key] = number
        self.ops.append(op)
        self.args.append(args)
        self.attributes.append(attribute)
        self.sizes.append(max([self.sizes[arg] for arg in args], default=1) if size is None else size)
        self.coarse.append(any([self.coarse[arg] for arg in args]))
        return number

    def constant(self, value: float, *, is_coarse: bool = False) -> int:
        """A number; `is_coarse` for one that was rounded to 16 bits. NaN is a leaf like any other."""
        node = self.make("constant", (), ("nan" if math.isnan(value) else float(value), is_coarse), 1)
        self.coarse[node] = is_coarse
        return node

    def value(self, node: int) -> float | None:
        """The value of a constant."""
        if self.ops[node] != "constant":
            return None
        value = self.attributes[node][0]  # type: ignore[index]
        return float(value)

    def below(self, roots: Iterable[int]) -> list[int]:
        """Every node that `roots` hold, operands first."""
        order: list[int] = []
        seen: set[int] = set()
        stack = [(root, False) for root in roots]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(arg, False) for arg in self.args[node] if arg not in seen]
        return order
