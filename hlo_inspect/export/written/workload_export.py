"""An export to the text dialects of SimAI and ASTRA-sim 1.0: rows of layers as a file.

Times are whole nanoseconds, the unit of both clients; the rest is carried to the next cell. The size of an all-gather is the
gathered array for SimAI and one device's part for ASTRA-sim, that of other kinds is the operand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.program_steps import LoopStep
from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.export.plan.axis_words import AxisWords, parse_axis_words
from hlo_inspect.export.plan.communications import Communication
from hlo_inspect.export.plan.kernel_work import PICOSECONDS, named_times, weight_gradients
from hlo_inspect.export.plan.not_expressed import NotExpressed, find_not_expressed
from hlo_inspect.export.plan.step_plan import StepPlan, StepProgram, find_program, make_plan
from hlo_inspect.export.written.layer_rows import Cell, LayerList, LayerRow, mirrored_loops
from hlo_inspect.hlo.collective_kinds import WORKLOAD_WORDS
from hlo_inspect.hlo.values.op_names import BACKWARD
from hlo_inspect.workloads.row import FORWARD_IN_BACKWARD, NONE, PASSES, WorkloadRow
from hlo_inspect.workloads.workload_header import Dialect
from hlo_inspect.workloads.writer import workload_text

NANOSECOND = PICOSECONDS // 10**9
MAX_CELL = 2 * 10**9
"""The longest compute of a cell in ns: near 2^31 SimAI ends without an error and without times."""
_EMPTY = Cell(0)


@dataclass(frozen=True)
class WorkloadExport:
    """A step for SimAI or ASTRA-sim 1.0."""

    plan: StepPlan
    not_expressed: list[NotExpressed]
    layers: list[LayerRow]
    words: AxisWords
    dialect: Dialect

    @property
    def ranks(self) -> int:
        return self.plan.program.communications.ranks

    @cached_property
    def rows(self) -> list[WorkloadRow]:
        """The rows of the file."""
        maker = _RowMaker(self.dialect)
        return [row for layer in self.layers for row in maker.rows(layer)]

    @cached_property
    def content(self) -> bytes:
        """The content of the file."""
        tensor, data, experts = (self.words.devices(word) for word in ("TP", "DP", "EP"))
        keys = {"model_parallel_NPU_group": tensor}
        if self.dialect == "simai":
            keys |= {"ep": experts, "pp": 1, "vpp": 1, "ga": 1, "all_gpus": tensor * data * experts}
        keys |= {"checkpoints": 0, "checkpoint_initiates": 0}
        if self.dialect == "simai":
            keys["pp_comm"] = 0
        header = " ".join([FORWARD_IN_BACKWARD, *(f"{name}: {number}" for name, number in keys.items())])
        return workload_text(header, self.rows)

    def write(self, place: str) -> None:
        """Write the file as a whole. Raise UsageError if that is not possible."""
        from hlo_inspect.atomic_files import atomic_writer

        if Path(place).is_dir():
            raise UsageError("is a folder; the text dialects need a file", Location(place))
        with atomic_writer(place) as stream:
            stream.write(self.content.decode())


class _RowMaker:
    """Maker of the rows of a file. Rests of nanoseconds are carried, and names are unique."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._rest = dict.fromkeys(PASSES, 0)
        self._names: Counter[str] = Counter()

    def rows(self, layer: LayerRow) -> Iterator[WorkloadRow]:
        """Yield the rows of a layer. The client runs the backward passes from the last row to the first."""
        forward, *backward = ([*self._short(cells)] for cells in layer.cells.values())
        count = max(1, len(forward), *map(len, backward))
        columns = [forward, *([*[_EMPTY] * (count - len(cells)), *reversed(cells)] for cells in backward)]
        for cells in zip_longest(*columns, fillvalue=_EMPTY):
            yield WorkloadRow(self._name(layer.name), -1, *self._fields(*cells), 0)  # type: ignore[call-arg, arg-type]  # nine

    @staticmethod
    def _short(cells: list[Cell]) -> Iterator[Cell]:
        """Split cells that a client cannot store."""
        for cell in cells:
            time, longest = cell.time, MAX_CELL * NANOSECOND
            while time > longest:
                yield Cell(longest)
                time -= longest
            yield cell._replace(time=time)

    def _fields(self, *cells: Cell) -> Iterator[object]:
        for name, cell in zip(PASSES, cells, strict=True):
            time = cell.time + self._rest[name]
            self._rest[name] = time % NANOSECOND
            yield time // NANOSECOND
            yield from (NONE, 0) if cell.communication is None else self._collective(cell.communication, cell.word)

    def _collective(self, communication: Communication, word: str) -> tuple[str, int]:
        suffix = f"_{word}" if word in ("EP", "DP_EP") else ""
        size, collective = communication.size, communication.collective
        if self._dialect == "simai":
            size = collective.properties.whole_of_operand(size, collective.group_size or 1)
        return WORKLOAD_WORDS[communication.kind] + suffix, size

    def _name(self, layer: str) -> str:
        """Return the name of a row: readers take a blank for the end of a field."""
        name = "".join(char if char.isprintable() and not char.isspace() else "_" for char in layer)[:_LONGEST]
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name}#{self._names[name]}"


_LONGEST = 120


def workload_export(context: Context) -> WorkloadExport:
    """Plan the export. Raise InputError if the step of the module is unknown, UsageError for wrong options or too many rows."""
    dialect: Dialect = "simai" if context.request.simulator == "simai" else "astra-sim"
    if named_times(context) is None:
        raise UsageError(f"--to {dialect} needs a --profile: its rows have compute times")
    words = parse_axis_words(context, context.request.axis_words)
    program = find_program(context)
    phases = {id(own): phase for own, phase in zip(program.communications.listed, context.collective_phases, strict=True)}
    layers = LayerList(
        lambda communication: words.word_of(communication.axis, dialect),
        phases,
        weight_gradients(context, program.work),
        mirrored_loops(program.issued.program.steps, lambda loop: _is_backward(program, loop)),
    )
    plan = make_plan(context, program, layers)
    rows = list(layers.rows)
    if not rows:
        raise InputError("the step has neither kernels nor collectives", Location(context.module.path))
    return WorkloadExport(plan, find_not_expressed(context, plan), rows, words, dialect)


def _is_backward(program: StepProgram, loop: LoopStep) -> bool:
    """Return True if some kernel of a loop is of the backward pass."""
    inside = set(program.branches.reached([loop.body]))
    return any(position[0] in inside and own.kernel.labels.phase == BACKWARD for position, own in program.work.items())
