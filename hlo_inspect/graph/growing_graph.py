"""A graph of values to which a reader adds nodes, calls and rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hlo_inspect.graph.value_graph import (
    MAX_JOINED,
    MAX_NESTING,
    MOVES,
    PARAMETER,
    CallFrame,
    Value,
    ValueGraph,
    nodes_in,
)
from hlo_inspect.hlo.values.shapes import Shape, TupleShape


@dataclass(slots=True, eq=False)
class OpenFrame(CallFrame):
    """A call that is being read, up to `row`. `arguments` are None for inputs.

    `pending` are the calls that the row makes, `results` the values of those that are read.
    """

    values: list[Value]
    arguments: Sequence[Value] | None = None
    row: int = 0
    pending: list[tuple[str, Sequence[Value]]] | None = None
    results: list[Value] = field(default_factory=list)

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


class GrowingGraph(ValueGraph):
    """The graph that a reader makes."""

    operands: list[list[int]]
    frame_of: list[int]
    row_of: list[int]
    frames: list[CallFrame]
    frames_by_name: dict[str, list[CallFrame]]

    def __init__(self) -> None:
        super().__init__()
        self.operands, self.frame_of, self.row_of, self.frames, self.frames_by_name = [], [], [], [], {}
        self._joined: dict[int, tuple[Value, int]] = {}

    def new(self, frame: OpenFrame, row: int, made_of: list[int], kind: int = 0) -> int:
        """Add a node that a row of a call makes, and return its number."""
        node = len(self.operands)
        self.operands.append(made_of)
        self.kinds.append(kind)
        self.frame_of.append(frame.number)
        self.row_of.append(row)
        return node

    def new_inputs(self, frame: OpenFrame, row: int, shape: Shape | None, nesting: int = 0) -> Value:
        """Add nodes for the arrays of an input."""
        if isinstance(shape, TupleShape) and nesting < MAX_NESTING:
            return tuple([self.new_inputs(frame, row, element, nesting + 1) for element in shape.elements])
        return self.new(frame, row, [], PARAMETER)

    def whole(self, frame: OpenFrame, value: Value, row: int | None) -> list[int]:
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

    def made_of(self, frame: OpenFrame, row: int) -> list[int]:
        """Return the nodes of all operands of a row."""
        operands = zip(frame.operands(row), frame.view.operand_rows(row), strict=True)
        return [node for value, source in operands for node in self.whole(frame, value, source)]
