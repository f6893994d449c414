"""From the text of computations to one graph of expressions.

Only what is asked for is read. Operations element by element become nodes, what changes no value makes none (`frames.py`).
Reductions, products of matrices and everything else become opaque leaves, whose operands `reductions.py` reads for a rule.

All walks use explicit stacks, so neither deep nor cyclic text can exhaust Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from hlo_inspect.analysis.optimizer.array_slices import are_whole, elements_of, flat_part
from hlo_inspect.analysis.optimizer.equal_fusions import EqualFusions
from hlo_inspect.analysis.optimizer.filled_buffers import FilledBuffers
from hlo_inspect.analysis.optimizer.frames import NO_INDEX, Frames
from hlo_inspect.analysis.optimizer.graph import Graph, Input, Place, scaled_rows
from hlo_inspect.analysis.optimizer.literals import MAX_LITERAL, constant_value, is_rounded
from hlo_inspect.analysis.optimizer.operations import (
    CONCATENATING_TARGETS,
    DEVICE_NUMBERS,
    ELEMENTWISE,
    GEMM_TARGETS,
    HANDED_ON,
    SOME_VALUES,
    gemm_factors,
)
from hlo_inspect.analysis.view import View, Views
from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.shapes import ArrayShape


class Dataflow:
    """The values of a module's computations as nodes of `graph`. `constants` are inputs that are numbers, by their nodes."""

    def __init__(self, views: Views) -> None:
        self.frames = Frames(views)
        self.graph = Graph()
        self.constants: dict[Input, int] = {}
        self._nodes: dict[Place, int] = {}
        self._arrays: dict[Place, Place] = {}
        self._of_device: list[bool] = []
        self.buffers = FilledBuffers(self.frames)
        self._equal_fusions = EqualFusions(self.graph, views.fingerprints, self.frames)

    def node(self, place: Place) -> int:
        """The expression at a place."""
        nodes, frames = self._nodes, self.frames
        stack = [place]
        active: dict[Place, Place | None] = {}  # what is looked at, and the place from which its value comes unchanged
        while stack:
            top = stack[-1]
            if top in nodes:
                stack.pop()
                active.pop(top, None)
                continue
            before = active.get(top)
            if before is not None:
                nodes[top] = nodes[before]
                continue
            found: int | Place | list[Place]
            view, row = frames[top[0]].view, top[1]
            if row >= 0 and not top[2] and view.opcodes[row] in ELEMENTWISE:
                found = self._operation(top, view)
            else:
                found = self._step(top)
            if isinstance(found, int):
                nodes[top] = found
                continue
            if isinstance(found, tuple):
                before, found = found, [found]
            if active.keys().isdisjoint(found) and top not in found and len(nodes) + len(active) < frames.max_places:
                active[top] = before
                stack += found
            else:
                is_cycle = len(nodes) + len(active) < frames.max_places
                frames.is_cut_short |= not is_cycle
                nodes[top] = self.broken(top, "depends on itself" if is_cycle else "lies behind too many expressions to follow")
        return nodes[place]

    def opaque(self, place: Place) -> int:
        """A leaf for a value whose definition is not expanded."""
        return self.graph.opaque(place, self.frames.size(place))

    def broken(self, place: Place, reason: str) -> int:
        """A leaf for what could not be followed."""
        self.frames.note_fault(place, reason)
        node = self.opaque(place)
        self.graph.broken.add(node)
        return node

    def known(self, places: Sequence[Place]) -> tuple[int, ...] | list[Place]:
        """The nodes at these places, or those of the places whose nodes have to be known first."""
        nodes = self._nodes
        missing = [place for place in places if place not in nodes]
        return missing or tuple([nodes[place] for place in places])

    def is_of_device(self, node: int) -> bool:
        """Whether an expression holds the number of the device, so that it can differ between devices."""
        graph, known = self.graph, self._of_device
        for one in range(len(known), node + 1):  # operands have lower numbers
            leaf = graph.places.get(one)
            is_number = leaf is not None and self.frames.opcode(leaf) in DEVICE_NUMBERS
            known.append(is_number or any(known[arg] for arg in graph.args[one]))
        return known[node]

    def array_at(self, place: Place) -> Place:
        """Where an array is that parameters and tuples hand on to a place."""
        passed: list[Place] = []
        for before in self.frames.back_from(place):
            passed.append(before)
            if before in self._arrays or self.frames.opcode(before) not in HANDED_ON:
                break
        array = self._arrays.get(passed[-1], passed[-1])
        self._arrays |= dict.fromkeys(passed, array)
        return array

    def _step(self, place: Place) -> int | Place | list[Place]:
        """The node at a place, the place from which its value comes unchanged, or the places that have to be known before."""
        opcode = self.frames.opcode(place)
        if not opcode:
            return self.broken(place, "is not defined")
        if opcode == "fusion":
            found = self._equal_fusion(place)
            if found is not None:
                return found
        before = self.frames.step_back(place)
        if before is not None:
            is_shard = opcode == "custom-call" and self._is_shard(place, before)
            return self.opaque(place) if is_shard else self._nodes.get(before, before)
        transfer = _TRANSFER.get(opcode)
        return transfer(self, place) if transfer is not None else self.opaque(place)

    def _is_shard(self, place: Place, before: Place) -> bool:
        """Whether an integer is that of one device among those of all devices: a counter is a scalar there."""
        frames = self.frames
        return frames.dtype(place)[:1] in {"s", "u"} and frames.size(place) == 1 < frames.size(before)

    def _equal_fusion(self, place: Place) -> int | list[Place] | None:
        """The node of a fusion whose computation is equal to others; `None` where it has to be read itself."""
        computation = self.frames.views.fused(self.frames[place[0]].view, place[1])
        recipe = self._equal_fusions.recipe(computation, place[2], self.node) if computation is not None else None
        if recipe is None:
            return None
        known: dict[int, int] = {}
        missing: list[Place] = []
        for node, (number, index) in recipe.arguments:
            operand = self.frames.operand(place, number, index)
            if operand is None:
                return None
            argument = self._nodes.get(operand)
            if argument is None:
                missing.append(operand)
            else:
                known[node] = argument
        return missing or recipe.apply(self.graph, known)

    def _operation(self, place: Place, view: View) -> int | list[Place]:
        """The node of an operation on all operands, element by element."""
        nodes, row = self._nodes, place[1]
        args: list[int] = []
        missing: list[Place] = []
        for operand in self.frames.operands(place):
            node = nodes.get(operand)
            if node is None:
                missing.append(operand)
            else:
                args.append(node)
        if missing:
            return missing
        op = view.opcodes[row]
        if len(args) != opcodes.TABLE[op].operands:
            return self.broken(place, "has operands that cannot be read")
        if op == "divide" and self.frames.dtype(place)[:1] in {"s", "u"}:
            op = "integer-divide"  # cuts digits off, which the algebra of real numbers does not
        return self.graph.make(op, tuple(args), self._direction(place) if op == "compare" else None)

    def _direction(self, place: Place) -> str | None:
        instruction = self.frames.instruction(place)
        return instruction.attr("direction") if instruction is not None else None


