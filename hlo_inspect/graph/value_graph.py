"""The graph of the values of one step: which array is made of which others.

A node is one array that an instruction makes; what only names, packs or hands on values makes none. Computations that are
called, fusions among them, are read once for each call, so that a node belongs to one call of its computation. Three things
keep apart what a plain graph of instructions would mix up:

* A combined collective has a node for each operand.
* Where arrays are concatenated to be reduced together and are cut apart again, each part has nodes of its own.
* The state of a loop has a node for each element, made of the initial value and of what the body returns. These are the only
  cycles, apart from texts that no compiler writes and from pairs of send and recv.

`frames.py` follows values too, and stays beside this graph because it goes the other way. It steps back from one value,
through all that keeps it, and reads only the calls on its way: the optimizer and the relations of parameters ask of a few
values where each comes from. Phases and neighbourhoods ask of every value what it is made of and who uses it: this graph
reads each call once, forward, and a copy or a transpose has a node here because it has a phase, a neighbour and a place in
memory. One engine for both would read the whole step for one question, or visit each value as often as it is used.
`NodesAtPlaces` leads from the one to the other. Trip counts (`loops.py`) need neither: they follow integer scalars, which are
kept of a stream whose rows are not.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeGuard, Union

from hlo_inspect.graph.fingerprints import Fingerprints
from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import PRODUCTS, STARTING_COLLECTIVES, TABLE, is_marker, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_NESTING = 16
MAX_JOINED = 8
"""The arrays of a larger tuple that an operation takes whole are joined in one node."""

# -- what a node is ---------------------------------------------------------------------------------------------------------

PRODUCT, MOVES, REDUCES, COLLECTIVE, PARAMETER, SUMS = 1, 2, 4, 8, 16, 32
"""What a node is: a product; moved or summed values; a reduction or gather; a collective; an input; a collective that sums."""

_MOVING = (opcodes_that_give("same", "move", "part") - {"reduce-precision"}) | {"bitcast-convert", "copy-start"}
"""The result holds values of the operands."""

SUMMING = frozenset({"all-reduce", "reduce-scatter"})

KINDS = {
    **dict.fromkeys(PRODUCTS, PRODUCT),
    **dict.fromkeys(_MOVING, MOVES),
    **dict.fromkeys(opcodes_that_are("reduction") | {"gather", "sort"}, REDUCES),
    "reduce": REDUCES | MOVES,
    **{name: COLLECTIVE | MOVES | (SUMS if TABLE[name].collective in SUMMING else 0) for name in STARTING_COLLECTIVES},
}
"""What the node of an opcode is."""

_PRODUCT = lazy_pattern(r"fmha|attn|attention|conv|gemm|matmul|dot", re.IGNORECASE | re.ASCII)
_NO_PRODUCT = lazy_pattern(
    r"topk|partialreduce|sort|threefry|rng|random|callback|norm|softmax|quantize|transpose|cast|act_lu|dropout|barrier|padtostatic"
    r"|slicetodynamic|dynamicslice|memcpy|print|debug|sharding|cumsum|prefix|permut|rope|host_execute|resize|nccl|nvshmem|allocate",
    re.IGNORECASE | re.ASCII,
)


def is_computing(target: str) -> bool:
    """Whether custom calls of a target are products: not those that mark, move, sort, normalise or draw numbers."""
    return not is_marker(target) and (_PRODUCT.search(target) is not None or not _NO_PRODUCT.search(target))


# -- values -----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Parts:
    """An array in parts along its first dimension: each is the value of a node, from its start up to that of the next one."""

    starts: list[int]
    nodes: list[int]
    stop: int
    joined: int | None = None

    def within(self, low: int, high: int) -> list[int]:
        """The nodes of the parts that hold some of the range from `low` up to `high`."""
        first, last = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        return self.nodes[max(first, 0) : last]


Value = Union[int, tuple["Value", ...], Parts, None]  # noqa: UP007 - an alias that names itself
"""A node, a tuple of values (or one node for all of it), an array in parts; `None` for what holds nothing, as a token."""


class BodyTemplate(NamedTuple):
    """The nodes of a computation that gets one node for each of so many arguments, counted from its first one on; an argument
    is `~` its number. `operands`, `kinds` and `rows` are by node, `values` by row: nodes, tuples of nodes, or nothing. The row
    `root` is returned.
    """

    arguments: int
    operands: Sequence[Sequence[int]]
    kinds: bytes
    rows: Sequence[int]
    values: Sequence[Value]
    root: int | None


@dataclass(slots=True, eq=False)
class CallFrame:
    """One call of the computation `name`, and the calls that its rows make. Its nodes are `first` to `stop`. If it was made
    from a `template`, that has the values of its rows.
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
        return self.views.of(self.name)

    @property
    def returned(self) -> Value:
        """The value of the root."""
        root = self.view.root if self.template is None else self.template.root
        return None if root is None else self.value(root)

    def value(self, row: int) -> Value:
        """The value of a row."""
        if self.template is None:
            return self.values[row]
        value = self.template.values[row]
        return tuple(map(self._placed, value)) if isinstance(value, tuple) else self._placed(value)

    def _placed(self, value: Value) -> Value:
        """A value of the template in this call."""
        if not isinstance(value, int):
            return value
        return self.first + value if value >= 0 or self.arguments is None else self.arguments[~value]

    def operand(self, row: int, number: int) -> Value:
        """Return the value of an operand of a row that was read; None if there is no such operand."""
        source = self.view.operand_row(row, number)
        value = self.values[source] if source is not None else None
        if self.view.whole_operands(row) is not None:
            return value
        operand = self.view.operand(row, number)
        return None if operand is None else ValueGraph.element(value, operand.path)

    def operands(self, row: int) -> list[Value]:
        """The values of all operands."""
        view, values = self.view, self.values
        whole = view.whole_operands(row)
        if whole is not None:
            return [values[source] for source in whole]
        return [self.operand(row, number) for number in range(len(view.operand_rows(row)))]


