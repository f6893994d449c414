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
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard, Union

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.row_classes import RowClasses
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import PRODUCTS, STARTING_COLLECTIVES, TABLE, is_marker, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_NESTING = 16
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


class BodyTemplate(NamedTuple):
    """The nodes of a computation with one node per argument, numbered from the first node of the call.

    An argument is `~` its number. `operands`, `kinds` and `rows` are by node, `values` by row: a node, a tuple of nodes, or
    None. The computation returns the row `root`.
    """

    arguments: int
    operands: Sequence[Sequence[int]]
    kinds: bytes
    rows: Sequence[int]
    values: Sequence[Value]
    root: int | None


@dataclass(slots=True, eq=False)
class CallFrame:
    """A call of the computation `name`, and the calls that its rows make.

    Its nodes are `first` to `stop`. A call made from a `template` takes the values of its rows from there.
    """

    number: int
    name: str
    views: Views
    arguments: Sequence[Value] | None
    caller: tuple[int, int] | None
    template: BodyTemplate | None
    first: int
    values: list[Value]
    stop: int = 0
    row: int = 0
    called: dict[int, list[int]] = field(default_factory=dict)
    pending: list[tuple[str, Sequence[Value]]] | None = None
    results: list[Value] = field(default_factory=list)

    @property
    def view(self) -> View:
        return self.views.for_computation(self.name)

    @property
    def returned(self) -> Value:
        """The value of the root."""
        root = self.view.root if self.template is None else self.template.root
        return None if root is None else self.value(root)

    def value(self, row: int) -> Value:
        """Return the value of a row."""
        if self.template is None:
            return self.values[row]
        value = self.template.values[row]
        return tuple(map(self._instantiate, value)) if isinstance(value, tuple) else self._instantiate(value)

    def _instantiate(self, value: Value) -> Value:
        """Return a value of the template in this call."""
        if not isinstance(value, int):
            return value
        return self.first + value if value >= 0 or self.arguments is None else self.arguments[~value]

    def operand(self, row: int, number: int) -> Value:
        """Return the value of an operand of a row that was read; None if there is no such operand."""
        view = self.view
        whole = view.whole_operands(row)
        if whole is not None:
            return self.values[whole[number]] if number < len(whole) else None
        source, operand = view.operand_row(row, number), view.operand(row, number)
        value = self.values[source] if source is not None else None
        return None if operand is None else ValueGraph.element(value, operand.path)

    def operands(self, row: int) -> list[Value]:
        """Return the values of all operands."""
        view, values = self.view, self.values
        whole = view.whole_operands(row)
        if whole is not None:
            return [values[source] for source in whole]
        return [self.operand(row, number) for number in range(len(view.operand_rows(row)))]


