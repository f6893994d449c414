"""The measured times of a program: runs, times of its instructions, and waiting of collectives."""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.profiler.chip import NO_CHIP, ProfiledChip
from hlo_inspect.profiler.device_events import ALL_ATTRIBUTED, Unattributed

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Numbers


SECONDS_PER_PS = 1e-12


class DeviceKey(NamedTuple):
    """A device of a profile. Ordinals are those of one file: `host` is its number, `plane` that of its plane."""

    host: int
    plane: int
    ordinal: int


class SampleTimes(NamedTuple):
    """A run on one device. Times are picoseconds; `order` counts the runs of the program on this device from 0."""

    device: DeviceKey
    run: int
    order: int
    events: int
    start: int
    step: int
    busy: int


class ExecutedInstruction(NamedTuple):
    """An execution in one sample: start and duration in picoseconds; True for a span from start to done."""

    name: str
    start: int
    duration: int
    is_transfer: bool = False


class SampleTimeline(NamedTuple):
    """All executions of a sample in the order of their starts, the longer of two first."""

    sample: SampleTimes
    executions: tuple[ExecutedInstruction, ...]


@dataclass(slots=True)
class MeasuredInstruction:
    """The executions of one instruction, in picoseconds: events, sums over all samples, and the time of each execution.

    `transfer` is the sum of the spans from start to done; None if there are none.
    """

    events: int = 0
    time: int = 0
    self_time: int = 0
    transfer: int | None = None
    executions: array[int] = field(default_factory=lambda: array("q"))

    @property
    def count(self) -> int:
        """The number of executions in all samples."""
        return len(self.executions)

    def quantiles(self) -> tuple[float, float]:
        """Return median and 90th percentile of the time of one execution, in seconds."""
        import numpy as np

        if not self.executions:
            return 0.0, 0.0
        median, p90 = np.percentile(np.frombuffer(self.executions, dtype=np.int64), (50, 90)).tolist()
        return median * SECONDS_PER_PS, p90 * SECONDS_PER_PS

    def add(self, other: MeasuredInstruction) -> None:
        self.events += other.events
        self.time += other.time
        self.self_time += other.self_time
        if other.transfer is not None:
            self.transfer = (self.transfer or 0) + other.transfer
        self.executions += other.executions


def percentile(ordered: Sequence[int], share: float) -> float:
    """Return a percentile of sorted values by linear interpolation; 0 without values."""
    if not ordered:
        return 0.0
    position = share * (len(ordered) - 1)
    index = int(position)
    following = ordered[min(index + 1, len(ordered) - 1)]
    return ordered[index] + (following - ordered[index]) * (position - index)


Executions = tuple["Numbers", "Numbers"]
"""Starts and ends of the executions of a collective in one run on one device, in order."""


class DeviceWaits(NamedTuple):
    """The waiting of a device in collectives, in picoseconds.

    `waited` is its time until the last device begins, `held` the time of others until it begins if it is the last. `last`
    counts the executions in which it is, of `executions`.
    """

    waited: int = 0
    held: int = 0
    last: int = 0
    executions: int = 0

    def plus(self, other: DeviceWaits) -> DeviceWaits:
        return DeviceWaits(*map(sum, zip(self, other, strict=True)))


NO_WAITS = DeviceWaits()


