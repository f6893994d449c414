"""Meshes against every mesh tried out one by one, and lists of devices. tests/cases/analysis has meshes of programs."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.mesh import (
    MAX_ORDERED_DEVICES,
    Mesh,
    Run,
    device_groups,
    device_lists,
    find_mesh,
    find_order,
    runs_of,
    tile_groups,
)
from hlo_inspect.analysis.devices.mesh_axes import (
    axis_of,
    axis_of_pairs,
    mesh_of,
    parse_mesh,
)
from hlo_inspect.analysis.devices.participants import DeviceCounts, GroupMode
from hlo_inspect.hlo.values.device_groups import AxisReference, DeviceListError, Groups, Iota, NamedMesh, parse_groups
from hlo_inspect.hlo.values.sharding import parse_sharding


def test_a_given_mesh_of_other_devices_lends_no_names(entry: Callable[..., Context]) -> None:
    attributes = "channel_id=1, use_global_device_ids=true, replica_groups={{0,2,4,6},{1,3,5,7}}, to_apply=%add"
    context = entry("%p = f32[8] parameter(0)", f"%r = f32[8] all-reduce(%p), {attributes}", header=", num_partitions=8")
    mesh = mesh_of(context.module, context.collectives, context.device_counts, parse_mesh("a=4,b=4"))
    assert mesh.note == "mesh['a'=4,'b'=4] does not fit the 4x2 devices of the program"


def test_many_groups_cost_no_square() -> None:
    """A list of all devices for each of 20,000 groups took 9 s."""
    mesh = Mesh((20_000, 2), names=("a", "b"))
    begin = time.process_time()
    assert axis_of(tuple((2 * number, 2 * number + 1) for number in range(20_000)), mesh) == ("b",)
    assert time.process_time() - begin < 3


def test_axes_of_groups_that_the_mesh_does_not_know() -> None:
    mesh = Mesh((4, 2), names=("a", "b"))
    assert axis_of(((0, 2, 4, 6), (1, 3, 5, 7)), mesh) == ("a",)
    assert axis_of(((0, 4), (2, 6)), mesh) == ("a:(1)2",)
    assert axis_of(((0, 1), (2, 4)), mesh) is None  # along different axes
    assert axis_of(((1, 2),), mesh) is None
    assert axis_of(((0, 8),), mesh) is None
    assert axis_of(((0, 1),), Mesh(None)) is None
    assert axis_of_pairs([(0, 7)], mesh) == ("a", "b")
    assert axis_of_pairs([(0, 8)], mesh) is None
    assert axis_of_pairs([], Mesh(None)) is None


def test_a_thousand_devices() -> None:
    """16x8x8 with groups along each axis and each pair of axes."""
    lists = [
        parse_groups("[128,8]<=[1024]").groups,
        parse_groups("[16,64]<=[1024]").groups,
        parse_groups("[128,8]<=[16,8,8]T(0,2,1)").groups,
        parse_groups("[64,16]<=[16,64]T(1,0)").groups,
        parse_groups("[8,128]<=[16,8,8]T(1,0,2)").groups,
    ]
    mesh = find_mesh(lists, 1024)
    assert mesh.shape == (16, 8, 8)
    named = replace(mesh, names=("a", "b", "c"))
    assert [axis_of(groups, named) for groups in lists] == [("c",), ("b", "c"), ("b",), ("a",), ("a", "c")]


def factorizations(devices: int) -> Iterator[tuple[int, ...]]:
    """Yield every mesh of `devices` devices without an axis of one."""
    if devices == 1:
        yield ()
    for size in range(2, devices + 1):
        if devices % size == 0:
            yield from ((size, *rest) for rest in factorizations(devices // size))


def groups_along(shape: tuple[int, ...], axes: tuple[int, ...]) -> Groups:
    """Return the devices that agree in all other axes, by counting the places of the mesh."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for device, place in enumerate(itertools.product(*map(range, shape))):
        groups.setdefault(tuple(coordinate for axis, coordinate in enumerate(place) if axis not in axes), []).append(device)
    return tuple(map(tuple, groups.values()))


