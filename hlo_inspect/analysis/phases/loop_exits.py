"""The values behind a loop that are made of its last state: the loss behind a scan over layers, and its first cotangent.

In the graph the last state is one component with all states and products of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.graph.value_graph import PRODUCT, ValueGraph


def loop_exits(graph: ValueGraph, component_of: Sequence[int], kinds: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of a loop's component with a product, and a component behind the loop that is made of its state."""
    loops = {
        frame.caller: (frame.first, frame.stop)
        for frame in graph.frames
        if frame.caller is not None and graph.frames[frame.caller[0]].view.opcodes[frame.caller[1]] == "while"
    }
    if not loops:
        return []
    bodies: dict[int, tuple[int, int, tuple[int, int]]] = {}  # of a state: first and last node of the body, and the loop
    for node, frame in enumerate(graph.frame_of):
        loop = loops.get((frame, graph.row_of[node]))
        if loop is not None and kinds[component_of[node]] & PRODUCT:
            bodies[node] = (*loop, (frame, graph.row_of[node]))
    exits: dict[tuple[int, int], None] = {}
    for node, made_of in enumerate(graph.operands):
        for state in made_of:
            body = bodies.get(state)
            if body is None or body[0] <= node < body[1] or (graph.frame_of[node], graph.row_of[node]) == body[2]:
                continue
            if component_of[node] != component_of[state]:
                exits[component_of[state], component_of[node]] = None
    return list(exits)
