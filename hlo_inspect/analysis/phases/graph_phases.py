"""The phases of a training step by its graph of values, without any name.

The step is the entry, or the body of a loop over steps; the updates of weights show which. Without updates, or if the products
do not look like a forward and a backward pass, no phase is known. `reason` says why.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.phases import component_facts as fact
from hlo_inspect.analysis.phases.component_facts import ComponentFacts, Components, trained_weights
from hlo_inspect.analysis.phases.constants import give_constants_phases
from hlo_inspect.analysis.provenance import PHASE_ORDER
from hlo_inspect.graph.flow import nodes_of_kind
from hlo_inspect.graph.graph_reader import read_values
from hlo_inspect.graph.parameters import FLOATS, NO_UPDATE
from hlo_inspect.graph.value_graph import COLLECTIVE, MOVES, PRODUCT, SUMS, CallFrame, SlicedValue, ValueGraph, nodes_in
from hlo_inspect.graph.view import InstructionPlace, Views
from hlo_inspect.hlo.opcodes import ELEMENTWISE, base_opcode
from hlo_inspect.hlo.values.header import Header, ShapeIndex
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, OPTIMIZER, RECOMPUTE, UNKNOWN
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.optimizer.overview import Overview


class StepValues(NamedTuple):
    """A step with the inputs of the rules.

    `forward_loops` is 1 for each node in a loop of the forward pass. `first_cotangent` is the first node that depends on a
    cotangent. `forward_collectives` are the collectives of the forward pass by kind and shapes of their operands.
    """

    graph: ValueGraph
    facts: ComponentFacts
    forward_loops: bytearray
    first_cotangent: int
    forward_collectives: frozenset[tuple[str, ...]]
    is_scheduled: bool


_BY_FACT = (
    # Behind the last product and a later reduction or gather, such as maximum and sum over the vocabulary.
    # Values straight from the last product (an all-reduce of partial logits, a bias) are still forward.
    (fact.REDUCED, LOSS),
    # Leads to a loss, which no value of the backward pass does. This holds with one stacked weight, with several heads, and
    # for auxiliary losses.
    (fact.LOSS, FORWARD),
    # Only moves or sums a gradient behind the operand of the update.
    (fact.MOVED, BACKWARD),
    # Depends on a gradient and leads to none: norms for clipping, the update, all-gathers of updated weights.
    (fact.UPDATED, OPTIMIZER),
    # These neither lead to a gradient or loss nor depend on a gradient. The maximum of a cotangent, as for FP8, is backward.
    # Values made of recomputed ones are recompute, other statistics behind a product forward. Values that lead to an updated
    # state are optimizer (schedules, decay).
    (fact.COTANGENT, BACKWARD),
    (fact.RECOMPUTED, RECOMPUTE),
    (fact.BEHIND_PRODUCT, FORWARD),
    (fact.TO_STATE, OPTIMIZER),
)
"""The phase of values of the forward pass, and of values that lead to no gradient: the phase of the first true fact."""


def phase_of(step: StepValues, node: int, part: int) -> str:
    """Return the phase of a node of the component `part`; `UNKNOWN` if no rule decides."""
    bits = step.facts.bits[part]
    if bits & fact.LABEL:
        return LOSS
    if bits & fact.GRADIENT and not bits & (fact.REDUCED | fact.LOSS):
        return _phase_before_gradient(step, node, bits)
    # A product is never of the loss: its source is the model, or a loss that multiplies activations.
    if bits & fact.REDUCED and step.graph.kinds[node] & PRODUCT:
        return FORWARD
    return next((phase for bit, phase in _BY_FACT if bits & bit), UNKNOWN)


def _phase_before_gradient(step: StepValues, node: int, bits: int) -> str:
    """Return the phase of a value that leads to a gradient and to no loss."""
    kind = step.graph.kinds[node]
    # Products, sums and moves of cotangents.
    if bits & fact.COTANGENT:
        return BACKWARD
    # Stacked by a loop of the forward pass; only the backward pass uses it.
    if step.forward_loops[node]:
        return FORWARD
    # Leads to gradients alone and needs no cotangent, as does a product that it is made of or that is made of it. The
    # all-gather of a weight for such a product is recompute too, as JAX names it. A collective is backward if it only moves
    # data, no recomputed product needs it, and the forward pass has no twin: ring attention sends keys and values again.
    if bits & (fact.RECOMPUTED | fact.FOR_RECOMPUTED):
        only_moves = kind & COLLECTIVE and not kind & SUMS and not bits & fact.FOR_RECOMPUTED
        has_twin = not only_moves or collective_key(step.graph, node) in step.forward_collectives
        return RECOMPUTE if has_twin else BACKWARD
    # Another collective that only the backward pass uses: weights or activations gathered for its products.
    if kind & COLLECTIVE:
        return BACKWARD
    # Elementwise residuals and copies for the backward pass: the schedule decides, before the first cotangent or behind it.
    # Without a schedule computations are forward, as derivatives are written there, and moves are backward.
    if step.is_scheduled:
        return FORWARD if node < step.first_cotangent else BACKWARD
    return BACKWARD if kind & MOVES else FORWARD


def collective_key(graph: ValueGraph, node: int) -> tuple[str, ...]:
    """Return the kind of a collective and the shapes of its operands."""
    view, row = graph.frames[graph.frame_of[node]].view, graph.row_of[node]
    return base_opcode(view.opcodes[row]), *map(str, view.operand_shapes(row))


def step_values(graph: ValueGraph, facts: ComponentFacts, *, is_scheduled: bool) -> StepValues:
    """Return the inputs of the rules. If the module is scheduled, the order of the text is the order of the program."""
    component_of, bits = facts.parts.component_of, facts.bits
    cotangents = set(facts.flow.nodes_with(bits, fact.GRADIENT | fact.COTANGENT))
    first = next((node for node, part in enumerate(component_of) if part in cotangents), len(graph))
    loops = _forward_loops(graph, facts)
    twins = {
        collective_key(graph, node)
        for node in nodes_of_kind(graph.kinds, COLLECTIVE)
        if bits[component_of[node]] & fact.LOSS or loops[node]
    }
    return StepValues(graph, facts, loops, first, frozenset(twins), is_scheduled)


def _forward_loops(graph: ValueGraph, facts: ComponentFacts) -> bytearray:
    """Mark the nodes in a loop that leads to the loss and has no product that depends on a cotangent."""
    component_of, bits = facts.parts.component_of, facts.bits
    is_in_loop = bytearray(len(graph))
    calls = enumerate(graph.callers()) if not graph.is_ordered else ()  # a loop is a cycle
    called = [(number, caller) for number, caller in calls if caller is not None]
    loops = [call for call in called if graph.frames[call[1][0]].view.opcodes[call[1][1]] == "while"]
    if not loops:
        return is_in_loop
    products = [node for node in nodes_of_kind(graph.kinds, PRODUCT) if bits[component_of[node]] & fact.COTANGENT]
    for number, caller in loops:
        frame = graph.frames[number]
        has_products = bisect_left(products, frame.first) < bisect_left(products, frame.stop)
        if not has_products and _is_forward(graph, facts, caller, frame.first):
            is_in_loop[frame.first : frame.stop] = b"\1" * (frame.stop - frame.first)
    return is_in_loop


def _is_forward(graph: ValueGraph, facts: ComponentFacts, loop: tuple[int, int], first: int) -> bool:
    """Return True if an iteration changes a state that leads to the loss.

    The nodes of the state come before those of the body.
    """
    state = first - 1
    while state >= 0 and (graph.frame_of[state], graph.row_of[state]) == loop:
        changed = any(other > state for other in graph.operands[state])
        if changed and facts.bits[facts.parts.component_of[state]] & fact.LOSS:
            return True
        state -= 1
    return False


def phases_of_values(step: StepValues) -> list[str]:
    """Return the phase of each node."""
    facts, kinds = step.facts, step.graph.kinds
    component_of = facts.parts.component_of
    class_of, firsts = facts.flow.classes(component_of, facts.bits, step.forward_loops, kinds, step.first_cotangent)
    of_classes = [phase_of(step, node, component_of[node]) for node in firsts]
    phases = list(map(of_classes.__getitem__, class_of))
    for node in nodes_of_kind(kinds, COLLECTIVE):  # their operands' shapes count too
        phases[node] = phase_of(step, node, component_of[node])
    give_constants_phases(facts, phases)
    return phases


NINE_TENTHS = 0.9
"""Share of a collective's bytes that decides its phase."""


