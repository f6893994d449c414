"""The phases of a training step by its graph of values, without any name.

The step is the entry, or the body of a loop over steps; it is found with the updates of weights. Where there are none, or where
the products of forward and backward pass are not as a training step has them, no phase is known, and `reason` says why.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass

from hlo_inspect.analysis.phases import facts as fact
from hlo_inspect.analysis.phases.facts import Components, StepFacts, trained_weights
from hlo_inspect.analysis.provenance import PHASE_ORDER
from hlo_inspect.graph.graph_reader import read_values
from hlo_inspect.graph.parameters import FLOATS, NO_UPDATE
from hlo_inspect.graph.value_graph import COLLECTIVE, MOVES, PRODUCT, SUMS, CallFrame, SlicedValue, ValueGraph, nodes_in
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import base_opcode
from hlo_inspect.hlo.values.header import Header, ShapeIndex
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, OPTIMIZER, RECOMPUTE, UNKNOWN
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.optimizer.overview import Overview


@dataclass(frozen=True, slots=True)
class StepValues:
    """A step with what rules know of it: `forward_loops` says of each node whether a loop around it belongs to the forward
    pass, `first_cotangent` is the first node that depends on a cotangent, `forward_collectives` are the collectives of the
    forward pass by kind and shapes of their operands, `labels` the components that only the loss uses.
    """

    graph: ValueGraph
    facts: StepFacts
    forward_loops: bytearray
    first_cotangent: int
    forward_collectives: frozenset[tuple[str, ...]]
    labels: bytearray
    is_scheduled: bool


_BY_FACT = (
    # Behind the last product, and behind a reduction or a gather that comes after it, as maximum and sum over the vocabulary
    # are. What comes straight from the last product (an all-reduce of partial logits, a bias) is still forward.
    (fact.REDUCED, LOSS),
    # Leads to a loss, which no value of the backward pass does. This holds with one stacked weight, with several heads, and
    # for auxiliary losses.
    (fact.LOSS, FORWARD),
    # Only moves or sums a gradient behind the place where the update takes it.
    (fact.MOVED, BACKWARD),
    # Depends on a gradient and leads to none: norms for clipping, the update, all-gathers of updated weights.
    (fact.UPDATED, OPTIMIZER),
    # What neither leads to a gradient or loss nor depends on a gradient: the maximum of a cotangent, as FP8 takes it, is
    # backward, what is made of recomputed values recompute, other statistics behind a product forward; what leads to a state
    # that is updated is optimizer (schedules, decay).
    (fact.COTANGENT, BACKWARD),
    (fact.RECOMPUTED, RECOMPUTE),
    (fact.BEHIND_PRODUCT, FORWARD),
    (fact.TO_STATE, OPTIMIZER),
)
"""The phase of what leads to no gradient, and of the forward pass: by the first of these facts that is true of it."""


def phase_of(step: StepValues, node: int, part: int) -> str:
    """The phase of a node of the component `part`, `UNKNOWN` where no rule decides."""
    bits = step.facts.bits[part]
    if step.labels[part]:
        return LOSS
    if bits & fact.GRADIENT and not bits & (fact.REDUCED | fact.LOSS):
        return _phase_before_gradient(step, node, bits)
    return next((phase for one, phase in _BY_FACT if bits & one), UNKNOWN)


def _phase_before_gradient(step: StepValues, node: int, bits: int) -> str:
    """The phase of what leads to a gradient and to no loss."""
    kind = step.graph.kinds[node]
    # Products, sums and moves of cotangents.
    if bits & fact.COTANGENT:
        return BACKWARD
    # What a loop of the forward pass stacks for the backward pass, which alone uses it.
    if step.forward_loops[node]:
        return FORWARD
    # Leads to gradients alone, needs no cotangent, and a product that does not either is made of it, or it of one. The
    # all-gather of a weight for such a product is recompute too, as JAX names it. Not so a collective that only moves data,
    # that no recomputed product needs, and that the forward pass has no twin of: ring attention sends keys and values once
    # more, with their cotangents.
    if bits & (fact.RECOMPUTED | fact.FOR_RECOMPUTED):
        only_moves = kind & COLLECTIVE and not kind & SUMS and not bits & fact.FOR_RECOMPUTED
        has_twin = not only_moves or collective_key(step.graph, node) in step.forward_collectives
        return RECOMPUTE if has_twin else BACKWARD
    # Another collective that only the backward pass uses: weights or activations gathered for its products.
    if kind & COLLECTIVE:
        return BACKWARD
    # Elementwise residuals and copies for the backward pass: by the schedule before the first cotangent or behind it. Without a
    # schedule what computes is forward, as derivatives are written there, and what moves is backward.
    if step.is_scheduled:
        return FORWARD if node < step.first_cotangent else BACKWARD
    return BACKWARD if kind & MOVES else FORWARD


def collective_key(graph: ValueGraph, node: int) -> tuple[str, ...]:
    """The kind of a collective and the shapes of its operands."""
    view, row = graph.frames[graph.frame_of[node]].view, graph.row_of[node]
    shapes = [view.operand_shape(row, number) for number in range(len(view.operand_rows(row)))]
    return base_opcode(view.opcodes[row]), *map(str, shapes)


def step_values(graph: ValueGraph, facts: StepFacts, *, is_scheduled: bool) -> StepValues:
    """A step as rules see it; of a module that is scheduled the order of the text is that of the program."""
    of, bits = facts.parts.of, facts.bits
    cotangent = fact.GRADIENT | fact.COTANGENT
    first = next((node for node, part in enumerate(of) if bits[part] & cotangent == cotangent), len(graph))
    loops = _forward_loops(graph, facts)
    twins = {
        collective_key(graph, node)
        for node, kind in enumerate(graph.kinds)
        if kind & COLLECTIVE and (bits[of[node]] & fact.LOSS or loops[node])
    }
    return StepValues(graph, facts, loops, first, frozenset(twins), _labels(facts), is_scheduled)


def _forward_loops(graph: ValueGraph, facts: StepFacts) -> bytearray:
    """Which nodes are in a loop that computes new values that lead to the loss, and no product that depends on a cotangent."""
    of, bits = facts.parts.of, facts.bits
    inside = bytearray(len(graph))
    called = [(frame, frame.caller) for frame in graph.frames if frame.caller is not None]
    loops = [one for one in called if graph.frames[one[1][0]].view.opcodes[one[1][1]] == "while"]
    if not loops:
        return inside
    products = [0]
    for node, kind in enumerate(graph.kinds):
        products.append(products[-1] + (kind & PRODUCT and bits[of[node]] & fact.COTANGENT != 0))
    for frame, caller in loops:
        if products[frame.stop] == products[frame.first] and _is_forward(graph, facts, caller, frame.first):
            inside[frame.first : frame.stop] = b"\1" * (frame.stop - frame.first)
    return inside


def _is_forward(graph: ValueGraph, facts: StepFacts, loop: tuple[int, int], first: int) -> bool:
    """Whether an iteration changes a state that leads to the loss; the nodes of the state come before those of the body."""
    state = first - 1
    while state >= 0 and (graph.frame_of[state], graph.row_of[state]) == loop:
        changed = any(other > state for other in graph.operands[state])
        if changed and facts.bits[facts.parts.of[state]] & fact.LOSS:
            return True
        state -= 1
    return False


def _labels(facts: StepFacts) -> bytearray:
    """The components behind no product of which all users that lead to the loss belong to it."""
    bits, operands = facts.bits, facts.operands
    others = bytearray(len(operands))
    used = bytearray(len(operands))
    labels = bytearray(len(operands))
    for number in range(len(operands) - 1, -1, -1):
        own = bits[number]
        if not own & fact.LOSS:
            continue
        is_label = used[number] and not others[number] and not own & fact.BEHIND_PRODUCT
        labels[number] = bool(is_label)
        belongs = is_label or own & fact.REDUCED
        for other in operands[number]:
            used[other] = 1
            if not belongs:
                others[other] = 1
    return labels


def phases_of_values(step: StepValues) -> list[str]:
    """The phase of each node."""
    of, bits, labels = step.facts.parts.of, step.facts.bits, step.labels
    known: dict[tuple[int, int, int, int], str] = {}  # by all that rules know of a node, except of collectives
    phases: list[str] = []
    columns = map(bits.__getitem__, of), step.graph.kinds, map(labels.__getitem__, of), step.forward_loops
    for node, alike in enumerate(zip(*columns, strict=True)):
        if node == step.first_cotangent:
            known.clear()
        phase = known.get(alike)
        if phase is None:
            phase = phase_of(step, node, of[node])
            if not alike[1] & COLLECTIVE:
                known[alike] = phase
        phases.append(phase)
    _constants(step, phases)
    return phases


def _constants(step: StepValues, phases: list[str]) -> None:
    """What depends on no input takes the first phase among its users: tables of angles that are made before a loop."""
    of, bits, operands = step.facts.parts.of, step.facts.bits, step.facts.operands
    rank = {phase: number for number, phase in enumerate(PHASE_ORDER)}
    none = len(PHASE_ORDER) - 1
    lowest = [none] * len(operands)
    for part, one in zip(of, map(rank.__getitem__, phases), strict=True):
        lowest[part] = min(lowest[part], one)
    first, from_input = [none] * len(operands), fact.FROM_INPUT  # of the users of a constant
    for part in range(len(operands) - 1, -1, -1):
        own = first[part] if first[part] < none else lowest[part]
        if own < none:
            for other in operands[part]:
                if own < first[other] and not bits[other] & from_input:
                    first[other] = own
    for node, part in enumerate(of):
        if first[part] < none:
            phases[node] = PHASE_ORDER[first[part]]


NINE_TENTHS = 0.9
"""A collective has the phase of so much of its bytes."""


class GraphPhases:
    """The phase of each value of the step; `reason` says why there are none."""

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
            return "no gradient was found in the updates of weights"
        facts = StepFacts(Components(self.graph), weights, _scalars(self.graph))
        self.step = step_values(self.graph, facts, is_scheduled=header.is_scheduled)
        phases = phases_of_values(self.step)
        reason = _without_loss(self.graph, facts, overview, header) or _implausible(self.graph, facts, phases)
        self.phases = [] if reason else phases
        return reason

    def calls_of(self, instruction: Instruction) -> list[tuple[CallFrame, int]]:
        """The calls of an instruction's computation in the step, each with the instruction's row; none where it has no row."""
        frames = self.graph.frames_by_name.get(instruction.computation.name, []) if self.phases else []
        row = frames[0].view.index(instruction.name) if frames else None
        return [] if row is None else [(frame, row) for frame in frames]

    # -- from values to instructions ------------------------------------------------------------------------------------

    def of_row(self, frame: CallFrame, row: int) -> str:
        """The phase of an instruction in one call of its computation: of a fusion that of the product in it, else of its
        largest results.
        """
        products: Counter[str] = Counter()
        for number in frame.called.get(row, ()):
            inner = self.graph.frames[number]
            for node in range(inner.first, inner.stop):
                if self.graph.kinds[node] & PRODUCT:
                    products[self.phases[node]] += 1
        del products[UNKNOWN]
        if products and frame.view.opcodes[row] == "fusion":
            return _first_of_most(products)
        sizes = self._sizes(frame, row)
        del sizes[UNKNOWN]
        return _first_of_most(sizes) if sizes else UNKNOWN

    def of_collective(self, frame: CallFrame, row: int) -> str:
        """The phase of nine tenths of its bytes."""
        sizes = self._sizes(frame, row)
        whole = sum(sizes.values())
        if not whole:
            return UNKNOWN
        phase, size = sizes.most_common(1)[0]
        return phase if size >= NINE_TENTHS * whole else UNKNOWN

    def also(self, frame: CallFrame, row: int) -> str:
        """The other phase that a collective serves, empty where there is none: the backward pass, of an all-gather or a move
        for forward or recompute whose result its products take too.
        """
        if self.step is None or self.of_collective(frame, row) not in (FORWARD, RECOMPUTE):
            return ""
        facts, kinds = self.step.facts, self.graph.kinds
        nodes = [node for node in nodes_in(frame.value(row)) if not kinds[node] & SUMS]
        return BACKWARD if any(facts.bits[facts.parts.of[node]] & fact.FOR_BACKWARD for node in nodes) else ""

    def _sizes(self, frame: CallFrame, row: int) -> Counter[str]:
        """The bytes of the results of a row by phase; of one array in parts their lengths."""
        value = frame.value(row)
        leaves = array_leaves(frame.view.shapes[row])
        sizes: Counter[str] = Counter()
        if isinstance(value, tuple) and len(leaves) == len(value) > 1:
            for (_, leaf), one in zip(leaves, value, strict=True):
                for node in nodes_in(one)[:1]:
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
        """The bytes of a node's operands where it is one part of several, else of its result."""
        frame = self.graph.frames[self.graph.frame_of[node]]
        shape = frame.view.shapes[self.graph.row_of[node]]
        return shape.bytes or 1 if isinstance(shape, ArrayShape) else 1


