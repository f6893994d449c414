"""Time of one run of a kernel: a bound, an estimate, and the compiler's own estimate.

The bound is the longest of three. These are FLOPs at the dense peak of their unit, bytes of device memory at its bandwidth,
and bytes of host memory at its link. Memory on the chip takes no time.

The estimate on a TPU is the fixed cost of a kernel, plus the longer of its matrix multiplications and its bytes. Both count at
the shares of the peaks that kernels reach. Bytes grow by the tiles of the kernel's arrays. They count in every memory, as in
the compiler's own estimates, which precede the assignment of memory on the chip. An output fusion, which feeds the matrix
unit, has the fixed cost again for each of the two factors fetched from device memory. A kernel that is not split
over both cores of a chip has half of the chip. Work on scalars alone has no fixed cost.

The estimate elsewhere is that of XLA's performance model of GPUs. See
`GpuPerformanceModelBase::CombineComputeAndMemoryAccessTime` (xla/service/gpu/model/gpu_performance_model_base.cc). It is a
launch, then computing and memory one after the other, of which 95 % of the shorter overlap.

The compiler's own estimate is in `backend_config`. TPU: `window_config.estimated_cycles`, cycles of the whole kernel. Every
loop and output fusion has it; collectives, custom calls and most custom fusions do not. GPU: `reification_cost`, with
`exec_time_us`, and `end_to_end_cycles` if known (xla/service/gpu/backend_configs.proto); it is empty in most texts. The
compiler ranks kernels by these figures; neither is a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import ASYNC_DONE_TARGET
from hlo_inspect.analysis.cost.figures import CUSTOM_CALL, Tally, TallyKey
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.cost.roofline import HOST_MEMORY, bound, engine_times, memory_time, missing_rate, units_elsewhere
from hlo_inspect.analysis.devices.participants import ShapesAre
from hlo_inspect.analysis.tpu_marks import SPLIT_OVER_CORES
from hlo_inspect.figure import least
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.attributes import BackendConfig
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, array_leaves

if TYPE_CHECKING:
    from hlo_inspect.analysis.hardware import HardwareProfile

HOST_LINK = "host link"
_EMPTY = '"reification_cost":[]'
_NO_ESTIMATE = 2**62
"""XLA prints the largest integer of 64 bits if it has no estimate."""
_PLACEHOLDER_STEP = 100
"""The cycles of each step of a copy's grid without an estimate."""


class CompilerEstimate(NamedTuple):
    """The compiler's estimate of one run: `cycles` of the device's clock, or `seconds`; None if not stated."""

    cycles: int | None
    seconds: float | None

    def in_seconds(self, clock: float | None) -> float | None:
        """Return the time, for cycles at that clock in Hz; None if no clock is known."""
        if self.seconds is not None or self.cycles is None:
            return self.seconds
        return self.cycles / clock if clock else None


NO_ESTIMATE = CompilerEstimate(None, None)


def compiler_estimate(view: View, row: int) -> CompilerEstimate:
    """Return the compiler's estimate of an instruction."""
    tail = view.tails[row]
    if "estimated_cycles" not in tail and ("reification_cost" not in tail or _EMPTY in tail):  # as most: nothing to parse
        return NO_ESTIMATE
    instruction = view.instruction(row)
    config = instruction.attr("backend_config")
    if config is None:
        return NO_ESTIMATE
    window = config.member("window_config")
    cycles = _integer(window.get("estimated_cycles"))
    if cycles is not None:
        is_placeholder = instruction.opcode == "copy" and cycles == _PLACEHOLDER_STEP * _grid_steps(window)
        return NO_ESTIMATE if is_placeholder or cycles >= _NO_ESTIMATE else CompilerEstimate(cycles, None)
    return _of_gpu(config)


def _grid_steps(window: Mapping[str, Any]) -> int:
    bounds = window.get("iteration_bounds")
    sizes = [_integer(size) for size in bounds] if isinstance(bounds, list) else []
    return math.prod([size or 0 for size in sizes[:_MAX_RANK]])


_MAX_RANK = 64


def _of_gpu(config: BackendConfig) -> CompilerEstimate:
    """Return the first entry that states a time, as XLA's scheduler does."""
    entries = config.fields.get("reification_cost")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            cycles, micros = _number(entry.get("end_to_end_cycles")), _number(entry.get("exec_time_us"))
            if cycles or micros:
                return CompilerEstimate(round(cycles) if cycles else None, micros / 1e6 if micros else None)
    return NO_ESTIMATE


def _integer(value: object) -> int | None:
    """Read a count of JSON, which protos print as strings; None if it is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _number(value: object) -> float:
    """Return a positive number; 0 for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _NO_ESTIMATE:
        return 0.0
    return float(value)


_SCALAR_MEMORY = 6
_OVERLAP = 0.95
_FACTORS = 2