class GraphPhases:
    """The phase of each value of the step; `reason` says why they are unknown."""

    def __init__(self, views: Views, overview: Overview, header: Header) -> None:
        self.graph = ValueGraph()
        self.phases: list[str] = []
        self.step: StepValues | None = None
        self.reason = self._find(views, overview, header)

    def _find(self, views: Views, overview: Overview, header: Header) -> str:
        step = _step_of(overview)
        if step is None:
            return NO_UPDATE
        self.graph = read_values(views, step)
        if not self.graph.frames:
            return "the step could not be read"
        weights = trained_weights(overview, self.graph)
        if not weights:
            return "no update of a weight has a recognized gradient"
        losses = _scalars(self.graph) or _losses_of_members(self.graph, overview)
        facts = ComponentFacts(Components(self.graph), weights, losses)
        self.step = step_values(self.graph, facts, is_scheduled=header.is_scheduled)
        phases = phases_of_values(self.step)
        reason = _without_loss(self.graph, facts, overview, header) or _implausible(self.graph, facts, phases)
        self.phases = [] if reason else phases
        return reason

    def frames_of(self, computation: str) -> Sequence[CallFrame]:
        """Return the calls of a computation in the step; none if the phases are unknown."""
        return self.graph.frames_by_name.get(computation, ()) if self.phases else ()

    def calls_of(self, key: InstructionPlace) -> list[tuple[CallFrame, int]]:
        """Return the calls in the step of the computation at a place, each with the instruction's row; none without a row."""
        frames = self.frames_of(key[0])
        row = frames[0].view.row_at(*key[1:]) if frames else None
        return [] if row is None else [(frame, row) for frame in frames]

    # -- from values to instructions ------------------------------------------------------------------------------------

    def of_row(self, frame: CallFrame, row: int) -> str:
        """Return the phase of an instruction in one call of its computation.

        For a fusion it is the phase of its product, else of its largest results.
        """
        of_products = self._of_products(frame, row) if row in frame.called else UNKNOWN
        if of_products != UNKNOWN:
            return of_products
        value = frame.value(row)
        if isinstance(value, int):  # as most: the row makes one array
            return self.phases[value]
        return _first_of_most(self._sizes(frame, row))

    def _of_products(self, frame: CallFrame, row: int) -> str:
        """Return the phase of most products in a fusion; `UNKNOWN` for other rows that call computations."""
        if frame.view.opcodes[row] != "fusion":
            return UNKNOWN
        kinds, called = self.graph.kinds, [self.graph.frames[number] for number in frame.called[row]]
        products = [node for inner in called for node in range(inner.first, inner.stop) if kinds[node] & PRODUCT]
        return _first_of_most(Counter(map(self.phases.__getitem__, products)))

    def of_collective(self, frame: CallFrame, row: int) -> str:
        """Return the phase of nine tenths of a collective's bytes, else `UNKNOWN`."""
        value = frame.value(row)
        if isinstance(value, int):  # as most: one array
            return self.phases[value]
        sizes = self._sizes(frame, row)
        whole = sum(sizes.values())
        if not whole:
            return UNKNOWN
        phase, size = sizes.most_common(1)[0]
        return phase if size >= NINE_TENTHS * whole else UNKNOWN

    def other_phase(self, frame: CallFrame, row: int, phase: str) -> str:
        """Return the other phase that a collective of a phase, `of_collective`, serves; empty if there is none.

        It is the backward pass, for an all-gather or a move for forward or recompute whose result its products read too.
        """
        if self.step is None or phase not in (FORWARD, RECOMPUTE):
            return ""
        facts, kinds = self.step.facts, self.graph.kinds
        nodes = [node for node in nodes_in(frame.value(row)) if not kinds[node] & SUMS]
        return BACKWARD if any(facts.bits[facts.parts.component_of[node]] & fact.FOR_BACKWARD for node in nodes) else ""

    def _sizes(self, frame: CallFrame, row: int) -> Counter[str]:
        """Return the bytes of the results of a row by phase; for an array in parts, the lengths of the parts."""
        value = frame.value(row)
        leaves = array_leaves(frame.view.shapes[row])
        sizes: Counter[str] = Counter()
        if isinstance(value, tuple) and len(leaves) == len(value) > 1:
            for (_, leaf), element in zip(leaves, value, strict=True):
                for node in nodes_in(element)[:1]:
                    sizes[self.phases[node]] += leaf.bytes or 1
            return sizes
        if isinstance(value, SlicedValue):
            for node, low, high in zip(value.nodes, value.starts, (*value.starts[1:], value.stop), strict=True):
                sizes[self.phases[node]] += high - low
            return sizes
        nodes = nodes_in(value)
        own = [node for node in nodes if self.graph.row_of[node] == row and self.graph.frame_of[node] == frame.number]
        for node in own or nodes:
            sizes[self.phases[node]] += self._bytes(node)
        return sizes

    def _bytes(self, node: int) -> int:
        """Return the bytes of the result of a node's row; 1 if unknown or no array."""
        shape = self.graph.frames[self.graph.frame_of[node]].view.shapes[self.graph.row_of[node]]
        return shape.bytes or 1 if isinstance(shape, ArrayShape) else 1


