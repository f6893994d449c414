"""Device lists: groups spelled out by hand, and against numpy's reshape and transpose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.hlo.values.device_groups import (
    MAX_DEVICES,
    AxisReference,
    DeviceListError,
    Iota,
    NamedMesh,
    parse_groups,
    parse_pairs,
    shardy_meshes,
)
from hlo_inspect.hlo.values.sharding import parse_sharding, parse_shardy_shardings, split_sharding

Groups = tuple[tuple[int, ...], ...]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ()),
        ("{{}}", ()),
        ("{{0}}", ((0,),)),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{ {0, 4}, {1, 5} , {2,6} }", ((0, 4), (1, 5), (2, 6))),
        ("{{0,1,2},{3},{4,5,6,7}}", ((0, 1, 2), (3,), (4, 5, 6, 7))),
        ("{{3,1},{2,0}}", ((3, 1), (2, 0))),
    ],
)
def test_listed_groups(text: str, groups: Groups) -> None:
    assert parse_groups(text).groups == groups


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[8,1]<=[8]", tuple((i,) for i in range(8))),
        ("[1,1]<=[1]", ((0,),)),
        # 0 1 2 3 / 4 5 6 7, columns first
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("[2,4]<=[4,2]T(1,0)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        # 2x2x2 with the two minor axes exchanged: 0 2 1 3 4 6 5 7
        ("[4,2]<=[2,2,2]T(0,2,1)", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("[2,4] <= [2,2,2] T(2,0,1)", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("[ 2 , 2 ]<=[ 4 ]", ((0, 1), (2, 3))),
        ("[0,4]<=[0]", ()),
    ],
)
def test_iota_groups(text: str, groups: Groups) -> None:
    assert parse_groups(text).groups == groups


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("mesh['data'=2,'model'=4] {'model'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['data'=2,'model'=4] {'data'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['data'=2,'model'=4] {'1'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ('mesh["a"=2,"b"=4]{"a","b"}', (tuple(range(8)),)),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),  # b is the major one
        ("mesh['a'=2,'b'=4] {}", tuple((i,) for i in range(8))),
        ("mesh['a'=2,'one'=1,'b'=2] {'one','b'}", ((0, 1), (2, 3))),
        # half of an axis: its major part has stride 2, its minor part stride 1
        ("mesh['a'=2,'b'=4] {'b':(1)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['a'=2,'b'=4] {'b':(2)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['a'=2,'b'=4] {'a','b':(2)2}", ((0, 1, 4, 5), (2, 3, 6, 7))),
        ("mesh['a'=8] {'a':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        # the mesh 0 2 4 6 / 1 3 5 7
        ("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['a'=2,'b'=4], device_ids=([8]) {'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'b'}", ((3, 1), (0, 2))),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'a'}", ((3, 0), (1, 2))),
        ("maximal_mesh[device_id=3] {}", ((3,),)),
        ("mesh[] {}", ((0,),)),
    ],
)
def test_mesh_groups(text: str, groups: Groups) -> None:
    assert parse_groups(text).groups == groups


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not replica groups"),
        ("{0,1}", "not replica groups"),
        ("{{0,1}", "not replica groups"),
        ("{{0,a}}", "not replica groups"),
        ("{{0,-1}}", "not replica groups"),
        ("{{0,99999999999}}", "not a list of device ids"),
        ("[2,4]<=[7]", "8 devices do not fit the shape [7]"),
        ("[2,2,2]<=[8]", "expected [groups,size], found 3 dimensions"),
        ("[8]<=[8]", "expected [groups,size], found 1 dimensions"),
        ("[2,4]<=[2,4]T(0,2)", "not a permutation"),
        ("[2,4]<=[2,4]T(0)", "not a permutation"),
        ("[2,4]<=[2,4]T(0,0)", "not a permutation"),
        ("[9999999999,2]<=[9999999999,2]", "19999999998 devices"),
        ("mesh['a'=2,'b'=4] {'c'}", "no axis 'c'"),
        ("mesh['a'=2,'b'=4] {'a','a'}", "overlap"),
        ("mesh['a'=2,'b'=4] {'b','b':(1)2}", "overlap"),
        ("mesh['a'=2,'b'=4] {'b':(3)2}", "not a part of an axis"),
        ("mesh['a'=2,'b'=4] {'b':(0)2}", "not a part of an axis"),
        ("mesh['a'=0] {'a'}", "the mesh has 0 devices, not 1 to 1048576"),
        ("mesh['a'=9999999,'b'=9999999] {'a'}", "the mesh has 99999980000001 devices, not 1 to 1048576"),
        ("mesh['a'=2], device_ids=(0,1,2) {'a'}", "the mesh has 2 devices but lists 3 ids"),
        ("mesh['a'=2], device_ids=([3]) {'a'}", "2 devices do not fit the shape [3]"),
        ("mesh['a'=2], device_ids=(0,0) {'a'}", "twice"),
    ],
)
def test_malformed_groups(text: str, message: str) -> None:
    with pytest.raises(DeviceListError) as caught:
        parse_groups(text)
    assert message in str(caught.value)


@st.composite
def shapes_and_permutations(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return shape, draw(st.permutations(range(len(shape))))


@given(shapes_and_permutations(), st.data())
def test_iota_is_reshape_and_transpose(drawn: tuple[list[int], list[int]], data: st.DataObject) -> None:
    shape, permutation = drawn
    count = math.prod(shape)
    expected = np.arange(count).reshape(shape).transpose(permutation).reshape(-1)
    assert Iota(tuple(shape), tuple(permutation)).ids(count) == expected.tolist()
    size = data.draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0]))
    text = f"[{count // size},{size}]<=[{','.join(map(str, shape))}]T({','.join(map(str, permutation))})"
    assert parse_groups(text).groups == tuple(map(tuple, expected.reshape(-1, size).tolist()))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_mesh_groups_are_rows_of_a_transposed_mesh(sizes: list[int], data: st.DataObject) -> None:
    """If the named axes come last, each row of the mesh is a group."""
    count = math.prod(sizes)
    ids = data.draw(st.permutations(range(count)))
    named = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True))
    others = [axis for axis in range(len(sizes)) if axis not in named]
    size = math.prod(sizes[axis] for axis in named)
    expected = np.array(ids).reshape(sizes).transpose(others + named).reshape(-1, size)
    axes = ",".join(f"'x{axis}'={length}" for axis, length in enumerate(sizes))
    references = ",".join(f"'x{axis}'" for axis in named)
    text = f"mesh[{axes}], device_ids=({','.join(map(str, ids))}) {{{references}}}"
    assert parse_groups(text).groups == tuple(map(tuple, expected.tolist()))


def test_more_devices_than_the_limit_are_refused() -> None:
    assert len(parse_groups(f"[{MAX_DEVICES},1]<=[{MAX_DEVICES}]").groups) == MAX_DEVICES
    with pytest.raises(DeviceListError):
        parse_groups(f"[{MAX_DEVICES + 1},1]<=[{MAX_DEVICES + 1}]")


@pytest.mark.parametrize(
    ("text", "pairs"),
    [("{}", ()), ("{{0,1},{1,0}}", ((0, 1), (1, 0))), ("{ {0, 0} , {7,3} }", ((0, 0), (7, 3)))],
)
def test_source_target_pairs(text: str, pairs: tuple[tuple[int, int], ...]) -> None:
    assert parse_pairs(text).pairs == pairs


@pytest.mark.parametrize("text", ["", "{0,1}", "{{0}}", "{{0,1,2}}", "{{}}", "[1,2]<=[2]", "{{0,1}"])
def test_malformed_lists_of_pairs(text: str) -> None:
    with pytest.raises(DeviceListError):
        parse_pairs(text)


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("{replicated}", 0),
        ("{manual}", 0),
        ("{}", 0),
        ("{maximal device=3}", 4),
        ("{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", 8),
        ("{devices=[2,2]3,1,2,0}", 4),
        ("{devices=[4,2]<=[2,4]T(1,0)}", 8),
        ("{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}", 8),
        ("{{replicated}, {maximal device=0}, /*index=2*/{devices=[1,8]<=[8]}}", 8),
        ("{mesh['data'=2,'model'=2], [{'data'}, {'model', ?}]}", 4),
        ("{maximal_mesh[device_id=1]}", 2),
        ('{maximal device=1 metadata={op_name="devices=[99]<=[99]"}}', 2),
    ],
)
def test_number_of_devices_of_a_sharding(text: str, devices: int) -> None:
    assert parse_sharding(text).devices == devices


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{replicated}", None),
        ("{}", None),
        ('{devices=[2,1]<=[2] metadata={{op_name="x"}, {op_type="y"}}}', None),
        ("{{replicated}, {devices=[1,8]<=[8]}}", ("{replicated}", "{devices=[1,8]<=[8]}")),
        ("{ {replicated} }", ("{replicated}",)),
        (
            '{{maximal device=0 metadata={op_name="a }, {b"}}, /*index=1*/ {manual}}',
            ('{maximal device=0 metadata={op_name="a }, {b"}}', "{manual}"),
        ),
        (
            "{{mesh['a'=2], [{'a'}, {}]}, {mesh['a'=2], replicated}}",
            ("{mesh['a'=2], [{'a'}, {}]}", "{mesh['a'=2], replicated}"),
        ),
    ],
)
def test_a_tuple_sharding_is_split_into_its_elements(text: str, parts: tuple[str, ...] | None) -> None:
    assert split_sharding(text) == parts


# -- copies -----------------------------------------------------------------------------------------------------------------


def sets(groups: Groups | None) -> set[frozenset[int]] | None:
    return None if groups is None else {frozenset(group) for group in groups}


@pytest.mark.parametrize(
    ("sharding", "devices", "expected"),
    [
        ("{replicated}", 4, [{0, 1, 2, 3}]),
        ('{replicated metadata={op_name="devices=[4]"}}', 2, [{0, 1}]),
        ("{devices=[4]<=[4]}", 4, [{0}, {1}, {2}, {3}]),
        ("{devices=[2,2]0,2,1,3}", 4, [{0}, {1}, {2}, {3}]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 4, [{0, 1}, {2, 3}]),
        ("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", 4, [{0, 2}, {1, 3}]),
        ("{devices=[2,2]0,1,2,3 last_tile_dim_replicate}", 4, [{0, 1}, {2, 3}]),
        ("{devices=[2,1]<=[2] last_tile_dim_replicate}", 2, [{0}, {1}]),
        ("{mesh['a'=2,'b'=2], [{'a'}, {}]}", 4, [{0, 1}, {2, 3}]),
        ("{mesh['a'=2,'b'=2], [{'b'}]}", 4, [{0, 2}, {1, 3}]),
        ("{mesh['a'=2,'b'=2], [{'b', 'a'}]}", 4, [{0}, {1}, {2}, {3}]),
        ("{mesh['a'=2,'b'=2], replicated}", 4, [{0, 1, 2, 3}]),
        ("{mesh['a'=2,'b'=2], [{'a'}], replicated={'b'}}", 4, [{0, 1}, {2, 3}]),
        ("{mesh['a'=2,'b'=2], [{'0'}]}", 4, [{0, 1}, {2, 3}]),  # an axis by its number
    ],
)
def test_devices_with_copies_of_the_same_part(sharding: str, devices: int, expected: list[set[int]]) -> None:
    assert sets(parse_sharding(sharding).copies(devices)) == {frozenset(group) for group in expected}


@pytest.mark.parametrize(
    "sharding",
    [
        "{manual}",
        "{maximal device=0}",
        "{devices=[2,1,2,1]<=[4] last_tile_dims={manual, replicated}}",
        "{devices=[2]<=[2]}",
        "{devices=[4]0,1,2,2}",
        "{devices=[2,2]<=[3,3]}",
        "{mesh['a'=2,'b'=2], [{'a':(1)2}]}",
        "{mesh['a'=2,'b'=2], [{'a'}], unreduced={'b'}}",
        "{unknown}",
    ],
)
def test_copies_are_unknown_for_other_shardings(sharding: str) -> None:
    assert parse_sharding(sharding).copies(4) is None


def test_copies_are_unknown_for_no_or_too_many_devices() -> None:
    assert parse_sharding("{replicated}").copies(0) is None
    assert parse_sharding("{replicated}").copies(1 << 40) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{replicated}", "replicated"),
        ("{replicated shard_as 1}", "replicated"),
        ("{manual}", "manual"),
        ("{unreduced=max}", "unreduced"),
        ("{unknown}", "unknown"),
        ("{maximal device=3}", "maximal"),
        ("{maximal_mesh[device_id=3]}", "maximal"),
        ("{devices=[2,2]<=[4]}", "tiled"),
        ("{mesh['a'=2], manual}", "manual"),
        ("{mesh['a'=2], replicated}", "replicated"),
        ("{mesh['a'=2], [{'a'}]}", "named"),
        ("{{replicated}, {manual}}", "tuple"),
        ("{}", "tuple"),
    ],
)
def test_kinds_of_shardings(text: str, kind: str) -> None:
    assert parse_sharding(text).kind == kind


@pytest.mark.parametrize("text", ["", "replicated", "{", "{devices=}", "{devices=[99999999999]<=[4]}", "{something}"])
def test_malformed_shardings(text: str) -> None:
    with pytest.raises(DeviceListError):
        parse_sharding(text)


def test_the_parts_of_a_tiled_sharding() -> None:
    parsed = parse_sharding("{devices=[2,1,2,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}")
    assert (parsed.tile_sizes, parsed.device_ids) == ((2, 1, 2, 2), Iota((2, 4), (1, 0)))
    assert parsed.subgroups == ("manual", "replicated")


def test_the_parts_of_a_sharding_over_named_axes() -> None:
    parsed = parse_sharding("{mesh['a'=2,'b'=4], [{'a', ?}, {}, {'b':(2)2}], unreduced={'b':(1)2}, metadata={op_name=\"x\"}}")
    assert parsed.mesh == NamedMesh((("a", 2), ("b", 4)))
    assert parsed.dimension_axes == ((AxisReference("a"),), (), (AxisReference("b", 2, 2),))
    assert parsed.other_axes == (("unreduced", (AxisReference("b", 1, 2),)),)


def test_a_mesh_is_printed_as_xla_does() -> None:
    assert str(NamedMesh((("data", 4), ("model", 2)))) == "mesh['data'=4,'model'=2]"


def test_shardy_shardings() -> None:
    """Shardings of one value and two: part of an axis, an open dimension, a priority, an unknown mesh."""
    meshes = shardy_meshes(r"{xla.sdy.meshes={mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>, empty = #sdy.mesh<[]>}}")
    assert meshes == {"mesh": NamedMesh((("a", 2), ("b", 4))), "empty": NamedMesh(())}
    (plain,) = parse_shardy_shardings(r"#sdy.sharding<@mesh, [{\"a\", ?}p1, {}, {\"b\":(2)2}], unreduced={\"b\":(1)2}>", meshes)
    assert (plain.kind, plain.mesh) == ("named", meshes["mesh"])
    assert plain.dimension_axes == ((AxisReference("a"),), (), (AxisReference("b", 2, 2),))
    assert plain.other_axes == (("unreduced", (AxisReference("b", 1, 2),)),)
    two = parse_shardy_shardings('#sdy.sharding_per_value<[<@mesh, [{"a", "b"}]>, <@gone, []>]>', meshes)
    assert [(sharding.mesh, sharding.dimension_axes) for sharding in two] == [
        (meshes["mesh"], ((AxisReference("a"), AxisReference("b")),)),
        (NamedMesh(()), ()),
    ]
    assert parse_shardy_shardings("no sharding", meshes) == ()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("{'a'}", 2),
        ("{'b'}", 4),
        ("{'a','b'}", 8),
        ("{'b':(1)2}", 2),
        ("{'b':(2)2,'a'}", 4),
        ("{}", 1),
        ("{'b':(1)2,'b':(2)2}", 4),
    ],
)
def test_sizes_of_groups_along_mesh_axes(text: str, size: int) -> None:
    parsed = parse_groups(f"mesh['a'=2,'b'=4] {text}")
    assert (parsed.sizes, parsed.count, parsed.largest_id) == (frozenset([size]), 8, 7)
    assert {len(group) for group in parsed.groups} == {size}
    assert sorted(i for group in parsed.groups for i in group) == list(range(8))


@pytest.mark.parametrize(
    "text", ["{'a','a'}", "{'b':(1)2,'b'}", "{'b':(2)2,'b':(2)2}", "{'d':(2)4,'d':(4)1,'d':(2)2}", "{'c'}", "{'b':(3)2}"]
)
def test_overlapping_axes_are_refused(text: str) -> None:
    """A part of size 1 overlaps with nothing, and may stand between two parts that overlap."""
    with pytest.raises(DeviceListError):
        parse_groups(f"mesh['a'=2,'b'=4,'d'=8] {text}")