@dataclass(slots=True)
class ProgramMeasurements:
    """All that a profile says of one program.

    `collectives` has executions by instruction, then by order of run and device. `timelines` are those of one sample of each
    plane if a trace needs them.
    """

    platform: str = ""
    runs_from: str = ""
    hosts: int = 0
    samples: list[SampleTimes] = field(default_factory=list)
    instructions: dict[str, MeasuredInstruction] = field(default_factory=dict)
    collectives: dict[str, dict[tuple[int, DeviceKey], Executions]] = field(default_factory=dict)
    unattributed: Unattributed = ALL_ATTRIBUTED
    cut_samples: int = 0
    skipped_samples: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    timelines: list[SampleTimeline] = field(default_factory=list)

    @property
    def typical_timeline(self) -> SampleTimeline | None:
        """The timeline whose step is nearest to the median of all samples; None if none is kept."""
        middle = percentile(sorted(sample.step for sample in self.samples), 0.5)
        return min(self.timelines, key=lambda timeline: abs(timeline.sample.step - middle), default=None)

    @property
    def devices(self) -> list[DeviceKey]:
        return sorted({sample.device for sample in self.samples})

    @property
    def runs(self) -> int:
        """The number of runs: of several hosts, those of the host with the most."""
        runs: dict[int, set[int]] = {}
        for sample in self.samples:
            runs.setdefault(sample.device.host, set()).add(sample.order)
        return max(map(len, runs.values()), default=0)

    @property
    def runs_differ(self) -> bool:
        """True if hosts ran the program differently often, so that the order does not match their runs."""
        return len({len({s.order for s in self.samples if s.device.host == host}) for host in range(self.hosts)}) > 1

    @property
    def events(self) -> int:
        return sum(sample.events for sample in self.samples)

    def step_quantiles(self) -> tuple[float, float]:
        """Return median and 90th percentile of a step, in seconds."""
        steps = sorted(sample.step for sample in self.samples)
        return percentile(steps, 0.5) * SECONDS_PER_PS, percentile(steps, 0.9) * SECONDS_PER_PS

    @property
    def busy_s(self) -> float:
        return percentile(sorted(sample.busy for sample in self.samples), 0.5) * SECONDS_PER_PS

    @property
    def period_s(self) -> float | None:
        """The median time from start to start of successive runs on one device; None with a single run."""
        by_device: dict[DeviceKey, list[SampleTimes]] = {}
        for sample in sorted(self.samples, key=lambda sample: sample.order):
            by_device.setdefault(sample.device, []).append(sample)
        periods = sorted(
            second.start - first.start
            for samples in by_device.values()
            for first, second in itertools.pairwise(samples)
            if second.order == first.order + 1
        )
        return percentile(periods, 0.5) * SECONDS_PER_PS if periods else None

    def seconds_of_step(self, picoseconds: int) -> float:
        """Return a sum over all samples as the mean of one step, in seconds."""
        return picoseconds * SECONDS_PER_PS / len(self.samples) if self.samples else 0.0

    def waits(self, name: str, groups: Sequence[Sequence[int]]) -> dict[DeviceKey, DeviceWaits] | None:
        """Return the waiting of a collective for the slowest device of its group, summed over all samples, by device.

        `groups` are the ordinals of the devices. Over several hosts the clocks differ, and ordinals are those of each host: a
        collective of all devices is known by its durations. None for others, or if a group is not whole in the file.
        """
        executions, members = self.collectives.get(name), self._members(groups)
        if executions is None or members is None:
            return None
        waits: dict[DeviceKey, DeviceWaits] = {}
        for order in sorted({order for order, _ in executions}):
            for keys in members:
                present = [executions[order, key] for key in keys if (order, key) in executions]
                if len(present) == len(keys):
                    for key, of_run in zip(keys, _waits_of(present, has_one_clock=self.hosts == 1), strict=True):
                        waits[key] = waits.get(key, NO_WAITS).plus(of_run)
        return waits

    def _members(self, groups: Sequence[Sequence[int]]) -> list[list[DeviceKey]] | None:
        """Return the devices of each group; None if they are unknown."""
        if self.hosts > 1:
            is_whole = len(groups) == 1 and len(groups[0]) == len(self.devices) and not self.runs_differ
            return [self.devices] if is_whole else None
        devices = {device.ordinal: device for device in self.devices}
        if (
            not groups
            or len(devices) != len(self.devices)
            or any(ordinal not in devices for group in groups for ordinal in group)
        ):
            return None
        return [[devices[ordinal] for ordinal in group] for group in groups]


class RecordedProgram(NamedTuple):
    """The program of a module in a recorded profile.

    `devices` maps flattened ids to devices, empty if they are equal. `others` are programs without events, and `chip` ran it.
    """

    label: str
    times: ProgramMeasurements
    devices: tuple[int, ...] = ()
    others: int = 0
    chip: ProfiledChip = NO_CHIP


def _waits_of(members: Sequence[Executions], *, has_one_clock: bool) -> list[DeviceWaits]:
    """Return the waiting of each device of a group for the last of them to begin, over all executions of one run.

    Without a common clock the last device is that of the shortest execution: all end together.
    """
    import numpy as np

    count = min(len(starts) for starts, _ in members)
    starts = np.stack([starts[:count] for starts, _ in members])
    ends = np.stack([ends[:count] for _, ends in members])
    if has_one_clock:
        waits = np.maximum(np.minimum(ends, starts.max(axis=0)) - starts, 0)
        last = starts.argmax(axis=0)
    else:
        waits = (ends - starts) - (ends - starts).min(axis=0)
        last = (ends - starts).argmin(axis=0)
    delays = [int(waits[:, last == member].sum()) for member in range(len(members))]
    lasts = np.bincount(last, minlength=len(members)).tolist()
    return [DeviceWaits(*row) for row in zip(waits.sum(axis=1).tolist(), delays, lasts, [count] * len(members), strict=True)]


def labels_of_devices(devices: Sequence[DeviceKey]) -> Mapping[DeviceKey, str]:
    """Return the labels of devices: their ordinals, with the number of the host if there are several."""
    several = len({device.host for device in devices}) > 1
    return {device: f"{device.host}:{device.ordinal}" if several else str(device.ordinal) for device in devices}