def _first_of_most(counts: Counter[str]) -> str:
    """Return the known phase that counts most; if several do, the first of a step. `UNKNOWN` if none counts."""
    del counts[UNKNOWN]
    return max(PHASE_ORDER, key=counts.__getitem__) if counts else UNKNOWN


def _step_of(overview: Overview) -> str | None:
    """Return the computation that holds the updates of most weights."""
    frames = overview.frames
    counts = Counter(row.matched.array.source[0] for row in overview.rows)
    if not counts:
        return None
    entry = overview.steps[0].frame
    chosen = entry if counts[entry] else counts.most_common(1)[0][0]
    return frames[chosen].view.computation.name


def _scalars(graph: ValueGraph) -> list[int]:
    """Return the float outputs of one element, or stacks of them that a loop over steps writes."""
    frame = graph.frames[0]
    root = frame.view.root
    if root is None:
        return []
    nodes_of_scalars = []
    for index, leaf in array_leaves(frame.view.shapes[root]):
        nodes = nodes_in(ValueGraph.element(frame.value(root), index))
        if len(nodes) == 1 and leaf.dtype.startswith(FLOATS) and _is_scalar(graph, nodes[0], leaf):
            nodes_of_scalars.append(nodes[0])
    return nodes_of_scalars


def _losses_of_members(graph: ValueGraph, overview: Overview) -> list[int]:
    """Return the outputs with a float for each member of a vmapped ensemble: every weight has the members as its rows.

    A loss is reduced over all other dimensions, a prediction of a model with one output is not.
    """
    shapes = [row.matched.array.shape.dimensions for row in overview.rows]
    members = {shape[:1] for shape in shapes if len(shape) > 1}
    frame = graph.frames[0]
    root = frame.view.root
    if root is None or len(members) != 1 or not all(len(shape) > 1 for shape in shapes):
        return []
    losses = []
    for index, leaf in array_leaves(frame.view.shapes[root]):
        nodes = nodes_in(ValueGraph.element(frame.value(root), index))
        if len(nodes) == 1 and leaf.dtype.startswith(FLOATS) and leaf.dimensions in members and _is_reduced(graph, nodes[0]):
            losses.append(nodes[0])
    return losses


