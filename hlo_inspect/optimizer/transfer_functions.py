"""Transfer functions: the node of an instruction from the nodes of its operands, or the places to read first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from hlo_inspect.graph.frames import NO_INDEX, Place
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.array_slices import are_whole, flat_part, slice_indices
from hlo_inspect.optimizer.graph import scaled_rows
from hlo_inspect.optimizer.node_cache import NodeCache
from hlo_inspect.optimizer.operations import (
    CONCATENATING_TARGETS,
    GEMM_TARGETS,
    HANDED_ON,
    MAX_LITERAL,
    SOME_VALUES,
    constant_value,
    gemm_factors,
    is_rounded,
    written_value,
)


def _constant(nodes: NodeCache, place: Place) -> int:
    literal = nodes.frames.instruction(place).literal
    value = constant_value(literal)
    if value is None:  # a table; equal tables in several fusions are interchangeable
        is_known = literal and "..." not in literal and len(literal) <= MAX_LITERAL
        key = (literal, nodes.frames.dtype(place)) if is_known else None
        return nodes.graph.opaque(place, nodes.frames.size(place), key)
    dtype = nodes.frames.dtype(place)
    return nodes.graph.constant(written_value(value, dtype), is_coarse=is_rounded(value, dtype))


def _bits(nodes: NodeCache, place: Place) -> int:
    """Return the bits of a value as another type.

    Equal bits are one node: each fusion that reads random numbers makes them anew.
    """
    operands = nodes.nodes_at(nodes.frames.operands(place))
    return nodes.graph.opaque(place, nodes.frames.size(place), ("bitcast-convert", operands, nodes.frames.dtype(place)))


def _element(nodes: NodeCache, place: Place) -> int:
    """Return a get-tuple-element whose operand cannot be followed."""
    is_readable = nodes.frames[place[0]].view.element_number(place[1]) is not None
    return nodes.opaque(place) if is_readable else nodes.broken(place, NO_INDEX)


def _iota(nodes: NodeCache, place: Place) -> int:
    """Return numbers along a dimension. Equal iotas are one node: each fusion that reads a triangle makes the mask anew."""
    dimension, shape = nodes.frames.instruction(place).attr("iota_dimension"), nodes.frames.shape(place)
    if dimension is None or not isinstance(shape, ArrayShape):
        return nodes.opaque(place)
    return nodes.graph.opaque(place, nodes.frames.size(place), ("iota", dimension, shape.dimensions))


def _input(nodes: NodeCache, place: Place) -> int:
    """Return a parameter of a computation that was opened with its parameters as inputs."""
    source = nodes.frames.input(place)
    if source is None:
        return nodes.opaque(place)
    constant = nodes.constants.get(source)
    if constant is not None:
        return constant
    shape = nodes.frames.shape(place)
    is_count = isinstance(shape, ArrayShape) and len(shape.dimensions) == 1 and shape.dtype.startswith(("s", "u"))
    return nodes.graph.input(source, nodes.frames.size(place), is_count=is_count)


def _truncate(nodes: NodeCache, place: Place) -> int:
    """Return a conversion from floating point to integers."""
    operands = nodes.nodes_at(nodes.frames.operands(place))
    return nodes.graph.make("truncate", operands) if len(operands) == 1 else nodes.opaque(place)


def _broadcast(nodes: NodeCache, place: Place) -> int:
    """Return an array that is repeated along further dimensions.

    What is computed from counters alone is one number for each member of an ensemble (`vmap`), and counts as the number.
    """
    operands = nodes.nodes_at(nodes.frames.operands(place))
    if not operands or nodes.graph.value(operands[0]) is not None or nodes.graph.is_of_counts(operands[0]):
        return operands[0] if operands else nodes.opaque(place)
    dimensions = nodes.frames.instruction(place).attr("dimensions")
    return nodes.graph.make("broadcast", operands[:1], dimensions, nodes.frames.size(place))


def _some_values(nodes: NodeCache, place: Place) -> int:
    """Return some of an array's values; the array itself if they are all the same."""
    frames, graph = nodes.frames, nodes.graph
    place = frames.start(place)
    opcode = frames.opcode(place).removesuffix("-start")
    operands = frames.operands(place) if opcode in SOME_VALUES else ()  # a done can follow an operation of any kind
    arguments = nodes.nodes_at(operands if opcode in {"all-to-all", "dynamic-slice"} else operands[:1])
    moved = arguments if opcode == "all-to-all" else arguments[:1]
    if len(set(moved)) == 1 and _is_uniform(nodes, moved[0], operands[0]):
        return moved[0]
    if len(moved) != 1 or place[2]:
        return nodes.opaque(place)
    if opcode == "dynamic-slice":
        return graph.make(opcode, arguments, None, frames.size(place))
    instruction = frames.instruction(place)
    parts = instruction.attr("slice") if opcode == "slice" else None
    if parts is None:
        dimensions = instruction.attr("dimensions") if opcode in {"reverse", "slice"} else None
        return graph.make(opcode, arguments, dimensions or place[:2], frames.size(place))
    whole = frames.shape(operands[0])
    flat = flat_part(parts, whole.dimensions) if isinstance(whole, ArrayShape) else None
    return graph.make(
        opcode, arguments, parts if flat is None else (flat,), math.prod(len(slice_indices(part)) for part in parts)
    )