def _first_of_most(counts: Counter[str]) -> str:
    """The phase that counts most, of several the first one of a step."""
    most = max(counts.values())
    return next(phase for phase in PHASE_ORDER if counts[phase] == most)


def _step_of(overview: Overview) -> str | None:
    """The computation that holds the updates of most weights."""
    frames = overview.frames
    counts = Counter(row.matched.array.source[0] for row in overview.rows)
    if not counts:
        return None
    entry = overview.steps[0].frame
    chosen = entry if counts[entry] else counts.most_common(1)[0][0]
    return frames[chosen].view.computation.name


def _scalars(graph: ValueGraph) -> list[int]:
    """The float outputs of one element; of what a loop over steps stacks that is written in one."""
    frame = graph.frames[0]
    root = frame.view.root
    if root is None:
        return []
    found = []
    for index, leaf in array_leaves(frame.view.shapes[root]):
        nodes = nodes_in(ValueGraph.element(frame.value(root), index))
        if len(nodes) == 1 and leaf.dtype.startswith(FLOATS) and _is_scalar(graph, nodes[0], leaf):
            found.append(nodes[0])
    return found


def _is_scalar(graph: ValueGraph, node: int, leaf: ArrayShape) -> bool:
    if leaf.elements == 1:
        return True
    view, row = graph.frames[graph.frame_of[node]].view, graph.row_of[node]
    if view.opcodes[row] != "dynamic-update-slice":
        return False
    written = view.operand_shape(row, 1)
    return isinstance(written, ArrayShape) and written.elements == 1


