"""Devices of groups, and of dumps; whose shapes dumps print. tests/cases/analysis has groups and devices of small programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.participants import (
    DeviceCounts,
    GroupMode,
    participants,
    parts_among,
)
from hlo_inspect.hlo.values.attributes import MalformedValue, ValueTable
from hlo_inspect.hlo.values.device_groups import DeviceGroups

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
SHARD_MAP = {"scan_fsdp", "scan_forward", "collectives", "gathered_matmul"}
ONE_DEVICE = {"array_operators", "number_operators", "linear_algebra", "control_flow", "constants"}
COMPILED = sorted(
    path.relative_to(DATA).as_posix()
    for folder in ("cpu", "tpu", "gpu", "jax_0_5_0", "jax_0_4_13")
    for path in (DATA / folder).glob("*.txt")
)

REPLICAS, PARTITIONS = GroupMode.CROSS_REPLICA, GroupMode.CROSS_PARTITION
BOTH, FLATTENED = GroupMode.CROSS_REPLICA_AND_PARTITION, GroupMode.FLATTENED_ID

TWO_BY_FOUR = DeviceCounts(replicas=2, partitions=4)


def spelled(text: str | None) -> DeviceGroups | MalformedValue | None:
    value = ValueTable().read("replica_groups", text) if text is not None else None
    assert value is None or isinstance(value, DeviceGroups | MalformedValue)
    return value


@pytest.mark.parametrize(
    ("mode", "text", "size"),
    [(FLATTENED, "{{0,1,2},{3}}", 3), (PARTITIONS, "{{0},{1,2,3}}", 3)],
)
def test_the_largest_of_unequal_groups_counts(mode: GroupMode, text: str, size: int) -> None:
    members = participants(spelled(text), mode, TWO_BY_FOUR)
    assert (members.size, members.uniform) == (size, False)
    assert participants(spelled("{}"), mode, TWO_BY_FOUR).uniform


def test_groups_keep_the_order_of_the_text() -> None:
    members = participants(spelled("{{1,0},{3,2}}"), FLATTENED, TWO_BY_FOUR)
    assert members.key == ((1, 0), (3, 2))
    assert participants(spelled("[2,2]<=[2,2]T(1,0)"), FLATTENED, TWO_BY_FOUR).key == ((0, 2), (1, 3))
    assert participants(spelled("{}"), REPLICAS, TWO_BY_FOUR).key == ()


@pytest.mark.parametrize("mode", list(GroupMode))
def test_all_devices_are_unknown_if_the_text_does_not_count_them(mode: GroupMode) -> None:
    members = participants(spelled("{}"), mode, DeviceCounts(None, None))
    assert members.size is None
    assert members.fault


def test_replicas_with_an_unknown_number_of_partitions() -> None:
    members = participants(spelled("{{0,1}}"), BOTH, DeviceCounts(2, None))
    assert members.size is None
    assert members.fault == "the number of partitions is unknown"


def test_groups_that_make_no_sense_are_a_fault() -> None:
    members = participants(spelled("{{0,1},{2"), FLATTENED, TWO_BY_FOUR)
    assert (members.key, members.size) == ((), None)
    assert members.fault


@pytest.mark.parametrize(
    ("counts", "devices"),
    [(TWO_BY_FOUR, 8), (DeviceCounts(1, 1), 1), (DeviceCounts(None, 4), None), (DeviceCounts(2, None), None)],
)
def test_devices_are_replicas_times_partitions(counts: DeviceCounts, devices: int | None) -> None:
    assert counts.devices == devices


def test_every_spelling_of_groups(read: Callable[[str], Context]) -> None:
    """As spelled out by hand for the dump; `{}` stands for all eight devices."""
    expected = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))["replica_groups.txt"]["groups"]
    collectives = read((DATA / "handmade/replica_groups.txt").read_text(encoding="utf-8")).collectives
    groups = {
        collective.start.name: collective.participants for collective in collectives if collective.kind != "collective-permute"
    }
    assert groups.pop("everybody").size == 8
    assert expected.pop("everybody") == [list(range(8))]
    assert {name: [list(group) for group in members.key] for name, members in groups.items()} == expected


# -- counts


@pytest.mark.parametrize("name", ["jax_0_4_13/sgd_unused.after.txt", "jax_0_4_13/collectives.before.txt"])
def test_old_dumps_without_counts_are_for_the_8_devices_they_were_made_for(read: Entry, name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert "num_partitions" not in text
    assert read(text).device_counts.devices == 8


# -- kind of the printed shapes


def truth(name: str) -> str:
    """By how the dump was made: before the partitioner jit's shapes are global, with shard_map's regions among them."""
    program, stage, _ = Path(name).name.split(".")
    if stage != "before" or program in ONE_DEVICE:
        return "per_device"
    return "mixed" if program in SHARD_MAP else "global"


@pytest.mark.parametrize("name", COMPILED)
def test_dumps(read: Entry, name: str) -> None:
    assert read((DATA / name).read_text(encoding="utf-8")).shapes_are == truth(name)


@pytest.mark.parametrize(
    ("after", "expected"),
    [("after_shardy-xla", "global"), ("after_spmd-partitioning", "per_device"), ("after_flatten-call-graph", "per_device")],
)
def test_a_pass_after_the_other(read: Entry, after: str, expected: str) -> None:
    """The parameters' bytes differ too: 1792 of the whole program, 576 of one device."""
    (path,) = (DATA / "xla_dump_to").glob(f"*.{after}.before_*.txt")
    context = read(path.read_text(encoding="utf-8"))
    assert sum(leaf.shape.bytes or 0 for leaf in context.interface.parameters) == (1792 if expected == "global" else 576)
    assert context.shapes_are == expected


# -- arrays on devices that hold the same


def test_parts() -> None:
    assert parts_among(((0, 1, 2, 3),), ((0, 1), (2, 3))) == 2
    assert parts_among(((0, 1), (2, 3)), ((0, 1), (2, 3))) == 1
    assert parts_among(((0, 1), (2, 3)), ((0, 2), (1, 3))) == 2
    assert parts_among((), ((0,),)) == 1