def subsets(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [axes for size in range(len(shape) + 1) for axes in itertools.combinations(range(len(shape)), size)]


@given(st.data())
@settings(max_examples=80)
def test_the_coarsest_of_all_meshes_is_found(data: st.DataObject) -> None:
    """Each mesh of 2 to 24 devices is tried: those of which all groups are products of axes, and of these the fewest axes."""
    devices = data.draw(st.integers(2, 24))
    shapes = list(factorizations(devices))
    lists = []
    for _ in range(data.draw(st.integers(0, 3))):
        shape = data.draw(st.sampled_from(shapes))
        lists.append(groups_along(shape, data.draw(st.sampled_from(subsets(shape)))))
    fitting = [s for s in shapes if set(lists) <= {groups_along(s, axes) for axes in subsets(s)}]
    mesh = find_mesh(lists, devices)
    if not fitting:
        assert mesh.order is not None or mesh.shape is None
        return
    fewest = min(map(len, fitting))
    assert [s for s in fitting if len(s) == fewest] == [mesh.shape]
    assert math.prod(mesh.shape or ()) == devices
    assert mesh.order is None
    named = replace(mesh, names=tuple(map(str, range(len(mesh.axes)))))
    for groups in lists:
        axes = axis_of(groups, named)
        assert axes is not None
        assert groups_along(mesh.shape or (), tuple(map(int, axes))) == groups


# -- lists of devices -------------------------------------------------------------------------------------------------------


def spelled(text: str) -> Groups:
    return parse_groups(text).groups if text else ()


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
    assert device_groups(parse_groups(text) if text else None, mode, DeviceCounts(2, 3)) == groups


@pytest.mark.parametrize(("text", "counts"), [("", DeviceCounts(1 << 30, 1 << 30)), ("{{0,1}}", DeviceCounts(2, 1 << 20))])
def test_more_devices_than_there_are_machines_for_are_not_spelled_out(text: str, counts: DeviceCounts) -> None:
    with pytest.raises(DeviceListError):
        device_groups(parse_groups(text) if text else None, GroupMode.CROSS_REPLICA_AND_PARTITION, counts)


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
    assert tile_groups(parse_sharding(sharding)) == tuple(dimensions)


def test_shardings_of_the_entry_are_taken_apart_and_told_once(entry: Callable[..., Context]) -> None:
    context = entry(
        "%p = f32[8] parameter(0), sharding={devices=[8]<=[8]}",
        "%q = f32[8] parameter(1), sharding={devices=[8]<=[8]}",
        "%r = (f32[8], f32[8]) parameter(2), sharding={{replicated}, {devices=[2,4]<=[8] last_tile_dim_replicate}}",
        "ROOT %t = (f32[8]) tuple(%p), sharding={{devices=[4,2]<=[8] last_tile_dim_replicate}}",
        header=", num_partitions=8",
    )
    assert tuple(context.module.device_marks.shardings) == (
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
    assert device_lists(context.collectives, context.device_counts, map(parse_sharding, shardings)) == (
        ((0, 1), (2, 3)),
        ((0, 1, 2, 3),),
        ((0, 2), (1, 3)),
    )


# -- device orders other than row-major: the rows and columns are chosen first, then found again ----------------------------


def lines(devices: list[int], shape: tuple[int, ...], axis: int) -> Groups:
    """Return the groups along one axis of a mesh that holds `devices` row-major."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, device in zip(itertools.product(*map(range, shape)), devices, strict=True):
        groups.setdefault(place[:axis] + place[axis + 1 :], []).append(device)
    return tuple(map(tuple, groups.values()))


def test_rows_and_columns() -> None:
    """Rows {0,1} {3,2}, columns {0,3} {1,2}: device 3 is below 0, so that 2 is below 1."""
    assert find_order([((0, 1), (2, 3)), ((0, 3), (1, 2))], 4) == (0, 1, 3, 2)


def test_axes_that_only_intersections_tell() -> None:
    """Planes of a 2x2x2 cube with device 6 and 7 exchanged: each axis is the intersection of two planes."""
    cube = [0, 1, 2, 3, 4, 5, 7, 6]
    rows, columns, files = (lines(cube, (2, 2, 2), axis) for axis in (2, 1, 0))
    planes = [((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 1, 4, 5), (2, 3, 6, 7)), ((0, 2, 4, 7), (1, 3, 5, 6))]
    assert find_order(planes, 8) == tuple(cube)
    assert find_order([rows, columns, files], 8) == tuple(cube)


@pytest.mark.parametrize(
    ("lists", "devices"),
    [
        ([], 4),
        ([((0, 3), (1, 2))], 4),  # the order of the devices is unknown
        ([((0, 1, 2), (3, 4, 5)), ((0, 3), (1, 4), (2, 5))], 7),  # device 6 is in none
        ([((0, 1, 2), (3, 4)), ((0, 3), (1, 4), (2, 5))], 6),
        ([((0, 1), (1, 2))], 3),
        ([((0, 1), (2, 9))], 4),
        ([((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))], 4),  # three directions in a square of four
    ],
)
def test_groups_that_leave_the_order_open(lists: list[Groups], devices: int) -> None:
    assert find_order(lists, devices) is None


def test_a_mesh_of_too_many_devices_is_not_tried() -> None:
    devices = 2 * MAX_ORDERED_DEVICES
    assert find_order([(tuple(range(devices)),)], devices) is None


@given(st.permutations(range(12)), st.sampled_from([(3, 4), (4, 3), (2, 3, 2), (2, 2, 3), (2, 6)]))
@settings(max_examples=60)
def test_any_order_is_found_again(devices: list[int], shape: tuple[int, ...]) -> None:
    """The mesh found has the same lines, whatever the order of its axes and of the devices along them."""
    chosen = [lines(devices, shape, axis) for axis in range(len(shape))]
    order = find_order(chosen, len(devices))
    assert order is not None
    assert math.prod(shape) == len(order)

    def sets(groups: Groups) -> frozenset[frozenset[int]]:
        return frozenset(map(frozenset, groups))

    wanted = {sets(groups) for groups in chosen}
    assert any(
        {sets(lines(list(order), turned, axis)) for axis in range(len(turned))} == wanted
        for turned in itertools.permutations(shape)
    )


def test_iota_lists_of_many_devices_are_not_written_out() -> None:
    """Forty short lists of more than 200,000 devices each; written out they are eight million ids."""
    lists = [f"[{n},2]<=[2,{n}]T(1,0)" for n in range(100_000, 100_040)]
    lines = [f"  r{i} = f32[4] all-reduce(p), replica_groups={text}, to_apply=s" for i, text in enumerate(lists)]
    report = hlo_inspect.inspect(
        "\n".join(["HloModule m\n", "ENTRY e {", "  p = f32[4] parameter(0)", *lines, "}"]), "collectives"
    )
    assert report.facts["module.devices"] == 2 * 100_039
    assert report.facts["collectives.group_size.2.count"] == 40
    assert report.facts["mesh.shape"] is None
    assert "mesh.shape: its groups and shardings name devices more than 131,072 times" in report.notes


@pytest.mark.parametrize(
    "line",
    [
        "p{i} = f32[1048576] parameter({i}), sharding={{devices=[{n}]<=[{n}]}}",
        "p{i} = f32[1048576] parameter({i}), sharding={{devices=[{n},2]<=[2,{n}]T(1,0)}}",
        "p{i} = f32[1048576] parameter({i}), sharding={{mesh['axis_0'={n}], [{{'axis_0'}}]}}",
        "r{i} = f32[4] all-reduce(p), replica_groups=[{n},2]<=[2,{n}]T(1,0), to_apply=s",
        "r{i} = f32[4] all-reduce(p), replica_groups=mesh['a'={n},'b'=2] {{'b'}}, to_apply=s",
    ],
)
@pytest.mark.parametrize("entry", ["ENTRY e", "e"])
def test_short_lists_of_many_devices_are_not_written_out(line: str, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them stands for 500,000 ids, the most that a module may have, together with its users."""
    written: list[int] = []

    def ids(self: Iota, count: int) -> list[int]:
        written.append(count)
        return list(range(count))

    def groups(self: NamedMesh, references: Iterable[AxisReference]) -> tuple[tuple[int, ...], ...]:
        written.append(self.size)
        return ()

    monkeypatch.setattr(Iota, "ids", ids)
    monkeypatch.setattr(NamedMesh, "groups", groups)
    lines = "\n".join("  " + line.format(i=i, n=524_288 - i) for i in range(4))
    text = f"HloModule m\n\n{entry} {{\n  p = f32[4] parameter(9)\n{lines}\n}}\n"
    (report,) = hlo_inspect.inspect_all(text, ("params", "collectives"))
    assert report.facts["mesh.shape"] is None or entry == "e"  # its shardings are not looked at for the mesh
    assert report.table("params").rows
    assert sum(written) <= 131_072
