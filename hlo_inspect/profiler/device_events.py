"""The executions of instructions on the devices of one plane, by column.

A column has 8 or 4 bytes for each execution, so that millions fit into memory until the plane is read.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Numbers


class Sample(NamedTuple):
    """A run of a program on one device. `run` is its number in the file, which need not begin with 0.

    `span` has start and duration if the file states them, in picoseconds.
    """

    program: str
    device: int
    run: int
    span: tuple[int, int] | None = None


@dataclass(slots=True)
class ExecutionColumns:
    """Executions of instructions: numbers of name and sample, start and duration in picoseconds."""

    names: array[int] = field(default_factory=lambda: array("i"))
    samples: array[int] = field(default_factory=lambda: array("i"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    durations: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: int, sample: int, start: int, duration: int) -> None:
        self.names.append(name)
        self.samples.append(sample)
        self.starts.append(start)
        self.durations.append(duration)

    def extend(self, names: Numbers, samples: Numbers, starts: Numbers, durations: Numbers) -> None:
        """Add executions by column."""
        for column, values in (
            (self.names, names),
            (self.samples, samples),
            (self.starts, starts),
            (self.durations, durations),
        ):
            column.frombytes(values.astype(column.typecode).tobytes())


_NAMED = 3
"""Names of unattributed events that are kept."""


class Unattributed(NamedTuple):
    """Events of the lines of devices that name no instruction: their number, duration and first names."""

    events: int = 0
    duration: int = 0
    names: tuple[str, ...] = ()

    def plus(self, event_name: str, duration: int) -> Unattributed:
        return self.joined(Unattributed(1, duration, (event_name,)))

    def joined(self, other: Unattributed) -> Unattributed:
        names = tuple(dict.fromkeys((*self.names, *other.names)))[:_NAMED]
        return Unattributed(self.events + other.events, self.duration + other.duration, names)


ALL_ATTRIBUTED = Unattributed()


@dataclass(slots=True)
class DeviceEvents:
    """All executions of a plane.

    `names` and `samples` are what the numbers of the columns stand for. `merged` has the further events of an execution of
    several, by row. `transfers` are spans from start to done, on the done. `faults` counts events that are left out.
    """

    platform: str
    names: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    executions: ExecutionColumns = field(default_factory=ExecutionColumns)
    transfers: ExecutionColumns = field(default_factory=ExecutionColumns)
    has_transfers: bool = False
    merged: Counter[int] = field(default_factory=Counter)
    unattributed: dict[str, Unattributed] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    runs_from: str = "run_id"
    _numbers: dict[str, int] = field(default_factory=dict)
    _sample_numbers: dict[Sample, int] = field(default_factory=dict)

    def name_number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number

    def restart_samples(self) -> list[Sample]:
        """Return the samples and forget them, so that others can take their place."""
        samples, self.samples = self.samples, []
        self._sample_numbers.clear()
        return samples

    def sample_number(self, sample: Sample) -> int:
        number = self._sample_numbers.get(sample)
        if number is None:
            number = self._sample_numbers[sample] = len(self.samples)
            self.samples.append(sample)
        return number

    def leave_unattributed(self, program: str, event_name: str, duration: int) -> None:
        self.unattributed[program] = self.unattributed.get(program, ALL_ATTRIBUTED).plus(event_name, duration)


ABSURD = "aggregated, or of a negative or absurd duration"
OUTSIDE = "outside of any run"
