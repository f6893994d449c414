"""Device lists, worked out by hand from XLA's definitions of groups and shardings."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode
from hlo_inspect.analysis.mesh_lists import Run, device_groups, device_lists, runs_of, tile_groups
from hlo_inspect.hlo.sharding import DeviceListError


@pytest.mark.parametrize(
    ("ids", "runs"),
    [
        ([0], ()),
        ([5], ()),
        ([0, 1, 2, 3], (Run(4, 1),)),
        ([3, 5, 7], (Run(3, 2),)),
        ([0, 1, 4, 5], (Run(2, 1), Run(2, 4))),
        ([0, 2, 4, 1, 3, 5], (Run(3, 2), Run(2, 1))),  # the major axis steps by one
        ([0, 1, 4, 5, 16, 17, 20, 21], (Run(2, 1), Run(2, 4), Run(2, 16))),
        ([0, 1, 3], None),
        ([0, 1, 4], None),  # half of a product
        ([0, 1, 1, 2], None),  # a device twice
        ([3, 2, 1, 0], None),
        ([0, 0], None),
    ],
)
def test_runs_are_the_axes_of_a_list(ids: list[int], runs: tuple[Run, ...] | None) -> None:
    assert runs_of(ids) == runs


@pytest.mark.parametrize(
    ("mode", "text", "groups"),
    [
        (GroupMode.FLATTENED_ID, "{{0,3},{1,2}}", ((0, 3), (1, 2))),
        (GroupMode.FLATTENED_ID, "", ((0, 1, 2, 3, 4, 5),)),
        (GroupMode.CROSS_PARTITION, "{{0,2},{1}}", ((0, 2), (1,))),
        (GroupMode.CROSS_PARTITION, "{}", ((0, 1, 2),)),
        (GroupMode.CROSS_REPLICA, "{{0,1}}", ((0, 3),)),  # replica 1 starts at device 3
        (GroupMode.CROSS_REPLICA, "", ((0, 3),)),
        (GroupMode.CROSS_REPLICA_AND_PARTITION, "{{0},{1}}", ((0, 1, 2), (3, 4, 5))),
        (GroupMode.CROSS_REPLICA_AND_PARTITION, "{{1,0}}", ((3, 4, 5, 0, 1, 2),)),
        (GroupMode.CROSS_REPLICA_AND_PARTITION, "", ((0, 1, 2, 3, 4, 5),)),
    ],
)
def test_groups_of_two_replicas_with_three_partitions(mode: GroupMode, text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    assert device_groups(text, mode, DeviceCounts(2, 3)) == groups


@pytest.mark.parametrize(("text", "counts"), [("", DeviceCounts(1 << 30, 1 << 30)), ("{{0,1}}", DeviceCounts(2, 1 << 20))])
def test_more_devices_than_there_are_machines_for_are_not_spelled_out(text: str, counts: DeviceCounts) -> None:
    with pytest.raises(DeviceListError):
        device_groups(text, GroupMode.CROSS_REPLICA_AND_PARTITION, counts)


@pytest.mark.parametrize(
    ("sharding", "dimensions"),
    [
        ("{replicated}", ()),
        ("{manual}", ()),
        ("{maximal device=3}", ()),
        ("{devices=[4,2]<=[2,4]T(1,0)}", [((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))]),
        ("{devices=[2,2]<=[4]}", [((0, 2), (1, 3)), ((0, 1), (2, 3))]),
        ("{devices=[1,2]0,1}", [((0, 1),)]),
        ("{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}", [((0, 1), (2, 3)), ((0, 2), (1, 3))]),
        # subgroups with the same data have no order
        ("{devices=[1,4]3,2,1,0 last_tile_dim_replicate}", [((0, 1, 2, 3),)]),
        ("{devices=[1,2,2]3,2,1,0 last_tile_dims={manual, replicated}}", [((1, 3), (0, 2)), ((2, 3), (0, 1))]),
        ("{devices=[1,4]3,2,1,0}", [((3, 2, 1, 0),)]),
        ("{mesh['data'=2,'model'=2], [{'data'}, {'model', ?}, {}]}", [((0, 2), (1, 3)), ((0, 1), (2, 3))]),
        ("{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a','b'}]}", [((0, 2, 1, 3),)]),
        ("{mesh['a'=2,'b'=2], [{}, {}], replicated={'a'}}", [((0, 2), (1, 3))]),
        ("{devices=[2]<=[2] metadata={op_name=\"devices=[4]<=[4] mesh['a'=2]\"}}", [((0, 1),)]),
        ("{devices=[2,2]0,1,2}", ()),  # a device short
        ("{devices=[0]<=[0]}", ()),
        ("{mesh['a'=2], [{'b'}]}", ()),
    ],
)
def test_devices_along_each_dimension_of_a_sharding(sharding: str, dimensions: list[tuple[tuple[int, ...], ...]]) -> None:
    assert tile_groups(sharding) == tuple(dimensions)


def test_shardings_of_the_entry_are_taken_apart_and_told_once(entry: Callable[..., Context]) -> None:
    context = entry(
        "%p = f32[8] parameter(0), sharding={devices=[8]<=[8]}",
        "%q = f32[8] parameter(1), sharding={devices=[8]<=[8]}",
        "%r = (f32[8], f32[8]) parameter(2), sharding={{replicated}, {devices=[2,4]<=[8] last_tile_dim_replicate}}",
        "ROOT %t = (f32[8]) tuple(%p), sharding={{devices=[4,2]<=[8] last_tile_dim_replicate}}",
        header=", num_partitions=8",
    )
    assert tuple(context.module.shardings) == (
        "{devices=[8]<=[8]}",
        "{replicated}",
        "{devices=[2,4]<=[8] last_tile_dim_replicate}",
        "{devices=[4,2]<=[8] last_tile_dim_replicate}",
    )


def test_lists_are_those_of_groups_and_tiles_but_not_of_pairs(entry: Callable[..., Context]) -> None:
    context = entry(
        "%p = f32[8] parameter(0)",
        "%a = f32[8] all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add",
        "%b = f32[8] all-reduce(%a), channel_id=2, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=%add",
        "%c = f32[8] all-reduce(%b), channel_id=3, replica_groups={{0,1},{2,x}}, use_global_device_ids=true, to_apply=%add",
        "ROOT %d = f32[8] collective-permute(%c), channel_id=4, source_target_pairs={{0,3},{3,0}}",
        header=", num_partitions=4",
    )
    shardings = ["{devices=[4]<=[4]}", "{devices=[2,2]<=[4] last_tile_dim_replicate}"]
    assert device_lists(context.collectives, context.device_counts, shardings) == (
        ((0, 1), (2, 3)),
        ((0, 1, 2, 3),),
        ((0, 2), (1, 3)),
    )