class KernelTime(NamedTuple):
    """Seconds of one run; a lower bound if a part is unknown.

    `bound_gap` says what the bound leaves out, `estimate_gap` why the estimate is only a lower bound; empty if complete.
    `bound_by` is `compute`, `memory` or `host link`; None if two take as long, or if some work is unknown.
    """

    bound_s: float
    estimate_s: float
    bound_by: str | None = None
    compiler_s: float | None = None
    compiler_cycles: int | None = None
    bound_gap: str = ""
    estimate_gap: str = ""


class _Load(NamedTuple):
    """Seconds of a run of a kernel at the peaks, by busy resource, and the arrays that it reads and writes."""

    matmul: float
    vector: float
    memory: float
    host: float
    moved: Tally
    operands: list[list[ArrayShape]]
    results: list[ArrayShape]

    @property
    def compute(self) -> float:
        """Seconds of computing: matrix and vector units work at the same time."""
        return max(self.matmul, self.vector)

    @property
    def arrays(self) -> list[ArrayShape]:
        return [*self.results, *(array for operand in self.operands for array in operand)]

    @property
    def fetched(self) -> int:
        """The operands in the device's memory."""
        return sum(any(array.memory_space == 0 for array in operand) for operand in self.operands)

    @property
    def bound(self) -> float:
        return max(self.compute, self.memory, self.host)

    @property
    def bound_by(self) -> str | None:
        slower = bound(self.compute, max(self.memory, self.host))
        return HOST_LINK if slower == "memory" and self.host > self.memory else slower


def no_bytes_reason(module: Module) -> str:
    """Return the reason why the bytes that a module moves are unknown; empty if they are known.

    Before XLA fuses instructions, most of what they read and write never reaches memory. A text that XLA did not print whole,
    with a header, may be of any stage.
    """
    is_whole = "entry_computation_layout" in module.header.attributes
    if module.header.is_scheduled or module.opcode_counts["fusion"] or not is_whole:
        return ""
    return "the text is from before fusion: fused instructions may never access memory"


def devices_of_work(shapes_are: ShapesAre | None, devices: int | None, has_shardings: bool) -> int:
    """Return the number of devices that share the work of a text: the devices of its shardings.

    Only a program of global shapes is divided. A region written per device is divided with the rest. So is a program whose
    shapes may be global or per device; its times stay lower bounds.
    """
    return devices if shapes_are != "per_device" and has_shardings and devices is not None else 1


