"""Events of a line as columns of numpy: the fields of thousands of messages are decoded at once.

Nearly all events have their numbers and short stats in the same form. Others are decoded one by one in `events.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]
    Flags = np.ndarray[Any, np.dtype[np.bool_]]
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

METADATA, OFFSET, DURATION, COUNT = 0x08, 0x10, 0x18, 0x28
"""Tags of the four numbers of an event."""

_STAT = 0x22
UNSIGNED, SIGNED, TEXT, REFERENCE = 0x18, 0x20, 0x2A, 0x38
"""Tags of the values of a stat that are read here."""

ROOM = 16
"""Bytes behind the last event, so that no read of a number ends after the buffer."""


class StatSpans(NamedTuple):
    """Stats of events: the event of each, the number of its name, the tag, begin and end of its value."""

    events: Numbers
    keys: Numbers
    tags: Bytes
    starts: Numbers
    ends: Numbers


class EventFields(NamedTuple):
    """The fields of events by column. `numbers` has a column for each tag; `is_unusual` marks events that are not decoded.

    `stats` are the stats of the others, those of one event in its order.
    """

    numbers: dict[int, Numbers]
    stats: list[StatSpans]
    is_unusual: Flags


def decode_events(data: Bytes, firsts: Numbers, ends: Numbers) -> EventFields:
    """Decode the events between `firsts` and `ends`. `data` has `ROOM` bytes behind them."""
    import numpy as np

    count = len(firsts)
    numbers = {tag: np.zeros(count, np.int64) for tag in (METADATA, OFFSET, DURATION, COUNT)}
    is_unusual = np.zeros(count, bool)
    stats = []
    events, positions = np.arange(count), firsts
    while len(events):
        tags = data[positions]
        is_stat = (tags == _STAT) & (data[positions + 1] < 0x80)
        is_number = np.isin(tags, list(numbers))
        is_unusual[events[~(is_stat | is_number)]] = True
        following = positions.copy()
        values, following[is_number] = varints(data, positions[is_number] + 1)
        for tag, column in numbers.items():
            chosen = tags[is_number] == tag
            column[events[is_number][chosen]] = values[chosen]
        numbers[COUNT][events[tags == COUNT]] |= 1
        if is_stat.any():
            following[is_stat] = positions[is_stat] + 2 + data[positions[is_stat] + 1]
            stats.append(_stats(data, events[is_stat], positions[is_stat] + 2, following[is_stat], is_unusual))
        is_unusual[events[following > ends[events]]] = True
        goes_on = (following < ends[events]) & (is_stat | is_number)
        events, positions = events[goes_on], following[goes_on]
    return EventFields(numbers, stats, is_unusual)


def _stats(data: Bytes, events: Numbers, starts: Numbers, ends: Numbers, is_unusual: Flags) -> StatSpans:
    """Decode names and tags of stats; mark events if the number of the name does not come first."""
    is_unusual[events[(data[starts] != METADATA) | (ends - starts < 2)]] = True
    keys, values = varints(data, starts + 1)
    return StatSpans(events, keys, data[values], values + 1, ends)


def varints(data: Bytes, positions: Numbers) -> tuple[Numbers, Numbers]:
    """Return the integers at some positions, as signed numbers of 64 bits, and the positions after them."""
    import numpy as np

    bytes_read = data[positions]
    values = (bytes_read & 0x7F).astype(np.uint64)
    following = positions + 1
    longer = np.flatnonzero(bytes_read >= 0x80)
    for shift in range(7, 70, 7):
        if not len(longer):
            break
        bytes_read = data[following[longer]]
        values[longer] |= (bytes_read & 0x7F).astype(np.uint64) << np.uint64(shift)
        following[longer] += 1
        longer = longer[bytes_read >= 0x80]
    return values.view(np.int64), following
