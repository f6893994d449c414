"""Gathered parameters with long lifetimes, and whole stacks of layers for loops that read one layer at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.analysis.memory.parameter_relations import GATHERED, Relation
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import NAMING, TABLE
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape

LAYER_BY_LAYER = frozenset({"conversion", "copy", "transpose", GATHERED})
"""Operations that work on a single layer of a parameter as well as on all layers."""

_PASSES_ON = NAMING | {"while"}


class GatheredParameter(NamedTuple):
    """A gathered copy of a parameter, in bytes. `is_kept`: a forward and a backward pass read it."""

    name: str
    line: int
    parameter: int
    bytes: int
    live_from: int
    live_to: int
    is_kept: bool


def find_gathered(
    device: DeviceMemory,
    relation_of: Callable[[View, int, ShapeIndex], Relation | None],
    phase_of: Callable[[View, int], str],
) -> list[GatheredParameter]:
    """Return the results of all-gathers of parameters, in the order of time."""
    schedule, values = device.schedule, device.values
    gathered: list[GatheredParameter] = []
    for value, time in enumerate(values.times):
        kind, buffer = TABLE.get(schedule.opcodes[time]), device.buffers.buffer_of_value[value]
        if kind is None or kind.collective != "all-gather" or time in schedule.wrapped or not device.sizes[buffer]:
            continue
        relation = relation_of(schedule.view(time), schedule.rows[time], values.index(value))
        if relation is None or GATHERED not in relation.steps:
            continue
        phases = {phase_of(schedule.view(use), schedule.rows[use]) for use in device.uses.get(value)}
        is_kept = BACKWARD in phases and not phases.isdisjoint({FORWARD, LOSS})
        place, lives = device.place(time), device.live_range(buffer)
        gathered.append(GatheredParameter(place.name, place.line, relation.parameter, device.sizes[buffer], *lives, is_kept))
    return gathered


class LayerStack(NamedTuple):
    """An array that is live at the peak and made from a parameter.

    Only `loop` reads it, in slices of at most `layer_bytes`.
    """

    array: LiveArray
    loop: str
    layers: int
    layer_bytes: int


def find_layer_stacks(device: DeviceMemory, views: Views, live: Sequence[LiveArray], least: int) -> list[LayerStack]:
    """Return the stacks of at least `least` bytes among the temporaries live at the peak, in their order."""
    given: dict[int, set[int | None]] = {}
    for array in live:
        if array.kind == "parameter" and array.relation is not None and isinstance(array.shape, ArrayShape):
            given.setdefault(array.relation.parameter, set()).update(array.shape.dimensions)
    made: list[tuple[LiveArray, int, ArrayShape, Relation]] = []
    for array in live:
        if array.kind == "heap" and array.bytes >= least and array.buffer is not None and isinstance(array.shape, ArrayShape):
            values, relation = device.buffers.members[array.buffer], array.relation
            is_only_one = len(values) == 1  # nothing writes into the array
            if is_only_one and relation is not None and relation.steps and LAYER_BY_LAYER.issuperset(relation.steps):
                made.append((array, values[0], array.shape, relation))
    reader = _StackReader(device, views)
    stacks = []
    for array, value, shape, relation in made:
        stack = reader.stack(array, value, shape)
        if stack is not None and stack.layers in given.get(relation.parameter, ()):
            stacks.append(stack)  # the parameter has these layers: they were not gathered from other devices
    return stacks


class _StackReader:
    """Follows the users of an array to the slices that loops take of it."""

    def __init__(self, device: DeviceMemory, views: Views) -> None:
        self._device = device
        self._views = views
        self._known: dict[tuple[str, int, ArrayShape], list[int | None]] = {}

    def stack(self, array: LiveArray, value: int, shape: ArrayShape) -> LayerStack | None:
        """Return the array as a stack of layers; None if an instruction reads more than one layer at a time."""
        device = self._device
        loops: dict[str, int] = {}
        for time in device.uses.get(value):
            opcode, run = device.schedule.opcodes[time], device.schedule.run_at[time]
            if opcode in _PASSES_ON:
                continue
            layer = self._layer(time, value, shape) if run.role == "body" else None
            if layer is None:
                return None
            loop = device.schedule.name(run.caller)
            loops[loop] = max(loops.get(loop, 0), layer)
        whole, layer = shape.elements or 0, max(loops.values(), default=0)
        if not layer or whole < 2 * layer:
            return None
        return LayerStack(array, next(iter(loops)), whole // layer, -(-array.bytes * layer // whole))

    def _layer(self, time: int, value: int, stack: ArrayShape) -> int | None:
        """Return the elements of the largest slice taken of a value; None if an instruction reads more than slices."""
        schedule, values = self._device.schedule, self._device.values
        view, row = schedule.view(time), schedule.rows[time]
        places = [n for n, operand in enumerate(schedule.operands[time]) if operand >= 0 and value in values.result(operand)]
        sizes: list[int | None] = []
        if schedule.opcodes[time] == "dynamic-slice":
            sizes = [_slice_of(view.shapes[row], stack) if places == [0] else None]
        elif schedule.opcodes[time] == "fusion":
            fused = self._views.fused(view, row)
            sizes = [size for place in places for size in self._fused(fused, place, stack)]
        stated = [size for size in sizes if size is not None]
        return max(stated) if stated and len(stated) == len(sizes) else None

    def _fused(self, fused: Computation | None, place: int, stack: ArrayShape) -> list[int | None]:
        """Return the elements of each slice that a fusion takes of its operand; None for any other use."""
        if fused is None:
            return [None]
        key = (fused.name, place, stack)
        if key not in self._known:
            self._known[key] = list(_fused_slices(self._views.for_computation(fused.name), place, stack))
        return self._known[key]


def _fused_slices(fused: View, place: int, stack: ArrayShape) -> Iterator[int | None]:
    """Yield the elements of each slice that a fused computation takes of a parameter; None for any other use."""
    reached = [row for number, row in fused.parameters_by_number.items() if number == place]
    seen = set(reached)
    for row in reached:
        if row == fused.root:
            yield None
        for user in fused.users[row]:
            if fused.opcodes[user] != "bitcast":
                yield _fused_slice(fused, user, row, stack)
            elif user not in seen:
                seen.add(user)
                reached.append(user)


def _fused_slice(fused: View, user: int, row: int, stack: ArrayShape) -> int | None:
    operands = fused.operand_rows(user)
    if fused.opcodes[user] != "dynamic-slice" or fused.operand_row(user, 0) != row or row in operands[1:]:
        return None
    return _slice_of(fused.shapes[user], stack)


def _slice_of(part: Shape | None, stack: ArrayShape) -> int | None:
    """Return the elements of a slice that takes one index of one dimension and all of the others; None for any other slice."""
    if not isinstance(part, ArrayShape) or part.elements is None or not stack.elements or not part.elements:
        return None
    layers = stack.elements // part.elements
    return part.elements if layers * part.elements == stack.elements and layers in stack.dimensions else None
