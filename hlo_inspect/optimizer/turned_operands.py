"""Differences of an array and its transpose, as in the gradient of an antisymmetric matrix `a - a.T`: what is turned is another
array, or the difference would be 0.

Elsewhere a transpose counts as the array itself, since compilers turn arrays at will; `(a + a.T) / 2` is `a`.
"""

from __future__ import annotations

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.graph import Graph

MAX_STEPS = 32  # from an operand back to what both are made of; so many signs too

Order = tuple[int, ...]
"""For each dimension of an array that of the array that it is made of."""


def cancel(graph: Graph, op: str, left: int, right: int) -> bool:
    """Whether a sum or a difference of two nodes is 0 if a transpose counts as the array itself."""
    (first, is_negated), (second, is_other_negated) = _unsigned(graph, left), _unsigned(graph, right)
    return first == second and (is_negated != is_other_negated) == (op == "add")


def _unsigned(graph: Graph, node: int) -> tuple[int, bool]:
    """A node without the signs before it, and whether they negate it."""
    is_negated = False
    for _ in range(MAX_STEPS):
        if graph.ops[node] != "negate":
            break
        (node,) = graph.args[node]
        is_negated = not is_negated
    return node, is_negated


def turned(frames: Frames, left: Place, right: Place) -> Order | None:
    """The order of the dimensions of `right`, where it is made of the same array as `left` in another order; else `None`."""
    (first, own), (second, other) = _origin(frames, left), _origin(frames, right)
    if first != second or own == other:
        return None
    return tuple([own.index(dimension) for dimension in other])


def _origin(frames: Frames, place: Place) -> tuple[Place, Order]:
    """The place from which a value comes but for transposes and signs, and the order in which its dimensions come."""
    dimensions = _dimensions(frames, place)
    order = tuple(range(len(dimensions)))
    for _ in range(MAX_STEPS):
        opcode = frames.opcode(place)
        before = frames.operand(place, 0) if opcode == "negate" else frames.step_back(place)
        if before is None:
            break
        instruction = frames.instruction(place) if opcode == "transpose" else None
        axes = instruction.attr("dimensions") if instruction is not None else None
        if axes is not None and sorted(axes) == sorted(order):
            order = tuple([axes[dimension] for dimension in order])
            dimensions = _dimensions(frames, before)
        elif _dimensions(frames, before) != dimensions or opcode == "bitcast":
            break
        place = before
    return place, order


def _dimensions(frames: Frames, place: Place) -> tuple[int | None, ...]:
    shape = frames.shape(place)
    return shape.dimensions if isinstance(shape, ArrayShape) else ()