# -- transfer functions: the node of an instruction, or the places that have to be known before it --------------------------


def _constant(flow: Dataflow, place: Place) -> int:
    instruction = flow.frames.instruction(place)
    literal = instruction.literal if instruction is not None else ""
    value = constant_value(literal)
    if value is None:  # a table; of equal ones in several fusions one is as good as another
        is_known = literal and "..." not in literal and len(literal) <= MAX_LITERAL
        key = (literal, flow.frames.dtype(place)) if is_known else None
        return flow.graph.opaque(place, flow.frames.size(place), key)
    return flow.graph.constant(value, is_coarse=is_rounded(value, flow.frames.dtype(place)))


def _element(flow: Dataflow, place: Place) -> int:
    """A get-tuple-element whose operand cannot be followed."""
    is_readable = flow.frames[place[0]].view.element_number(place[1]) is not None
    return flow.opaque(place) if is_readable else flow.broken(place, NO_INDEX)


def _input(flow: Dataflow, place: Place) -> int:
    """A parameter of a computation that was opened with its parameters as inputs."""
    source = flow.frames.input(place)
    if source is None:
        return flow.opaque(place)
    known = flow.constants.get(source)
    return flow.graph.input(source, flow.frames.size(place)) if known is None else known


def _truncate(flow: Dataflow, place: Place) -> int | list[Place]:
    """A conversion from floating point to integers."""
    found = flow.known(flow.frames.operands(place))
    return found if isinstance(found, list) else flow.graph.make("truncate", found)


