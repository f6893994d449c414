"""Kernels: the instructions that the device launches separately, with their runs, cost and labels.

A kernel is an instruction of a computation that runs itself: a fusion, a dot, a custom call, a collective, a copy. Instructions
that only name, order or forward values are no kernels. Nor are instructions that run other computations. A start and its done
are one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.cost.figures import (
    CUSTOM_CALL,
    FIGURES,
    CostFigure,
    InstructionCost,
    UnknownCostError,
    bytes_by_unit,
    countable,
)
from hlo_inspect.analysis.cost.module_cost import ModuleCost, RunsByFigure
from hlo_inspect.analysis.cost.operation import RUNNERS, Traffic, callee_names, wrapped
from hlo_inspect.analysis.provenance import InstructionPhase, Labeller, Labels, kind_of_fusion
from hlo_inspect.figure import Quantity, at_least, greatest, known_part, least, reason, total
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.view import InstructionPlace, View
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import (
    ASYNC_ENDS,
    DEVICE_NUMBERS,
    LITERAL_OPCODES,
    MARKERS,
    NAMING,
    STARTING_COLLECTIVES,
    TABLE,
    is_marker,
)
from hlo_inspect.hlo.values.shapes import Shape, array_leaves

NO_KERNELS = NAMING | MARKERS | LITERAL_OPCODES | DEVICE_NUMBERS | RUNNERS
"""Opcodes that make no kernel."""

_NO_KERNEL_SPELLINGS = NO_KERNELS | {name for name in TABLE if wrapped(name) in NO_KERNELS}
SLICING = frozenset({"slice", "dynamic-slice"})
"""Opcodes that read a part of their operand."""
_STARTS = frozenset(name for name, opcode in TABLE.items() if opcode.half == "start")
_AT_OWN_TIMES = STARTING_COLLECTIVES | _STARTS | {CUSTOM_CALL}
"""Opcodes of kernels of which more than the class decides the times in a step."""
_COMPUTED = frozenset(
    name
    for name, opcode in TABLE.items()
    if not (opcode.collective or opcode.half) and opcode.base not in {CUSTOM_CALL, "fusion"}
)
"""Opcodes in fusions that neither are collectives nor start or end them."""
_KINDS = {name: opcode.base for name, opcode in TABLE.items()}


class CountedCost(NamedTuple):
    """The cost of one run of an instruction, and the runs of its computation in a step, by figure too."""

    cost: InstructionCost
    runs: Quantity
    runs_by_figure: RunsByFigure

    def of_step(self, figure: CostFigure) -> Quantity:
        """Return a figure of all its runs in one step."""
        index = FIGURES.index(figure)
        amount, gap = self.cost.amounts[index], self.cost.gaps.get(figure)
        if greatest(self.runs) == 0 or (amount == 0 and gap is None):
            return 0
        whole = amount * least(self.runs_by_figure[index])
        return at_least(whole, str(gap)) if gap is not None else countable(known_part(whole, reason(self.runs)))


class CostsOfRows:
    """The costs of rows that run by themselves, one object for those of equal cost in a computation."""

    def __init__(self, cost: ModuleCost, graph: CallGraph) -> None:
        self._cost, self._graph = cost, graph
        self._by_computation: dict[str, dict[int, InstructionCost]] = {}
        self._counted: dict[tuple[str, InstructionCost], CountedCost] = {}

    def get(self, view: View, row: int) -> CountedCost | None:
        """Return the cost of one run of a row, and its runs; None if it does not run by itself."""
        name = view.computation.name
        of_rows = self._by_computation.get(name)
        if of_rows is None:
            running = self._cost.running.get(name)
            of_rows = {} if running is None else dict(zip(running.rows, running.costs, strict=True))
            self._by_computation[name] = of_rows
        cost = of_rows.get(row)
        if cost is None:
            return None
        counted = self._counted.get((name, cost))
        if counted is None:
            runs = self._graph.runs(name), self._cost.runs[name]
            counted = self._counted[name, cost] = CountedCost(cost, *runs)
        return counted


class Kernel(NamedTuple):
    """An instruction that runs as a kernel, or a start with its done.

    `kind` is its opcode; for an asynchronous kernel, the opcode of the wrapped operation. `parts` are the instruction and its
    dones. XLA's model counts the bytes of both, more than the kernel moves. `started` holds the bytes that a start reads and
    its done writes. A custom call without a rule `is_unknown`: its work is not counted. `row` is the row of its `instruction`
    in its computation, `view`. `number` is its own in the module, unlike its place: one line may define a name twice. `like` is
    the number of the first kernel of the same class and cost, `twin` of the first in the same computation. They are its own
    number if more decides the times of one run, or those in a step.
    """

    number: int
    like: int
    twin: int
    place: InstructionPlace
    row: int
    kind: str
    view: View
    labeller: Labeller
    parts: tuple[CountedCost, ...]
    is_unknown: bool = False
    started: Traffic | None = None

    @property
    def instruction(self) -> Instruction:
        return self.view.instruction(self.row)

    @property
    def name(self) -> str:
        return self.place[2]

    @property
    def shape(self) -> Shape | None:
        return self.view.shapes[self.row]

    @property
    def labels(self) -> Labels:
        """The labels of the kernel's cost."""
        return self.labeller.get(self.view, self.row)

    @property
    def shared_labels(self) -> Labels:
        """The labels but for the `op_name`, which may be that of a kernel in another layer: those kernels share the object."""
        return self.labeller.shared(self.view, self.row)

    @property
    def fusion_kind(self) -> str:
        """The kind of a fusion, `NOT_PRINTED` if the text lacks it, `NOT_FUSED` for other instructions."""
        return kind_of_fusion(self.view, self.row)

    @property
    def moved(self) -> Iterator[tuple[str, int]]:
        """The bytes that one run moves in each memory space, named as a unit of a tally."""
        if self.started is None:
            return self.parts[0].cost.bytes_by_unit
        return bytes_by_unit(self.started.bytes, self.started.spaces)

    @property
    def runs(self) -> Quantity:
        """The number of its runs in one step."""
        return self.parts[0].runs

    def of_step(self, figure: CostFigure) -> Quantity:
        """Return a figure of all its runs in one step."""
        return sum_of_step(self.parts, figure)