def _pad(nodes: NodeCache, place: Place) -> int:
    """Return an array with values around it.

    Equal pads are one node: XLA pads a gradient again in each fusion that reads it.
    """
    operands = nodes.nodes_at(nodes.frames.operands(place))
    padding = nodes.frames.instruction(place).attr("padding")
    return nodes.graph.make("pad", operands, padding, nodes.frames.size(place)) if operands and padding else nodes.opaque(place)


def _is_uniform(nodes: NodeCache, node: int, place: Place) -> bool:
    """Return True if an array has one value in all of its elements, on all devices."""
    graph = nodes.graph
    if graph.value(node) is not None:
        return True
    return graph.sizes[node] == 1 != nodes.frames.size(place) and not nodes.is_of_device(node)


def _concatenate(nodes: NodeCache, place: Place) -> int:
    """Return a concatenation, or one array if the operands are all of its slices, in any order."""
    graph = nodes.graph
    parts = nodes.nodes_at(nodes.frames.operands(place))
    if not parts:
        return nodes.opaque(place)
    if len(set(parts)) == 1 and (len(parts) == 1 or graph.value(parts[0]) is not None):
        return parts[0]
    if all(graph.ops[node] == "slice" for node in parts):
        sources = {graph.args[node][0] for node in parts}
        if len(sources) == 1 and are_whole(graph, parts, next(iter(sources))):
            return sources.pop()
    exchanged = _exchanged_array(nodes, parts)
    if exchanged is not None:
        return exchanged
    return graph.make("concatenate", parts, _is_flat(nodes, place), nodes.frames.size(place))


def _exchanged_array(nodes: NodeCache, parts: Sequence[int]) -> int | None:
    """Return the array whose slices devices exchange, if the parts are all slices that a device receives; else None."""
    frames, graph = nodes.frames, nodes.graph
    places = [graph.places[node] for node in parts if node in graph.places]
    if len(places) < len(parts) or len({place[:2] for place in places}) > 1 or frames.opcode(places[0]) != "all-to-all":
        return None
    operands = frames.operands(places[0])
    if sorted(place[2] for place in places) != [(number,) for number in range(len(operands))]:
        return None
    slices = nodes.nodes_at(operands)
    sources = {graph.args[node][0] if graph.ops[node] == "slice" else -1 for node in slices}
    source = sources.pop()
    return None if sources or source < 0 or not are_whole(graph, slices, source) else graph.make("all-to-all", (source,))


def _is_flat(nodes: NodeCache, place: Place) -> bool:
    """Return True if the operands of a concatenation follow each other in the flattened array, row-major."""
    axis, shape = nodes.frames.instruction(place).attr("dimensions") or (0,), nodes.frames.shape(place)
    return isinstance(shape, ArrayShape) and all(size == 1 for size in shape.dimensions[: axis[0]])


def _filled_buffer(nodes: NodeCache, place: Place) -> int:
    """Return a buffer that TPU fills with arrays instead of a concatenation: each element is written once."""
    frames = nodes.frames
    whole = frames.shape(place)
    if not isinstance(whole, ArrayShape) or nodes.buffers.written_count(place) != whole.elements:
        return nodes.opaque(place)
    writes = nodes.buffers.writes(place)
    nodes_written = nodes.nodes_at([operand for write in writes for operand in write[1:]])
    parts: dict[float, tuple[int, int]] = {}  # node and elements, by start
    row = (whole.elements or 0) // (whole.dimensions[0] or 1)
    for number, write in enumerate(writes):
        node, major = nodes_written[number * (len(write) - 1) :][:2]
        shape, start = frames.shape(write[1]), nodes.graph.value(major)
        if start is None or not isinstance(shape, ArrayShape) or shape.dimensions[1:] != whole.dimensions[1:]:
            return nodes.opaque(place)
        parts[start * row] = node, shape.elements or 0
    ends = list(accumulate(parts[start][1] for start in sorted(parts)))
    if sorted(parts) != [0, *ends[:-1]] or ends[-1] != whole.elements:
        return nodes.opaque(place)
    return nodes.graph.make("concatenate", tuple([parts[start][0] for start in sorted(parts)]), True, ends[-1])


def _conditional(nodes: NodeCache, place: Place) -> int:
    """Return a choice of two branches. The first of numbered branches has the number 0, so it stands for false."""
    frames = nodes.frames
    branches = frames.instruction(place).attr("branch_computations") or ()
    order = (0, 1)
    if not branches:
        branches, order = (frames.callee(place, "false_computation"), frames.callee(place, "true_computation")), (1, 0)
    operands = frames.operands(place)
    if len(branches) != 2 or len(operands) != 3:
        return nodes.opaque(place)
    roots = []
    for branch, argument in zip(branches, order, strict=True):
        frame = frames.call(place, branch, (operands[1 + argument],))
        if frame is None:
            return nodes.opaque(place)
        roots.append(frames.root(frame, place[2]))
    condition_and_roots = nodes.nodes_at((operands[0], *roots))
    return nodes.graph.make("select", (condition_and_roots[0], condition_and_roots[2], condition_and_roots[1]))