def _without_loss(graph: ValueGraph, facts: StepFacts, overview: Overview, header: Header) -> str:
    """Why the forward pass is not known where no loss is returned; empty where it is known."""
    if facts.is_loss_returned:
        return ""
    if not any(bits & fact.LOSS for bits in facts.bits):
        return "no loss is returned, and one weight is not enough to find what leads to it"
    if _returns_activations(graph, facts, overview, {alias.output_index for alias in header.aliases}):
        return "activations are returned and no loss, as by a stage of a pipeline"
    return ""


def _returns_activations(graph: ValueGraph, facts: StepFacts, overview: Overview, aliased: Container[ShapeIndex]) -> bool:
    """Whether an array is returned that is made of a product, of no gradient or cotangent, and is no new value of a parameter,
    nor in its place: `aliased` are such results.
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
            bits = [facts.bits[facts.parts.of[node]] for node in nodes_in(ValueGraph.element(frame.value(root), index))]
            others = fact.UPDATED | fact.COTANGENT
            if any(one & (fact.BEHIND_PRODUCT | others) == fact.BEHIND_PRODUCT for one in bits):
                return True
    return False


def _implausible(graph: ValueGraph, facts: StepFacts, phases: Iterable[str]) -> str:
    """Why this is no training step: one has products in the forward pass and at least half as many in the backward pass, frozen
    layers aside; empty where it may be one. Filters, solvers and samplers that look like updates have none.
    """
    counts: defaultdict[str, int] = defaultdict(int)
    learnt = 0
    for node, phase in enumerate(phases):
        if graph.kinds[node] & PRODUCT:
            counts[phase] += 1
            learnt += phase in (FORWARD, LOSS) and facts.bits[facts.parts.of[node]] & fact.FROM_WEIGHT != 0
    forward, backward = counts[FORWARD] + counts[LOSS], counts[BACKWARD]
    if not forward:
        return "no product of arrays leads to a loss"
    if not learnt or 2 * backward < (learnt if facts.is_loss_returned else forward):
        return f"{forward} products lead to the loss and {backward} depend on its cotangents, fewer than a backward pass has"
    return ""