def _is_reduced(graph: ValueGraph, node: int) -> bool:
    """Return True if an array is a reduction of a larger one, scaled or added to others."""
    waiting, seen = [node], set[int]()
    while waiting and len(seen) < MAX_STEPS:
        number = waiting.pop()
        seen.add(number)
        view, row = graph.frames[graph.frame_of[number]].view, graph.row_of[number]
        if view.opcodes[row] == "reduce":
            return True
        if view.opcodes[row] in ELEMENTWISE:
            waiting += [operand for operand in graph.operands[number] if operand not in seen]
    return False


MAX_STEPS = 64
"""Elementwise operations between a loss and its reduction."""


def _is_scalar(graph: ValueGraph, node: int, leaf: ArrayShape) -> bool:
    if leaf.elements == 1:
        return True
    view, row = graph.frames[graph.frame_of[node]].view, graph.row_of[node]
    if view.opcodes[row] != "dynamic-update-slice":
        return False
    written = view.operand_shape(row, 1)
    return isinstance(written, ArrayShape) and written.elements == 1


def _without_loss(graph: ValueGraph, facts: ComponentFacts, overview: Overview, header: Header) -> str:
    """Return why the forward pass is unknown if no loss is returned; else an empty string."""
    if facts.is_loss_returned:
        return ""
    if not any(bits & fact.LOSS for bits in facts.bits):
        return "the step returns no loss, and one weight is too few to find the forward pass"
    if _returns_activations(graph, facts, overview, {alias.output_index for alias in header.aliases}):
        return "the step returns activations and no loss, like a pipeline stage"
    return ""