def _while(nodes: NodeCache, place: Place) -> int:
    """Return a result of a loop: its initial value if no iteration changes it."""
    initial = nodes.frames.operand(place, 0, place[2]) if nodes.frames.is_carried(place) else None
    return nodes.opaque(place) if initial is None else nodes.nodes_at([initial])[0]


def _scatter(nodes: NodeCache, place: Place) -> int:
    """Return rows added to an array, or subtracted: the array, and a leaf for the rows in an array of zeros.

    Equal rows are one leaf, and their scalar factors are factors of the leaf.
    """
    frames, graph = nodes.frames, nodes.graph
    operands = frames.operands(place)
    combiner = next((op for op in ("add", "subtract") if frames.applies(place, op)), None)
    if len(operands) != 3 or place[2] or combiner is None:
        return nodes.opaque(place)
    operand_nodes = nodes.nodes_at(operands)
    array, indices, rows = operand_nodes
    factors, rows = scaled_rows(graph, rows)
    node = graph.opaque(place, frames.size(place), ("scatter", indices, rows, frames.size(place)))
    for factor in factors:
        node = graph.make("multiply", (factor, node))
    return node if graph.value(array) == 0.0 and combiner == "add" else graph.make(combiner, (array, node))


def _reduce(nodes: NodeCache, place: Place) -> int:
    """Return a sum over elements. Fusions that sum up one array, an operand or computed, share one leaf for the sum."""
    frames = nodes.frames
    operands = frames.operands(place)
    axes = frames.instruction(place).attr("dimensions")
    if len(operands) != 2 or not axes or not frames.applies(place, "add"):
        return nodes.opaque(place)
    is_parameter = frames.opcode(operands[0]) == "parameter"
    array = frames.find_maker(operands[0], HANDED_ON) if is_parameter else nodes.fused.number(operands[0])
    if array is None:
        return nodes.opaque(place)
    initial = nodes.nodes_at(operands[1:])
    return nodes.graph.opaque(place, frames.size(place), ("reduce", array, axes, initial[0], frames.dtype(place)))


def _custom_call(nodes: NodeCache, place: Place) -> int:
    target = nodes.frames.target(place)
    if target in CONCATENATING_TARGETS:
        return _concatenate(nodes, place)
    return _gemm(nodes, place) if target in GEMM_TARGETS else nodes.opaque(place)


def _all_reduce(nodes: NodeCache, place: Place) -> int:
    """Return a sum over devices. If each writes its part into zeros it is an all-gather, as TPU has it: return the part."""
    frames, graph = nodes.frames, nodes.graph
    if "dynamic-update-slice" not in frames.views.opcodes:
        return nodes.opaque(place)
    start = frames.start(place)
    summed = frames.operand(start, start[2][0] if start[2] else 0)
    made = frames.find_maker(summed) if summed is not None else place
    operands = frames.operands(made) if frames.opcode(made) == "dynamic-update-slice" else ()
    if len(operands) < 3 or not frames.applies(start, "add"):
        return nodes.opaque(place)
    operand_nodes = nodes.nodes_at(operands)
    is_own = graph.value(operand_nodes[0]) == 0.0 and any(map(nodes.is_of_device, operand_nodes[2:]))
    return operand_nodes[1] if is_own else nodes.opaque(place)


def _gemm(nodes: NodeCache, place: Place) -> int:
    """Return a product of matrices with its factors: alpha * A * B + beta * C."""
    factors = gemm_factors(nodes.frames.instruction(place).attr("backend_config"))
    if factors is None or (place[2] and place[2] != (0,)):
        return nodes.opaque(place)
    alpha, beta = factors
    graph, whole = nodes.graph, (place[0], place[1], ())
    product = graph.opaque(whole, nodes.frames.size(whole))
    if alpha != 1.0:
        product = graph.make("multiply", (graph.constant(alpha), product))
    if beta == 0.0:
        return product
    operands = nodes.frames.operands(place)
    if len(operands) < 3:
        return nodes.opaque(place)
    addend = nodes.nodes_at(operands[2:3])
    added = addend[0] if beta == 1.0 else graph.make("multiply", (graph.constant(beta), addend[0]))
    return graph.make("add", (product, added))


TRANSFER: dict[str, Callable[[NodeCache, Place], int]] = {
    "get-tuple-element": _element,
    "constant": _constant,
    "iota": _iota,
    "parameter": _input,
    "convert": _truncate,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "conditional": _conditional,
    "while": _while,
    "custom-call": _custom_call,
    "all-reduce": _all_reduce,
    "all-reduce-done": _all_reduce,
    "dynamic-update-slice": _filled_buffer,
    "reduce": _reduce,
    "bitcast-convert": _bits,
    "scatter": _scatter,
    "pad": _pad,
    **dict.fromkeys(SOME_VALUES - {"pad"}, _some_values),
    **{f"{opcode}-done": _some_values for opcode in SOME_VALUES},
}
