"""The optimizer of a module: its steps, in the entry and in loops, with the updates of weights of each step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import compress
from operator import or_
from typing import TYPE_CHECKING

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.graph.parameters import Interface, Output, ParameterLeaf
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep, find_state_arrays
from hlo_inspect.optimizer.step.successions import Result

if TYPE_CHECKING:
    from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
    from hlo_inspect.optimizer.matching.weight_matching import Matcher
    from hlo_inspect.optimizer.matching.weights import Weight

MAX_NESTING = 3  # loops in loops over steps
MAX_TERMS = 16  # of an average of a loop's result and an input

_SCALING = opcodes_that_are("scale") | {"negate"}


@dataclass(slots=True)
class WeightUpdates:
    """The weights of a module with the steps that update them.

    `weights` are by step and output. `steps` begin with the entry; steps with arrays have `expressions`. `parameters` maps an
    input of a step to its entry parameter. `is_cut_off`: the text does not hold the whole module. `is_training`: something
    besides the form of an update shows a training step. `leaves` are the arrays of the entry parameters.
    `doubtful_scalars` change like weights, but nothing shows that a gradient changes them. `asked_count` is the number of
    updates that the rules saw.
    """

    flow: Dataflow
    is_cut_off: bool
    weights: list[Weight] = field(default_factory=list)
    steps: list[TrainingStep] = field(default_factory=list)
    expressions: list[StepExpressions] = field(default_factory=list)
    parameters: dict[Input, tuple[int, ShapeIndex]] = field(default_factory=dict)
    is_training: bool = False
    leaves: Sequence[ParameterLeaf] = ()
    doubtful_scalars: list[StateArray] = field(default_factory=list)
    asked_count: int = 0


def find_updates(
    module: Module, interface: Interface, views: Views | None = None, *, makes_values: bool = True
) -> WeightUpdates:
    """Find the updates of weights in a module that was read with its graph; none unless it `makes_values`."""
    flow = Dataflow(views or Views(module.computations))
    updates = WeightUpdates(flow, module.problems.is_truncated, leaves=interface.parameters)
    frame = flow.frames.open(module.entry.name) if module.entry is not None else None
    if frame is None:
        return updates
    inputs = {(frame, leaf.number, leaf.index): leaf.shape for leaf in interface.parameters}
    updates.parameters = {(input_frame, number, index): (number, index) for input_frame, number, index in inputs}
    if not makes_values:
        return updates
    is_partitioned = module.header.num_partitions > 1
    results = [Result(o.index, o.shape, _aliased_input(frame, o), is_partitioned=is_partitioned) for o in interface.outputs]
    _match_step(updates, frame, inputs, results, MAX_NESTING)
    if updates.weights:
        _seek_evidence(updates, interface)
    updates.flow.forget_places()
    for step in updates.steps:
        step.input_dependence.forget_places()
    return updates


def _seek_evidence(updates: WeightUpdates, interface: Interface) -> None:
    """Say if this is a training step. Plain SGD is no claim unless something else shows training."""
    from hlo_inspect.optimizer.matching.training_evidence import shows_training

    updates.is_training = updates.is_cut_off or shows_training(
        updates.weights, updates.parameters, interface, updates.flow.frames, updates.steps[0]
    )
    if updates.is_training:
        return
    for weight in updates.weights:
        weight.claim = None
    _drop_cotangents(updates)


def _drop_cotangents(updates: WeightUpdates) -> None:
    """Leave out the arrays that only a loop has: neither does the caller give them, nor does the program return them.

    A loop backward through layers carries such an array.
    """
    flow = updates.flow
    places = [flow.graph.places.get(_averaged_node(flow, node)) for node in updates.steps[0].results]
    returned = {place[2] for place in places if place is not None and flow.frames.opcode(place) == "while"}
    sources = [weight.array.source for weight in updates.weights]
    kept = [source in updates.parameters or source[2] in returned for source in sources]
    updates.weights = list(compress(updates.weights, kept))


def _aliased_input(frame: int, output: Output) -> Input | None:
    """Return the input whose buffer an aliased output uses, inside of an aliased tuple too."""
    alias = output.alias
    if alias is None:
        return None
    return frame, alias.parameter, alias.parameter_index + output.index[len(alias.output_index) :]


def _match_step(
    updates: WeightUpdates, frame: int, inputs: dict[Input, ArrayShape], results: list[Result], nesting: int
) -> None:
    step = find_state_arrays(updates.flow, frame, inputs, results)
    updates.steps.append(step)
    weights = _match_arrays(updates, step) if step.arrays else []
    updates.weights += weights
    for loop in _loops_over_steps(updates.flow, step) if nesting else ():
        if not weights:
            _match_body(updates, loop, nesting - 1)
        else:  # loops may update the layers one by one, besides the weights seen here
            before = len(updates.weights)
            _match_body(updates, loop, 0, needs_stack=True)
            inner = [weight for weight in updates.weights[before:] if weight.claim is not None and weight.is_learnt]
            updates.weights[before:] = [weight for weight in inner if weight.array.source in updates.parameters]


def _match_arrays(updates: WeightUpdates, step: TrainingStep) -> list[Weight]:
    """Return the weights among the arrays of a step."""
    from hlo_inspect.optimizer.matching.instances import match_units

    matcher, weights = match_units(updates.flow, step)
    weights = [weight for weight in weights if not _is_loop_invariant(updates, weight)]
    if not weights:
        matcher, weights = _match_update_alone(updates.flow, step, matcher)
    updates.expressions.append(matcher.expressions)
    updates.doubtful_scalars += matcher.doubtful_scalars
    updates.asked_count += matcher.asked_count
    return weights


def _match_update_alone(flow: Dataflow, step: TrainingStep, matcher: Matcher) -> tuple[Matcher, list[Weight]]:
    """Match a step without weights as one that only applies gradients: those of the caller, or of the last step.

    Return `matcher`, that of the whole step, and no weights if the step cannot be one.
    """
    from hlo_inspect.optimizer.matching.weight_matching import Matcher

    arrays = [array for array in matcher.expressions.moved if array.shape.elements != 1]
    has_gradients = bool(matcher.candidates.changed_by_gradients)
    update = _without_replaced_arrays(flow, step)
    is_delayed = len(update.arrays) < len(step.arrays)
    delayed = _delayed_gradients(matcher.expressions, update) if is_delayed else 0
    is_update_alone = len(arrays) > 2 and (is_delayed or not has_gradients)  # a weight and two states
    if not is_update_alone and not delayed:
        return matcher, []
    matcher = Matcher(flow, update, gradients_are_inputs=True, delayed_gradients=delayed)
    return matcher, matcher.weights()


def _delayed_gradients(expressions: StepExpressions, update: TrainingStep) -> int:
    """Return the inputs, as bits, that hold the gradients of the last step: the step replaces them by gradients of `update`.

    The gradient of a matrix shows it for all replaced arrays.
    """
    kept = {id(array) for array in update.arrays}
    replaced = [array for array in expressions.step.arrays if id(array) not in kept and array.is_float]
    passes = expressions.backward_passes
    shows = any(
        passes.is_gradient_of(expressions.own(array), gradient.place)
        for gradient in replaced
        for array in update.arrays
        if array.shape.dimensions == gradient.shape.dimensions and len(array.shape.dimensions) > 1
    )
    return reduce(or_, (expressions.input_dependence.bit(array.source) for array in replaced), 0) if shows else 0


def _without_replaced_arrays(flow: Dataflow, step: TrainingStep) -> TrainingStep:
    """Return the step without arrays whose new value is computed without the old one.

    With delayed updates these are the gradients: a step applies those of the last step, and returns its own.
    """
    graph = flow.graph
    kept = []
    for array in step.arrays:
        is_kept = graph.reaches(array.new, array.old) or not any(
            node in graph.places and graph.sizes[node] != 1 for node in graph.reachable([array.new])
        )
        kept += [array] if is_kept else []
    return replace(step, arrays=kept)


def _is_loop_invariant(updates: WeightUpdates, weight: Weight) -> bool:
    """Return True if a loop over steps only hands a frozen weight on, as it does with the batch."""
    entry = updates.steps[0]
    if not weight.is_frozen or not weight.array.is_unchanged or weight.array.source[0] == entry.frame:
        return False
    returned = {updates.parameters.get(array.source) for array in entry.arrays if array.is_unchanged}
    return updates.parameters.get(weight.array.source) not in returned


def _loops_over_steps(flow: Dataflow, step: TrainingStep) -> list[Place]:
    """Return the loops whose results, or their averages over devices, are results of the step."""
    places = [place for node in step.results if (place := flow.graph.places.get(_averaged_node(flow, node))) is not None]
    return list(dict.fromkeys((place[0], place[1], ()) for place in places if flow.frames.opcode(place) == "while"))


def _averaged_node(flow: Dataflow, node: int) -> int:
    """Return the node that `node` is the average of, else `node` itself.

    The average is over devices, or with an input that the node leads away from (Reptile, Lookahead).
    """
    graph, frames = flow.graph, flow.frames
    leaves = _arrays_in_sum(flow, node)
    inner = leaves.pop() if len(leaves) == 1 else node
    start = frames.start(graph.places[inner]) if inner in graph.places else None
    if start is None or frames.opcode(start) not in {"all-reduce", "all-reduce-start"}:
        return inner if start is not None and frames.opcode(start) == "while" else node
    operand = frames.operand(start, start[2][0] if start[2] else 0)
    return flow.node(operand) if operand is not None else node


def _arrays_in_sum(flow: Dataflow, node: int) -> set[int]:
    """Return the arrays other than inputs that a node adds up with scalar factors."""
    graph = flow.graph
    arrays: set[int] = set()
    seen: set[int] = set()
    stack = [node]
    while stack and len(seen) < MAX_TERMS:
        top = stack.pop()
        if top in seen or graph.ops[top] == "input":
            continue
        seen.add(top)
        large = [arg for arg in graph.args[top] if graph.sizes[arg] != 1 and graph.value(arg) is None]
        is_sum = graph.ops[top] in {"add", "subtract"}
        if is_sum or (graph.ops[top] in _SCALING and len(large) == 1):
            stack += large
        else:
            arrays.add(top)
    return arrays


def _match_body(updates: WeightUpdates, loop: Place, nesting: int, *, needs_stack: bool = False) -> None:
    """Match the body of a loop as a step: each element of its state is the new value of itself.

    A stacked value, one row in each iteration, may be the new value of another array of its shape. With `needs_stack`, skip
    loops that stack nothing.
    """
    flow, frames = updates.flow, updates.flow.frames
    frame = frames.open(frames.callee(loop, "body"))
    if frame is None:
        return
    leaves = list(array_leaves(frames.shape(frames.root(frame, ()))))
    fixed = _constants(flow, loop, frame, leaves)
    leaves = [leaf for leaf in leaves if leaf[0] not in fixed]
    written = {index: value for index, _ in leaves if (value := _written_row(frames, frames.root(frame, index))) is not None}
    if needs_stack and not written:
        return
    inputs = {(frame, 0, index): shape for index, shape in leaves}
    for operand_frame, row, first in frames.operands(loop)[:1]:
        for index, _ in leaves:
            source = flow.graph.sources.get(flow.node((operand_frame, row, first + index)))
            if source in updates.parameters:
                updates.parameters[frame, 0, index] = updates.parameters[source]
    stacks = {str(shape) for index, shape in leaves if index in written}
    results = []
    for index, shape in leaves:
        if index in written:
            results.append(Result(index, shape, None, place=written[index]))
        elif str(shape) not in stacks or flow.graph.sources.get(flow.node(frames.root(frame, index))) != (frame, 0, index):
            results.append(Result(index, shape, (frame, 0, index), is_certain=True))
    _match_step(updates, frame, inputs, results, nesting)


def _constants(flow: Dataflow, loop: Place, frame: int, leaves: Iterable[tuple[ShapeIndex, ArrayShape]]) -> set[ShapeIndex]:
    """Return the elements of a loop's state that are the same number in all iterations: TPU moves constants out of loops.

    Enter the numbers into `flow.constants`, by their place in the body.
    """
    frames = flow.frames
    for operand_frame, row, first in frames.operands(loop)[:1]:
        for index, _ in leaves:
            if frames.is_carried((*loop[:2], index)):
                initial = flow.node((operand_frame, row, first + index))
                if flow.graph.value(initial) is not None:
                    flow.constants[frame, 0, index] = initial
    return {index for body, _, index in flow.constants if body == frame}


def _written_row(frames: Frames, place: Place) -> Place | None:
    """Return the value that is written into an array of one row per iteration; None for any other element of a loop's state."""
    for before in frames.trace_back(place):
        if frames.opcode(before) == "dynamic-update-slice":
            return frames.operand(before, 1)
    return None
