"""Kernels as a simulator takes them: time, FLOPs and bytes of one run, and those that compute gradients of weights.

A backward product is for a weight if no other backward product needs its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.time.kernel_times import KernelTimes, devices_of_work
from hlo_inspect.graph.view import InstructionPlace, View
from hlo_inspect.hlo.values.op_names import BACKWARD

PICOSECONDS = 10**12
"""Unit of times inside: sums are exact, and a microsecond is a whole number."""
MAX_PICOSECONDS = 2**63
_FLOPS, _BYTES, _MATMUL = map(FIGURES.index, ("flops", "bytes", "matmul_flops"))


class KernelWork(NamedTuple):
    """Work of a run of a kernel.

    `time` is in picoseconds, 0 without a profile. If the model has no estimate, `is_bound` is true and the time is the bound.
    If `is_unknown`, a figure is unknown and counts as 0.
    """

    name: str
    time: int
    flops: int
    size: int
    is_bound: bool
    is_unknown: bool
    kernel: Kernel


def named_times(context: Context) -> KernelTimes | None:
    """Return the times of kernels on the accelerator that the user names; None without one."""
    return context.on_machine.kernel_times if context.on_machine.profile_is_named else None


def find_kernel_work(context: Context) -> dict[InstructionPlace, KernelWork]:
    """Return the work of each kernel of a module. FLOPs and bytes of a global program are divided by its devices."""
    times = named_times(context)
    has_shardings = any(leaf.sharding is not None for leaf in context.interface.parameters)
    devices = devices_of_work(context.shapes_are, context.device_counts.devices, has_shardings)
    return {kernel.place: _work(kernel, times, devices) for kernel in context.kernels.launched}


def _work(kernel: Kernel, times: KernelTimes | None, devices: int) -> KernelWork:
    amounts, gaps = kernel.parts[0].cost.amounts, kernel.parts[0].cost.gaps
    time, is_bound = 0, False
    if times is not None:
        own = times.for_kernel(kernel)
        is_bound = bool(own.estimate_gap)
        seconds = own.bound_s if is_bound else own.estimate_s
        time = min(round(seconds * PICOSECONDS), MAX_PICOSECONDS)
    is_unknown = kernel.is_unknown or bool({"flops", "bytes"}.intersection(gaps))
    flops, size = (int(amounts[index]) // devices for index in (_FLOPS, _BYTES))
    return KernelWork(kernel.name, time, flops, size, is_bound, is_unknown, kernel)


# -- gradients of weights --------------------------------------------------------------------------------------------------


def weight_gradients(context: Context, work: Mapping[InstructionPlace, KernelWork]) -> set[InstructionPlace]:
    """Return the kernels that multiply matrices for the gradient of a weight, loops by loop.

    A loop passes an element of its result to the same element of its next iteration.
    """
    products: dict[str, dict[int, InstructionPlace]] = {}
    for position, own in work.items():
        kernel = own.kernel
        if kernel.parts[0].cost.amounts[_MATMUL] and kernel.labels.phase == BACKWARD:
            products.setdefault(position[0], {})[kernel.row] = position
    bodies = {loop.body for loop in context.call_graph.loops}
    places: set[InstructionPlace] = set()
    for name, rows in products.items():
        view = context.views.for_computation(name)
        needed = _needed(view, list(rows), is_body=name in bodies)
        places.update(position for row, position in rows.items() if row not in needed)
    return places


def _needed(view: View, products: list[int], *, is_body: bool) -> set[int]:
    """Return the rows whose results some product needs, through any rows and iterations."""
    carried = _carried_rows(view) if is_body else {}
    waiting = [operand for row in products for operand in view.operand_rows(row) if operand is not None]
    needed = set(waiting)
    while waiting:
        row = waiting.pop()
        before = carried.get(row)
        sources = [before] if before is not None else [operand for operand in view.operand_rows(row) if operand is not None]
        new = set(sources) - needed
        needed |= new
        waiting += new
    return needed


def _carried_rows(view: View) -> dict[int, int]:
    """Map each row that takes an element of a loop's state to the row that makes it in the iteration before."""
    if view.root is None or view.opcodes[view.root] != "tuple":
        return {}
    made = view.operand_rows(view.root)
    carried: dict[int, int] = {}
    for row, opcode in enumerate(view.opcodes):
        operand = view.operand_row(row, 0) if opcode == "get-tuple-element" else None
        index = view.element_number(row) if operand is not None and view.opcodes[operand] == "parameter" else None
        source = made[index] if index is not None and index < len(made) else None
        if source is not None:
            carried[row] = source
    return carried
