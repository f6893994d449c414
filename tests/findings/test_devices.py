"""Devices that a text names and a program does not have, in the words of a finding."""

from __future__ import annotations

import pytest

import hlo_inspect

PARAMETER = "%p = f32[4]{0} parameter(0)"
REDUCE = "%r = f32[4]{0} all-reduce(%p), channel_id=1, use_global_device_ids=true, to_apply=%add, replica_groups="
UNKNOWN = "so its group size is unknown"
PERMUTE = "%c = f32[4]{0} collective-permute(%p), channel_id=1, source_target_pairs="


HEADER = """HloModule test{}

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %main {{
"""


def faults(*lines: str, header: str = "") -> list[tuple[str, int | None, str]]:
    text = HEADER.format(header) + "".join(f"  {line}\n" for line in lines) + "}\n"
    findings = hlo_inspect.inspect(text, "collectives").findings
    return [(f.rule, f.location.line if f.location else None, f.message) for f in findings if f.rule.startswith("HI2")]


@pytest.mark.parametrize(
    ("line", "rule", "message"),
    [
        (
            f"{REDUCE}{{{{0,1}},{{2,4}}}}",
            "HI203",
            "r: it names device 4 of a program with 4, so its group size is unknown",
        ),
        (f"{REDUCE}{{{{0,1}},{{1,2}}}}", "HI203", "r: it names device 1 twice, so its group size is unknown"),
        (
            f"{REDUCE}{{{{0,1,2}},{{3}}}}",
            "HI202",
            "r: its groups differ in size; figures use the largest, of 3 devices",
        ),
        (f"{REDUCE}[2,4]<=[4]", "HI201", f"r: 8 devices do not fit the shape [4], {UNKNOWN}"),
        (f"{PERMUTE}{{{{0,1}},{{1,7}}}}", "HI203", "c: it names partition 7 of a program with 4"),
        (f"{PERMUTE}{{{{0,1}},{{0,2}}}}", "HI203", "c: it names partition 0 twice"),
        (f"{PERMUTE}{{{{0,1,2}}}}", "HI203", "c: '0,1,2' is not a pair of devices"),
    ],
)
def test_faults_of_the_devices_of_a_collective(line: str, rule: str, message: str) -> None:
    """The entry starts in line 9, the collective is its second instruction."""
    assert faults(PARAMETER, line, header=", num_partitions=4") == [(rule, 11, message)]


@pytest.mark.parametrize(
    "line", [f"{REDUCE}{{{{0,1}},{{2,3}}}}", f"{REDUCE}{{}}", f"{PERMUTE}{{{{0,1}},{{1,0}}}}", f"{PERMUTE}{{{{3,3}}}}"]
)
def test_nothing_is_wrong(line: str) -> None:
    assert faults(PARAMETER, line, header=", num_partitions=4") == []


def test_a_sharding_for_other_devices_is_a_fault() -> None:
    message = "the sharding {devices=[2]<=[2]} is for 2 devices, the program has 4 partitions"
    assert faults(f"{PARAMETER}, sharding={{devices=[2]<=[2]}}", header=", num_partitions=4") == [("HI204", 9, message)]


def test_ids_tell_the_devices_where_the_header_does_not() -> None:
    assert faults(f"{PARAMETER}, sharding={{devices=[2]<=[2]}}", f"{REDUCE}{{{{0,9}}}}") == []
