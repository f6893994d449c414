"""The measured instructions and collectives of a program, joined with its module."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES, CostFigure
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.devices.mesh_axes import most_named
from hlo_inspect.analysis.program_outline import executed_name, outline_of
from hlo_inspect.analysis.provenance import Labels
from hlo_inspect.analysis.time.placement import CollectiveGroups, UnknownTimeError
from hlo_inspect.hlo.opcodes import CONTROL_FLOW
from hlo_inspect.profiler.measurements import NO_WAITS, DeviceKey, DeviceWaits, MeasuredInstruction, RecordedProgram

LEAST_BOUND = 1e-9
"""A shorter bound gives no ratio: what binds such a kernel takes next to no time of it."""


def ratio_to(measured: float, bound: float | None) -> float | None:
    """Return a measured time divided by its bound; None if the bound is unknown or below a nanosecond."""
    return measured / bound if bound is not None and bound >= LEAST_BOUND else None


class KernelRow(NamedTuple):
    """An instruction with events. Times are seconds of one step, but median and percentile are of one execution.

    `bound_s` is the bound of its executions in a step; None without a hardware profile, for loops, and for asynchronous work,
    of which the device executes start and done only. Counts are those of the module for the measured executions.
    """

    name: str
    kind: str
    computation: str
    line: int
    labels: Labels
    events: int
    runs: float
    median_s: float
    p90_s: float
    time_s: float
    self_s: float
    share: float
    async_s: float | None
    bound_s: float | None
    flops: float | None
    bytes: float | None

    @property
    def ratio(self) -> float | None:
        return ratio_to(self.self_s, self.bound_s)

    @property
    def lost_s(self) -> float | None:
        """The self time above the bound."""
        return self.self_s - self.bound_s if self.bound_s is not None else None

    def rate(self, amount: float | None) -> float | None:
        """Return an amount of a step by self time."""
        return amount / self.self_s if amount is not None and self.self_s else None


class CollectiveRow(NamedTuple):
    """A collective with events. `wait_s` and `transfer_s` are None if they are unknown; `waits` has the waiting by device."""

    collective: Collective
    axis: str | None
    runs: float
    median_s: float
    self_s: float
    wait_s: float | None
    transfer_s: float | None
    sent: float | None
    waits: Mapping[DeviceKey, DeviceWaits]

    @property
    def bus(self) -> float | None:
        return self.sent / self.transfer_s if self.sent is not None and self.transfer_s else None


class MeasuredRows:
    """The rows of a program, made on first use."""

    def __init__(self, context: Context, recorded: RecordedProgram) -> None:
        self._context = context
        self.recorded = recorded
        self.times = recorded.times
        self._samples = len(recorded.times.samples)
        self._views = [context.views.for_computation(name) for name in context.module.computations]
        self._places = {name: (view, row) for view in self._views for row, name in enumerate(view.names)}

    @property
    def joined_events(self) -> int:
        return sum(times.events for name, times in self.times.instructions.items() if name in self._places)

    @property
    def strangers(self) -> list[tuple[str, MeasuredInstruction]]:
        """The instructions with events that the module lacks."""
        return [(name, times) for name, times in self.times.instructions.items() if name not in self._places]

    @property
    def silent(self) -> list[Kernel]:
        """The kernels without events."""
        return [kernel for kernel in self._context.kernels.launched if kernel.name not in self.times.instructions]

    @cached_property
    def kernels(self) -> list[KernelRow]:
        """The instructions with events, those of the longest self time first."""
        rows = [self._row(name, times) for name, times in self.times.instructions.items() if name in self._places]
        return sorted(rows, key=lambda row: (-row.self_s, row.name))

    @property
    def kernels_s(self) -> float:
        return self.times.seconds_of_step(sum(times.self_time for times in self.times.instructions.values()))

    @property
    def mean_step_s(self) -> float:
        return self.times.seconds_of_step(sum(sample.step for sample in self.times.samples))

    @property
    def mean_busy_s(self) -> float:
        return self.times.seconds_of_step(sum(sample.busy for sample in self.times.samples))

    @property
    def collectives_s(self) -> float:
        """The part of the mean busy time that collectives take: their self times, unless they overlap each other."""
        return min(math.fsum(row.self_s for row in self.collectives), self.mean_busy_s)

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel of an instruction; None for loops and other instructions that are none."""
        return self._kernels.get(name)

    def seconds_of(self, kernels: Iterable[Kernel]) -> float | None:
        """Return the self time of kernels in a step, with their dones; None if they have no events."""
        starts = [kernel.name for kernel in kernels]
        names = [*starts, *(self._done_of[name] for name in starts if name in self._done_of)]
        times = [self.times.instructions[name] for name in names if name in self.times.instructions]
        return self.times.seconds_of_step(sum(time.self_time for time in times)) if times else None

    def _row(self, name: str, times: MeasuredInstruction) -> KernelRow:
        view, row = self._places[name]
        median, p90 = times.quantiles()
        runs = times.count / self._samples
        self_s, whole = self.times.seconds_of_step(times.self_time), self.kernels_s
        kernel = self._kernels.get(name)
        bound = self._bound(kernel, view.opcodes[row])
        return KernelRow(
            name,
            kernel.kind if kernel is not None else view.opcodes[row],
            view.computation.name,
            view.lines[row],
            self._context.labels_of(view, row),
            times.events,
            runs,
            median,
            p90,
            self.times.seconds_of_step(times.time),
            self_s,
            self_s / whole if whole else 0.0,
            None if times.transfer is None else self.times.seconds_of_step(times.transfer),
            None if bound is None else bound * runs,
            self._amount(kernel, "flops", runs),
            self._amount(kernel, "bytes", runs),
        )

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return {kernel.name: kernel for kernel in self._context.kernels.launched}

    @cached_property
    def _collective_bounds(self) -> dict[str, float | None]:
        pairs = zip(self._context.collectives, self._context.on_machine.collective_times, strict=False)
        return {executed_name(collective): time.bound_s for collective, time in pairs if not collective.is_async}

    def _bound(self, kernel: Kernel | None, opcode: str) -> float | None:
        """Return the bound of one execution."""
        times = self._context.on_machine.kernel_times
        if kernel is None or times is None or opcode in CONTROL_FLOW:
            return None
        if kernel.name in self._asynchronous or kernel.name in self._collective_bounds:
            return self._collective_bounds.get(kernel.name)
        time = times.for_kernel(kernel)
        return None if kernel.started is not None or time.bound_gap else time.bound_s

    @cached_property
    def _asynchronous(self) -> set[str]:
        return {executed_name(collective) for collective in self._context.collectives if collective.is_async}

    def _amount(self, kernel: Kernel | None, figure: CostFigure, runs: float) -> float | None:
        """Return a figure of the module for the measured executions of a step."""
        if kernel is None or kernel.is_unknown:
            return None
        cost = kernel.parts[0].cost
        return None if figure in cost.gaps else cost.amounts[FIGURES.index(figure)] * runs

    # -- collectives ----------------------------------------------------------------------------------------------------

    @cached_property
    def collectives(self) -> list[CollectiveRow]:
        """The collectives with events, those of the longest self time first."""
        rows = list(self._collective_rows())
        return sorted(rows, key=lambda row: -row.self_s)

    @cached_property
    def waits(self) -> dict[DeviceKey, DeviceWaits]:
        """The waiting of each device in all collectives whose waiting is known; empty if there are none."""
        waits: dict[DeviceKey, DeviceWaits] = {}
        for row in self.collectives:
            for device, of_device in row.waits.items():
                waits[device] = waits.get(device, NO_WAITS).plus(of_device)
        return waits

    def _collective_rows(self) -> Iterator[CollectiveRow]:
        context, seconds = self._context, self.times.seconds_of_step
        groups = CollectiveGroups(context.device_counts, most_named(context.module))
        for collective, axis in zip(context.collectives, context.axes, strict=True):
            name = executed_name(collective)
            times = self.times.instructions.get(name)
            if times is None or not times.count:
                continue
            done = self._done_of.get(name)
            dones = self.times.instructions.get(done) if done is not None else None
            self_time = times.self_time + (dones.self_time if dones is not None else 0)
            waits = None
            if dones is None and collective.forms_groups:
                waits = self._waits(name, collective, groups)
            waited = None if waits is None else sum(of_device.waited for of_device in waits.values())
            transfer = None if waited is None else self_time - waited
            if dones is not None:
                transfer = dones.transfer
            runs = times.count / self._samples
            sent = None if collective.wire_bytes is None else collective.wire_bytes * runs
            yield CollectiveRow(
                collective,
                axis,
                runs,
                times.quantiles()[0],
                seconds(self_time),
                None if waited is None else seconds(waited),
                None if transfer is None else seconds(transfer),
                sent,
                waits or {},
            )

    @cached_property
    def _done_of(self) -> dict[str, str]:
        return {start: done for done, start in outline_of(self._context).starts.items()}

    def _waits(self, name: str, collective: Collective, groups: CollectiveGroups) -> dict[DeviceKey, DeviceWaits] | None:
        """Return the waiting of a collective over all samples by device; None if it is unknown."""
        try:
            listed = groups.listed(collective)
        except UnknownTimeError:
            return None
        devices = self.recorded.devices
        ordinals = [[devices[number] if number < len(devices) else number for number in group] for group in listed]
        return self.times.waits(name, ordinals)
