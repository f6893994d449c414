"""XLA's four group modes, by its table of channel and `use_global_device_ids`, and how many devices a group has in each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode, group_mode, participants

DATA = Path(__file__).parents[1] / "data"

REDUCING = ("all-reduce", "all-gather", "reduce-scatter")
EXCHANGING = ("all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all")

REPLICAS, PARTITIONS = GroupMode.CROSS_REPLICA, GroupMode.CROSS_PARTITION
BOTH, FLATTENED = GroupMode.CROSS_REPLICA_AND_PARTITION, GroupMode.FLATTENED_ID

TWO_BY_FOUR = DeviceCounts(replicas=2, partitions=4)


@pytest.mark.parametrize("kind", REDUCING + EXCHANGING)
def test_without_a_channel_ids_are_replicas(kind: str) -> None:
    assert group_mode(kind, {"replica_groups": "{{0,1}}"}) is REPLICAS


@pytest.mark.parametrize("kind", EXCHANGING)
def test_with_a_channel_what_knows_no_global_ids_exchanges_between_partitions(kind: str) -> None:
    assert group_mode(kind, {"channel_id": "3"}) is PARTITIONS


@pytest.mark.parametrize("kind", REDUCING)
@pytest.mark.parametrize(
    ("attributes", "mode"),
    [
        ({"channel_id": "3"}, BOTH),
        ({"channel_id": "3", "use_global_device_ids": "false"}, BOTH),
        ({"channel_id": "3", "use_global_device_ids": "true"}, FLATTENED),
        ({"all_reduce_id": "7"}, BOTH),  # the channel's name until 2019
    ],
)
def test_with_a_channel_the_flag_decides(kind: str, attributes: dict[str, str], mode: GroupMode) -> None:
    assert group_mode(kind, attributes) is mode


@pytest.mark.parametrize(
    ("mode", "text", "size"),
    [
        (REPLICAS, "{{0,1}}", 2),
        (REPLICAS, "{{0},{1}}", 1),
        (REPLICAS, "{}", 2),
        (REPLICAS, None, 2),
        (PARTITIONS, "{{0,1},{2,3}}", 2),
        (PARTITIONS, "{}", 4),
        (BOTH, "{{0},{1}}", 4),  # each replica brings its four partitions
        (BOTH, "{{0,1}}", 8),
        (BOTH, "{}", 8),
        (BOTH, None, 8),
        (FLATTENED, "{{0,1,2,3},{4,5,6,7}}", 4),
        (FLATTENED, "[4,2]<=[8]", 2),
        (FLATTENED, "[1,8]<=[2,4]T(1,0)", 8),
    ],
)
def test_devices_of_a_group_among_2_replicas_of_4_partitions(mode: GroupMode, text: str | None, size: int) -> None:
    found = participants(text, mode, TWO_BY_FOUR)
    assert (found.size, found.uniform, found.fault) == (size, True, None)


@pytest.mark.parametrize(
    ("mode", "text", "size"),
    [(FLATTENED, "{{0,1,2},{3}}", 3), (PARTITIONS, "{{0},{1,2,3}}", 3)],
)
def test_of_groups_that_differ_the_largest_counts(mode: GroupMode, text: str, size: int) -> None:
    found = participants(text, mode, TWO_BY_FOUR)
    assert (found.size, found.uniform) == (size, False)


@pytest.mark.parametrize(
    ("mode", "text", "fault"),
    [
        (REPLICAS, "{{0,2}}", "it names replica 2 of a program with 2"),
        (BOTH, "{{0,1},{2}}", "it names replica 2 of a program with 2"),
        (PARTITIONS, "{{0,1},{2,4}}", "it names partition 4 of a program with 4"),
        (FLATTENED, "{{0,1},{8,9}}", "it names device 8 of a program with 8"),
        (FLATTENED, "{{0,1},{2,1}}", "it names device 1 twice"),
    ],
)
def test_groups_that_contradict_the_program_have_no_size(mode: GroupMode, text: str, fault: str) -> None:
    found = participants(text, mode, TWO_BY_FOUR)
    assert (found.size, found.fault, found.contradicts) == (None, fault, True)


def test_groups_keep_the_order_of_the_text() -> None:
    found = participants("{{1,0},{3,2}}", FLATTENED, TWO_BY_FOUR)
    assert found.groups == ((1, 0), (3, 2))
    assert participants("[2,2]<=[2,2]T(1,0)", FLATTENED, TWO_BY_FOUR).groups == ((0, 2), (1, 3))
    assert participants("{}", REPLICAS, TWO_BY_FOUR).groups == ()


@pytest.mark.parametrize("mode", list(GroupMode))
def test_everybody_is_unknown_where_nothing_tells_the_devices(mode: GroupMode) -> None:
    found = participants("{}", mode, DeviceCounts(None, None))
    assert found.size is None
    assert found.fault


def test_replicas_with_an_unknown_number_of_partitions() -> None:
    found = participants("{{0,1}}", BOTH, DeviceCounts(2, None))
    assert found.size is None
    assert found.fault == "nothing tells the number of partitions"


def test_groups_that_make_no_sense_are_a_fault() -> None:
    found = participants("{{0,1},{2", FLATTENED, TWO_BY_FOUR)
    assert (found.groups, found.size) == ((), None)
    assert found.fault


@pytest.mark.parametrize(
    ("counts", "devices"),
    [(TWO_BY_FOUR, 8), (DeviceCounts(1, 1), 1), (DeviceCounts(None, 4), None), (DeviceCounts(2, None), None)],
)
def test_devices_are_replicas_times_partitions(counts: DeviceCounts, devices: int | None) -> None:
    assert counts.devices == devices


def test_every_spelling_of_groups(read: Callable[[str], Context]) -> None:
    """As spelled out by hand for the dump; `{}` stands for all eight devices."""
    known = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))["replica_groups.txt"]["groups"]
    collectives = read((DATA / "handmade/replica_groups.txt").read_text(encoding="utf-8")).collectives
    found = {one.start.name: one.participants for one in collectives if one.kind != "collective-permute"}
    assert found.pop("everybody").size == 8
    assert known.pop("everybody") == [list(range(8))]
    assert {name: [list(group) for group in members.groups] for name, members in found.items()} == known
