"""What runs on the device as a kernel of its own: how often, what it costs then, and where it comes from.

A kernel is an instruction of a computation that runs itself: a fusion, a dot, a custom call, a collective, a copy. What only
names, orders or forwards values is none, nor is what runs other computations. A start and its done are one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.analysis.cost.figures import (
    CUSTOM_CALL,
    FIGURES,
    Figure,
    InstructionCost,
    UnknownCostError,
    bytes_by_unit,
    countable,
)
from hlo_inspect.analysis.cost.module_cost import FigureRuns, ModuleCost
from hlo_inspect.analysis.cost.operation import RUNNERS, Traffic, callee_names, wrapped
from hlo_inspect.analysis.provenance import Labeller, Labels, kind_of_fusion
from hlo_inspect.graph.calls import NOTHING, Bounds, CallGraph, InstructionPlace
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, DEVICE_NUMBERS, LITERAL_OPCODES, MARKERS, NAMING, TABLE, is_marker
from hlo_inspect.hlo.values.shapes import Shape, array_leaves

NO_KERNELS = NAMING | MARKERS | LITERAL_OPCODES | DEVICE_NUMBERS | RUNNERS
"""Opcodes of which no kernel comes."""

_NO_KERNEL_SPELLINGS = NO_KERNELS | {name for name in TABLE if wrapped(name) in NO_KERNELS}
SLICING = frozenset({"slice", "dynamic-slice"})
"""Opcodes that read a part of their operand."""
_STARTS = frozenset(name for name, opcode in TABLE.items() if opcode.half == "start")
_KINDS = {name: opcode.base for name, opcode in TABLE.items()}


class CountedCost(NamedTuple):
    """An instruction that costs something: what one run of it costs, how often its computation runs, and how often at least by
    figure.
    """

    cost: InstructionCost
    runs: Bounds
    least: FigureRuns

    def of_step(self, figure: Figure) -> Bounds:
        """A figure of all its runs in one run of the program."""
        index = FIGURES.index(figure)
        amount, gap = self.cost.amounts[index], self.cost.gaps.get(figure)
        if self.runs.greatest == 0 or (amount == 0 and gap is None):
            return NOTHING
        bound = amount * self.least.least[index]
        if gap is not None:
            return Bounds(bound, None, str(gap))
        return countable(Bounds.exactly(bound) if self.runs.is_exact else Bounds(bound, None, self.runs.reason))


RowKey = tuple[str, int]
"""Computation and row, which no two kernels share; a text may define one name twice on one line, at one `InstructionPlace`."""


class Kernel(NamedTuple):
    """One instruction that runs as a kernel, or a start with its done.

    `kind` is its opcode, of an asynchronous one that of what it starts. `parts` are the instruction and its dones; XLA's model
    counts the bytes of both, more than are moved: `started` are those that a start reads and its done leaves. What work a
    custom call without a rule does `is_unknown`. `row` is that of its `instruction` in its computation, `view`.
    """

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
    def key(self) -> RowKey:
        return self.place[0], self.row

    @property
    def name(self) -> str:
        return self.place[2]

    @property
    def shape(self) -> Shape | None:
        return self.view.shapes[self.row]

    @property
    def labels(self) -> Labels:
        """What the kernel's cost is attributed to."""
        return self.labeller.of(self.view, self.row)

    @property
    def fusion_kind(self) -> str:
        """The kind of a fusion, `NOT_PRINTED` where the text lacks it, and `NOT_FUSED` of what is no fusion."""
        return kind_of_fusion(self.view, self.row)

    @property
    def moved(self) -> Iterator[tuple[str, int]]:
        """The bytes that one run moves in each memory space, which is named as a unit of a tally."""
        if self.started is None:
            return self.parts[0].cost.bytes_by_unit
        return bytes_by_unit(self.started.bytes, self.started.spaces)

    @property
    def runs(self) -> Bounds:
        """How often it runs in one run of the program."""
        return self.parts[0].runs

    def of_step(self, figure: Figure) -> Bounds:
        """A figure of all its runs in one run of the program."""
        if self.is_unknown and figure != "bytes":
            return Bounds(0, None, f"there is no rule for {self.instruction.attr('custom_call_target')}")
        return sum_of_step(self.parts, figure)


