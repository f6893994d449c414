"""A module as tables of rows that refer to each other: instructions, operands, computations, calls and buffers.

`query` reads them. They have too many rows for a report, so their makers return columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.bytes_accessed import FREE
from hlo_inspect.analysis.cost.kernels import CostsOfRows
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, Labels
from hlo_inspect.figure import Quantity, multiply
from hlo_inspect.figure import total as sum_of
from hlo_inspect.graph.calls import place
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.shapes import Shape, array_leaves, total
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Unit, Value
from hlo_inspect.report.table_spec import TableSpec

Columns = Sequence[Sequence[Value]]
"""The values of each column of a table."""

_BOUNDED = frozenset({"runs", "flops", "bytes_accessed"})


def _table(name: str, title: str, /, **units: Unit) -> TableSpec:
    """Return a table with columns of these units; docs/pages/columns.yaml has their meanings."""
    columns = (Column(column, unit, bounded=column in _BOUNDED) for column, unit in units.items())
    return TableSpec(name, title).with_columns(*columns)


# fmt: off
_INSTRUCTIONS = _table(
    "instructions", "Instructions of all computations",
    id="number", name="text", opcode="text", computation="text", shape="text", bytes="bytes", runs="count", flops="flops",
    bytes_accessed="bytes", phase="text", scope="text", op_name="text", source="text", line="number",
    live_from="number", live_to="number",
)
_OPERANDS = _table(
    "operands", "Operands of all instructions",
    computation="text", instruction="text", instruction_id="number", number="number", operand="text", operand_id="number",
)
_COMPUTATIONS = _table(
    "computations", "Computations",
    name="text", role="text", instructions="count", runs="count", root="text", line="number",
)
_CALLS = _table(
    "calls", "Calls of computations",
    computation="text", instruction="text", instruction_id="number", role="text", callee="text", runs="count",
)
_BUFFERS = _table(
    "buffers", "Buffers of device memory",
    id="number", name="text", computation="text", shape="text", bytes="bytes", kind="text", memory_space="number",
    values="count", live_from="number", live_to="number", line="number",
)
# fmt: on


class _Place(NamedTuple):
    """A computation, and the `id` of its first instruction."""

    view: View
    first: int


def _places(context: Context) -> list[_Place]:
    places, first = [], 0
    for name in context.module.computations:
        view = context.views.for_computation(name)
        places.append(_Place(view, first))
        first += len(view.names)
    return places


class _Runs:
    """Runs of computations in one step, also of fused ones, which run with their fusions."""

    def __init__(self, context: Context, places: Sequence[_Place]) -> None:
        self._graph, self._views = context.call_graph, context.views
        self._fusing: dict[str, list[str]] = {}
        for view, _ in places:
            for row in view.rows.column.calling:
                for callee in view.called_at(row):
                    if callee.role == "fused":
                        self._fusing.setdefault(callee.name, []).append(view.computation.name)

    def of(self, computation: str) -> Quantity | None:
        """Return the runs of a computation; None for one that is applied to elements or that nothing calls."""
        if computation in self._graph.calls:
            return self._graph.runs(computation)
        callers = self._fusing.get(computation, ())
        runs = [self._graph.runs(self._views.running(caller)) for caller in callers]
        return sum_of(runs) if runs else None


def _text(label: str) -> str | None:
    return None if label in {"", NOT_PRINTED, NO_SCOPE} else label


def _instructions(context: Context, places: Sequence[_Place]) -> Columns:
    columns: list[list[Value]] = [[] for _ in _INSTRUCTIONS.columns]
    runs, live = _Runs(context, places), _live_ranges(context.memory.device)
    costs = CostsOfRows(context.cost, context.call_graph)
    shapes: dict[int, tuple[str | None, int | None]] = {id(None): (None, None)}
    for view, first in places:
        size, name = len(view.names), view.computation.name
        if not size:
            continue
        labels = context.cost.labeller.of_rows(view, range(size))
        flops, accessed = _costs(context, costs, view)
        ranges = live.get(name, [(None, None)] * size)
        parts: Columns = (
            range(first, first + size),
            view.names,
            view.opcodes,
            [name] * size,
            *_shape_columns(view.shapes, shapes),
            [runs.of(name)] * size,
            flops,
            accessed,
            *zip(*map(_label_values, labels), strict=True),
            [view.op_name(row) or None for row in range(size)],  # of `labels` it is one for several layers
            [_text(own.source) for own in labels],
            view.lines,
            *zip(*ranges, strict=True),
        )
        for column, part in zip(columns, parts, strict=True):
            column.extend(part)
    return columns


def _label_values(labels: Labels) -> tuple[str | None, ...]:
    return labels.phase or None, _text(labels.scope)


def _shape_columns(shapes: Sequence[Shape | None], cache: dict[int, tuple[str | None, int | None]]) -> Columns:
    """Return texts and bytes of shapes, found once for each object, which the views keep."""
    for shape in shapes:
        if shape is not None and id(shape) not in cache:
            cache[id(shape)] = str(shape), total(leaf.array_bytes for _, leaf in array_leaves(shape))
    return list(zip(*[cache[id(shape)] for shape in shapes], strict=True))


def _costs(context: Context, costs: CostsOfRows, view: View) -> tuple[list[Quantity | None], list[Quantity | None]]:
    """Return FLOPs and bytes accessed of all runs of each row of a computation; None for rows without a cost of their own."""
    free = 0 if view.computation.name in context.cost.running else None
    figures: dict[int, tuple[Quantity, Quantity]] = {}
    flops: list[Quantity | None] = []
    accessed: list[Quantity | None] = []
    for row, opcode in enumerate(view.opcodes):
        counted = costs.get(view, row)
        if counted is not None and id(counted) not in figures:
            figures[id(counted)] = counted.of_step("flops"), counted.of_step("bytes")
        both = figures[id(counted)] if counted is not None else (free, free) if opcode in FREE else (None, None)
        flops.append(both[0])
        accessed.append(both[1])
    return flops, accessed


def _live_ranges(device: DeviceMemory | None) -> Mapping[str, list[tuple[int | None, int | None]]]:
    """Return, for each scheduled computation, the positions at which the values that each row defines are live."""
    if device is None:
        return {}
    ranges: list[tuple[int | None, int | None]] = [(None, None)] * device.schedule.end
    for value, time in enumerate(device.values.times):
        (start, end), (first, last) = (device.ranges.starts[value], device.ranges.ends[value]), ranges[time]
        ranges[time] = (start, end) if first is None or last is None else (min(first, start), max(last, end))
    runs = (run for run in device.schedule.runs if run.view is not None)
    return {run.name: [ranges[time] for time in run.times] for run in runs}


def _operands(_: Context, places: Sequence[_Place]) -> Columns:
    columns: list[list[Value]] = [[] for _ in _OPERANDS.columns]
    for view, first in places:
        names, counts = list(view.names), [len(operands) for operands in view.operands_of_rows]
        defined = list(chain.from_iterable(view.operands_of_rows))
        readers = list(chain.from_iterable(map(repeat, range(len(names)), counts)))
        numbers = list(chain.from_iterable(map(range, counts)))
        parts: Columns = (
            [view.computation.name] * len(defined),
            [names[reader] for reader in readers],
            [first + reader for reader in readers],
            numbers,
            [
                view.operands(reader)[number].name if operand is None else names[operand]
                for operand, reader, number in zip(defined, readers, numbers, strict=True)
            ],
            [None if operand is None else first + operand for operand in defined],
        )
        for column, part in zip(columns, parts, strict=True):
            column.extend(part)
    return columns


def _computations(context: Context, places: Sequence[_Place]) -> Columns:
    roles: dict[str, str] = {}
    runs = _Runs(context, places)
    for _, _, _, role, callee, _ in _call_rows(context, places):
        roles.setdefault(str(callee), str(role))
    if context.module.entry is not None:
        roles[context.module.entry.name] = "entry"
    return _transposed(
        _COMPUTATIONS,
        (
            (
                name := view.computation.name,
                roles.get(name),
                len(view.names),
                runs.of(name),
                view.names[view.root] if view.root is not None else None,
                view.computation.line,
            )
            for view, _ in places
        ),
    )


def _calls(context: Context, places: Sequence[_Place]) -> Columns:
    return _transposed(_CALLS, _call_rows(context, places))


def _call_rows(context: Context, places: Sequence[_Place]) -> Iterator[tuple[Value, ...]]:
    graph, runs = context.call_graph, _Runs(context, places)
    for view, first in places:
        caller = view.computation.name
        times = {(place(call.instruction), call.callee): call.times for call in graph.calls.get(caller, ())}
        of_caller = runs.of(caller)
        for row in view.rows.column.calling:
            for role, name in dict.fromkeys((callee.role, callee.name) for callee in view.called_at(row)):
                each = 1 if role == "fused" else times.get((view.place(row), name)) if role != "applied" else None
                of_call = None if each is None or of_caller is None else multiply(of_caller, each)
                yield caller, view.names[row], first + row, role, name, of_call


def _buffers(context: Context, _: Sequence[_Place]) -> Columns:
    device = context.memory.device
    return _transposed(_BUFFERS, _buffer_rows(device) if device is not None else ())


def _buffer_rows(device: DeviceMemory) -> Iterator[tuple[Value, ...]]:
    for buffer, members in enumerate(device.buffers.members):
        value, allocation = members[0], device.assignment.allocation_of_buffer.get(buffer)
        defined = device.place(device.values.times[value])
        yield (
            buffer,
            defined.name,
            defined.computation,
            str(device.shape(value) or "") or None,
            device.sizes[buffer],
            allocation.kind if allocation is not None else "heap",
            device.spaces[buffer],
            len(members),
            *device.live_range(buffer),
            defined.line,
        )


def _transposed(spec: TableSpec, rows: Sequence[Sequence[Value]] | Iterator[Sequence[Value]]) -> Columns:
    return list(zip(*rows, strict=True)) or [()] * len(spec.columns)


class ModuleTable(NamedTuple):
    """A table, and the function that makes its columns."""

    spec: TableSpec
    make: Callable[[Context, Sequence[_Place]], Columns]

    def columns(self, context: Context) -> Columns:
        """Return the values of its columns for a module that was read for `Relations`."""
        return self.make(context, _places(context))


RELATIONS = (
    ModuleTable(_INSTRUCTIONS, _instructions),
    ModuleTable(_OPERANDS, _operands),
    ModuleTable(_COMPUTATIONS, _computations),
    ModuleTable(_CALLS, _calls),
    ModuleTable(_BUFFERS, _buffers),
)


class Relations(Pass):
    """Read all that the tables of `query` need.

    No command of its own: `query` takes the tables from the module.
    """

    name = "relations"
    findings_of = "none"
    uses_profile = True
    asks_phases = True
    wants = KERNEL_WANTS | phases.WANTS

    def run(self, context: Context) -> Section:
        return Section({})
