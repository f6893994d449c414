"""Collectives of a partitioned program before XLA's collective passes, and the reduce-scatters that XLA will make of them.

The partitioner writes an all-reduce of which each device keeps its own slice. XLA's ReduceScatterCreator makes one
reduce-scatter of the two, on GPU and TPU (xla/hlo/transforms/collectives/reduce_scatter_creator.cc). It needs an all-reduce of
one array whose only reader is the slice. The slice divides one dimension by the devices of a group. Its start is a table by
device or a multiple of the device's number.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.devices.participants import ShapesAre
from hlo_inspect.hlo.collective_kinds import KIND_TABLE
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import AFTER_COLLECTIVE_PASSES, DEVICE_NUMBERS, opcodes_that_are
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.request import PlatformName

if TYPE_CHECKING:
    from hlo_inspect.graph.readers import ViewRow
    from hlo_inspect.graph.view import Views

_RESHAPES = opcodes_that_are("relayout") | {"convert"}
_MAX_OFFSET = 16
"""Instructions that are followed from the start of a slice to the device's number."""


def is_as_written(module: Module, shapes_are: ShapesAre | None, platform: PlatformName | None) -> bool:
    """Return True for a partitioned program from before XLA's collective passes, unless it is compiled for a CPU."""
    if module.header.is_scheduled or shapes_are != "per_device" or "all-reduce" not in module.opcodes:
        return False
    return AFTER_COLLECTIVE_PASSES.isdisjoint(module.opcodes) and platform != "cpu" and not _is_of_cpu(Path(module.path))


def _is_of_cpu(path: Path) -> bool:
    """Return True if the optimized text of the same module lies beside the file and is that of a CPU."""
    number, _, _ = path.name.partition(".")
    return number.startswith("module_") and any(path.parent.glob(f"{number}.*cpu_after_optimizations.txt"))


def as_optimized(views: Views, collectives: Iterable[Collective]) -> list[Collective]:
    """Return the collectives with reduce-scatters in the place of the all-reduces that XLA converts."""
    return [_scattered(written) if _keeps_own_slice(views, written) else written for written in collectives]


def _scattered(collective: Collective) -> Collective:
    properties, devices = KIND_TABLE["reduce-scatter"], collective.group_size
    size = collective.operand_bytes
    sent = properties.sent_bytes(size, devices) if size is not None else None
    result = size // devices if size is not None and devices else None
    return collective._replace(kind=properties.name, properties=properties, result_bytes=result, wire_bytes=sent)


def _keeps_own_slice(views: Views, collective: Collective) -> bool:
    devices = collective.group_size
    if collective.kind != "all-reduce" or not devices or devices < 2 or collective.start is not collective.inner:
        return False
    from hlo_inspect.analysis.collectives.collective_results import place_of

    place = place_of(views, collective)
    reader = _only_reader(place) if place is not None and isinstance(place.shape, ArrayShape) else None
    if reader is not None and reader.opcode == "reshape":
        reader = _only_reader(reader)
    if reader is None or reader.opcode != "dynamic-slice":
        return False
    whole, part = reader.view.operand_shape(reader.row, 0), reader.shape
    if not isinstance(whole, ArrayShape) or not isinstance(part, ArrayShape):
        return False
    sizes = list(zip(whole.dimensions, part.dimensions, strict=True))
    cut = [number for number, (size, kept) in enumerate(sizes) if size != kept]
    if len(cut) != 1 or sizes[cut[0]][0] != (sizes[cut[0]][1] or 0) * devices:
        return False
    return _is_of_device(reader.operand(1 + cut[0]))


def _only_reader(place: ViewRow) -> ViewRow | None:
    users = place.view.users[place.row]
    return place._replace(row=users[0]) if len(users) == 1 and place.view.root != place.row else None


def _is_of_device(offset: ViewRow | None) -> bool:
    """Return True if an offset is the number of the device, a table by it, or a multiple of one of these."""
    for _ in range(_MAX_OFFSET):
        if offset is None or offset.opcode in DEVICE_NUMBERS:
            return offset is not None
        operands = [operand for operand in offset.operands if operand is not None]
        if offset.opcode in _RESHAPES:
            offset = operands[0] if operands else None
        elif offset.opcode == "dynamic-slice" and operands and operands[0].opcode == "constant":
            offset = offset.operand(1)
        elif offset.opcode == "multiply":
            others = [operand for operand in operands if operand.opcode != "constant"]
            offset = others[0] if len(others) == 1 else None
        else:
            return False
    return False
