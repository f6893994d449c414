"""The phases of a training step by its graph of values, without any name.

The step is the entry, or the body of a loop over steps; it is found with the updates of weights. Where there are none, or where
the products of forward and backward pass are not as a training step has them, no phase is known, and `reason` says why.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable

from hlo_inspect.analysis.instruction_phase import PHASE_ORDER
from hlo_inspect.analysis.phases import facts as fact
from hlo_inspect.analysis.phases.facts import Components, StepFacts
from hlo_inspect.analysis.phases.gradients import trained_weights
from hlo_inspect.analysis.phases.rules import StepValues, phases_of_values, step_values
from hlo_inspect.graph.parameters import FLOATS, NO_UPDATE
from hlo_inspect.graph.value_graph import PRODUCT, SUMS, CallFrame, Parts, ValueGraph, nodes_in
from hlo_inspect.graph.values import read_values
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.read.header import Header, ShapeIndex
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, RECOMPUTE, UNKNOWN
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.optimizer.overview import Overview

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
        if isinstance(value, Parts):
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
    frames = overview.updates.flow.frames
    counts = Counter(row.matched.array.source[0] for row in overview.rows)
    if not counts:
        return None
    entry = overview.updates.steps[0].frame
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
    steps = overview.updates.steps
    frames = overview.updates.flow.frames
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
