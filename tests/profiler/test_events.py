"""Events in all forms that protobuf writers use, decoded by column."""

from __future__ import annotations

import io

import pytest

from hlo_inspect.hlo.input.foreign_text import WireError
from hlo_inspect.profiler.events import EventBlock, EventReader
from hlo_inspect.profiler.space import MetadataEntries, Plane, PlaneLine, plane_spans, read_plane
from hlo_inspect.profiler.window import ByteWindow, FieldSpan
from tests.profiler.spaces import space

LONG = "x" * 300
STATS = """stat_metadata { key: 1 value { name: "op" } } stat_metadata { key: 2 value { name: "run" } }
stat_metadata { key: 300 value { name: "module" } } stat_metadata { key: 4 value { name: "other" } }"""


def blocks(events: str, needed: tuple[str, ...] = ()) -> tuple[list[EventBlock], EventReader]:
    data = space(f'planes {{ name: "p" lines {{ name: "l" timestamp_ns: 5 {events} }} {STATS} }}')
    window = ByteWindow(io.BytesIO(data), len(data))
    plane = read_plane(window, next(plane_spans(window)), MetadataEntries())
    reader = EventReader(plane, ("run",), ("op", "module"), needed)
    return list(reader.blocks(window, plane.lines[0])), reader


def event(number: int, stats: str = "", duration: int = 7) -> str:
    return f"events {{ metadata_id: {number} offset_ps: {number * 1000} duration_ps: {duration} {stats} }}\n"


def test_stats_of_all_kinds_are_read() -> None:
    forms = [
        'stats { metadata_id: 1 str_value: "dot" } stats { metadata_id: 2 int64_value: -3 }',
        "stats { metadata_id: 1 ref_value: 300 } stats { metadata_id: 2 uint64_value: 18446744073709551615 }",
        f'stats {{ metadata_id: 1 str_value: "{LONG}" }} stats {{ metadata_id: 2 str_value: "-12" }}',
        'stats { metadata_id: 4 double_value: 1.5 } stats { metadata_id: 300 str_value: "m" }',
        "stats { metadata_id: 2 double_value: 2 } stats { metadata_id: 1 int64_value: 4 }",
        f'stats {{ metadata_id: 4 str_value: "{LONG}" }} stats {{ metadata_id: 2 int64_value: 9 }}',
        "",
    ]
    (block,), reader = blocks("".join(event(number, form) for number, form in enumerate(forms, 1)))
    assert block.metadata.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert block.starts.tolist() == [5000 + 1000 * number for number in range(1, 8)]
    assert block.durations.tolist() == [7] * 7
    assert [reader.texts[number] for number in block.texts["op"]] == ["dot", "module", LONG, "", "", "", ""]
    assert [reader.texts[number] for number in block.texts["module"]] == ["", "", "", "m", "", "", ""]
    run = block.integers["run"]
    assert run.is_present.tolist() == [True, True, True, False, False, True, False]
    assert run.values[run.is_present].tolist() == [-3, -1, -12, 9]


def test_aggregated_and_absurd_events_are_counted_if_they_are_needed() -> None:
    op = 'stats { metadata_id: 1 str_value: "dot" }'
    text = (
        event(1, op)
        + event(2, op, -5)
        + event(3, op, 1 << 61)
        + f"events {{ metadata_id: 4 num_occurrences: 9 {op} }}"
        + f"events {{ metadata_id: 5 duration_ps: 3 {op} }}"
        + event(6, "", -5)
    )
    (block,), _ = blocks(text)
    assert (block.metadata.tolist(), block.faults) == ([1, 5], 4)
    (block,), _ = blocks(text, needed=("op",))
    assert (block.metadata.tolist(), block.faults) == ([1, 5], 3)
    (block,), _ = blocks(event(1), needed=("module",))
    assert block.metadata.tolist() == []


def test_a_line_that_begins_at_a_date_has_times_of_64_bits() -> None:
    data = b"\x22\x04\x08\x01\x10\x09"
    window = ByteWindow(io.BytesIO(data), len(data))
    line = PlaneLine("l", 1_795_838_394_752_188_000, FieldSpan(0, len(data)))
    later = PlaneLine("l", 1_795_838_394_752_188_250, FieldSpan(0, len(data)))
    reader = EventReader(Plane("p", (), {}, {}), (), ())
    (first,), (second,) = (list(reader.blocks(window, each)) for each in (line, later))
    assert second.starts[0] - first.starts[0] == 250_000


def test_an_event_that_ends_inside_a_number_is_damaged() -> None:
    data = b"\x22\x03\x08\x01\x90" + b"\x22\x02\x08\x01"
    window = ByteWindow(io.BytesIO(data), len(data))
    reader = EventReader(Plane("p", (), {}, {}), (), ())
    with pytest.raises(WireError):
        list(reader.blocks(window, PlaneLine("l", 0, FieldSpan(0, len(data)))))