class KernelTimes:
    """The times of the kernels of a module on an accelerator.

    `bytes_gap` says why their bytes are unknown; unknown bytes take no time. The FLOPs of the text are those of `devices`
    devices together.
    """

    def __init__(self, profile: HardwareProfile, views: Views, bytes_gap: str = "", devices: int = 1) -> None:
        self.profile = profile
        self.bytes_gap = bytes_gap
        self.devices = devices
        self._views = views
        self._is_tpu = profile.is_tpu
        self._known: dict[int, KernelTime] = {}

    def for_kernel(self, kernel: Kernel) -> KernelTime:
        """Return the times of one run of a kernel; for a collective, the times of its work on the device itself."""
        cached = self._known.get(kernel.like)
        if cached is None:
            only_waits = self._only_waits(kernel)
            cached = self._known[kernel.like] = KernelTime(0.0, 0.0) if only_waits else self._find(kernel)
        return cached

    def for_each(self, kernels: Iterable[Kernel]) -> list[KernelTime]:
        """Return the times of one run of each of several kernels."""
        return [self._known.get(kernel.like) or self.for_kernel(kernel) for kernel in kernels]

    def _find(self, kernel: Kernel) -> KernelTime:
        load, stated = self._load(kernel), compiler_estimate(kernel.view, kernel.row)
        estimate = load.bound
        if not self.bytes_gap:
            estimate = max(estimate, self._of_tpu(kernel, load) if self._is_tpu else self._of_gpu(kernel, load))
        rate_gap = missing_rate(kernel.parts[0].cost.work, self.profile, load.bound * self.devices)
        bound_gap = self._bound_gap(kernel) or rate_gap or self._bandwidth_gap(load)
        return KernelTime(
            load.bound,
            estimate,
            None if kernel.is_unknown or rate_gap else load.bound_by,
            stated.in_seconds(self.profile.clock if self._is_tpu else None),  # GPUs state times beside their cycles
            stated.cycles,
            bound_gap,
            bound_gap or self._estimate_gap(kernel, load),
        )

    def _load(self, kernel: Kernel) -> _Load:
        engines = engine_times(kernel.parts[0].cost.work, self.profile)
        moved = Tally()
        for unit, size in () if self.bytes_gap else kernel.moved:
            moved.add(TallyKey("", unit), (0, 0, 0, size))
        per_host_byte = 1 / self.profile.host_bandwidth if self.profile.host_bandwidth else 0.0
        return _Load(
            engines.get("matmul", 0.0) / self.devices,
            engines.get("vector", 0.0) / self.devices,
            least(memory_time(moved, self.profile)),
            moved.rows.get(TallyKey("", HOST_MEMORY), (0,))[-1] * per_host_byte,
            moved,
            list(map(_arrays, kernel.view.operand_shapes(kernel.row))) if self._is_tpu else [],
            _arrays(kernel.shape) if self._is_tpu else [],
        )

    # -- models -----------------------------------------------------------------------------------------------------------

    def _of_tpu(self, kernel: Kernel, load: _Load) -> float:
        profile, arrays = self.profile, load.arrays
        padding = _padding(arrays)
        if kernel.started is not None:  # a copy that its own engine makes, beside the kernels
            return max(load.memory * padding / profile.memory_efficiency, load.host)
        if all(array.elements == 1 or array.memory_space == _SCALAR_MEMORY for array in arrays):
            return load.bound
        anywhere = Tally()
        anywhere.add(TallyKey(""), (0, 0, 0, sum(row[-1] for key, row in load.moved.rows.items() if key.unit != HOST_MEMORY)))
        memory = least(memory_time(anywhere, profile)) * padding / profile.memory_efficiency
        is_half = (profile.cores_per_device or 1) > 1 and SPLIT_OVER_CORES not in kernel.view.tails[kernel.row]
        cores = 0.5 if is_half else 1.0
        longest = max(load.matmul / profile.matmul_efficiency / cores, memory / cores, load.host)
        waits = min(load.fetched, _FACTORS) if kernel.fusion_kind == "kOutput" else 0
        return (profile.kernel_overhead or 0.0) * (1 + waits) + longest

    def _of_gpu(self, kernel: Kernel, load: _Load) -> float:
        profile = self.profile
        memory = max(load.memory / profile.memory_efficiency, load.host)
        if kernel.started is not None:
            return memory
        compute = load.matmul / profile.matmul_efficiency + load.vector
        return (profile.kernel_overhead or 0.0) + compute + memory - _OVERLAP * min(compute, memory)

    # -- what is unknown ------------------------------------------------------------------------------------------------

    def _bound_gap(self, kernel: Kernel) -> str:
        if self.bytes_gap:
            return self.bytes_gap
        if kernel.is_unknown:
            return f"there is no rule for {kernel.instruction.attr('custom_call_target')}"
        gaps = kernel.parts[0].cost.gaps
        gap = gaps.get("flops") or gaps.get("bytes")
        return str(gap) if gap is not None else ""

    def _bandwidth_gap(self, load: _Load) -> str:
        """Return the reason why bytes of the kernel have no time; empty if they have, or if there are none."""
        units = {key.unit for key, row in load.moved.rows.items() if row[-1]}
        if self.profile.memory_bandwidth is None and units - units_elsewhere(self.profile):
            return f"the profile {self.profile.name} states no memory bandwidth"
        if self.profile.host_bandwidth is None and HOST_MEMORY in units:
            return f"the profile {self.profile.name} states no bandwidth to the host"
        return ""

    def _estimate_gap(self, kernel: Kernel, load: _Load) -> str:
        """Return the reason why the kernel has no estimate; empty if it has one.

        Bytes do not determine the time of TPU's custom fusions, such as gathers and scatters. The model of TPUs takes bytes on
        the chip at the rate of the memory.
        """
        if self._is_tpu and kernel.fusion_kind == "kCustom":
            return "there is no model of custom fusions"
        if self._is_tpu and self.profile.memory_bandwidth is None and any(row[-1] for row in load.moved.rows.values()):
            return f"the profile {self.profile.name} states no memory bandwidth"
        if self.profile.kernel_overhead is None:
            return f"the profile {self.profile.name} states no kernel_overhead"
        return ""

    def _only_waits(self, kernel: Kernel) -> bool:
        """Return True for a TPU fusion that waits for a collective which another fusion started."""
        if not self._is_tpu or kernel.fusion_kind != "kCustom":
            return False
        view = self._views.find(kernel.instruction.callee("calls"))
        if view is None:
            return False
        calls = (row for row, opcode in enumerate(view.opcodes) if opcode == CUSTOM_CALL)
        return any(ASYNC_DONE_TARGET in view.tails[row] for row in calls)


def _arrays(shape: Shape | None) -> list[ArrayShape]:
    return [array for _, array in array_leaves(shape)]


def _padding(arrays: list[ArrayShape]) -> float:
    """Return padded bytes over bytes of arrays with tiles; 1 if unknown."""
    sizes = [(array.array_bytes, array.padded_bytes) for array in arrays]
    stated = [(size, padded) for size, padded in sizes if size is not None and padded is not None]
    whole = sum(size for size, _ in stated)
    return max(1.0, sum(padded for _, padded in stated) / whole) if whole else 1.0
