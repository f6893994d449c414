"""Profile files: their planes and programs, and damaged ones."""

from __future__ import annotations

import io

import pytest

from hlo_inspect.errors import InputError
from hlo_inspect.hlo.input.foreign_text import Format, convertible_format
from hlo_inspect.profiler.profile import ProfileFile, measure
from hlo_inspect.profiler.programs import ProgramLabels, device_assignment, split_label
from hlo_inspect.profiler.space import MetadataEntries, plane_spans, read_plane, read_stat
from hlo_inspect.profiler.window import PIECE_BYTES, ByteWindow, FieldSpan
from tests.profiler.spaces import plane, space

METADATA = r"""planes { name: "/host:metadata"
event_metadata { key: 3 value { id: 3 name: "jit_step(3)" stats { metadata_id: 1 bytes_value: "\012\003abc" } } }
event_metadata { value { name: "jit_step(9)" stats { metadata_id: 1 bytes_value: "\012\003abc" }
  stats { metadata_id: 2 uint64_value: 18446744073709551615 } } }
event_metadata { key: 4 value { id: 4 name: "SYMBOL_MAP:1" } }
stat_metadata { key: 1 value { id: 1 name: "Hlo Proto" } }
stat_metadata { key: 2 value { id: 2 name: "program_id" } } }"""


def opened(data: bytes) -> ProfileFile:
    return ProfileFile("step.xplane.pb", io.BytesIO(data))


def test_programs_have_the_id_of_their_stat_else_that_of_their_name() -> None:
    file = opened(space(METADATA))
    assert {program.label for program in file.programs} == {f"jit_step({2**64 - 1})", "jit_step(3)"}
    assert file.proto(file.programs[0]) == b"\n\x03abc"
    labels = ProgramLabels(file.programs)
    assert labels.label(-1, "") == f"jit_step({2**64 - 1})"
    assert labels.label(None, "jit_step") == "jit_step"  # two have this name
    assert labels.label(5, "f") == labels.label(None, "f(5)") == "f(5)"
    assert split_label("a(b)") == ("a(b)", None)


def test_metadata_before_or_after_the_lines_and_values_of_all_kinds_are_read() -> None:
    text = r"""planes { id: 4 name: "p" lines { display_name: "line" timestamp_ns: 5 } stats { metadata_id: 1 double_value: 1 }
    stats { metadata_id: 2 ref_value: 1 } stats { metadata_id: 3 int64_value: -2 } stats { metadata_id: 4 str_value: "x" }
    stat_metadata { key: 1 value { name: "a" } } stat_metadata { key: 2 value { name: "b" } }
    stat_metadata { key: 3 value { name: "c" } } stat_metadata { key: 4 value { name: "d" } } }"""
    data = space(text)
    window = ByteWindow(io.BytesIO(data), len(data))
    read = read_plane(window, next(plane_spans(window)), MetadataEntries())
    assert (read.name, read.lines[0].name, read.lines[0].timestamp_ns) == ("p", "line", 5)
    stats = [b"\x08\x02\x38\x01", b"\x08\x03\x20\xfe" + b"\xff" * 8 + b"\x01", b"\x08\x04\x2a\x01x"]
    assert dict(read_stat(stat, read.stat_names) for stat in stats) == {"b": "a", "c": -2, "d": "x"}
    assert read_stat(b"\x08\x01\x42\x03abc", {1: "z"}) == ("z", None)  # no gzip


def test_events_larger_than_a_piece_are_read_whole() -> None:
    small, large = b"\x08\x01", b"\x08\x02\x22" + b"\x80\x80\x60" + b"x" * (3 * (PIECE_BYTES // 2))
    varint = b"\x86\x80\x60"
    data = b"".join([*[b"\x22\x02" + small] * 300_000, b"\x22" + varint + large, b"\x48\x05", b"\x22\x02" + small])
    window = ByteWindow(io.BytesIO(data), len(data))
    blocks = window.messages(FieldSpan(0, len(data)), 4)
    sizes = [end - first for _, firsts, ends in blocks for first, end in zip(firsts, ends, strict=True)]
    assert sizes == [2] * 300_000 + [len(large), 2]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\x0a\x10\x12\x08/host:CP", "is truncated: 12 bytes are there, and its last plane ends at byte 18"),
        (b"\x0a\x05\x12\x09/ho" + b"\x22\x0e" + bytes(14), "a field of its planes ends after the message that holds it"),
        (b"\x0a\x05\x12\x03abc", "is no profile"),
        (b"\x0f\x0f", "its planes cannot be read"),
    ],
)
def test_damaged_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=r"^step\.xplane\.pb: ") as raised:
        opened(data)
    assert message in raised.value.message


def test_every_truncation_is_refused() -> None:
    data = space(METADATA, plane("/host:CPU", {"a": [("x", 2000, 5, {"hlo_op": "x", "program_id": 3})]}))
    assert convertible_format(data) is Format.PROFILE
    measure([opened(data)], {})
    for size in range(1, len(data)):
        if size == len(space(METADATA)):
            continue  # whole planes
        with pytest.raises(InputError, match="truncated"):
            opened(data[:size])


def test_a_profile_without_device_events_is_refused() -> None:
    with pytest.raises(InputError, match="without events of devices"):
        measure([opened(space(METADATA, plane("/host:CPU", {"python": [("f", 2000, 5, {})]})))], {})


def test_the_device_assignment_maps_flattened_ids_to_devices() -> None:
    packed = b"\x08\x02\x10\x02\x1a\x04\x0a\x02\x00\x02\x1a\x04\x08\x01\x08\x03"
    proto = b"\x0a\x01a\x7a" + bytes([len(packed)]) + packed
    assignment = device_assignment(memoryview(proto))
    assert assignment is not None
    assert (assignment.replicas, assignment.partitions, assignment.devices) == (2, 2, (0, 1, 2, 3))
