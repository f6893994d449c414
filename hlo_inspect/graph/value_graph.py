"""The graph of the values of one step: the arrays that each array is made of.

A node is one array that an instruction makes. Instructions that only name, pack or pass on values make none. Computations that
are called, fusions among them, are read once for each call, so that a node belongs to one call. Three things keep apart what a
plain graph of instructions would mix:

* A combined collective has a node for each operand.
* Arrays that are concatenated, reduced together and sliced again keep nodes of their own.
* The state of a loop has a node for each element, made of the initial value and of what the body returns. Apart from pairs of
send and recv, these are the only cycles in a text of a compiler.

`frames.py` follows values too, in the other direction. It steps back from one value and reads only the calls on its way. The
optimizer and the relations of parameters ask for the origin of a few values. Phases and neighbourhoods need the operands and
users of every value: this graph reads each call once, forward. A copy or a transpose has a node here, as it has a phase, a
neighbour and a buffer. One engine for both would read the whole step for one question, or visit each value as often as it is
used. `NodesAtPlaces` leads from frames to this graph. Trip counts (`loops.py`) need neither: they follow integer scalars, which
a stream keeps without its rows.

`graph_reader.py` reads the graph from rows, and `native_graph.py` the same from columns.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Union

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import PRODUCTS, STARTING_COLLECTIVES, TABLE, is_marker, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_NESTING = 16
MAX_DEPTH = 400
MAX_COPIES = 3
"""Read each call of a computation until this multiple of the module's rows is read."""
MAX_JOINED = 8
"""Arrays of a tuple above which an operation that reads the whole tuple gets them joined in one node."""

# -- kinds of nodes ---------------------------------------------------------------------------------------------------------

PRODUCT, MOVES, REDUCES, COLLECTIVE, PARAMETER, SUMS, SCALAR = 1, 2, 4, 8, 16, 32, 64
"""Bits of a node's kind: product; passes on or sums values; reduction or gather; collective; input; summing collective.

`SCALAR` is a product of two vectors or matrices to one number, which ends a loss.
"""

_MOVING = (opcodes_that_give("same", "move", "part") - {"reduce-precision"}) | {"bitcast-convert", "copy-start"}
"""Opcodes whose result holds values of the operands."""

KINDS = {
    **dict.fromkeys(PRODUCTS, PRODUCT),
    **dict.fromkeys(_MOVING, MOVES),
    **dict.fromkeys(opcodes_that_are("reduction") | {"gather", "sort"}, REDUCES),
    "reduce": REDUCES | MOVES,
    **{name: COLLECTIVE | MOVES | (SUMS if "reduction" in TABLE[name].traits else 0) for name in STARTING_COLLECTIVES},
}
"""The kind of a node by its opcode."""

_PRODUCT = lazy_pattern(r"fmha|attn|attention|conv|gemm|matmul|dot", re.IGNORECASE | re.ASCII)
_NO_PRODUCT = lazy_pattern(
    r"topk|partialreduce|sort|threefry|rng|random|callback|norm|softmax|quantize|transpose|cast|act_lu|dropout|barrier|padtostatic"
    r"|slicetodynamic|dynamicslice|memcpy|print|debug|sharding|cumsum|prefix|permut|rope|host_execute|resize|nccl|nvshmem|allocate",
    re.IGNORECASE | re.ASCII,
)


def is_computing(target: str) -> bool:
    """Return True if custom calls of the target are products. Markers, moves, sorts, norms and random numbers are not."""
    return not is_marker(target) and (_PRODUCT.search(target) is not None or not _NO_PRODUCT.search(target))


# -- values -----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class SlicedValue:
    """An array in parts along its first dimension. Part i is `nodes[i]`, from `starts[i]` up to the next start."""

    starts: list[int]
    nodes: list[int]
    stop: int
    joined: int | None = None

    def overlapping(self, low: int, high: int) -> list[int]:
        """Return the nodes of the parts that overlap the range from `low` up to `high`."""
        first, last = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        return self.nodes[max(first, 0) : last]


Value = Union[int, tuple["Value", ...], SlicedValue, None]  # noqa: UP007 - an alias that names itself
"""A node, a tuple of values (or one node for all of it), or an array in parts; None for a value without data, as a token."""


