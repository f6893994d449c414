"""The nodes that rows make, and those that their operands are."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.phases.value_graph import MOVES, PARAMETER, CallFrame, Parts, Value, ValueGraph, nodes_in
from hlo_inspect.hlo.shapes import Shape, TupleShape

MAX_NESTING = 16
MAX_JOINED = 8
"""The arrays of a larger tuple that an operation takes whole are joined in one node."""


class Nodes:
    """The nodes of a graph, row by row; `frame` is the call that a row is read in."""

    def __init__(self, graph: ValueGraph) -> None:
        self.graph = graph
        self._joined: dict[int, tuple[Value, int]] = {}

    def new(self, frame: CallFrame, row: int, made_of: list[int], kind: int = 0) -> int:
        """A new node that a row makes."""
        graph = self.graph
        node = len(graph.operands)
        graph.operands.append(made_of)
        graph.kinds.append(kind)
        graph.frame_of.append(frame.number)
        graph.row_of.append(row)
        return node

    def add_whole(self, frame: CallFrame, value: Value, made_of: list[int], row: int | None) -> None:
        """Adds the nodes of a value that is used as a whole; `row` is where it comes from, else that which the frame reads."""
        if isinstance(value, int):
            made_of.append(value)
            return
        nodes = value.nodes if isinstance(value, Parts) else nodes_in(value)
        if len(nodes) <= MAX_JOINED:
            made_of += nodes
            return
        known = self._joined.get(id(value))
        if known is None:
            known = self._joined[id(value)] = (value, self.new(frame, frame.row if row is None else row, nodes, MOVES))
        made_of.append(known[1])

    def argument(self, frame: CallFrame, row: int, number: int) -> Value:
        """The value of one operand."""
        view = frame.view
        source = view.operand_rows(row)[number]
        value = frame.values[source] if source is not None else None
        if view.has_only_names(row):
            return value
        return ValueGraph.element(value, view.operands(row)[number].path)

    def arguments(self, frame: CallFrame, row: int) -> list[Value]:
        """The values of all operands; of those that are printed as names alone without what is not defined."""
        view, values = frame.view, frame.values
        if view.has_only_names(row):
            return [values[source] for source in view.operand_rows(row) if source is not None]
        return [self.argument(frame, row, number) for number in range(len(view.operand_rows(row)))]

    @staticmethod
    def sources(frame: CallFrame, row: int) -> Sequence[int | None]:
        """The row that defines each of the arguments."""
        rows = frame.view.operand_rows(row)
        return [source for source in rows if source is not None] if frame.view.has_only_names(row) else rows

    def operands(self, frame: CallFrame, row: int) -> list[int]:
        """The nodes of all operands."""
        made_of: list[int] = []
        for value, source in zip(self.arguments(frame, row), self.sources(frame, row), strict=True):
            if value is not None:
                self.add_whole(frame, value, made_of, source)
        return made_of

    def leaves(self, frame: CallFrame, row: int, shape: Shape | None, nesting: int = 0) -> Value:
        """New nodes for the arrays of an input."""
        if isinstance(shape, TupleShape) and nesting < MAX_NESTING:
            return tuple([self.leaves(frame, row, element, nesting + 1) for element in shape.elements])
        return self.new(frame, row, [], PARAMETER)
