"""Bits of the nodes of a graph, spread by the library. `graph/flow.py` says what each function does."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from hlo_inspect.native.edges import address, edges_of
from hlo_inspect.native.node_lists import NodeLists

if TYPE_CHECKING:
    from hlo_inspect.native.library import Library

_ALL_BITS = (1 << 64) - 1
_NODE_BYTES = 4
_POINTER, _NUMBER, _BITS = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64


Octets: TypeAlias = bytes | bytearray
_Classes: TypeAlias = tuple["array[int]", "array[int]"]


class _SpreadStruct(ctypes.Structure):
    _fields_ = [("passed", _BITS), ("kept", _BITS), ("rules", _POINTER), ("rule_count", ctypes.c_int32)]


class _Keys(ctypes.Structure):
    _fields_ = [
        ("count", _NUMBER),
        ("part_of", _POINTER),
        ("part_count", _NUMBER),
        ("bits", _POINTER),
        ("kinds", _POINTER),
        ("flags", _POINTER),
        ("first", _NUMBER),
    ]


class NativeFlow:
    """The edges of a graph, and the kinds of its nodes."""

    def __init__(self, library: Library, ends: array[int], nodes: array[int], kinds: Octets) -> None:
        functions = library.functions
        self._count = len(ends)
        self._lists = ends, nodes
        self._edges = ctypes.byref(edges_of(ends, nodes))
        self._kinds = bytes(kinds)
        self._on, self._back = functions.hlo_spread_on, functions.hlo_spread_back
        for function in (self._on, self._back):
            function.argtypes, function.restype = [_POINTER, ctypes.c_char_p, _POINTER, _POINTER], None
        self._mark_leading_to_all = functions.hlo_mark_leading_to_all
        self._mark_leading_to_all.argtypes = [_POINTER, _POINTER, _POINTER, _BITS]
        self._nodes_with, self._number_classes = functions.hlo_nodes_with, functions.hlo_number_classes
        self._nodes_with.argtypes, self._nodes_with.restype = [_NUMBER, _POINTER, _BITS, _BITS, _POINTER], _NUMBER
        self._number_classes.argtypes, self._number_classes.restype = [_POINTER, _POINTER, _POINTER], _NUMBER

    def on(self, bits: array[int], passed: int = 0, rules: Sequence[Sequence[int]] = ()) -> None:
        self._spread(self._on, bits, passed, _ALL_BITS, rules)

    def back(self, bits: array[int], passed: int = 0, rules: Sequence[Sequence[int]] = (), kept: int = _ALL_BITS) -> None:
        self._spread(self._back, bits, passed, kept, rules)

    def _spread(
        self, function: Callable[..., None], bits: array[int], passed: int, kept: int, rules: Sequence[Sequence[int]]
    ) -> None:
        numbers = array("Q", chain.from_iterable(rules))
        spread = _SpreadStruct(passed, kept, address(numbers), len(rules))
        function(self._edges, self._kinds, _address_of(bits, self._count), ctypes.byref(spread))

    def mark_leading_to_all(self, groups: Sequence[Sequence[int]], bits: array[int], bit: int) -> None:
        """Give a bit to each node that leads to a node of every group. Raise MemoryError without memory."""
        lists = NodeLists.of(groups)
        edges = ctypes.byref(edges_of(lists.ends, lists.nodes))
        if not self._mark_leading_to_all(self._edges, edges, _address_of(bits, self._count), bit):
            raise MemoryError

    def nodes_with(self, bits: array[int], has: int, lacks: int = 0) -> Sequence[int]:
        nodes = array("i", bytes(_NODE_BYTES * self._count))
        count = self._nodes_with(self._count, _address_of(bits, self._count), has, lacks, address(nodes))
        return nodes[:count]

    def classes(self, part_of: Sequence[int], bits: array[int], flags: Octets, kinds: Octets, first: int) -> _Classes:
        """Return classes of equal nodes. Raise MemoryError without memory."""
        count = len(part_of)
        parts = None if isinstance(part_of, range) else array("i", part_of)
        columns = array("B", flags), array("B", kinds)
        keys = _Keys(
            count,
            address(parts) if parts is not None else None,
            len(bits),
            address(bits),
            *[_address_of(column, count) for column in columns],
            first,
        )
        class_of, firsts = array("i", bytes(_NODE_BYTES * count)), array("i", bytes(_NODE_BYTES * count))
        classes = self._number_classes(ctypes.byref(keys), address(class_of), address(firsts))
        if classes < 0:
            raise MemoryError
        return class_of, firsts[:classes]


def _address_of(numbers: array[int], count: int) -> int:
    """Return the address of an array of `count` items. Raise ValueError if it has another length."""
    place, length = numbers.buffer_info()
    if length != count:
        raise ValueError("an array has another length than the graph")
    return place
