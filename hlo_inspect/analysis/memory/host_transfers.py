"""Host memory of a program, and its copies between host and device.

Before optimization these are the custom calls `MoveToHost` and `MoveToDevice`, in JAX's own text `annotate_device_placement`.
XLA's host offloading turns them into copies, slices and updates whose operand and result are in different memory spaces; the
host's is 5. An update moves its update operand, not the array that it writes into. On TPU it is a `dynamic-update-slice-start`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from hlo_inspect.figure import Quantity, multiply, unknown
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.parameters import Interface, ParameterLeaf
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.hlo.values.shapes import HOST_SPACE, ArrayShape, Shape

Direction = Literal["to device", "to host"]

_TARGETS: dict[str, Direction] = {"MoveToDevice": "to device", "MoveToHost": "to host"}
_PLACEMENTS: dict[str, Direction] = {"device": "to device", "pinned_host": "to host", "unpinned_host": "to host"}
"""The directions by memory kind of a placement that the program asks for (`xla/service/memory_annotations.h`)."""

_PLACING = "annotate_device_placement"
_WRITING = frozenset({"dynamic-update-slice", "dynamic-update-slice-start"})
_BLOCKS = opcodes_that_are("block") - {"concatenate"}
_COPYING = _BLOCKS | {f"{opcode}-start" for opcode in _BLOCKS}


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


def on_host(shape: Shape | None) -> bool:
    """Return True if an array is in host memory."""
    return isinstance(shape, ArrayShape) and shape.memory_space == HOST_SPACE


def host_parameters(interface: Interface) -> list[ParameterLeaf]:
    """Return the arrays of the entry's parameters that are in the host's memory."""
    return [leaf for leaf in interface.parameters if on_host(leaf.shape)]


def find_transfers(views: Views, calls: CallGraph) -> list[HostTransfer]:
    """Return the copies between host and device in the order of the text, fused ones included.

    The module must be read with its graph.
    """
    return [
        transfer
        for name in views.computations
        if name in calls.calls or name in views.fusions
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
    read = 1 if opcode in _WRITING else 0
    source = view.operand_shape(row, read)
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