class ValueGraph:
    """The nodes of a step by number: the nodes that each is made of, what it is, and the call and row that make it.

    `is_ordered`: each node comes after those that it is made of.
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
        """A new node that a row of a call makes."""
        node = len(self.operands)
        self.operands.append(made_of)
        self.kinds.append(kind)
        self.frame_of.append(frame.number)
        self.row_of.append(row)
        return node

    def new_inputs(self, frame: CallFrame, row: int, shape: Shape | None, nesting: int = 0) -> Value:
        """New nodes for the arrays of an input."""
        if isinstance(shape, TupleShape) and nesting < MAX_NESTING:
            return tuple([self.new_inputs(frame, row, element, nesting + 1) for element in shape.elements])
        return self.new(frame, row, [], PARAMETER)

    def add_whole(self, frame: CallFrame, value: Value, made_of: list[int], row: int | None) -> None:
        """Adds the nodes of a value that is used as a whole; `row` is where it comes from, else that which the frame reads."""
        if isinstance(value, int):
            made_of.append(value)
            return
        nodes = nodes_in(value)
        if len(nodes) <= MAX_JOINED:
            made_of += nodes
            return
        known = self._joined.get(id(value))
        if known is None:
            known = self._joined[id(value)] = (value, self.new(frame, frame.row if row is None else row, nodes, MOVES))
        made_of.append(known[1])

    def made_of(self, frame: CallFrame, row: int) -> list[int]:
        """The nodes of all operands of a row."""
        found: list[int] = []
        for value, source in zip(frame.operands(row), frame.view.operand_rows(row), strict=True):
            self.add_whole(frame, value, found, source)
        return found

    def add_body(self, frame: CallFrame, template: BodyTemplate, arguments: Sequence[int]) -> None:
        """The nodes of a call that is made from a template."""
        count = len(template.rows)
        frame.stop = frame.first + count
        nodes = [*range(frame.first, frame.stop), *reversed(arguments)]  # an argument is counted from the end: `~` its number
        self.operands += [[nodes[one] for one in made_of] for made_of in template.operands]
        self.kinds += template.kinds
        self.frame_of += [frame.number] * count
        self.row_of += template.rows

    def result(self) -> Value:
        """What the step returns."""
        return self.frames[0].returned

    @staticmethod
    def element(value: Value, index: Sequence[int]) -> Value:
        """An element of a nested tuple."""
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
        """Return the nodes of the value at a place, or of those parts of it that hold a range of its elements; none if it was
        not read.
        """
        frame, row, index = place
        while len(self._calls) <= frame:
            self._calls.append(self._call(len(self._calls)))
        call = self._calls[frame]
        if call is None or row < 0:
            return []
        whole = call.value(row)
        value = ValueGraph.element(whole, index)
        if isinstance(value, Parts) and part is not None and part.limit <= value.stop:
            return value.within(part.start, part.limit)
        return nodes_in(value) or nodes_in(whole)

    def input(self, frame: int, number: int, index: ShapeIndex) -> list[int]:
        """Return the nodes of an element of a parameter."""
        rows = self._parameters.get(frame)
        if rows is None:
            rows = self._parameters[frame] = self._frames[frame].view.parameters_by_number()
        return self.nodes((frame, rows[number], index)) if number in rows else []

    def _call(self, frame: int) -> CallFrame | None:
        """Return the call of the graph that a frame is, if it was read."""
        name, caller = self._frames[frame].view.computation.name, self._frames[frame].caller
        above = self._calls[caller[0]] if caller is not None else None
        if caller is None:
            found = self._graph.frames_by_name.get(name, [])
        else:
            found = [self._graph.frames[number] for number in above.called.get(caller[1], ())] if above is not None else []
        return next((one for one in found if one.name == name), None)


def nodes_in(value: Value) -> list[int]:
    """The nodes that a value holds, in order."""
    if type(value) is int:
        return [value]
    found: list[int] = []
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, int):
            found.append(top)
        elif isinstance(top, tuple):
            stack += reversed(top)
        elif top is not None:
            found += top.nodes
    return found


_MEETING = frozenset({"send", "recv"})
"""Each call of these meets those of other computations, so that its nodes are more than what is made of its arguments."""


class BodyTemplates:
    """The templates of a module's computations, each made from the first call from which it can be: the nodes of called
    computations that differ only in names and metadata are those of the first one, between other arguments.
    """

    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints
        self._known: dict[int, BodyTemplate] = {}

    def find(self, name: str, arguments: int) -> BodyTemplate | None:
        """The template of a computation that gets so many arguments, where it is known."""
        fingerprint = self._fingerprints.of(name)
        known = self._known.get(fingerprint) if fingerprint is not None else None
        return known if known is not None and known.arguments == arguments else None

    def learn(self, frame: CallFrame, graph: ValueGraph) -> None:
        """Keeps what a call was read as, where it gets one node for each argument and all of these differ."""
        name, arguments = frame.name, frame.arguments
        if arguments is None or not are_nodes(arguments) or len(set(arguments)) < len(arguments):
            return
        fingerprint = self._fingerprints.of(name)
        if fingerprint is None or fingerprint in self._known or not self._fingerprints.is_alone(name):
            return
        if not _MEETING.isdisjoint(frame.view.opcodes):
            return
        own = range(frame.first, frame.stop)
        numbers: dict[Value, int] = {node: node - frame.first for node in own}
        numbers.update((node, ~number) for number, node in enumerate(arguments))
        try:
            operands = [[numbers[one] for one in made_of] for made_of in graph.operands[frame.first : frame.stop]]
            values = [_numbered(value, numbers) for value in frame.values]
        except KeyError:  # arrays in parts, tuples in tuples
            return
        kinds, rows = bytes(graph.kinds[frame.first : frame.stop]), graph.row_of[frame.first : frame.stop]
        self._known.setdefault(fingerprint, BodyTemplate(len(arguments), operands, kinds, rows, values, frame.view.root))


def are_nodes(arguments: Sequence[Value]) -> TypeGuard[Sequence[int]]:
    """Whether each argument is one node."""
    return set(map(type, arguments)) <= {int}


def _numbered(value: Value, numbers: Mapping[Value, int]) -> Value:
    """A node, a tuple of nodes, or nothing, by these numbers; `KeyError` for anything else."""
    if isinstance(value, tuple):
        return tuple([numbers[one] for one in value])
    return None if value is None else numbers[value]