def _broadcast(flow: Dataflow, place: Place) -> int | list[Place]:
    """An array that is repeated along further dimensions."""
    found = flow.known(flow.frames.operands(place))
    if isinstance(found, list):
        return found
    if not found or flow.graph.value(found[0]) is not None:
        return found[0] if found else flow.opaque(place)
    instruction = flow.frames.instruction(place)
    dimensions = instruction.attr("dimensions") if instruction is not None else None
    return flow.graph.make("broadcast", found[:1], dimensions, flow.frames.size(place))


def _some_values(flow: Dataflow, place: Place) -> int | list[Place]:
    """Some of an array's values; all of them where they are all the same."""
    frames, graph = flow.frames, flow.graph
    place = frames.start(place)
    opcode = frames.opcode(place).removesuffix("-start")
    operands = frames.operands(place)
    found = flow.known(operands if opcode in {"all-to-all", "dynamic-slice"} else operands[:1])
    if isinstance(found, list):
        return found
    moved = found if opcode == "all-to-all" else found[:1]
    if len(set(moved)) == 1 and _is_everywhere(flow, moved[0], operands[0]):
        return moved[0]
    if len(moved) != 1 or place[2]:
        return flow.opaque(place)
    if opcode == "dynamic-slice":
        return graph.make(opcode, found, None, frames.size(place))
    instruction = frames.instruction(place) if opcode == "slice" else None
    parts = instruction.attr("slice") if instruction is not None else None
    if parts is None:
        return graph.make(opcode, found, place[:2], frames.size(place))
    whole = frames.shape(operands[0])
    flat = flat_part(parts, whole.dimensions) if isinstance(whole, ArrayShape) else None
    return graph.make(opcode, found, parts if flat is None else (flat,), math.prod(len(elements_of(part)) for part in parts))


def _pad(flow: Dataflow, place: Place) -> int | list[Place]:
    """An array with values around it. Equal ones are one: XLA pads a gradient once more in each fusion that reads it."""
    found = flow.known(flow.frames.operands(place))
    if isinstance(found, list):
        return found
    instruction = flow.frames.instruction(place)
    padding = instruction.attr("padding") if instruction is not None else None
    return flow.graph.make("pad", found, padding, flow.frames.size(place)) if found and padding else flow.opaque(place)


def _is_everywhere(flow: Dataflow, node: int, place: Place) -> bool:
    """Whether an array has one value in all of its elements, on all devices."""
    graph = flow.graph
    if graph.value(node) is not None:
        return True
    return graph.sizes[node] == 1 != flow.frames.size(place) and not flow.is_of_device(node)


def _concatenate(flow: Dataflow, place: Place) -> int | list[Place]:
    """A concatenation; where its operands are all the slices of one array, that array, in whatever order they are."""
    graph = flow.graph
    found = flow.known(flow.frames.operands(place))
    if isinstance(found, list):
        return found
    if not found:
        return flow.opaque(place)
    if len(set(found)) == 1 and (len(found) == 1 or graph.value(found[0]) is not None):
        return found[0]
    if all(graph.ops[node] == "slice" for node in found):
        sources = {graph.args[node][0] for node in found}
        if len(sources) == 1 and are_whole(graph, found, next(iter(sources))):
            return sources.pop()
    exchanged = _exchanged(flow, found)
    if exchanged is not None:
        return exchanged
    return graph.make("concatenate", found, _is_flat(flow, place), flow.frames.size(place))


