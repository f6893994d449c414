"""The graph of the values of one step: which array is made of which others.

A node is one array that an instruction makes; what only names, packs or hands on values makes none. Computations that are
called, fusions among them, are read once for each call, so that a node belongs to one call of its computation. Three things
keep apart what a plain graph of instructions would mix up:

* A combined collective has a node for each operand.
* Where arrays are concatenated to be reduced together and are cut apart again, each part has nodes of its own.
* The state of a loop has a node for each element, made of the initial value and of what the body returns. These are the only
  cycles, apart from texts that no compiler writes and from pairs of send and recv.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple, Union

from hlo_inspect.analysis.view import View

PRODUCT, MOVES, REDUCES, COLLECTIVE, PARAMETER, SUMS = 1, 2, 4, 8, 16, 32
"""What a node is: a product; moved or summed values; a reduction or gather; a collective; an input; a collective that sums."""


class Parts:
    """An array in parts along its first dimension: each is the value of a node, from its start up to that of the next one."""

    __slots__ = ("joined", "nodes", "starts", "stop")

    def __init__(self, starts: list[int], nodes: list[int], stop: int) -> None:
        self.starts = starts
        self.nodes = nodes
        self.stop = stop
        self.joined: int | None = None

    def within(self, low: int, high: int) -> list[int]:
        """The nodes of the parts that hold some of the range from `low` up to `high`."""
        first, last = bisect_right(self.starts, low) - 1, bisect_left(self.starts, high)
        return self.nodes[max(first, 0) : last]


Value = Union[int, tuple["Value", ...], Parts, None]  # noqa: UP007 - an alias that names itself
"""A node, a tuple of values (or one node for all of it), an array in parts; `None` for what holds nothing, as a token."""


class BodyTemplate(NamedTuple):
    """The nodes of a computation that gets one node for each of so many arguments, counted from its first one on; an argument
    is `~` its number. `operands`, `kinds` and `rows` are by node, `values` by row: nodes, tuples of nodes, or nothing.
    """

    arguments: int
    operands: Sequence[Sequence[int]]
    kinds: bytes
    rows: Sequence[int]
    values: Sequence[Value]


class CallFrame:
    """One call of a computation, and the calls that its rows make. Its nodes are `first` to `stop`. Where it was made from a
    `template`, that has the values of its rows.
    """

    __slots__ = (
        "arguments",
        "called",
        "caller",
        "first",
        "number",
        "pending",
        "results",
        "row",
        "stop",
        "template",
        "values",
        "view",
    )

    def __init__(
        self,
        number: int,
        view: View,
        arguments: Sequence[Value] | None,
        caller: tuple[int, int] | None,
        template: BodyTemplate | None = None,
    ) -> None:
        self.number = number
        self.view = view
        self.arguments = arguments
        self.caller = caller
        self.template = template
        self.values: list[Value] = [None] * len(view.rows) if template is None else []
        self.called: dict[int, list[int]] = {}
        self.row = 0
        self.first = 0
        self.stop = 0
        self.pending: list[tuple[str, Sequence[Value]]] | None = None
        self.results: list[Value] = []

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

    def __len__(self) -> int:
        return len(self.operands)

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
        root = self.frames[0].view.root
        return None if root is None else self.frames[0].value(root)

    @staticmethod
    def element(value: Value, index: Sequence[int]) -> Value:
        """An element of a nested tuple."""
        for number in index:
            if isinstance(value, tuple):
                value = value[number] if number < len(value) else None
        return value


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