class RowValues(Protocol):
    """Values by row: a list, numbers of nodes alone, or values that are made when something asks."""

    def __getitem__(self, row: int, /) -> Value: ...


@dataclass(slots=True, eq=False)
class CallFrame:
    """A call of the computation `name`: the values of its rows, and the calls that they make.

    Its nodes are `first` to `stop`. `caller` is the number and row of the call that makes it; None for the step.
    """

    number: int
    name: str
    views: Views
    caller: tuple[int, int] | None
    first: int
    values: RowValues
    stop: int = 0
    called: dict[int, list[int]] = field(default_factory=dict)

    @property
    def view(self) -> View:
        return self.views.for_computation(self.name)

    @property
    def returned(self) -> Value:
        """The value of the root."""
        root = self.view.root
        return None if root is None else self.values[root]

    def value(self, row: int) -> Value:
        """Return the value of a row."""
        return self.values[row]


class ValueGraph:
    """The nodes of a step by number: operands, kind, and the call and row that make each.

    `is_ordered` means that each node comes after its operands.
    """

    def __init__(self) -> None:
        self.operands: Sequence[Sequence[int]] = ()
        self.kinds = bytearray()
        self.frame_of: Sequence[int] = ()
        self.row_of: Sequence[int] = ()
        self.frames: Sequence[CallFrame] = ()
        self.frames_by_name: Mapping[str, Sequence[CallFrame]] = {}
        self.is_ordered = True
        self.is_whole = True

    def __len__(self) -> int:
        return len(self.operands)

    def callers(self) -> list[tuple[int, int] | None]:
        """Return the caller of each call: its number and row; None for the step."""
        return [frame.caller for frame in self.frames]

    def result(self) -> Value:
        """Return the value that the step returns."""
        return self.frames[0].returned

    @staticmethod
    def element(value: Value, index: Sequence[int]) -> Value:
        """Return an element of a nested tuple."""
        for number in index:
            if isinstance(value, tuple):
                value = value[number] if number < len(value) else None
        return value


class NodesAtPlaces:
    """The nodes of a graph at the places of `frames`, which has calls of the same computations."""

    def __init__(self, frames: Frames, graph: ValueGraph) -> None:
        self._frames = frames
        self._graph = graph
        self._calls: list[CallFrame | None] = []  # by the number that each has in `frames`, callers first
        self._parameters: dict[int, dict[int, int]] = {}

    def nodes(self, place: Place, part: SliceDimension | None = None) -> list[int]:
        """Return the nodes of the value at a place; none if it was not read.

        With `part`, return only nodes of parts that overlap this range of the first dimension.
        """
        frame, row, index = place
        while len(self._calls) <= frame:
            self._calls.append(self._call(len(self._calls)))
        call = self._calls[frame]
        if call is None or row < 0:
            return []
        whole = call.value(row)
        value = ValueGraph.element(whole, index)
        if isinstance(value, SlicedValue) and part is not None and part.limit <= value.stop:
            return value.overlapping(part.start, part.limit)
        return nodes_in(value) or nodes_in(whole)

    def input(self, frame: int, number: int, index: ShapeIndex) -> list[int]:
        """Return the nodes of an element of a parameter."""
        rows = self._parameters.get(frame)
        if rows is None:
            rows = self._parameters[frame] = self._frames[frame].view.parameters_by_number
        return self.nodes((frame, rows[number], index)) if number in rows else []

    def _call(self, frame: int) -> CallFrame | None:
        """Return the call of the graph that matches a frame, if it was read."""
        name, caller = self._frames[frame].view.computation.name, self._frames[frame].caller
        above = self._calls[caller[0]] if caller is not None else None
        if caller is None:
            calls = self._graph.frames_by_name.get(name, [])
        else:
            calls = [self._graph.frames[number] for number in above.called.get(caller[1], ())] if above is not None else []
        return next((call for call in calls if call.name == name), None)


def nodes_in(value: Value) -> list[int]:
    """Return the nodes that a value holds, in order."""
    if type(value) is int:
        return [value]
    nodes: list[int] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, int):
            nodes.append(top)
        elif isinstance(top, tuple):
            stack += reversed(top)
        elif top is not None:
            nodes += top.nodes
    return nodes