def sum_of_step(parts: Iterable[CountedCost], figure: Figure) -> Bounds:
    """A figure of all runs of several instructions."""
    return Bounds.sum(part.of_step(figure) for part in parts)


@dataclass(frozen=True)
class Kernels:
    """The kernels of a module in the order of the text, and what costs something without being one: tables of pointers and
    barriers, and calls of computations that are not known.
    """

    found: Sequence[Kernel]
    beside: Sequence[CountedCost]


def find_kernels(cost: ModuleCost, graph: CallGraph) -> Kernels:
    """The kernels of a module whose cost is known."""
    unknown = {call.line for call in cost.unknown_calls}
    ends: dict[tuple[str, int], list[CountedCost]] = {}
    results: dict[tuple[str, int], Shape | None] = {}
    kernels: list[tuple[str, int, tuple[CountedCost]]] = []
    beside: list[CountedCost] = []
    for name, running in cost.running.items():
        view, starts, opcodes = running.view, StartRows(running.view), running.view.opcodes
        counted: dict[InstructionCost, tuple[CountedCost]] = {}  # most instructions are like some others
        for row, one in running.rows:
            part = counted.get(one)
            if part is None:
                part = counted[one] = (CountedCost(one, graph.runs(name), cost.runs[name]),)
            opcode = opcodes[row]
            if opcode in ASYNC_ENDS:
                start = _kernel_of_start(cost, name, starts.of(row))
                ends.setdefault(start, []).extend(part)
                results[start] = view.shapes[row]
            elif opcode in _NO_KERNEL_SPELLINGS or (opcode == CUSTOM_CALL and _is_marker(view, row)):
                beside += part
            else:
                kernels.append((name, row, part))
    found = []
    for name, row, part in kernels:
        view = cost.running[name].view
        opcode = view.opcodes[row]
        kind = _KINDS.get(opcode, opcode)
        is_unknown = kind == CUSTOM_CALL and view.lines[row] in unknown
        started = _started(view, row, results.get((name, row))) if opcode in _STARTS else None
        parts = (*part, *ends.pop((name, row))) if (name, row) in ends else part
        place = name, view.lines[row], view.names[row]
        found.append(Kernel(place, row, kind, view, cost.labeller, parts, is_unknown, started))
    beside += [part for parts in ends.values() for part in parts]
    return Kernels(sorted(found, key=lambda kernel: kernel.place[1]), beside)


def _started(view: View, row: int, result: Shape | None) -> Traffic:
    """The bytes of the operands of a start and of the result of its done; sizes that are not known are left out. Of what is
    sliced only the slice is read.
    """
    traffic = Traffic()
    results = [leaf for _, leaf in array_leaves(result)]
    slices = _KINDS.get(view.opcodes[row]) in SLICING
    most = sum(leaf.array_bytes or 0 for leaf in results) if slices else None
    for shape in view.operand_shapes(row):
        for _, leaf in array_leaves(shape):
            size = leaf.array_bytes or 0
            traffic.add(size if most is None else min(size, most), leaf)
    for leaf in results:
        traffic.add(leaf.array_bytes or 0, leaf)
    return traffic


def _is_marker(view: View, row: int) -> bool:
    return is_marker(view.instruction(row).attr("custom_call_target") or "")


def _kernel_of_start(cost: ModuleCost, name: str, start: int) -> tuple[str, int]:
    """The computation and row of the kernel that a row starts: its own, or the root of the computation that it runs."""
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
    """Which row started what an update or a done waits for, in however many steps."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[int, int] = {}

    def of(self, row: int) -> int:
        steps: dict[int, None] = {}
        while row not in self._known and row not in steps and self._view.opcodes[row] in ASYNC_ENDS:
            steps[row] = None
            source = self._view.operand_row(row, 0)
            row = row if source is None else source
        start = self._known.get(row, row)
        self._known |= dict.fromkeys(steps, start)
        return start
