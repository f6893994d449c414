"""The arrays of a training state: outputs of a step that are the new values of inputs, and the expressions that compute them.

A step is the entry, or the body of a loop that runs the whole step several times. `successions.py` finds the input whose new
value an output is; in a loop it is the same element of the loop's state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise

from hlo_inspect.graph.frames import Input, Place
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.array_slices import Cuts, flat_range, flat_ranges
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import Graph, each_bit, with_bits
from hlo_inspect.optimizer.operations import SOME_VALUES, apply
from hlo_inspect.optimizer.step.step_dependence import InputDependence
from hlo_inspect.optimizer.step.successions import FLOATS, Result, Successions, is_resharded

MAX_ROUNDS = 4
MAX_SHAPES = 100  # of inputs, compared with the shapes of outputs
MAX_BASES = 4096  # leaves and moves; above it each permute counts as an exchange
MOVES = (opcodes_that_give("part") & STARTING_COLLECTIVES - {"collective-broadcast"}) | {"dynamic-slice"}
_JOINING = frozenset({"concatenate", "select"})
_PERMUTES = opcodes_that_are("pairs")


@dataclass(slots=True)
class StateArray:
    """An array of the training state: an output and the input whose new value it is.

    `old` is the node of the old value, `new` the node of the new value if every guard lets the update through. `is_given`: the
    text says which input it is, or it is kept in place of that input. `same_value` are arrays of the same new value, such as a
    working copy of its master. `whole`: the shape of the whole input if the array is a part of it. `is_resharded`: the output
    has another shape than the input, in another sharding.
    """

    source: Input
    shape: ArrayShape
    place: Place
    old: int
    new: int
    is_given: bool
    same_value: list[StateArray] = field(default_factory=list)
    whole: ArrayShape | None = None
    is_resharded: bool = False

    @property
    def is_float(self) -> bool:
        return self.shape.dtype in FLOATS

    @property
    def is_unchanged(self) -> bool:
        return self.new == self.old

    @property
    def bytes(self) -> int:
        """Bytes of the whole input."""
        return (self.whole or self.shape).bytes or 0


@dataclass(slots=True)
class TrainingStep:
    """The arrays of one step by output, and the assumptions about the step.

    `guards` are the conditions assumed to hold (or not). `parts` are the slices that replace a whole input, because no other
    part of it is used. `results` are the nodes of all outputs. If arrays come back in another sharding, `is_move` tells the
    nodes to leave out. These nodes only move values between devices, or cut out a device's own part. `exchanged` are the moves
    that stay and are no parts.
    """

    frame: int
    input_dependence: InputDependence
    arrays: list[StateArray] = field(default_factory=list)
    guards: dict[int, bool] = field(default_factory=dict)
    parts: dict[int, int] = field(default_factory=dict)
    results: tuple[int, ...] = ()
    exchanged: set[int] = field(default_factory=set)
    is_move: Callable[[int], bool] | None = None

    def resolved(self, graph: Graph, nodes: Iterable[int]) -> dict[int, int]:
        """Return the replacement of each node below `nodes`: parts replace inputs, and guards let new values through."""
        resolved: dict[int, int] = {}
        for node in graph.reachable(nodes):
            if node in self.parts:
                resolved[node] = self.parts[node]
                continue
            args = tuple(map(resolved.__getitem__, graph.args[node]))
            is_left_out = self.is_move is not None and node not in self.exchanged and self.is_move(node)
            unchanged = args[0] if is_left_out else node if args == graph.args[node] else None
            if unchanged is None:
                unchanged = _decide(graph, graph.ops[node], args)
            if unchanged is None:
                unchanged = graph.make(graph.ops[node], args, graph.attributes[node], graph.sizes[node])
                self.exchanged |= {unchanged} if node in self.exchanged else set()
            resolved[node] = graph.truth(self.guards[unchanged]) if unchanged in self.guards else unchanged
        return resolved


_DECIDED = (opcodes_that_are("sum", "scale") - {"divide", "negate"}) | {"and", "or"}


def _decide(graph: Graph, op: str, args: tuple[int, ...]) -> int | None:
    """Return the result of an operation with an assumed operand; None if the operand does not decide it."""
    if graph.assumed.isdisjoint(args):
        return None
    values = [graph.value(arg) for arg in args]
    if op == "select":
        return args[1 if values[0] else 2] if args[0] in graph.assumed else None
    if op == "not":
        return graph.truth(not values[0])
    return _compute(graph, op, args) if op in _DECIDED and len(args) == 2 else None


def _compute(graph: Graph, op: str, args: tuple[int, ...]) -> int | None:
    left, right = (graph.value(arg) for arg in args)
    if left is not None and right is not None:
        result = apply(op, None, [left, right])
        return None if result is None else graph.truth(result)
    if args[0] in graph.assumed:
        return _apply_truth(graph, op, bool(left), args[1]) if op != "subtract" else None
    return _apply_truth(graph, op, bool(right), args[0])


def _apply_truth(graph: Graph, op: str, truth: bool, other: int) -> int | None:
    """Return the result of an operation on 0 or 1 and another value."""
    if op in {"multiply", "and"}:
        return other if truth else graph.truth(0)
    if op == "or":
        return graph.truth(1) if truth else other
    return None if truth else other


def find_state_arrays(flow: Dataflow, frame: int, inputs: dict[Input, ArrayShape], results: Sequence[Result]) -> TrainingStep:
    """Find the arrays of a step, with its guards assumed."""
    graph = flow.graph
    places = [result.place or flow.frames.root(frame, result.index) for result in results]
    nodes = [flow.node(place) for place in places]
    is_move = partial(is_move_between_devices, flow)
    moves = {node for node in graph.reachable(nodes) if graph.ops[node] in MOVES and is_move(node)}
    exchanged = find_exchanges(graph, nodes, moves)
    step = TrainingStep(frame, InputDependence(flow.frames), parts=_whole_inputs(graph, nodes, exchanged), exchanged=exchanged)
    step.is_move = is_move if has_resharded_output(graph, nodes, inputs, results, moves - exchanged) else None
    whole = step.resolved(graph, nodes)
    cuts = Cuts(graph)
    nodes = cuts.moved([whole[node] for node in nodes])
    step.results = tuple(nodes)
    own = {source: graph.input(source, shape.elements or 0) for source, shape in inputs.items()}
    successions = Successions(graph, nodes, results, inputs, own, step.input_dependence).find()
    step.arrays = [
        StateArray(
            succession.source,
            inputs[succession.source],
            place,
            own[succession.source],
            node,
            succession.is_given,
            is_resharded=is_resharded(result.shape, inputs[succession.source]),
        )
        for result, place, node, succession in zip(results, places, nodes, successions, strict=True)
        if succession is not None and succession.source in own
    ]
    step.arrays = _split_arrays(graph, cuts, step.arrays)
    _assume_guards(flow, step)
    _link_equal_values(step.arrays)
    return step


def _whole_inputs(graph: Graph, nodes: list[int], exchanged: set[int]) -> dict[int, int]:
    """Return the parts that replace their input because the step uses no other part of it, such as a device's own shard."""
    parts: dict[int, set[int]] = {}
    for node in graph.reachable(nodes):
        if graph.ops[node] in SOME_VALUES and node not in exchanged and _is_input(graph, graph.args[node][0]):
            parts.setdefault(graph.args[node][0], set()).add(node)
    return {part: source for source, parts_of_source in parts.items() if len(parts_of_source) == 1 for part in parts_of_source}


