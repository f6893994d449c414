"""The events of a line, in the second pass over a plane: columns of numpy for thousands of events at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.hlo.input.foreign_text import fields
from hlo_inspect.profiler.event_fields import (
    COUNT,
    DURATION,
    METADATA,
    OFFSET,
    REFERENCE,
    ROOM,
    SIGNED,
    TEXT,
    UNSIGNED,
    EventFields,
    StatSpans,
    decode_events,
    varints,
)
from hlo_inspect.profiler.space import NO_METADATA, EventMetadata, Plane, PlaneLine, StatValue, read_stat, signed
from hlo_inspect.profiler.window import ByteWindow

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Flags, Numbers

PS_PER_NS = 1000
MAX_DURATION_PS = 1 << 60
"""An event is absurd from this length on, 13 days, or with a negative one."""

_WRAP_NS = 1 << 52
"""Lines that begin at a date, and not at the start of the profile, count from a multiple of this, 52 days."""


class IntegerColumn(NamedTuple):
    """A stat of events that is a number: the events that have it, and the values."""

    is_present: Flags
    values: Numbers


class EventBlock(NamedTuple):
    """Events of a line by column, in picoseconds since the start of the profile.

    `texts` has by stat the numbers of texts in `EventReader.texts`. `faults` counts aggregated and absurd events, which are
    left out.
    """

    metadata: Numbers
    starts: Numbers
    durations: Numbers
    integers: Mapping[str, IntegerColumn]
    texts: Mapping[str, Numbers]
    faults: int


class EventReader:
    """Reader of the events of a plane, with some of their stats.

    `integers` and `texts` are the names of these stats. If there are `needed` ones, other events are skipped. `self.texts` are
    the distinct texts; the first is empty.
    """

    def __init__(self, plane: Plane, integers: Sequence[str], texts: Sequence[str], needed: Sequence[str] = ()) -> None:
        self._plane = plane
        self._integers, self._texts, self._needed = integers, texts, needed
        self._keys = {name: [key for key, stat in plane.stat_names.items() if stat == name] for name in (*integers, *texts)}
        self._marks = [b"\x08" + _varint(key) for name in needed for key in self._keys[name]]
        self.texts = [""]
        self._numbers = {"": 0}
        self._numbers_of_bytes: dict[bytes, int] = {}

    def number_of(self, text: str) -> int:
        """Return the number of a text."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def metadata_of(self, metadata_id: int) -> EventMetadata:
        """Return the metadata of events, empty if the plane lacks it."""
        return self._plane.event_metadata.get(metadata_id, NO_METADATA)

    def by_text(self, numbers: Numbers, value: Callable[[str], int]) -> Numbers:
        """Return a value for each number of a text. It is computed once for each text."""
        return mapped(numbers, lambda number: value(self.texts[number]))

    def by_metadata(self, metadata: Numbers, value: Callable[[EventMetadata], int]) -> Numbers:
        """Return a value for each event by its metadata. It is computed once for each."""
        return mapped(metadata, lambda number: value(self.metadata_of(number)))

    def blocks(self, window: ByteWindow, line: PlaneLine) -> Iterator[EventBlock]:
        """Yield the events of a line. Raise WireError if one is damaged."""
        if self._needed and not self._marks:
            return
        base = line.timestamp_ns % _WRAP_NS * PS_PER_NS
        for piece, firsts, ends in window.messages(line.span, 4):
            yield self._block(piece, firsts, ends, base)

    def _block(self, piece: bytes, firsts: list[int], ends: list[int], base: int) -> EventBlock:
        import numpy as np

        data = np.frombuffer(piece + bytes(ROOM), np.uint8)
        decoded = decode_events(data, np.array(firsts), np.array(ends))
        count = len(firsts)
        integers = {name: IntegerColumn(np.zeros(count, bool), np.zeros(count, np.int64)) for name in self._integers}
        texts = {name: np.zeros(count, np.int64) for name in self._texts}
        for spans in decoded.stats:
            for name, column in integers.items():
                for chosen in self._chosen(spans, name):
                    self._take_integers(data, chosen, column, decoded.is_unusual)
            for name, numbers in texts.items():
                for chosen in self._chosen(spans, name):
                    self._take_texts(piece, data, chosen, numbers, decoded.is_unusual)
        kept = np.ones(count, bool)
        for index in np.flatnonzero(decoded.is_unusual).tolist():
            kept[index] = self._take_unusual(piece[firsts[index] : ends[index]], index, decoded, integers, texts)
        if self._needed:
            has_any = [integers[name].is_present if name in integers else texts[name] > 0 for name in self._needed]
            kept &= np.any(has_any, axis=0)
        offsets, durations = decoded.numbers[OFFSET], decoded.numbers[DURATION]
        is_sound = (decoded.numbers[COUNT] == 0) & _is_time(offsets) & _is_time(durations)
        rows = np.flatnonzero(kept & is_sound)
        return EventBlock(
            decoded.numbers[METADATA][rows],
            offsets[rows] + base,
            durations[rows],
            {name: IntegerColumn(column.is_present[rows], column.values[rows]) for name, column in integers.items()},
            {name: numbers[rows] for name, numbers in texts.items()},
            int((kept & ~is_sound).sum()),
        )

    def _chosen(self, spans: StatSpans, name: str) -> Iterator[StatSpans]:
        """Yield the stats of a name."""
        for key in self._keys[name]:
            rows = spans.keys == key
            if rows.any():
                yield StatSpans(*(column[rows] for column in spans))

    def _take_integers(self, data: Any, spans: StatSpans, column: IntegerColumn, is_unusual: Flags) -> None:  # noqa: ANN401
        is_plain = (spans.tags == UNSIGNED) | (spans.tags == SIGNED)
        is_unusual[spans.events[~is_plain]] = True
        events = spans.events[is_plain]
        column.values[events] = varints(data, spans.starts[is_plain])[0]
        column.is_present[events] = True

    def _take_texts(self, piece: bytes, data: Any, spans: StatSpans, numbers: Numbers, is_unusual: Flags) -> None:  # noqa: ANN401
        is_reference = spans.tags == REFERENCE
        names = self._plane.stat_names
        references = varints(data, spans.starts[is_reference])[0]
        numbers[spans.events[is_reference]] = mapped(references, lambda key: self.number_of(names.get(key, "")))
        is_text = spans.tags == TEXT
        columns = (column[is_text].tolist() for column in (spans.events, spans.starts, spans.ends))
        for event, start, end in zip(*columns, strict=True):
            content = piece[start:end]
            number = self._numbers_of_bytes.get(content)
            if number is None:
                if not content or content[0] >= 0x80 or content[0] != len(content) - 1:
                    is_unusual[event] = True
                    continue
                number = self._numbers_of_bytes[content] = self.number_of(content[1:].decode(errors="replace"))
            numbers[event] = number
        is_unusual[spans.events[~(is_reference | is_text)]] = True

    def _take_unusual(
        self, data: bytes, index: int, decoded: EventFields, integers: Mapping[str, IntegerColumn], texts: Mapping[str, Numbers]
    ) -> bool:
        """Decode an event with a long stat or an unknown field. Return False if it lacks all needed stats."""
        if self._marks and not any(mark in data for mark in self._marks):
            return False
        stats: dict[str, StatValue] = {}
        numbers = dict.fromkeys((1, 2, 3, 5), 0)
        for number, value in fields(memoryview(data)):
            if number == 4 and isinstance(value, memoryview):
                name, content = read_stat(value, self._plane.stat_names)
                if content is not None:
                    stats[name] = content
            elif isinstance(value, int):
                numbers[number] = value if number != 5 else 1
        for number, tag in ((1, METADATA), (2, OFFSET), (3, DURATION), (5, COUNT)):
            decoded.numbers[tag][index] = signed(numbers[number])
        for name, column in integers.items():
            stated = _integer(stats.get(name))
            column.is_present[index] = stated is not None
            column.values[index] = signed(stated or 0)
        for name, column_of_texts in texts.items():
            text = stats.get(name)
            column_of_texts[index] = self.number_of(text) if isinstance(text, str) else 0
        return True


def mapped(numbers: Numbers, value: Callable[[int], int]) -> Numbers:
    """Return the value of each number, computed once for each distinct number."""
    import numpy as np

    distinct, inverse = np.unique(numbers, return_inverse=True)
    values: Numbers = np.array([value(number) for number in distinct.tolist()], np.int64)[inverse]
    return values


def _is_time(values: Numbers) -> Flags:
    result: Flags = (values >= 0) & (values < MAX_DURATION_PS)
    return result


def _varint(value: int) -> bytes:
    """Write an integer as the file has it."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _integer(value: StatValue | None) -> int | None:
    """Return a stat that is a number, also if it is written as a text."""
    if isinstance(value, str) and len(value) < 21 and value.removeprefix("-").isdecimal() and value.isascii():
        return int(value)
    return value if isinstance(value, int) else None
