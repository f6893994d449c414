"""Expressions of one counter, for the tests of schedules."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.analysis.optimizer.normal import Forms, Sum


class Counted:
    """`c` is the counter's node; calls make nodes, with numbers as constants."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.c = self.graph.input((0, 0, ()), 1)

    def __call__(self, op: str, *args: int | float, how: str | None = None) -> int:
        nodes = [arg if isinstance(arg, int) else self.graph.constant(arg) for arg in args]
        return self.graph.make(op, tuple(nodes), how)

    def form(self, node: int) -> tuple[Forms, Sum, int]:
        """The forms, that of a node, and the counter's atom."""
        forms = Forms(self.graph)
        return forms, forms.form(node), forms.leaf(self.c)
