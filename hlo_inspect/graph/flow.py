"""Bits of the nodes of a graph, which spread from operands to users and back.

A node comes after its operands. `PythonFlow` says what each spread does; `native/flow.py` does the same for large graphs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple, Protocol, TypeAlias

from hlo_inspect.native import library as native
from hlo_inspect.native.node_lists import NodeLists

Bits: TypeAlias = "array[int]"
"""64 bits for each node."""

Octets: TypeAlias = bytes | bytearray
Classes: TypeAlias = tuple[Sequence[int], Sequence[int]]

ALL_BITS = (1 << 64) - 1

MIN_NATIVE_NODES = 500
"""Nodes of the smallest graph that is worth the native loops. Its text is long enough for the native reader too."""


class FlowRule(NamedTuple):
    """A change of a node with these bits, joined bits of its operands, and kind: all bits of the first, none of the second.

    The node takes the bits `takes`. In a spread back, its operands are given the bits `gives`.
    """

    has: int = 0
    lacks: int = 0
    operands_have: int = 0
    operands_lack: int = 0
    kind_has: int = 0
    kind_lacks: int = 0
    takes: int = 0
    gives: int = 0


class Flow(Protocol):
    """The edges of a graph, and the kinds of its nodes."""

    def on(self, bits: Bits, passed: int = 0, rules: Sequence[FlowRule] = ()) -> None:
        """Give each node the bits `passed` of its operands, then apply the rules one after the other."""

    def back(self, bits: Bits, passed: int = 0, rules: Sequence[FlowRule] = (), kept: int = ALL_BITS) -> None:
        """Give the operands of each node its bits `passed` and what the rules give. The node keeps the bits `kept`."""

    def mark_leading_to_all(self, groups: Sequence[Sequence[int]], bits: Bits, bit: int) -> None:
        """Give a bit to each node that leads to a node of every group."""

    def nodes_with(self, bits: Bits, has: int, lacks: int = 0) -> Sequence[int]:
        """Return the nodes with all bits of `has` and none of `lacks`, in order."""

    def classes(self, part_of: Sequence[int], bits: Bits, flags: Octets, kinds: Octets, first: int) -> Classes:
        """Return the class of each node, and the first node of each class.

        Nodes of one class have equal bits of their parts, flags and kinds, and all come before the node `first` or none does.
        """


class PythonFlow:
    """The reference, for small graphs and without the native library."""

    def __init__(self, operands: Sequence[Sequence[int]], kinds: Octets) -> None:
        self._operands = operands
        self._kinds = kinds

    def on(self, bits: Bits, passed: int = 0, rules: Sequence[FlowRule] = ()) -> None:
        tests = [_Test(rule) for rule in rules]
        for node, made_of in enumerate(self._operands):
            merged = 0
            for operand in made_of:
                merged |= bits[operand]
            own = bits[node] | merged & passed
            for test in tests:
                if test.holds(own, merged, self._kinds[node]):
                    own |= test.rule.takes
            bits[node] = own

    def back(self, bits: Bits, passed: int = 0, rules: Sequence[FlowRule] = (), kept: int = ALL_BITS) -> None:
        tests = [_Test(rule) for rule in rules]
        for node in range(len(self._operands) - 1, -1, -1):
            own = bits[node]
            given = own & passed
            for test in tests:
                if test.holds(own, 0, self._kinds[node]):
                    own |= test.rule.takes
                    given |= test.rule.gives
            bits[node] = own & kept
            if given:
                for operand in self._operands[node]:
                    bits[operand] |= given

    def mark_leading_to_all(self, groups: Sequence[Sequence[int]], bits: Bits, bit: int) -> None:
        masks = [0] * len(self._operands)
        for number, group in enumerate(groups):
            for node in group:
                masks[node] |= 1 << number
        whole = (1 << len(groups)) - 1
        for node in range(len(masks) - 1, -1, -1):
            own = masks[node]
            if own:
                for operand in self._operands[node]:
                    masks[operand] |= own
        mark(bits, [node for node, own in enumerate(masks) if own == whole], bit)

    def nodes_with(self, bits: Bits, has: int, lacks: int = 0) -> Sequence[int]:
        mask = has | lacks
        return [node for node, own in enumerate(bits) if own & mask == has]

    def classes(self, part_of: Sequence[int], bits: Bits, flags: Octets, kinds: Octets, first: int) -> Classes:
        numbers: dict[tuple[int, int, int, bool], int] = {}
        class_of: list[int] = []
        firsts: list[int] = []
        for node, (part, flag, kind) in enumerate(zip(part_of, flags, kinds, strict=True)):
            number = numbers.setdefault((bits[part], flag, kind, node < first), len(numbers))
            if number == len(firsts):
                firsts.append(node)
            class_of.append(number)
        return class_of, firsts


class _Test:
    """A rule with the bits that it looks at."""

    def __init__(self, rule: FlowRule) -> None:
        self.rule = rule
        self._own = rule.has | rule.lacks
        self._operands = rule.operands_have | rule.operands_lack
        self._kind = rule.kind_has | rule.kind_lacks

    def holds(self, own: int, merged: int, kind: int) -> bool:
        rule = self.rule
        return (
            own & self._own == rule.has and merged & self._operands == rule.operands_have and kind & self._kind == rule.kind_has
        )


def flow_of(operands: Sequence[Sequence[int]], kinds: Octets) -> Flow:
    """Return the flow of a graph: the native one for a large graph, if the library is there."""
    library = native.library_for(len(operands), MIN_NATIVE_NODES)
    if library is None:
        return PythonFlow(operands, kinds)
    from hlo_inspect.native.flow import NativeFlow  # small graphs need none of it

    lists = NodeLists.of(operands)
    return NativeFlow(library, lists.ends, lists.nodes, kinds)


def no_bits(count: int) -> Bits:
    """Return the bits of nodes that have none."""
    return array("Q", bytes(8 * count))


def nodes_of_kind(kinds: Octets, kind: int) -> list[int]:
    """Return the nodes whose kind has a bit of `kind`, in order."""
    marks = kinds.translate(_marks(kind))
    nodes = []
    node = marks.find(1)
    while node >= 0:
        nodes.append(node)
        node = marks.find(1, node + 1)
    return nodes


@cache
def _marks(kind: int) -> bytes:
    return bytes([other & kind != 0 for other in range(256)])


def mark(bits: Bits, nodes: Iterable[int], bit: int) -> None:
    """Give nodes a bit."""
    for node in nodes:
        bits[node] |= bit