def _exchanged(flow: Dataflow, nodes: Sequence[int]) -> int | list[Place] | None:
    """The array whose slices devices exchange, where nodes are all that one receives; `None` for others."""
    frames, graph = flow.frames, flow.graph
    places = [graph.places[node] for node in nodes if node in graph.places]
    if len(places) < len(nodes) or len({place[:2] for place in places}) > 1 or frames.opcode(places[0]) != "all-to-all":
        return None
    operands = frames.operands(places[0])
    if sorted(place[2] for place in places) != [(number,) for number in range(len(operands))]:
        return None
    found = flow.known(operands)
    if isinstance(found, list):
        return found
    sources = {graph.args[node][0] if graph.ops[node] == "slice" else -1 for node in found}
    source = sources.pop()
    return None if sources or source < 0 or not are_whole(graph, found, source) else graph.make("all-to-all", (source,))


def _is_flat(flow: Dataflow, place: Place) -> bool:
    """Whether the operands of a concatenation follow each other in the flattened array, row-major."""
    instruction, shape = flow.frames.instruction(place), flow.frames.shape(place)
    axis = (instruction.attr("dimensions") or (0,)) if instruction is not None else (0,)
    return isinstance(shape, ArrayShape) and all(size == 1 for size in shape.dimensions[: axis[0]])


def _filled_buffer(flow: Dataflow, place: Place) -> int | list[Place]:
    """A buffer into which TPU writes arrays one behind the other, in place of a concatenation: each element is written once."""
    frames = flow.frames
    whole = frames.shape(place)
    if not isinstance(whole, ArrayShape) or flow.buffers.written(place) != whole.elements:
        return flow.opaque(place)
    writes = flow.buffers.writes(place)
    found = flow.known([operand for write in writes for operand in write[1:]])
    if isinstance(found, list):
        return found
    parts: dict[float, tuple[int, int]] = {}  # node and elements, by where it starts
    row = (whole.elements or 0) // (whole.dimensions[0] or 1)
    for number, write in enumerate(writes):
        node, major = found[number * (len(write) - 1) :][:2]
        shape, start = frames.shape(write[1]), flow.graph.value(major)
        if start is None or not isinstance(shape, ArrayShape) or shape.dimensions[1:] != whole.dimensions[1:]:
            return flow.opaque(place)
        parts[start * row] = node, shape.elements or 0
    ends = list(accumulate(parts[start][1] for start in sorted(parts)))
    if sorted(parts) != [0, *ends[:-1]] or ends[-1] != whole.elements:
        return flow.opaque(place)
    return flow.graph.make("concatenate", tuple([parts[start][0] for start in sorted(parts)]), True, ends[-1])


def _conditional(flow: Dataflow, place: Place) -> int | list[Place]:
    """One of two branches; the first of numbered branches is that of number 0, so false."""
    frames = flow.frames
    instruction = frames.instruction(place)
    branches = instruction.attr("branch_computations") or () if instruction is not None else ()
    order = (0, 1)
    if not branches:
        branches, order = (frames.callee(place, "false_computation"), frames.callee(place, "true_computation")), (1, 0)
    operands = frames.operands(place)
    if len(branches) != 2 or len(operands) != 3:
        return flow.opaque(place)
    roots = []
    for branch, argument in zip(branches, order, strict=True):
        frame = frames.call(place, branch, (operands[1 + argument],))
        if frame is None:
            return flow.opaque(place)
        roots.append(frames.root(frame, place[2]))
    found = flow.known((operands[0], *roots))
    return found if isinstance(found, list) else flow.graph.make("select", (found[0], found[2], found[1]))


def _while(flow: Dataflow, place: Place) -> int | list[Place]:
    """A result of a loop: its initial value where no iteration changes it."""
    initial = flow.frames.operand(place, 0, place[2]) if flow.frames.is_carried(place) else None
    found = flow.known([initial]) if initial is not None else (flow.opaque(place),)
    return found if isinstance(found, list) else found[0]