def _split_arrays(graph: Graph, cuts: Cuts, arrays: list[StateArray]) -> list[StateArray]:
    """Split long arrays of state for many weights into the parts that the new values of other arrays hold."""
    users = _users_of_parts(graph, arrays)
    if not users:
        return arrays
    split: list[StateArray] = []
    for array in arrays:
        parts = sorted(users.get(array.old, {}))
        if parts and all(left.limit <= right.start for left, right in pairwise(parts)):
            split += [_part(cuts, array, part, users[array.old][part]) for part in parts]
        else:
            split.append(array)
    return split


def _users_of_parts(graph: Graph, arrays: Sequence[StateArray]) -> dict[int, dict[SliceDimension, StateArray]]:
    """Return the parts of an array by its old value, each with the first other array whose new value holds that part."""
    by_old = {array.old: array for array in arrays if array.is_float and not array.is_unchanged}
    below = graph.reachable([array.new for array in arrays])
    parts = [node for node in flat_ranges(graph, below) if graph.args[node][0] in by_old]
    if not parts:
        return {}
    bits = {node: 1 << number for number, node in enumerate(parts)}
    parts_held = graph.bits_below([array.new for array in by_old.values()], bits)
    users: dict[int, dict[SliceDimension, StateArray]] = {}
    free = (1 << len(parts)) - 1
    for array in by_old.values():
        for bit in each_bit(parts_held[array.new] & free):
            node = parts[bit.bit_length() - 1]
            whole, part = by_old[graph.args[node][0]], flat_range(graph, node)
            if part is not None and whole is not array:
                users.setdefault(whole.old, {}).setdefault(part, array)
                free &= ~bit
    return users


