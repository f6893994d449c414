"""Moves of values between the devices of a partitioned program: those that bring an array into another sharding, and those
that exchange values with other devices, such as averages with neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hlo_inspect.analysis.optimizer.dataflow import Dataflow
from hlo_inspect.analysis.optimizer.dependence import with_bits
from hlo_inspect.analysis.optimizer.graph import Graph, Input
from hlo_inspect.analysis.optimizer.successions import Result, is_resharded
from hlo_inspect.hlo.shapes import ArrayShape

MAX_SHAPES = 100  # of inputs that are compared with those of outputs
MAX_LEAVES = 4096  # arrays in permutes; of more each permute is taken for an exchange
_MOVES = frozenset({"all-to-all", "collective-permute", "dynamic-slice"})


def exchanges(graph: Graph, nodes: Sequence[int]) -> frozenset[int]:
    """The permutes below `nodes` of which the result meets the same array as it was before, or permuted in another way: in
    another order of devices an array would take the place of the one before.
    """
    order = graph.below(nodes)
    permutes = {node: graph.args[node][0] for node in order if graph.ops[node] == "collective-permute"}
    if not permutes:
        return frozenset()
    leaves = [node for node in graph.below(permutes.values()) if not graph.args[node] and graph.sizes[node] != 1]
    if len(leaves) > MAX_LEAVES:
        return frozenset(permutes)
    bits = {node: 1 << number for number, node in enumerate(leaves)}
    own: dict[int, int] = {}  # the leaves that a node holds as they are
    permuted: dict[int, int] = {}
    both = 0
    for node in order:
        here, there = bits.get(node, 0), 0
        for arg in graph.args[node]:
            here, there = with_bits(here, own[arg]), with_bits(there, permuted[arg])
        own[node], permuted[node] = (0, with_bits(here, there)) if node in permutes else (here, there)
        both |= own[node] & permuted[node]
    count = Counter(permutes.values())
    return frozenset(node for node, arg in permutes.items() if permuted[node] & both or count[arg] > 1)


def resharding_moves(
    flow: Dataflow,
    nodes: Sequence[int],
    inputs: Mapping[Input, ArrayShape],
    results: Sequence[Result],
    exchanged: frozenset[int],
) -> frozenset[int]:
    """What only moves values between devices below `nodes`, the outputs of a step, and what cuts out a device's own: where an
    output is made through it of an input of which it can be the new value in another sharding.
    """
    if not any(result.is_partitioned for result in results):
        return frozenset()
    graph = flow.graph
    order = graph.below(nodes)
    moves = frozenset(node for node in order if node not in exchanged and _is_move(flow, node))
    if not moves:
        return moves
    own = {node: _key(inputs[graph.sources[node]]) for node in order if graph.sources.get(node) in inputs}
    bits = {key: 1 << number for number, key in enumerate(list(dict.fromkeys(own.values()))[:MAX_SHAPES])}
    moved = _moved(graph, order, moves, {node: bits.get(key, 0) for node, key in own.items()})
    ends = {(_key(result.shape), moved[node]) for node, result in zip(nodes, results, strict=True)}
    shapes = {key: ArrayShape(*key) for key, _ in ends} | {key: ArrayShape(*key) for key in bits}
    found = any(is_resharded(shapes[end], shapes[key]) for end, held in ends for key, bit in bits.items() if held & bit)
    return moves if found else frozenset()


def _key(shape: ArrayShape) -> tuple[str, tuple[int | None, ...]]:
    return shape.dtype, shape.dimensions


def _is_move(flow: Dataflow, node: int) -> bool:
    graph = flow.graph
    if graph.ops[node] not in _MOVES or graph.sizes[graph.args[node][0]] == 1:
        return False
    return graph.ops[node] != "dynamic-slice" or any(map(flow.is_of_device, graph.args[node][1:]))


def _moved(graph: Graph, order: Sequence[int], moves: frozenset[int], bits: Mapping[int, int]) -> dict[int, int]:
    """The bits of the inputs that each node holds through a move."""
    held: dict[int, int] = {}
    moved: dict[int, int] = {}
    for node in order:
        here, there = bits.get(node, 0), 0
        for arg in graph.args[node]:
            here, there = with_bits(here, held[arg]), with_bits(there, moved[arg])
        held[node], moved[node] = here, here if node in moves else there
    return moved
