"""Profiles: a file of one host, or the folder `plugins/profile/<run>/` with a file for each host.

A file is read in two passes: its planes without their events, then the events of the planes of devices. Memory holds the
executions of one plane at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from hlo_inspect.errors import InputError, Location
from hlo_inspect.hlo.input.foreign_text import WireError
from hlo_inspect.profiler.chip import NO_CHIP, ProfiledChip
from hlo_inspect.profiler.cpu import CPU_PLANE, read_cpu
from hlo_inspect.profiler.device_events import DeviceEvents
from hlo_inspect.profiler.gpu import GPU_PLANE, read_gpu
from hlo_inspect.profiler.measurements import ProgramMeasurements
from hlo_inspect.profiler.outline import ProgramOutline
from hlo_inspect.profiler.programs import METADATA_PLANE, ProfiledProgram, ProgramLabels, read_programs
from hlo_inspect.profiler.reduction import PlanePart, reduce_plane
from hlo_inspect.profiler.space import MetadataEntries, plane_name, plane_spans, read_chip, read_plane
from hlo_inspect.profiler.tpu import TPU_PLANE, read_tpu
from hlo_inspect.profiler.wanted_samples import ALL_SAMPLES, WantedSamples
from hlo_inspect.profiler.window import ByteWindow, FieldSpan, PromisedBytesError

NO_DEVICE_EVENTS = "is a profile without events of devices; trace while the program runs, and wait for its results inside"


class ProfileFile:
    """A profile of one host: its planes by name, and its programs. `size` is that of the file without compression."""

    def __init__(self, name: str, stream: IO[bytes], on_bytes: Callable[[int], None] | None = None) -> None:
        """Read the planes without their events. Raise InputError if the file is truncated, damaged or no profile."""
        self.name = name
        size = stream.seek(0, 2)
        self.window = ByteWindow(stream, size)
        if on_bytes is not None:
            self.window.on_bytes = on_bytes
        if not size:
            raise self._error("is empty; a profile has at least one plane")
        self.planes: list[tuple[str, FieldSpan]] = []
        with self._errors("its planes"):
            for span in plane_spans(self.window):
                self.planes.append((plane_name(self.window, span), span))
        if not any(plane.startswith(("/host:", "/device:")) or plane == "Task Environment" for plane, _ in self.planes):
            raise self._error("is no profile: none of its messages is a plane of a host or a device")
        self._metadata = MetadataEntries()
        self.programs: list[ProfiledProgram] = []
        for plane, span in self.planes:
            if plane == METADATA_PLANE:
                with self._errors(f"plane {plane}"):
                    self.programs += read_programs(self.window, span)
        self.programs.sort(key=lambda program: program.program_id)

    def proto(self, program: ProfiledProgram) -> bytes:
        """Return the `HloProto` of a program."""
        return self.window.read(program.proto)

    @property
    def chip(self) -> ProfiledChip:
        """The chip of the first device; without a plane of a TPU or GPU an empty one."""
        for name, span in self.planes:
            if TPU_PLANE.fullmatch(name) or GPU_PLANE.fullmatch(name):
                with self._errors(f"plane {name}"):
                    return read_chip(self.window, span)
        return NO_CHIP

    def device_planes(self) -> Iterator[tuple[int, DeviceEvents]]:
        """Yield number and executions of each plane of a device, one at a time."""
        labels = ProgramLabels(self.programs)
        for number, (name, span) in enumerate(self.planes):
            device = TPU_PLANE.fullmatch(name) or GPU_PLANE.fullmatch(name)
            if name != CPU_PLANE and device is None:
                continue
            with self._errors(f"plane {name}"):
                plane = read_plane(self.window, span, self._metadata)
                if device is None:
                    yield number, read_cpu(self.window, plane, labels)
                else:
                    read = read_tpu if device.re.pattern == TPU_PLANE.pattern else read_gpu
                    yield number, read(self.window, plane, int(device[1]), labels)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Raise the errors of a message as those of the file."""
        place, size = Location(self.name), self.window.size
        try:
            yield
        except PromisedBytesError as error:
            if error.promised > size:
                message = f"is truncated: {size:,} bytes are there, and its last plane ends at byte {error.promised:,}"
            else:
                message = f"is damaged: a field of {what} ends after the message that holds it"
            raise InputError(f"{message}; copy the file again", place) from error
        except WireError as error:
            raise InputError(f"is damaged: {what} cannot be read as a profile", place) from error

    def _error(self, message: str) -> InputError:
        return InputError(message, Location(self.name))


def measure(
    files: Sequence[ProfileFile], outlines: Mapping[str, ProgramOutline], wanted: WantedSamples = ALL_SAMPLES
) -> dict[str, ProgramMeasurements]:
    """Read the executions of all devices and return the measurements of each program that ran, by label.

    `outlines` are those of the programs, by label. Threads of a host launch the programs that an accelerator executes.
    Raise InputError if there is no event of a device.
    """
    programs: dict[str, _JoinedProgram] = {}
    for host, file in enumerate(files):
        for number, events in file.device_planes():
            for label, part in reduce_plane(events, outlines, (host, number), wanted):
                joined, is_on_accelerator = programs.get(label), part.measured.platform != "cpu"
                if joined is None or (is_on_accelerator and joined.measured.platform == "cpu" and _has_samples(part.measured)):
                    joined = programs[label] = _JoinedProgram()
                if is_on_accelerator or joined.measured.platform in {"", "cpu"} or not _has_samples(joined.measured):
                    joined.add(host, part)
            del events  # before the next plane is read
    measured = {label: program.measured for label, program in programs.items()}
    if not any(map(_has_samples, measured.values())):
        raise InputError(NO_DEVICE_EVENTS, Location(files[0].name))
    return measured


def _has_samples(measured: ProgramMeasurements) -> bool:
    return bool(measured.samples or measured.cut_samples or measured.skipped_samples)


class _JoinedProgram:
    """The measurements of a program on all planes so far. A plane whose samples are all cut is left out."""

    def __init__(self) -> None:
        self.measured = ProgramMeasurements()
        self._fullest = 0
        self._hosts: set[int] = set()

    def add(self, host: int, part: PlanePart) -> None:
        """Add the part of a plane."""
        joined, added = self.measured, part.measured
        self._hosts.add(host)
        joined.platform, joined.runs_from, joined.hosts = added.platform, added.runs_from, len(self._hosts)
        joined.cut_samples += added.cut_samples
        joined.skipped_samples += added.skipped_samples
        joined.faults.update(added.faults)
        joined.unattributed = joined.unattributed.joined(added.unattributed)
        if part.fullest < self._fullest:
            joined.cut_samples += len(added.samples)
            return
        if part.fullest > self._fullest:
            self._fullest = part.fullest
            joined.cut_samples += len(joined.samples)
            joined.samples, joined.instructions, joined.collectives, joined.timelines = [], {}, {}, []
        joined.samples += added.samples
        joined.timelines += added.timelines
        for name, times in added.instructions.items():
            if name in joined.instructions:
                joined.instructions[name].add(times)
            else:
                joined.instructions[name] = times
        for name, executions in added.collectives.items():
            joined.collectives.setdefault(name, {}).update(executions)
