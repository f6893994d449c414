"""The programs of a profile: the modules in its plane `/host:metadata`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from hlo_inspect.hlo.input.foreign_text import WireError, fields
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.profiler.space import stat_name
from hlo_inspect.profiler.window import ByteWindow, FieldSpan

METADATA_PLANE = "/host:metadata"
_LABEL = lazy_pattern(r"(.*)\((\d{1,20})\)", re.ASCII | re.DOTALL)
_MAX_DEVICES = 1 << 20


class ProfiledProgram(NamedTuple):
    """A program: name of its module, id, and the span of its `HloProto`."""

    name: str
    program_id: int
    proto: FieldSpan

    @property
    def label(self) -> str:
        """Name and id as `jit_step(0)`: two programs can have one name."""
        return f"{self.name}({self.program_id})"


class DeviceAssignment(NamedTuple):
    """Replicas and partitions of a program, and the device of each flattened id: replica × partitions + partition."""

    replicas: int
    partitions: int
    devices: tuple[int, ...]


def split_label(label: str) -> tuple[str, int | None]:
    """Split `jit_step(0)` into name and id; None if there is no id."""
    match = _LABEL.fullmatch(label)
    return (match[1], int(match[2])) if match is not None else (label, None)


def read_programs(window: ByteWindow, plane: FieldSpan) -> Iterator[ProfiledProgram]:
    """Yield the programs of the plane with metadata. Other entries of that plane have no `Hlo Proto`."""
    names: dict[int, str] = {}
    entries = []
    for number, value in window.fields(plane):
        if number == 4 and isinstance(value, FieldSpan):
            entries.append(value)
        elif number == 5 and isinstance(value, FieldSpan):
            key, name = stat_name(window.read(value))
            names[key] = name
    for entry in entries:
        yield from _program(window, entry, names)


def _program(window: ByteWindow, entry: FieldSpan, names: dict[int, str]) -> Iterator[ProfiledProgram]:
    """Yield the program of an entry of the map of event metadata, if it is one."""
    key, label, program_id, proto = 0, "", None, None
    for number, value in window.fields(entry):
        if number == 1 and not isinstance(value, FieldSpan):
            key = value
        elif number == 2 and isinstance(value, FieldSpan):
            for inner, part in window.fields(value):
                if inner in {2, 4} and isinstance(part, FieldSpan):
                    label = label or window.read(part).decode(errors="replace")
                elif inner == 5 and isinstance(part, FieldSpan):
                    name, stat = _stat(window, part, names)
                    if name == "program_id" and not isinstance(stat, FieldSpan):
                        program_id = stat
                    elif name.casefold().replace("_", " ") == "hlo proto" and isinstance(stat, FieldSpan):
                        proto = stat
    if proto is not None and proto.size:
        name, stated = split_label(label)
        number = program_id if program_id is not None else stated if stated is not None else key
        yield ProfiledProgram(name, number & ((1 << 64) - 1), proto)


def _stat(window: ByteWindow, span: FieldSpan, names: dict[int, str]) -> tuple[str, int | FieldSpan | None]:
    """Return name and value of a stat, bytes as their span."""
    name, result = "", None
    for number, value in window.fields(span):
        if number == 1 and not isinstance(value, FieldSpan):
            name = names.get(value, "")
        elif number in {3, 4, 6}:
            result = value
    return name, result


def device_assignment(proto: memoryview) -> DeviceAssignment | None:
    """Return the device assignment of an `HloModuleProto` (field 15); None if it has none, or if it is damaged."""
    with suppress(WireError):
        for number, value in fields(proto):
            if number == 15 and isinstance(value, memoryview):
                return _assignment(value)
    return None


def _assignment(data: memoryview) -> DeviceAssignment | None:
    replicas = partitions = 1
    columns: list[list[int]] = []
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            replicas = value
        elif number == 2 and isinstance(value, int):
            partitions = value
        elif number == 3 and isinstance(value, memoryview):
            columns.append(list(integers(value, 1)))
    if not 0 < replicas * partitions <= _MAX_DEVICES:
        return None
    devices: tuple[int, ...] = ()
    if len(columns) == partitions and all(len(column) == replicas for column in columns):
        devices = tuple(columns[partition][replica] for replica in range(replicas) for partition in range(partitions))
    return DeviceAssignment(replicas, partitions, devices)


def integers(data: memoryview, field: int) -> Iterator[int]:
    """Yield the integers of a repeated field, packed or not."""
    for number, value in fields(data):
        if number == field and isinstance(value, int):
            yield value
        elif number == field and isinstance(value, memoryview):
            number_so_far, shift = 0, 0
            for byte in value:
                number_so_far |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    yield number_so_far
                    number_so_far, shift = 0, 0


Dimensions = tuple[tuple[int, ...], ...]
"""The dimensions of each array of a shape."""


def proto_instructions(proto: memoryview) -> dict[str, dict[str, Dimensions]]:
    """Return the instructions of each computation of an `HloModuleProto`."""
    computations = {}
    for number, value in fields(proto):
        if number == 3 and isinstance(value, memoryview):
            name, rows = "", {}
            for inner, part in fields(value):
                if inner == 1 and isinstance(part, memoryview):
                    name = bytes(part).decode(errors="replace")
                elif inner == 2 and isinstance(part, memoryview):
                    instruction, dimensions = _instruction(part)
                    rows[instruction] = dimensions
            computations[name] = rows
    return computations


def _instruction(data: memoryview) -> tuple[str, Dimensions]:
    name = ""
    dimensions: list[tuple[int, ...]] = []
    for number, value in fields(data):
        if number == 1 and isinstance(value, memoryview):
            name = bytes(value).decode(errors="replace")
        elif number == 3 and isinstance(value, memoryview):
            dimensions += _arrays(value)
            break
    return name, tuple(dimensions)


def _arrays(shape: memoryview) -> Iterator[tuple[int, ...]]:
    """Yield the dimensions of each array of a `ShapeProto`, without recursion."""
    waiting = [shape]
    while waiting:
        elements = [value for number, value in fields(waiting[-1]) if number == 4 and isinstance(value, memoryview)]
        current = waiting.pop()
        if elements:
            waiting += reversed(elements)
        elif not any(number == 2 and value == _TUPLE for number, value in fields(current)):
            yield tuple(integers(current, 3))


_TUPLE = 13
"""Element type of a tuple."""


class ProgramLabels:
    """The label of the program that an event names by id or by the name of its module."""

    def __init__(self, programs: Iterable[ProfiledProgram]) -> None:
        programs = list(programs)
        self._by_id = {program.program_id: program.label for program in programs}
        self._by_name: dict[str, list[str]] = {}
        for program in programs:
            self._by_name.setdefault(program.name, []).append(program.label)

    def label(self, program_id: int | None, name: str) -> str:
        """Return the label of a known program, else one made of the id and the name; empty without both."""
        if program_id is not None:
            unsigned = program_id & ((1 << 64) - 1)
            return self._by_id.get(unsigned) or f"{name or 'program'}({unsigned})"
        stated_name, stated = split_label(name)
        if stated is not None:
            return self.label(stated, stated_name)
        labels = self._by_name.get(name, ())
        return labels[0] if len(labels) == 1 else name
