"""Host memory that the program asks for and that its optimized text does not use.

The request is a custom call (`asked_direction`). XLA removes it even if it ignores it: only the text before optimizations has
it. A dump directory has that text beside the optimized one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import runs_of
from hlo_inspect.analysis.memory.host_transfers import asked_direction, on_host
from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph import calls
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.dump_directory import text_before_optimizations
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.device_groups import DeviceListError
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.hlo.wants import Wants

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
        modules = list(read_input(open_source(path), calls.WANTS | Wants(opcodes=_CALLS | _PARAMETERS)))
    except HloInspectError:
        return None
    return next((requests for module in modules if module.name == name and (requests := _requests(module))), None)


def uses_host(views: Views) -> bool:
    """Return True if an array of the program is in host memory."""
    shapes = {id(shape): shape for name in views.computations for shape in views.for_computation(name).shapes}
    return any(on_host(leaf) for shape in shapes.values() for _, leaf in array_leaves(shape))
