"""Devices that a text names and a program does not have, in the words of a finding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.device_faults import device_faults

PARAMETER = "%p = f32[4]{0} parameter(0)"
REDUCE = "%r = f32[4]{0} all-reduce(%p), channel_id=1, use_global_device_ids=true, to_apply=%add, replica_groups="
UNKNOWN = "so that its group size is not known"
PERMUTE = "%c = f32[4]{0} collective-permute(%p), channel_id=1, source_target_pairs="


def faults(context: Context) -> list[tuple[str, int | None, str]]:
    found = device_faults(context.module, context.collectives, context.device_counts)
    return [(fault.rule, fault.line, fault.message) for fault in found]


@pytest.mark.parametrize(
    ("line", "rule", "message"),
    [
        (
            f"{REDUCE}{{{{0,1}},{{2,4}}}}",
            "HI203",
            "r: it names device 4 of a program with 4, so that its group size is not known",
        ),
        (f"{REDUCE}{{{{0,1}},{{1,2}}}}", "HI203", "r: it names device 1 twice, so that its group size is not known"),
        (f"{REDUCE}{{{{0,1,2}},{{3}}}}", "HI202", "r: its groups differ in size; the largest, of 3 devices, is counted"),
        (f"{REDUCE}[2,4]<=[4]", "HI201", f"r: 8 devices in [4], {UNKNOWN}"),
        (f"{PERMUTE}{{{{0,1}},{{1,7}}}}", "HI203", "c: it names partition 7 of a program with 4"),
        (f"{PERMUTE}{{{{0,1}},{{0,2}}}}", "HI203", "c: it names partition 0 twice"),
        (f"{PERMUTE}{{{{0,1,2}}}}", "HI203", "c: '0,1,2' is no pair of devices"),
    ],
)
def test_of_a_collective(entry: Callable[..., Context], line: str, rule: str, message: str) -> None:
    """The entry starts in line 10, the collective is its second instruction."""
    assert faults(entry(PARAMETER, line, header=", num_partitions=4")) == [(rule, 12, message)]


@pytest.mark.parametrize(
    "line", [f"{REDUCE}{{{{0,1}},{{2,3}}}}", f"{REDUCE}{{}}", f"{PERMUTE}{{{{0,1}},{{1,0}}}}", f"{PERMUTE}{{{{3,3}}}}"]
)
def test_nothing_is_wrong(entry: Callable[..., Context], line: str) -> None:
    assert faults(entry(PARAMETER, line, header=", num_partitions=4")) == []


def test_of_a_sharding(entry: Callable[..., Context]) -> None:
    context = entry(f"{PARAMETER}, sharding={{devices=[2]<=[2]}}", header=", num_partitions=4")
    message = "the sharding {devices=[2]<=[2]} is for 2 devices, the program has 4 partitions"
    assert faults(context) == [("HI204", 10, message)]


def test_ids_tell_the_devices_where_the_header_does_not(entry: Callable[..., Context]) -> None:
    assert faults(entry(f"{PARAMETER}, sharding={{devices=[2]<=[2]}}", f"{REDUCE}{{{{0,9}}}}")) == []
