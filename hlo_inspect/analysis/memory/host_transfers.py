"""Host memory of a program, its copies between host and device, and host memory that the program asks for and does not use.

Before optimization copies are the custom calls `MoveToHost` and `MoveToDevice`, in JAX's own text `annotate_device_placement`.
XLA's host offloading turns them into copies, slices and updates whose operand and result are in different memory spaces; the
host's is 5. An update moves its update operand, not the array that it writes into. On TPU it is a `dynamic-update-slice-start`.

XLA removes a custom call that asks for host memory even if it ignores it: only the text before optimizations has it. A dump
directory has that text beside the optimized one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from hlo_inspect.analysis.collectives.collective_results import runs_of
from hlo_inspect.errors import HloInspectError
from hlo_inspect.figure import Quantity, multiply, unknown
from hlo_inspect.graph.calls import WANTS, CallGraph
from hlo_inspect.graph.parameters import Interface, ParameterLeaf
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.input.dump_directory import text_before_optimizations
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.hlo.values.device_groups import DeviceListError
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, array_leaves, on_host
from hlo_inspect.hlo.wants import Wants

Direction = Literal["to device", "to host"]

_TARGETS: dict[str, Direction] = {"MoveToDevice": "to device", "MoveToHost": "to host"}
_PLACEMENTS: dict[str, Direction] = {"device": "to device", "pinned_host": "to host", "unpinned_host": "to host"}
"""The directions by memory kind of a placement that the program asks for (`xla/service/memory_annotations.h`)."""

_PLACING = "annotate_device_placement"
_WRITING = frozenset({"dynamic-update-slice", "dynamic-update-slice-start"})
_BLOCKS = opcodes_that_are("block") - {"concatenate"}
_COPYING = _BLOCKS | {f"{opcode}-start" for opcode in _BLOCKS}
_CROSSING = _COPYING | {"custom-call"}


class HostTransfer(NamedTuple):
    """An instruction that copies `size` bytes per run; None if a shape is unknown."""

    view: View
    row: int
    direction: Direction
    shape: Shape
    runs: Quantity

    @property
    def size(self) -> int | None:
        return self.shape.array_bytes

    @property
    def moved(self) -> Quantity:
        """Bytes of all runs in a step."""
        size = self.size
        return unknown("a shape is unknown") if size is None else multiply(self.runs, size)


def host_parameters(interface: Interface) -> list[ParameterLeaf]:
    """Return the arrays of the entry's parameters that are in the host's memory."""
    return [leaf for leaf in interface.parameters if on_host(leaf.shape)]


def find_transfers(views: Views, calls: CallGraph) -> list[HostTransfer]:
    """Return the copies between host and device in the order of the text, fused ones included.

    The module must be read with its graph.
    """
    return [
        transfer
        for name, computation in views.computations.items()
        if (name in calls.calls or name in views.fusions) and not _CROSSING.isdisjoint(computation.opcodes)
        for transfer in _transfers(views.for_computation(name), calls.runs(views.running(name)))
    ]


def _transfers(view: View, runs: Quantity) -> Iterator[HostTransfer]:
    for row, opcode in enumerate(view.opcodes):
        if opcode == "custom-call":
            direction, shape = asked_direction(view.instruction_at(row)), view.shapes[row]
        elif opcode in _COPYING:
            direction, shape = copied_array(view, row)
        else:
            continue
        if direction is not None and shape is not None:
            yield HostTransfer(view, row, direction, shape, runs)


def asked_direction(call: Instruction) -> Direction | None:
    """Return the direction of the copy that a custom call asks for; None if it asks for none."""
    target = call.attr("custom_call_target") or ""
    if target != _PLACING:
        return _TARGETS.get(target)
    return _PLACEMENTS.get((call.attr("frontend_attributes") or {}).get("_xla_buffer_placement", ""))


def copied_array(view: View, row: int) -> tuple[Direction | None, Shape | None]:
    """Return the direction in which an instruction that copies blocks of memory crosses between host and device, if it does.

    Also return the shape of the copied array.
    """
    opcode = view.opcodes[row]
    source = view.operand_shape(row, 1 if opcode in _WRITING else 0)
    result = view.shapes[row]
    if opcode == "copy-start":
        result = _leaf(result, 0)
    elif opcode.endswith("-start"):
        result = _leaf(result, 1)
    if source is None or result is None or on_host(source) == on_host(result):
        return None, None
    return "to device" if on_host(source) else "to host", source if opcode in _WRITING else result


def _leaf(shape: Shape | None, number: int) -> Shape | None:
    elements = getattr(shape, "elements", ())
    return elements[number] if isinstance(elements, tuple) and number < len(elements) else None


# -- requests for host memory -------------------------------------------------------------------------------------------------


_CALLS = frozenset({"custom-call"})
_PARAMETERS = frozenset({"parameter"})


class OffloadRequests(NamedTuple):
    """The custom calls of a file that ask for host memory: their number, the line of the first, and the bytes of one step."""

    file: str
    requests: int
    line: int
    bytes: int


def find_offload_requests(module: Module) -> OffloadRequests | None:
    """Return the requests for host memory if the module is optimized: its own, or those of the text before optimizations."""
    if not module.header.is_scheduled:
        return None
    own = _requests(module)
    before = text_before_optimizations(Path(module.path)) if own is None else None
    return _requests_of_file(before, module.name) if before is not None else own


def _requests(module: Module) -> OffloadRequests | None:
    asking = [call for call in module.with_opcodes(_CALLS) if asked_direction(call) == "to host"]
    if not asking:
        return None
    graph = CallGraph(module)
    sizes = [_bytes_of_device(module, call) * runs_of(graph, call.computation.name) for call in asking]
    return OffloadRequests(Path(module.path).name, len(asking), asking[0].line, sum(sizes))


def _bytes_of_device(module: Module, call: Instruction) -> int:
    """Return the bytes that one device moves.

    Before partitioning an array has its global shape. It is divided as an entry parameter of this shape is. Without such a
    parameter all devices divide it: the bytes are a lower bound.
    """
    if not isinstance(call.shape, ArrayShape) or call.shape.bytes is None:
        return 0
    if module.header.is_scheduled:
        return call.shape.bytes
    devices = module.header.num_partitions or 1
    parameters = (row for row in module.with_opcodes(_PARAMETERS) if row.computation.is_entry)
    shapes = ((row.shape, row.attr("sharding")) for row in parameters)
    of_shape = [
        sharding for shape, sharding in shapes if isinstance(shape, ArrayShape) and shape.dimensions == call.shape.dimensions
    ]
    try:
        return call.shape.bytes // max((sharding.parts for sharding in of_shape if sharding is not None), default=devices)
    except DeviceListError:
        return call.shape.bytes // devices


def _requests_of_file(path: Path, name: str) -> OffloadRequests | None:
    """Return the requests of the module of that name in a file; None if it has none or cannot be read."""
    try:
        modules = list(read_input(open_source(path), WANTS | Wants(opcodes=_CALLS | _PARAMETERS)))
    except HloInspectError:
        return None
    return next((requests for module in modules if module.name == name and (requests := _requests(module))), None)


def uses_host(views: Views) -> bool:
    """Return True if an array of the program is in host memory."""
    shapes = {id(shape): shape for name in views.computations for shape in views.for_computation(name).shapes}
    return any(on_host(leaf) for shape in shapes.values() for _, leaf in array_leaves(shape))
