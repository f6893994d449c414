"""A step by layer: compute and communications of each pass, in the cells that a client of the text dialects has for them.

A row is an iteration of a loop, a numbered layer, or a scope. The client runs the forward pass over all rows, then the backward
pass over the rows in reverse. So a backward loop shares the rows of an earlier loop with the same trip count, mirrored. Rows of
the optimizer come first in the file, since the backward pass ends there.

A cell holds one communication, which blocks after the cell's compute. A row with several is split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hlo_inspect.analysis.time.program_steps import LoopStep
from hlo_inspect.export.plan.communications import Communication
from hlo_inspect.export.plan.kernel_work import KernelWork
from hlo_inspect.export.plan.row_actions import READY, StepValue, nodes_behind
from hlo_inspect.graph.view import InstructionPlace
from hlo_inspect.hlo.values.op_names import BACKWARD, OPTIMIZER, RECOMPUTE
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.workloads.row import PASSES

FORWARD_PASS, INPUT_PASS, WEIGHT_PASS = PASSES
_LAYER = lazy_pattern(r"(?:^|[/(])([A-Za-z]\w*?[._/]?\d+)\)*+(?=/)", re.ASCII)
"""A numbered scope of an `op_name`, such as `layers_3` or `layer/3`; the last part names the operation."""
_ENTRY = "step"
_OF_LOOP = "loop"


class Cell(NamedTuple):
    """Compute of a pass in picoseconds, and the communication after it with its word."""

    time: int
    communication: Communication | None = None
    word: str = ""


@dataclass(slots=True)
class LayerRow:
    """The cells of each pass of a layer in the order in which the step runs them, and compute that no cell has yet."""

    name: str
    cells: dict[str, list[Cell]] = field(default_factory=lambda: {name: [] for name in PASSES})
    time: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PASSES, 0))

    def close(self, pass_name: str, communication: Communication | None = None, word: str = "") -> None:
        """End a cell with a communication, or with the compute that is left."""
        if communication is not None or self.time[pass_name]:
            self.cells[pass_name].append(Cell(self.time[pass_name], communication, word))
            self.time[pass_name] = 0


WordOf = Callable[[Communication], tuple[str | None, str]]
"""The word of a communication, or None with the reason why it has none."""


class LayerList:
    """The rows of a step so far, as a sink of a plan.

    `phases` are those of the communications by identity. `weight_kernels` compute gradients of weights.
    """

    def __init__(
        self,
        word_of: WordOf,
        phases: Mapping[int, str],
        weight_kernels: set[InstructionPlace],
        mirrored: Mapping[InstructionPlace, InstructionPlace],
    ) -> None:
        self.kernel_runs = 0
        self._word_of = word_of
        self._phases = phases
        self._weight_kernels = weight_kernels
        self._mirrored = mirrored
        self._rows: dict[object, LayerRow] = {}
        self._optimizer: dict[object, LayerRow] = {}
        self._backward: dict[object, LayerRow] = {}
        self._loops: list[tuple[LoopStep, int]] = []
        self._layers: dict[str, str] = {}
        self._held: set[int] = set()
        self._waiting: dict[int, tuple[Communication, str, LayerRow]] = {}
        self._started = 0

    @property
    def size(self) -> int:
        return self._started + len(self._rows) + len(self._backward) + len(self._optimizer)

    @property
    def rows(self) -> Iterator[LayerRow]:
        """The rows in the order of the file: those of the optimizer, then those with a forward pass, then the others."""
        yield from reversed(self._optimizer.values())
        yield from self._rows.values()
        yield from reversed(self._backward.values())

    def refusal(self, communication: Communication) -> str:
        """Return the reason why no cell can hold a communication; empty if one can."""
        if communication.collective.properties.names_pairs:
            return "the text dialects have no word for messages from rank to rank"
        return self._word_of(communication)[1]

    def iterate(self, loop: LoopStep, iteration: int | None) -> None:
        """Begin an iteration of a loop, or leave it."""
        if iteration is None:
            self._loops.pop()
        else:
            self._loops.append((loop, iteration))

    def wait(self, value: StepValue) -> None:
        """Let the next kernel wait for a value."""
        self._held |= nodes_behind([value])

    def kernel(self, work: KernelWork, operands: Sequence[StepValue]) -> StepValue:
        """Add a run of a kernel to the row of its layer, behind the communications that it waits for."""
        self.kernel_runs += 1
        labels = work.kernel.labels
        row = self._row(labels.phase, labels.op_name)
        self._block(nodes_behind(operands) | self._held, row)
        self._held.clear()
        is_weight = work.kernel.place in self._weight_kernels or labels.phase == OPTIMIZER
        row.time[WEIGHT_PASS if is_weight else _pass_of(labels.phase)] += work.time
        return READY

    def communicate(self, communication: Communication, operands: Sequence[StepValue]) -> StepValue:
        """Add a run of a communication: of data parallel devices at once, of others before the kernel that waits for it."""
        phase = self._phases[id(communication)]
        row = self._row(phase, communication.collective.origin.op_name)
        self._block(nodes_behind(operands), row)
        self._started += 1
        word = self._word_of(communication)[0] or ""
        if word in ("DP", "DP_EP"):
            row.close(WEIGHT_PASS, communication, word)
            return READY
        self._waiting[self._started] = communication, phase, row
        return frozenset([self._started])

    def finish(self) -> None:
        """Place the communications whose results nothing uses, and the compute behind the last ones."""
        for communication, phase, row in self._waiting.values():
            row.close(_pass_of(phase), communication, self._word_of(communication)[0] or "")
        self._waiting.clear()
        for row in self.rows:
            for name in PASSES:
                row.close(name)

    def _block(self, numbers: Iterable[int], row: LayerRow) -> None:
        for number in sorted(numbers):
            waiting = self._waiting.pop(number, None)
            if waiting is not None:
                communication, phase, _ = waiting
                row.close(_pass_of(phase), communication, self._word_of(communication)[0] or "")

    def _row(self, phase: str, op_name: str) -> LayerRow:
        """Return the row of a phase of the layer at this place of the step."""
        path = tuple(self._place_of(loop, iteration) for loop, iteration in self._loops)
        key: object = path or self._layer(op_name)
        if phase == OPTIMIZER and not path:
            return self._optimizer.setdefault(_ENTRY, LayerRow(OPTIMIZER))
        row = self._rows.get(key) or self._backward.get(key)
        if row is None:
            name = ".".join([_OF_LOOP, *(f"{loop[2]}.{number}" for loop, number in path)]) if path else str(key)
            rows = self._backward if phase in (BACKWARD, RECOMPUTE) else self._rows
            row = rows[key] = LayerRow(name)
        return row

    def _place_of(self, loop: LoopStep, iteration: int) -> tuple[InstructionPlace, int]:
        """Return loop and iteration, of a mirrored loop those of the forward loop."""
        forward = self._mirrored.get(loop.place)
        return (loop.place, iteration) if forward is None else (forward, (loop.trips or 0) - 1 - iteration)

    def _layer(self, op_name: str) -> str:
        layer = self._layers.get(op_name)
        if layer is None:
            match = _LAYER.search(op_name)
            layer = self._layers[op_name] = match[1].replace("/", ".") if match is not None else _ENTRY
        return layer


def _pass_of(phase: str) -> str:
    """Return the pass that runs a phase; recomputation is part of the backward pass."""
    return INPUT_PASS if phase in (BACKWARD, RECOMPUTE, OPTIMIZER) else FORWARD_PASS


def mirrored_loops(
    steps: Mapping[str, Sequence[object]], is_backward: Callable[[LoopStep], bool]
) -> dict[InstructionPlace, InstructionPlace]:
    """Pair each backward loop with the nearest earlier loop of its computation with the same trip count."""
    pairs: dict[InstructionPlace, InstructionPlace] = {}
    for own in steps.values():
        forward: list[LoopStep] = []
        for step in own:
            if isinstance(step, LoopStep):
                partner = next((loop for loop in reversed(forward) if loop.trips == step.trips), None)
                if not is_backward(step):
                    forward.append(step)
                elif partner is not None:
                    pairs[step.place] = partner.place
                    forward.remove(partner)
    return pairs