def _returns_activations(graph: ValueGraph, facts: ComponentFacts, overview: Overview, aliased: Container[ShapeIndex]) -> bool:
    """Return True if the step returns activations: arrays behind a product that depend on no gradient or cotangent.

    New values of parameters and the results `aliased` do not count.
    """
    frame = graph.frames[0]
    root = frame.view.root
    steps = overview.steps
    frames = overview.frames
    states = {
        array.place[1:] for step in steps if frames[step.frame].view is frame.view for array in step.arrays
    }  # rows and indices
    if root is None:
        return False
    for index, leaf in array_leaves(frame.view.shapes[root]):
        if leaf.elements != 1 and leaf.dtype.startswith(FLOATS) and (root, index) not in states and index not in aliased:
            bits = [
                facts.bits[facts.parts.component_of[node]] for node in nodes_in(ValueGraph.element(frame.value(root), index))
            ]
            others = fact.UPDATED | fact.COTANGENT
            if any(own & (fact.BEHIND_PRODUCT | others) == fact.BEHIND_PRODUCT for own in bits):
                return True
    return False


def _implausible(graph: ValueGraph, facts: ComponentFacts, phases: Sequence[str]) -> str:
    """Return why this is no training step; empty if it may be one.

    A training step has products in the forward pass and half that number or more in the backward pass, frozen layers aside.
    Filters, solvers and samplers that look like updates have none.
    """
    counts: defaultdict[str, int] = defaultdict(int)
    learnt = 0
    for node in nodes_of_kind(graph.kinds, PRODUCT):
        phase = phases[node]
        counts[phase] += 1
        learnt += phase in (FORWARD, LOSS) and facts.bits[facts.parts.component_of[node]] & fact.FROM_WEIGHT != 0
    forward, backward = counts[FORWARD] + counts[LOSS], counts[BACKWARD]
    if not forward:
        return "no product of arrays leads to a loss"
    if not learnt or 2 * backward < (learnt if facts.is_loss_returned else forward):
        return f"{forward} products lead to the loss, and {backward} depend on its cotangents; a backward pass has more"
    return ""
