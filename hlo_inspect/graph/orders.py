"""Orders of the nodes of a graph: operands first, and components of nodes that reach each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def operands_first(starts: Iterable[_T], operands: Callable[[_T], Collection[_T]]) -> Iterator[_T]:
    """Yield the nodes reachable from `starts` in post-order: operands before users.

    In a cycle, the node met first comes last. It does not recurse, because calls in dumps nest deeper than Python's stack.
    """
    seen: set[_T] = set()
    for start in starts:
        waiting = [(start, iter(operands(start)))] if start not in seen else []
        seen.add(start)
        while waiting:
            row, rest = waiting[-1]
            for following in rest:
                if following not in seen:
                    seen.add(following)
                    made_of = operands(following)
                    if seen.issuperset(made_of):  # as most: nothing comes before it
                        yield following
                        continue
                    waiting.append((following, iter(made_of)))
                    break
            else:
                yield row
                waiting.pop()


def strong_components(operands: Sequence[Sequence[int]]) -> tuple[list[int], int]:
    """Return the strongly connected component of each node, and the number of components.

    Components are numbered operands first. Source: Tarjan, "Depth-first search and linear graph algorithms", 1972, without
    recursion.
    """
    count = len(operands)
    component = [-1] * count
    low = [0] * count  # 0: not seen yet
    clock = components = 0
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
                        component[member] = components
                        if member == node:
                            break
                    components += 1
                if stack:
                    above = stack[-1][0]
                    if component[node] < 0 and low[node] < low[above]:
                        low[above] = low[node]
    return component, components
