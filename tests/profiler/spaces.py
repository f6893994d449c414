"""Profiles for tests, written by jaxlib's own writer."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

import pytest

from hlo_inspect.profiler.measurements import ProgramMeasurements
from hlo_inspect.profiler.outline import ProgramOutline
from hlo_inspect.profiler.profile import ProfileFile, measure
from hlo_inspect.profiler.wanted_samples import WantedSamples

Event = tuple[str, int, int, Mapping[str, int | str]]
"""Name, start and duration in nanoseconds, and stats."""


def space(*planes: str) -> bytes:
    """Return the bytes of a profile of these planes."""
    writer = pytest.importorskip("jaxlib._profile_data").ProfileData
    data: bytes = writer.text_proto_to_serialized_xspace("\n".join(planes))
    return data


def plane(
    name: str,
    lines: Mapping[str, Iterable[Event]],
    metadata: Mapping[str, Mapping[str, int | str]] | None = None,
    own_stats: Mapping[str, int | str] | None = None,
) -> str:
    """Return the text of a plane. `metadata` has the stats of events of a name, and their display name as `display_name`."""
    names: dict[str, int] = {}
    stats: dict[str, int] = {}

    def stat(key: str, value: int | str) -> str:
        number = stats.setdefault(key, len(stats) + 1)
        stated = f'str_value: "{value}"' if isinstance(value, str) else f"int64_value: {value}"
        return f"stats {{ metadata_id: {number} {stated} }}"

    text = f'planes {{ name: "{name}"\n'
    for line, events in lines.items():
        text += f'lines {{ name: "{line}" timestamp_ns: 1000\n'
        for event, start, duration, values in events:
            number = names.setdefault(event, len(names) + 1)
            times = f"offset_ps: {start * 1000 - 1_000_000} duration_ps: {duration * 1000}"
            text += f"events {{ metadata_id: {number} {times} {' '.join(stat(*pair) for pair in values.items())} }}\n"
        text += "}\n"
    for event, number in names.items():
        own = dict((metadata or {}).get(event, {}))
        display = f'display_name: "{own.pop("display_name")}"' if "display_name" in own else ""
        described = f'id: {number} name: "{event}" {display} {" ".join(stat(*pair) for pair in own.items())}'
        text += f"event_metadata {{ key: {number} value {{ {described} }} }}\n"
    text += "".join(stat(*pair) + "\n" for pair in (own_stats or {}).items())
    for key, number in stats.items():
        text += f'stat_metadata {{ key: {number} value {{ id: {number} name: "{key}" }} }}\n'
    return text + "}\n"


def measured(data: bytes, outline: ProgramOutline, label: str = "jit_step(7)", skip: int = 0) -> ProgramMeasurements:
    """Return the measurements of a program in a profile."""
    return measure([ProfileFile("profile", io.BytesIO(data))], {label: outline}, WantedSamples(skip))[label]


def seconds(nanoseconds: float) -> object:
    return pytest.approx(nanoseconds * 1e-9, abs=1e-15)


def self_times(result: ProgramMeasurements) -> dict[str, int]:
    """Return the self times of instructions over all samples, in nanoseconds."""
    return {name: times.self_time // 1000 for name, times in result.instructions.items()}


def steps(result: ProgramMeasurements) -> Sequence[int]:
    """Return the steps of all samples, in nanoseconds."""
    return [sample.step // 1000 for sample in result.samples]


def metadata_plane(modules: Mapping[str, str]) -> str:
    """Return the text of the plane with the modules of programs, by label."""
    jaxlib = pytest.importorskip("jaxlib._hlo")
    text = 'planes { name: "/host:metadata" stat_metadata { key: 1 value { id: 1 name: "Hlo Proto" } }\n'
    for number, (label, module) in enumerate(modules.items()):
        proto: bytes = jaxlib.hlo_module_from_text(module).as_serialized_hlo_module_proto()
        octal = "".join(f"\\{byte:03o}" for byte in b"\x0a" + _varint(len(proto)) + proto)
        entry = f'name: "{label}" stats {{ metadata_id: 1 bytes_value: "{octal}" }}'
        text += f"event_metadata {{ key: {number} value {{ {entry} }} }}\n"
    return text + "}\n"


def _varint(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
