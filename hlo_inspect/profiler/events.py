"""The events of a line, in the second pass over a plane."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.hlo.input.foreign_text import WireError, fields
from hlo_inspect.profiler.space import NO_METADATA, EventMetadata, Plane, PlaneLine, StatValue, read_stat, signed
from hlo_inspect.profiler.window import ByteWindow

PS_PER_NS = 1000
MAX_DURATION_PS = 1 << 60
"""An event is absurd from this length on, 13 days, or with a negative one."""

_MOST_STATS = 1 << 16
_SHORT = frozenset({0x08, 0x10, 0x18, 0x28})
"""Tags of the four numbers of an event."""


class Event(NamedTuple):
    """An event in picoseconds since the start of the profile. `stats` are the contents of its stats, as the file has them."""

    metadata_id: int
    start: int
    duration: int
    stats: list[bytes]


def events_of(window: ByteWindow, line: PlaneLine, marks: Sequence[bytes] = ()) -> Iterator[Event | None]:
    """Yield the events of a line; None for an aggregated or absurd event. Given `marks`, skip events without any of them."""
    base = line.timestamp_ns * PS_PER_NS
    for data in window.messages(line.span, 4):
        if not marks or any(mark in data for mark in marks):
            yield _event(data, base)


def marks_of(plane: Plane, names: Collection[str]) -> list[bytes]:
    """Return the bytes that each stat of one of these names begins with. Other bytes may be equal to them."""
    return [b"\x08" + _varint(key) for key, name in plane.stat_names.items() if name in names]


def _varint(value: int) -> bytes:
    """Write an integer as the file has it."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _event(data: bytes, base: int) -> Event | None:
    metadata = offset = duration = 0
    stats: list[bytes] = []
    is_aggregated = False
    position, end = 0, len(data)
    try:
        while position < end:
            tag = data[position]
            position += 1
            if tag in _SHORT:
                byte = data[position]
                position += 1
                value, shift = byte & 0x7F, 7
                while byte >= 0x80:
                    byte = data[position]
                    position += 1
                    value |= (byte & 0x7F) << shift
                    shift += 7
                if tag == 0x08:
                    metadata = value
                elif tag == 0x10:
                    offset = value
                elif tag == 0x18:
                    duration = value
                else:
                    is_aggregated = True
            elif tag == 0x22 and data[position] < 0x80:
                position += 1
                stop = position + data[position - 1]
                stats.append(data[position:stop])
                position = stop
            else:
                return _unusual_event(data, base)
    except IndexError as error:
        raise WireError from error
    if position > end or is_aggregated or duration >= MAX_DURATION_PS or offset >= MAX_DURATION_PS:
        return None
    return Event(metadata, base + offset, duration, stats)


def _unusual_event(data: bytes, base: int) -> Event | None:
    """Return an event with a long stat or an unknown field."""
    numbers = {1: 0, 2: 0, 3: 0}
    stats = []
    for number, value in fields(memoryview(data)):
        if isinstance(value, memoryview):
            if number == 4:
                stats.append(bytes(value))
        elif number == 5:
            return None
        else:
            numbers[number] = value
    if max(numbers[2], numbers[3]) >= MAX_DURATION_PS:
        return None
    return Event(numbers[1], base + numbers[2], numbers[3], stats)


class StatReader:
    """Reads the stats of a plane's events. Most events share the bytes of most stats, so each text is read once."""

    def __init__(self, plane: Plane, wanted: frozenset[str]) -> None:
        self._names = plane.stat_names
        self._wanted = wanted
        self._cached: dict[bytes, tuple[str, StatValue | None]] = {}

    def values(self, stats: Iterable[bytes]) -> dict[str, StatValue]:
        """Return the wanted stats by name."""
        cached = self._cached
        values: dict[str, StatValue] = {}
        for stat in stats:
            pair = cached.get(stat)
            if pair is None:
                number = _plain_number(stat)
                if number is not None:  # nearly every event has its own
                    name = self._names.get(stat[1], "")
                    if name in self._wanted:
                        values[name] = number
                    continue
                name, value = read_stat(stat, self._names)
                pair = (name, value if name in self._wanted else None)
                if len(cached) >= _MOST_STATS:
                    cached.clear()
                cached[stat] = pair
            if pair[1] is not None:
                values[pair[0]] = pair[1]
        return values


def _plain_number(stat: bytes) -> int | None:
    """Return the number of a stat that is written in the usual way; None for others."""
    if len(stat) < 4 or stat[0] != 0x08 or stat[1] >= 0x80 or stat[2] not in {0x18, 0x20}:
        return None
    value = shift = 0
    for byte in stat[3:]:
        value |= (byte & 0x7F) << shift
        shift += 7
    return signed(value) if stat[2] == 0x20 else value


def metadata_of(plane: Plane, event: Event) -> EventMetadata:
    """Return the metadata of an event, empty if the plane lacks it."""
    return plane.event_metadata.get(event.metadata_id, NO_METADATA)


def integer(values: Mapping[str, StatValue], name: str) -> int | None:
    """Return a stat that is a number, also if it is written as a text."""
    value = values.get(name)
    if isinstance(value, str) and len(value) < 21 and value.removeprefix("-").isdecimal() and value.isascii():
        return int(value)
    return value if isinstance(value, int) else None


def text(values: Mapping[str, StatValue], name: str) -> str:
    """Return a stat that is a text, empty if it is absent."""
    value = values.get(name)
    return value if isinstance(value, str) else ""
