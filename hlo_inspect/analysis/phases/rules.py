"""The rules that give each value of a training step its phase, in their order: by the node of the graph and the facts of its
component.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.analysis.instruction_phase import PHASE_ORDER
from hlo_inspect.analysis.phases import facts as fact
from hlo_inspect.analysis.phases.facts import StepFacts
from hlo_inspect.graph.value_graph import COLLECTIVE, MOVES, PRODUCT, SUMS, ValueGraph
from hlo_inspect.hlo.opcodes import base_opcode
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, OPTIMIZER, RECOMPUTE, UNKNOWN


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