def sum_of_step(parts: Iterable[CountedCost], figure: CostFigure) -> Quantity:
    """Sum a figure over all runs of several instructions."""
    return total(part.of_step(figure) for part in parts)


class Kernels(NamedTuple):
    """The kernels of a module in the order of the text, and the costs outside kernels.

    The latter are costs of tables of pointers, of barriers, and of calls of unknown computations.
    """

    launched: Sequence[Kernel]
    other_costs: Sequence[CountedCost]


def phases_of_kernels(cost: ModuleCost) -> Iterator[InstructionPhase]:
    """Yield the phases of kernels with work or bytes, once for those of equal cost. The kernels need not be found."""
    others = NO_KERNELS | ASYNC_ENDS
    for counts in cost.counts_by_phase.values():
        for row_cost, phase in counts:
            if row_cost.opcode not in others and (any(row_cost.amounts) or row_cost.gaps):
                yield phase


class _Equal:
    """Rows of one class, cost and computation. `part` is their cost.

    `first` is the number of the first kernel if they have equal times in a step, which collectives in fusions have not.
    """

    __slots__ = ("first", "has_twins", "is_kernel", "kind", "opcode", "part")

    def __init__(self, graph: CallGraph, view: View, row: int, part: CountedCost) -> None:
        self.part = (part,)
        self.opcode = view.opcodes[row]
        self.kind = _KINDS.get(self.opcode, self.opcode)
        is_marking = self.opcode == CUSTOM_CALL and _is_marker(view, row)
        self.is_kernel = self.opcode not in _NO_KERNEL_SPELLINGS and not is_marking
        fused = [callee.name for callee in view.called_at(row)] if self.opcode == "fusion" else []
        is_computing = all(_COMPUTED.issuperset(graph.opcodes_in(name)) for name in fused)
        self.has_twins = self.opcode not in _AT_OWN_TIMES and is_computing
        self.first: int | None = None


