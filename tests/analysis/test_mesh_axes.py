"""Names of axes. A mesh of shape 4x2 has strides 2 and 1, so the axes that a name covers follow by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.mesh import Mesh, module_shardings
from hlo_inspect.analysis.devices.mesh_axes import axis_of, parse_mesh, printed_meshes, with_names
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.values.device_groups import NamedMesh, shardy_meshes
from hlo_inspect.hlo.values.sharding import parse_sharding


def mesh(text: str) -> NamedMesh:
    named_mesh = parse_sharding(f"{{{text}, replicated}}").mesh
    assert named_mesh is not None
    return named_mesh


def test_given_mesh_is_written_as_xla_does() -> None:
    assert str(parse_mesh("data=4, model=2")) == "mesh['data'=4,'model'=2]"


@pytest.mark.parametrize("text", ["", "d", "d=0", "d=four", "4x2", "d=2,d=4", "d=2;m=4", "d'=2", "=4", "d=٤"])
def test_malformed_meshes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a mesh"):
        parse_mesh(text)


@pytest.mark.parametrize(
    ("attributes", "meshes"),
    [
        ('{xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2]>}}', ["mesh['data'=4,'model'=2]"]),
        (r'{a="b",xla.sdy.meshes="{mesh = #sdy.mesh<[\"data\"=4]>, other = #sdy.mesh<[\"x\"=2, \"y\"=2]>}"}',
         ["mesh['data'=4]", "mesh['x'=2,'y'=2]"]),
        ('{xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2], device_ids=[0, 2, 1, 3]>}}',
         ["mesh['a'=2,'b'=2], device_ids=(0, 2, 1, 3)"]),
        ("{xla.sdy.meshes={empty_mesh = #sdy.mesh<[]>}}", ["mesh[]"]),
        ("{fingerprint_before_lhs=\"1\"}", []),
    ],
)  # fmt: skip
def test_meshes_of_the_header(attributes: str, meshes: list[str]) -> None:
    assert list(shardy_meshes(attributes).values()) == list(map(mesh, meshes))


def test_meshes_in_groups_and_shardings_are_told_once(entry: Callable[..., Context]) -> None:
    context = entry(
        "%p = f32[8] parameter(0), sharding={mesh['data'=4], [{'data'}]}",
        "%q = f32[8] parameter(1), sharding={maximal_mesh[device_id=1]}",
        "%a = f32[8] all-reduce(%p), replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}, to_apply=%add",
        "%b = f32[8] all-reduce(%a), replica_groups={{0,1}}, to_apply=%add",
        "ROOT %c = f32[8] all-reduce(%b), replica_groups=mesh['data'=4] {'data'}, to_apply=%add",
    )
    meshes = printed_meshes(context.collectives, module_shardings(context.module))
    assert [named_mesh for named_mesh in meshes if named_mesh.axes] == [
        mesh("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0))"),
        mesh("mesh['data'=4]"),
    ]


@pytest.mark.parametrize(
    ("shape", "meshes", "axes"),
    [
        ((4, 2), ["mesh['data'=4,'model'=2]"], {"data": 4, "model": 2}),
        ((4, 2), ["mesh['one'=1,'data'=4,'model'=2]"], {"data": 4, "model": 2}),
        # the order of the names is not that of the devices: stride 2 belongs to the axis that device_ids makes major
        ((4, 2), ["mesh['model'=2,'data'=4], device_ids=([4,2]T(1,0))"], {"data": 4, "model": 2}),
        ((8,), ["mesh['data'=4,'model'=2]"], {"data,model": 8}),
        # a named axis stays whole, whatever parts of it the groups of a collective are
        ((2, 4), ["mesh['data'=4,'model'=2]"], {"data": 4, "model": 2}),
        ((4, 2), ["mesh['data'=8]"], {"data": 8}),
        ((2, 2, 2), ["mesh['a'=2,'b'=4]"], {"a": 2, "b": 4}),
        ((2, 2, 2, 2), ["mesh['a'=4,'b'=4]"], {"a": 4, "b": 4}),
        # a mesh with these axes goes before one that can be laid over them
        ((4, 2), ["mesh['x'=8]", "mesh['data'=4,'model'=2]"], {"data": 4, "model": 2}),
        ((6,), ["mesh['a'=2,'b'=3]"], {"a,b": 6}),
    ],
)
def test_names_of_axes(shape: tuple[int, ...], meshes: list[str], axes: dict[str, int]) -> None:
    named = with_names(Mesh(shape), map(mesh, meshes))
    assert named is not None
    assert dict(zip(named.names, named.shape or (), strict=True)) == axes


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((8,), "mesh['data'=4]"),  # other devices
        ((8,), "mesh['axis_0'=8]"),
        ((8,), "mesh['_axis_0'=8]"),
        ((4, 2), "mesh['axis_0'=4,'model'=2]"),
        ((3, 2), "mesh['a'=2,'b'=3]"),  # strides 2 and 3: neither divides the other
        ((4,), "mesh['a'=4], device_ids=(0,1)"),
        ((2, 2), "mesh['a'=2,'b'=2], device_ids=(0,1,3,2)"),  # no axis of it is a run of devices
    ],
)
def test_meshes_that_lend_no_names(shape: tuple[int, ...], text: str) -> None:
    assert with_names(Mesh(shape), [mesh(text)]) is None


def test_names_in_another_device_order() -> None:
    """Positions 0…3 hold devices 0, 3, 1, 2; the mesh lists the same rows."""
    named = with_names(Mesh((2, 2), (0, 3, 1, 2)), [mesh("mesh['a'=2,'b'=2], device_ids=(0,3,1,2)")])
    assert named is not None
    assert (named.names, named.order) == (("a", "b"), (0, 3, 1, 2))
    assert with_names(Mesh((2, 2), (0, 3, 1, 2)), [mesh("mesh['a'=2,'b'=2]")]) is None


@pytest.mark.parametrize(
    ("groups", "parts"),
    [
        (((0, 2, 4, 6), (1, 3, 5, 7)), ("data",)),
        (((0, 4), (1, 5), (2, 6), (3, 7)), ("data:(1)2",)),  # the major half of the axis: stride 4
        (((0, 2), (1, 3), (4, 6), (5, 7)), ("data:(2)2",)),  # the minor half: stride 2, after a factor of 2
        (((0, 1, 2, 3), (4, 5, 6, 7)), ("data:(2)2", "model")),
        (((0, 1, 4, 5), (2, 3, 6, 7)), ("data:(1)2", "model")),
        (((0,), (1,)), ()),
        (((0, 3),), None),  # no run of an axis
        (((0, 2), (4, 5)), None),  # along different axes
    ],
)
def test_parts_of_axes_have_the_spelling_of_xla(groups: tuple[tuple[int, ...], ...], parts: tuple[str, ...] | None) -> None:
    assert axis_of(groups, Mesh((4, 2), names=("data", "model"))) == parts
    assert axis_of(groups, Mesh(None)) is None
