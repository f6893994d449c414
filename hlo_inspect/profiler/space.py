"""The planes of a profile file (an `XSpace`), in a first pass that skips their events.

Metadata of events and stats follows the lines of a plane, so events are read in a second pass. Field numbers are those of
tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo_inspect.hlo.input.foreign_text import fields
from hlo_inspect.profiler.chip import ProfiledChip
from hlo_inspect.profiler.window import ByteWindow, FieldSpan

StatValue = int | str | bytes
"""The value of a stat that is used here: doubles are not read."""

_SIGN = 1 << 63
MAX_METADATA_BYTES = 1 << 26
"""Limit of the bytes of one entry of metadata that is kept in memory; the protos of programs stay in the file."""


def signed(value: int) -> int:
    """Return an int64, which is a varint without sign in the file."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value & _SIGN else value


class EventMetadata(NamedTuple):
    """The entry of metadata that events share. `stats` are the contents of its stats, as the file has them."""

    name: str
    display_name: str = ""
    stats: tuple[bytes, ...] = ()


NO_METADATA = EventMetadata("")


class PlaneLine(NamedTuple):
    """A line of a plane, with the span of its message."""

    name: str
    timestamp_ns: int
    span: FieldSpan


class Plane(NamedTuple):
    """A plane without its events. `stat_names` are also the values of stats that refer to a name."""

    name: str
    lines: tuple[PlaneLine, ...]
    event_metadata: Mapping[int, EventMetadata]
    stat_names: Mapping[int, str]


def plane_spans(window: ByteWindow) -> Iterator[FieldSpan]:
    """Yield the planes of a file. Raise PromisedBytesError if the file is truncated, WireError if it is no protobuf."""
    for number, value in window.fields(FieldSpan(0, window.size)):
        if number == 1 and isinstance(value, FieldSpan):
            yield value


def plane_name(window: ByteWindow, plane: FieldSpan) -> str:
    """Return the name of a plane, which precedes its lines in most files."""
    return next((text_of(window, value) for number, value in window.fields(plane) if number == 2), "")


class MetadataEntries:
    """The entries of event metadata, read once: the planes of equal devices have the same ones."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[int, EventMetadata]] = {}

    def get(self, data: bytes) -> tuple[int, EventMetadata]:
        """Return number and metadata of an entry."""
        entry = self._entries.get(data)
        if entry is None:
            key, content = _entry(data)
            entry = key, _event_metadata(content)
            if len(self._entries) >= _MOST_ENTRIES:
                self._entries.clear()
            self._entries[data] = entry
        return entry


_MOST_ENTRIES = 1 << 14


def read_plane(window: ByteWindow, span: FieldSpan, entries: MetadataEntries) -> Plane:
    """Read a plane without its events."""
    name = ""
    lines: list[PlaneLine] = []
    events: dict[int, EventMetadata] = {}
    names: dict[int, str] = {}
    for number, value in window.fields(span):
        if not isinstance(value, FieldSpan):
            continue
        if number == 2:
            name = text_of(window, value)
        elif number == 3:
            lines.append(_read_line(window, value))
        elif number == 4 and value.size <= MAX_METADATA_BYTES:
            key, metadata = entries.get(window.read(value))
            events[key] = metadata
        elif number == 5:
            key, stat = stat_name(window.read(value))
            names[key] = stat
    return Plane(name, tuple(lines), events, names)


def _read_line(window: ByteWindow, span: FieldSpan) -> PlaneLine:
    """Read name and start of a line. They precede its events: protobuf libraries write fields in the order of numbers."""
    name, timestamp = "", 0
    for number, value in window.fields(span):
        if number in {2, 11} and isinstance(value, FieldSpan):
            name = name or text_of(window, value)
        elif number == 3 and not isinstance(value, FieldSpan):
            timestamp = signed(value)
        elif number == 4 and name:
            break
    return PlaneLine(name, timestamp, span)


def _entry(data: bytes) -> tuple[int, memoryview]:
    """Return key and value of an entry of a map; a field that is absent is 0 or empty."""
    key, content = 0, memoryview(b"")
    for number, value in fields(memoryview(data)):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, memoryview):
            content = value
    return key, content


def stat_name(data: bytes) -> tuple[int, str]:
    """Return number and name of an entry of a plane's metadata of stats."""
    key, entry = _entry(data)
    return key, next((_text(part) for number, part in fields(entry) if number == 2), "")


def _event_metadata(data: memoryview) -> EventMetadata:
    name = display_name = ""
    stats = []
    for number, value in fields(data):
        if isinstance(value, memoryview):
            if number == 2:
                name = _text(value)
            elif number == 4:
                display_name = _text(value)
            elif number == 5:
                stats.append(bytes(value))
    return EventMetadata(name, display_name, tuple(stats))


def read_stat(data: bytes | memoryview, names: Mapping[int, str]) -> tuple[str, StatValue | None]:
    """Return name and value of a stat; None for a double."""
    name = ""
    result: StatValue | None = None
    for number, value in fields(memoryview(data)):
        if number == 1 and isinstance(value, int):
            name = names.get(value, "")
        elif isinstance(value, int):
            result = names.get(value, "") if number == 7 else signed(value) if number == 4 else value
        elif number == 5:
            result = _text(value)
        elif number == 6:
            result = bytes(value)
        elif number == 8:
            result = _decompressed(value)
    return name, result


_MAX_TEXT = 1 << 20


def _decompressed(data: memoryview) -> str | None:
    """Return a compressed text; None if it is damaged."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _MAX_TEXT).decode(errors="replace")
    except zlib.error:
        return None


def text_of(window: ByteWindow, span: int | FieldSpan) -> str:
    """Return the text of a field; empty for an integer."""
    return window.read(span).decode(errors="replace") if isinstance(span, FieldSpan) else ""


def _text(value: int | memoryview) -> str:
    return bytes(value).decode(errors="replace") if isinstance(value, memoryview) else ""


_CHIP_STATS = ("device_type_string", "device_vendor", "compute_cap_major", "compute_cap_minor", "core_count", "memory_size")


def read_chip(window: ByteWindow, plane: FieldSpan) -> ProfiledChip:
    """Read the chip of the plane of a device."""
    names: dict[int, str] = {}
    stats: list[bytes] = []
    for number, value in window.fields(plane):
        if number == 5 and isinstance(value, FieldSpan):
            key, name = stat_name(window.read(value))
            names[key] = name
        elif number == 6 and isinstance(value, FieldSpan):
            stats.append(window.read(value))
    content = dict(read_stat(data, names) for data in stats)
    kind, vendor = (text if isinstance(text, str) else "" for text in map(content.get, _CHIP_STATS[:2]))
    major, minor, cores, memory = (number if isinstance(number, int) else 0 for number in map(content.get, _CHIP_STATS[2:]))
    return ProfiledChip(kind, vendor, (major, minor), cores, memory)