def _part(cuts: Cuts, array: StateArray, part: SliceDimension, user: StateArray) -> StateArray:
    shape = ArrayShape(array.shape.dtype, user.shape.dimensions)
    return replace(array, shape=shape, old=cuts.cut(array.old, part), new=cuts.cut(array.new, part), whole=array.shape)


def _is_input(graph: Graph, node: int) -> bool:
    """Return True if a node is an input, or inputs joined."""
    if graph.ops[node] != "concatenate":
        return graph.ops[node] == "input"
    return all(graph.ops[arg] in {"input", "constant"} for arg in graph.args[node])


def _assume_guards(flow: Dataflow, step: TrainingStep) -> None:
    """Assume that each condition between a new and an old value chooses the new value."""
    graph = flow.graph
    for _ in range(MAX_ROUNDS):
        guards: dict[int, bool] = {}
        for array in step.arrays:
            if graph.ops[array.new] != "select":
                continue
            condition, then, other = graph.args[array.new]
            if array.old in {then, other} and graph.sizes[condition] == 1:
                guards.setdefault(condition, other == array.old)
        if not guards:
            return
        step.guards |= guards
        resolved = step.resolved(graph, [array.new for array in step.arrays])
        for array in step.arrays:
            array.new = resolved[array.new]


def _link_equal_values(arrays: list[StateArray]) -> None:
    by_new: dict[int, list[StateArray]] = {}
    for array in arrays:
        if not array.is_unchanged and array.is_float:
            by_new.setdefault(array.new, []).append(array)
    for group in by_new.values():
        for array in group:
            array.same_value = [other for other in group if other is not array]


# -- moves between devices ---------------------------------------------------------------------------------------------


def is_move_between_devices(flow: Dataflow, node: int) -> bool:
    """Return True if a node only moves values between devices, or cuts out a device's own."""
    graph = flow.graph
    if graph.ops[node] not in MOVES or graph.sizes[graph.args[node][0]] == 1:
        return False
    return graph.ops[node] != "dynamic-slice" or any(map(flow.nodes.is_of_device, graph.args[node][1:]))


def find_exchanges(graph: Graph, nodes: Sequence[int], moves: set[int]) -> set[int]:
    """Return the permutes among `moves` whose result meets their operand, as it was or permuted in another way.

    An array in another order of devices would replace the previous array. Values that are only chosen or joined do not meet.
    """
    permutes = {node: graph.args[node][0] for node in moves if graph.ops[node] in _PERMUTES}
    if not permutes:
        return set()
    order = graph.reachable(nodes)
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
    own: dict[int, int] = {}  # the bases that a node holds unchanged
    moved: dict[int, int] = {}  # the bases that it holds in a changed form
    of_operands: dict[int, int] = {}  # the other permutes with the same operand
    meeting = 0
    for node in order:
        args = graph.args[node]
        unmoved_here, moved_here, others = (
            reduce(with_bits, map(bits_by_node.__getitem__, args), 0) for bits_by_node in (own, moved, of_operands)
        )
        if node in moves or (graph.ops[node] in _JOINING and unmoved_here & permuted) or not args:
            unmoved_here, moved_here = bits.get(node, 0), with_bits(unmoved_here, moved_here)
            others = of_operand[permutes[node]] & ~unmoved_here if node in permutes else 0
        own[node], moved[node], of_operands[node] = unmoved_here, moved_here, others
        meeting |= unmoved_here & (moved_here | others)
    return {node for node in permutes if (bits[node] | moved[node]) & meeting}


def has_resharded_output(
    graph: Graph, nodes: Sequence[int], inputs: Mapping[Input, ArrayShape], results: Sequence[Result], moves: set[int]
) -> bool:
    """Return True if an output may be the new value of an input in another sharding, computed through one of `moves`.

    `nodes` are the outputs of a step.
    """
    below = graph.reachable(moves)
    own = {node: _key(inputs[graph.sources[node]]) for node in below if graph.sources.get(node) in inputs}
    if not own:
        return False
    bits = {key: 1 << number for number, key in enumerate(list(dict.fromkeys(own.values()))[:MAX_SHAPES])}
    shapes_held = graph.bits_below(moves, {node: bits[key] for node, key in own.items() if key in bits})
    moved = graph.bits_below(nodes, {node: shapes_held[node] for node in moves})
    ends = {(_key(result.shape), moved[node]) for node, result in zip(nodes, results, strict=True) if result.is_partitioned}
    shapes = {key: ArrayShape(*key) for key, _ in ends} | {key: ArrayShape(*key) for key in bits}
    return any(
        is_resharded(shapes[end], shapes[key]) for end, shapes_moved in ends for key, bit in bits.items() if shapes_moved & bit
    )


def _key(shape: ArrayShape) -> tuple[str, tuple[int | None, ...]]:
    return shape.dtype, shape.dimensions