class ValueGraph:
    """The nodes of a step by number: operands, kind, and the call and row that make each.

    `is_ordered` means that each node comes after its operands.
    """

    def __init__(self) -> None:
        self.operands: list[list[int]] = []
        self.kinds = bytearray()
        self.frame_of: list[int] = []
        self.row_of: list[int] = []
        self.frames: list[CallFrame] = []
        self.frames_by_name: dict[str, list[CallFrame]] = {}
        self.is_ordered = True
        self.is_whole = True
        self._joined: dict[int, tuple[Value, int]] = {}

    def __len__(self) -> int:
        return len(self.operands)

    def new(self, frame: CallFrame, row: int, made_of: list[int], kind: int = 0) -> int:
        """Add a node that a row of a call makes, and return its number."""
        node = len(self.operands)
        self.operands.append(made_of)
        self.kinds.append(kind)
        self.frame_of.append(frame.number)
        self.row_of.append(row)
        return node

    def new_inputs(self, frame: CallFrame, row: int, shape: Shape | None, nesting: int = 0) -> Value:
        """Add nodes for the arrays of an input."""
        if isinstance(shape, TupleShape) and nesting < MAX_NESTING:
            return tuple([self.new_inputs(frame, row, element, nesting + 1) for element in shape.elements])
        return self.new(frame, row, [], PARAMETER)

    def whole(self, frame: CallFrame, value: Value, row: int | None) -> list[int]:
        """Return the nodes of a value, for an operand that is used as a whole.

        `row` is the row that defines the value; None for the row that the frame reads.
        """
        nodes = nodes_in(value)
        if len(nodes) <= MAX_JOINED:
            return nodes
        joined = self._joined.get(id(value))
        if joined is None:
            joined = self._joined[id(value)] = (value, self.new(frame, frame.row if row is None else row, nodes, MOVES))
        return [joined[1]]

    def made_of(self, frame: CallFrame, row: int) -> list[int]:
        """Return the nodes of all operands of a row."""
        operands = zip(frame.operands(row), frame.view.operand_rows(row), strict=True)
        return [node for value, source in operands for node in self.whole(frame, value, source)]

    def add_body(self, frame: CallFrame, template: BodyTemplate, arguments: Sequence[int]) -> None:
        """Add the nodes of a call that is made from a template."""
        count = len(template.rows)
        frame.stop = frame.first + count
        nodes = [*range(frame.first, frame.stop), *reversed(arguments)]  # an argument is counted from the end: `~` its number
        self.operands += [[nodes[index] for index in made_of] for made_of in template.operands]
        self.kinds += template.kinds
        self.frame_of += [frame.number] * count
        self.row_of += template.rows

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
            rows = self._parameters[frame] = self._frames[frame].view.parameters_by_number()
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


_MEETING = frozenset({"send", "recv"})
"""Opcodes that pair with instructions of other calls: their nodes depend on more than the arguments."""


class BodyTemplates:
    """The templates of a module's computations, each made from the first suitable call.

    Computations that differ only in names and metadata share one template.
    """

    def __init__(self, classes: RowClasses) -> None:
        self._classes = classes
        self._known: dict[int, BodyTemplate] = {}

    def find(self, name: str, arguments: int) -> BodyTemplate | None:
        """Return the template of a computation with this number of arguments, if there is one."""
        template = self._known.get(self._classes.of_computation(name))
        return template if template is not None and template.arguments == arguments else None

    def learn(self, frame: CallFrame, graph: ValueGraph) -> None:
        """Keep a call as a template if each argument is one distinct node, and if its nodes depend on the arguments alone."""
        name, arguments = frame.name, frame.arguments
        if arguments is None or not are_nodes(arguments) or len(set(arguments)) < len(arguments):
            return
        number = self._classes.of_computation(name)
        if number in self._known or frame.view.rows.column.calling:
            return
        if not _MEETING.isdisjoint(frame.view.opcodes):
            return
        numbers: dict[Value, int] = {node: node - frame.first for node in range(frame.first, frame.stop)}
        numbers.update((node, ~number) for number, node in enumerate(arguments))
        try:
            operands = [[numbers[node] for node in made_of] for made_of in graph.operands[frame.first : frame.stop]]
            values = [_renumber(value, numbers) for value in frame.values]
        except KeyError:  # arrays in parts, tuples in tuples
            return
        kinds, rows = bytes(graph.kinds[frame.first : frame.stop]), graph.row_of[frame.first : frame.stop]
        self._known.setdefault(number, BodyTemplate(len(arguments), operands, kinds, rows, values, frame.view.root))


def are_nodes(arguments: Sequence[Value]) -> TypeGuard[Sequence[int]]:
    """Return True if each argument is one node."""
    return set(map(type, arguments)) <= {int}


def _renumber(value: Value, numbers: Mapping[Value, int]) -> Value:
    """Renumber a node or a tuple of nodes. Raise KeyError for any other value but None."""
    if isinstance(value, tuple):
        return tuple([numbers[node] for node in value])
    return None if value is None else numbers[value]