def find_kernels(cost: ModuleCost, graph: CallGraph) -> Kernels:
    """Find the kernels of a module with its cost."""
    unknown = {call.line for call in cost.unknown_calls}
    ends: dict[tuple[str, int], list[CountedCost]] = {}
    results: dict[tuple[str, int], Shape | None] = {}
    kernels: list[tuple[int, View, int, int, _Equal]] = []
    other_costs: list[CountedCost] = []
    for name, running in cost.running.items():
        view, starts, classes = running.view, StartRows(running.view), running.classes
        equals: dict[tuple[InstructionCost, int], _Equal] = {}
        for row, row_cost in zip(running.rows, running.costs, strict=True):
            key = row_cost, classes[row]
            equal = equals.get(key)
            if equal is None:
                part = CountedCost(row_cost, graph.runs(name), cost.runs[name])
                equal = equals[key] = _Equal(graph, view, row, part)
            if equal.opcode in ASYNC_ENDS:
                start = _kernel_of_start(cost, name, starts.start_of(row))
                ends.setdefault(start, []).extend(equal.part)
                results[start] = view.shapes[row]
            elif equal.is_kernel:
                kernels.append((view.lines[row], view, row, classes[row], equal))
            else:
                other_costs += equal.part
    launched = []
    first: dict[tuple[InstructionCost, int], int] = {}
    kernels.sort(key=itemgetter(0))
    for number, (line, view, row, class_number, equal) in enumerate(kernels):
        position, opcode, like, twin = view.places[row], equal.opcode, number, number
        parts: tuple[CountedCost, ...] = equal.part
        is_unknown = equal.kind == CUSTOM_CALL and line in unknown
        started = None
        if opcode in _STARTS:
            started = _copied_bytes(view, row, results.get((position[0], row)))
        elif not is_unknown:
            like = first.setdefault((parts[0].cost, class_number), number)
        if ends and (position[0], row) in ends:
            parts = (*parts, *ends.pop((position[0], row)))
        elif equal.has_twins:
            equal.first = twin = number if equal.first is None else equal.first
        launched.append(Kernel(number, like, twin, position, row, equal.kind, view, cost.labeller, parts, is_unknown, started))
    other_costs += [part for parts in ends.values() for part in parts]
    return Kernels(launched, other_costs)


def _copied_bytes(view: View, row: int, result: Shape | None) -> Traffic:
    """Return the bytes of the operands of a start and of the result of its done. Unknown sizes are left out.

    A slicing start reads only the slice.
    """
    traffic = Traffic()
    results = [leaf for _, leaf in array_leaves(result)]
    slices = _KINDS.get(view.opcodes[row]) in SLICING
    largest = sum(leaf.array_bytes or 0 for leaf in results) if slices else None
    for shape in view.operand_shapes(row):
        for _, leaf in array_leaves(shape):
            size = leaf.array_bytes or 0
            traffic.add(size if largest is None else min(size, largest), leaf)
    for leaf in results:
        traffic.add(leaf.array_bytes or 0, leaf)
    return traffic


def _is_marker(view: View, row: int) -> bool:
    return is_marker(view.instruction(row).attr("custom_call_target") or "")


def _kernel_of_start(cost: ModuleCost, name: str, start: int) -> tuple[str, int]:
    """Return computation and row of the kernel that a row starts: the row itself, or the root of its computation."""
    view = cost.running[name].view
    if wrapped(view.opcodes[start]) in RUNNERS:
        try:
            running = cost.running.get(callee_names(view, start)[0])
        except UnknownCostError:  # the start is then a kernel of its own, whose cost has a gap
            running = None
        if running is not None and running.view.root is not None:
            return running.view.computation.name, running.view.root
    return name, start


class StartRows:
    """The rows that started the operations of updates and dones, through any number of updates."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._starts: dict[int, int] = {}

    def start_of(self, row: int) -> int:
        steps: dict[int, None] = {}
        while row not in self._starts and row not in steps and self._view.opcodes[row] in ASYNC_ENDS:
            steps[row] = None
            source = self._view.operand_row(row, 0)
            row = row if source is None else source
        start = self._starts.get(row, row)
        self._starts |= dict.fromkeys(steps, start)
        return start
