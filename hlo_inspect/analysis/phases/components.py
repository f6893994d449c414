"""The components of the graph of values: nodes that are made of each other are one, as the state of a loop and what makes it
new.

Components are numbered so that each comes after those that it is made of; all that is asked of the graph is one pass over
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.phases.value_graph import ValueGraph


class Components:
    """`of` is the component of each node, `operands` those that each is made of, `kinds` what any of its nodes is; `is_cycle`
    where values are made of each other.
    """

    def __init__(self, graph: ValueGraph) -> None:
        if graph.is_ordered:
            self.of: Sequence[int] = range(len(graph))
            self.operands: list[list[int]] = graph.operands
            self.kinds = bytearray(graph.kinds)
            self.is_cycle = bytearray(len(graph))
            return
        self.of, count = _strong_components(graph.operands)
        of = self.of
        self.kinds = bytearray(count)
        self.is_cycle = bytearray(count)
        self.operands = [[] for _ in range(count)]
        for node, made_of in enumerate(graph.operands):
            own = of[node]
            self.kinds[own] |= graph.kinds[node]
            found = self.operands[own]
            for other in made_of:
                if of[other] != own:
                    found.append(of[other])
                elif other != node:
                    self.is_cycle[own] = 1

    def __len__(self) -> int:
        return len(self.operands)


def _strong_components(operands: Sequence[Sequence[int]]) -> tuple[list[int], int]:
    """Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion: the component of each node, operands
    before what is made of them, and how many there are.
    """
    count = len(operands)
    component = [-1] * count
    low = [0] * count  # 0: not seen yet
    clock = found = 0
    open_nodes: list[int] = []
    for root in range(count):
        if low[root]:
            continue
        clock += 1
        low[root] = clock
        open_nodes.append(root)
        stack = [(root, clock, iter(operands[root]))]
        while stack:
            node, entered, rest = stack[-1]
            for other in rest:
                if not low[other]:
                    clock += 1
                    low[other] = clock
                    made_of = operands[other]
                    open_nodes.append(other)
                    stack.append((other, clock, iter(made_of)))
                    break
                if component[other] < 0 and low[other] < low[node]:
                    low[node] = low[other]
            else:
                stack.pop()
                if low[node] == entered:
                    while True:
                        member = open_nodes.pop()
                        component[member] = found
                        if member == node:
                            break
                    found += 1
                if stack:
                    above = stack[-1][0]
                    if component[node] < 0 and low[node] < low[above]:
                        low[above] = low[node]
    return component, found