def _scatter(flow: Dataflow, place: Place) -> int | list[Place]:
    """Rows added to an array, or subtracted: the array, and a leaf for the rows in an array of zeros. Equal rows are one leaf,
    and scalar factors of theirs are factors of the leaf.
    """
    frames, graph = flow.frames, flow.graph
    operands = frames.operands(place)
    combiner = next((op for op in ("add", "subtract") if frames.applies(place, op)), None)
    if len(operands) != 3 or place[2] or combiner is None:
        return flow.opaque(place)
    found = flow.known(operands)
    if isinstance(found, list):
        return found
    array, indices, rows = found
    factors, rows = scaled_rows(graph, rows)
    node = graph.opaque(place, frames.size(place), ("scatter", indices, rows, frames.size(place)))
    for factor in factors:
        node = graph.make("multiply", (factor, node))
    return node if graph.value(array) == 0.0 and combiner == "add" else graph.make(combiner, (array, node))


def _reduce(flow: Dataflow, place: Place) -> int | list[Place]:
    """A sum over elements. Fusions that each make the sum of one array that they are handed have one leaf for it."""
    frames = flow.frames
    operands = frames.operands(place)
    instruction = frames.instruction(place)
    axes = instruction.attr("dimensions") if instruction is not None else None
    if len(operands) != 2 or not axes or frames.opcode(operands[0]) != "parameter" or not frames.applies(place, "add"):
        return flow.opaque(place)
    found = flow.known(operands[1:])
    if isinstance(found, list):
        return found
    array = flow.array_at(operands[0])
    return flow.graph.opaque(place, frames.size(place), ("reduce", array, axes, found[0], frames.dtype(place)))


def _custom_call(flow: Dataflow, place: Place) -> int | list[Place]:
    target = flow.frames.target(place)
    if target in CONCATENATING_TARGETS:
        return _concatenate(flow, place)
    return _gemm(flow, place) if target in GEMM_TARGETS else flow.opaque(place)


def _all_reduce(flow: Dataflow, place: Place) -> int | list[Place]:
    """A sum over devices. Where each writes its part into zeros it is an all-gather, as TPU has it: the part."""
    frames, graph = flow.frames, flow.graph
    start = frames.start(place)
    summed = frames.operand(start, start[2][0] if start[2] else 0)
    made = frames.made_at(summed) if summed is not None else place
    operands = frames.operands(made) if frames.opcode(made) == "dynamic-update-slice" else ()
    if len(operands) < 3 or not frames.applies(start, "add"):
        return flow.opaque(place)
    found = flow.known(operands)
    if isinstance(found, list):
        return found
    is_own = graph.value(found[0]) == 0.0 and any(map(flow.is_of_device, found[2:]))
    return found[1] if is_own else flow.opaque(place)


def _gemm(flow: Dataflow, place: Place) -> int | list[Place]:
    """A product of matrices with its factors: alpha * A * B + beta * C."""
    instruction = flow.frames.instruction(place)
    factors = gemm_factors(instruction.attr("backend_config")) if instruction is not None else None
    if factors is None or (place[2] and place[2] != (0,)):
        return flow.opaque(place)
    alpha, beta = factors
    graph, whole = flow.graph, (place[0], place[1], ())
    product = graph.opaque(whole, flow.frames.size(whole))
    if alpha != 1.0:
        product = graph.make("multiply", (graph.constant(alpha), product))
    if beta == 0.0:
        return product
    operands = flow.frames.operands(place)
    if len(operands) < 3:
        return flow.opaque(place)
    found = flow.known(operands[2:3])
    if isinstance(found, list):
        return found
    added = found[0] if beta == 1.0 else graph.make("multiply", (graph.constant(beta), found[0]))
    return graph.make("add", (product, added))


_TRANSFER: dict[str, Callable[[Dataflow, Place], int | list[Place]]] = {
    "get-tuple-element": _element,
    "constant": _constant,
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
    "scatter": _scatter,
    "pad": _pad,
    **dict.fromkeys(SOME_VALUES - {"pad"}, _some_values),
    **{f"{opcode}-done": _some_values for opcode in SOME_VALUES},
}
