"""Moves of values between the devices of a partitioned program: those that bring an array into another sharding, and those
that exchange values with other devices, such as averages with neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce

from hlo_inspect.graph.frames import Input
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES, opcodes_that_give
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import Graph, with_bits
from hlo_inspect.optimizer.step.successions import Result, is_resharded

MAX_SHAPES = 100  # of inputs that are compared with those of outputs
MAX_BASES = 4096  # leaves and moves; of more each permute is taken for an exchange
MOVES = (opcodes_that_give("part") & STARTING_COLLECTIVES - {"collective-broadcast"}) | {"dynamic-slice"}
_JOINING = frozenset({"concatenate", "select"})


def is_move_between_devices(flow: Dataflow, node: int) -> bool:
    """Whether a node only moves values between devices, or cuts out a device's own."""
    graph = flow.graph
    if graph.ops[node] not in MOVES or graph.sizes[graph.args[node][0]] == 1:
        return False
    return graph.ops[node] != "dynamic-slice" or any(map(flow.nodes.is_of_device, graph.args[node][1:]))


def exchanges(graph: Graph, nodes: Sequence[int], moves: set[int]) -> set[int]:
    """The permutes among `moves` of which the result meets what they permute, as it was or permuted in another way: in another
    order of devices an array would take the place of the one before. What is only chosen or joined does not meet.
    """
    permutes = {node: graph.args[node][0] for node in moves if graph.ops[node] == "collective-permute"}
    if not permutes:
        return set()
    order = graph.below(nodes)
    bases = [
        node
        for node in order
        if node in moves or graph.ops[node] in _JOINING or (not graph.args[node] and graph.sizes[node] != 1)
    ]
    if len(bases) > MAX_BASES:
        return set(permutes)
    bits = {node: 1 << number for number, node in enumerate(bases)}
    of_operand: Counter[int] = Counter()
    for node, operand in permutes.items():
        of_operand[operand] += bits[node]
    permuted = sum(bits[node] for node in permutes)
    own: dict[int, int] = {}  # the bases that a node holds as they are
    moved: dict[int, int] = {}  # those that it holds otherwise
    beside: dict[int, int] = {}  # the other permutes of what the permutes among them permute
    met = 0
    for node in order:
        args = graph.args[node]
        here, there, others = (reduce(with_bits, map(known.__getitem__, args), 0) for known in (own, moved, beside))
        if node in moves or (graph.ops[node] in _JOINING and here & permuted) or not args:
            here, there = bits.get(node, 0), with_bits(here, there)
            others = of_operand[permutes[node]] & ~here if node in permutes else 0
        own[node], moved[node], beside[node] = here, there, others
        met |= here & (there | others)
    return {node for node in permutes if (bits[node] | moved[node]) & met}


def come_back_resharded(
    graph: Graph, nodes: Sequence[int], inputs: Mapping[Input, ArrayShape], results: Sequence[Result], moves: set[int]
) -> bool:
    """Whether one of the outputs of a step, which are `nodes`, is made through one of the `moves` of an input of which it can
    be the new value in another sharding.
    """
    below = graph.below(moves)
    own = {node: _key(inputs[graph.sources[node]]) for node in below if graph.sources.get(node) in inputs}
    if not own:
        return False
    bits = {key: 1 << number for number, key in enumerate(list(dict.fromkeys(own.values()))[:MAX_SHAPES])}
    held = graph.held(moves, {node: bits[key] for node, key in own.items() if key in bits})
    moved = graph.held(nodes, {node: held[node] for node in moves})
    ends = {(_key(result.shape), moved[node]) for node, result in zip(nodes, results, strict=True) if result.is_partitioned}
    shapes = {key: ArrayShape(*key) for key, _ in ends} | {key: ArrayShape(*key) for key in bits}
    return any(is_resharded(shapes[end], shapes[key]) for end, there in ends for key, bit in bits.items() if there & bit)


def _key(shape: ArrayShape) -> tuple[str, tuple[int | None, ...]]:
    return shape.dtype, shape.dimensions
