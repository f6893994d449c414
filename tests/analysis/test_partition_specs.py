"""Shardings in the names of mesh axes, as `PartitionSpec` writes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context

SHARDY = 'frontend_attributes={{xla.sdy.sharding="#sdy.sharding<{}>"}}'
HEADER = (
    "HloModule m, num_partitions=8, "
    'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=4, "model"=2, "stage"=1]>, one = #sdy.mesh<[]>}}'
)
PAIRS = "replica_groups={{0,1},{2,3},{4,5},{6,7}}, channel_id=1, use_global_device_ids=true"
REDUCED = f"%r = f32[8,8] all-reduce(%p), {PAIRS}, to_apply=%add"


def spec_of(read: Callable[..., Context], attributes: str, header: str = "HloModule m, num_partitions=8") -> str:
    """Return the spec of a parameter with these attributes, in a program whose collectives run over pairs of 8 devices."""
    parameter = f"  %p = f32[8,8] parameter(0){attributes and ', '}{attributes}"
    context = read("\n".join((header, "", "ENTRY %main {", parameter, f"  ROOT {REDUCED}", "}", "")))
    (leaf,) = context.interface.parameters
    return context.partition_specs.text(leaf.sharding, leaf.instruction)


@pytest.mark.parametrize(
    ("sharding", "spec"),
    [
        ("", ""),
        ("{replicated}", "replicated"),
        # 8 devices in 4 x 2, since collectives run over pairs
        ("{devices=[8,1]<=[8]}", '(("d0", "d1"), None)'),
        ("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", '("d0", None)'),
        ("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", '(None, "d1")'),
        ("{devices=[2,4]<=[4,2]T(1,0)}", '("d1", "d0")'),
        ("{devices=[8,1]<=[4,2]T(1,0)}", '(("d1", "d0"), None)'),  # the first axis named is the major one
        ("{devices=[1,1,8]<=[8] last_tile_dim_replicate}", "replicated"),
        ("{mesh['axis_0'=4,'axis_1'=2], [{}, {'axis_1'}]}", '(None, "d1")'),
        # shardings that names of axes do not express
        ("{maximal device=3}", "{maximal device=3}"),
        ("{devices=[4,1,2]<=[8] last_tile_dims={manual}}", "{devices=[4,1,2]<=[8] last_tile_dims={manual}}"),
        ("{mesh['a'=4,'b'=2], [{'a'}, {}], unreduced={'b'}}", "{mesh['a'=4,'b'=2], [{'a'}, {}], unreduced={'b'}}"),
    ],
)
def test_by_the_axes_of_the_mesh(read: Callable[..., Context], sharding: str, spec: str) -> None:
    assert spec_of(read, sharding and f"sharding={sharding}") == spec


@pytest.mark.parametrize(
    ("shardy", "spec"),
    [
        ('@mesh, [{"data"}, {}]', '("data", None)'),
        ('@mesh, [{"stage"}, {"model", "stage"}]', '(None, "model")'),  # an axis of one device divides nothing
        ('@mesh, [{"data", "model"}, {}]', '(("data", "model"), None)'),
        ('@mesh, [{"data":(2)2, ?}, {?}]', '("data:(2)2", None)'),
        ("@mesh, [{}, {}]", "replicated"),
        ("@one, []", "replicated"),
        ('@gone, [{"data"}, {}]', '("data", None)'),  # by the sharding beside it
    ],
)
def test_by_the_names_of_the_program(read: Callable[..., Context], shardy: str, spec: str) -> None:
    """The sharding beside it is the first axis of 4 x 2, which the header calls `data`."""
    escaped = SHARDY.format(shardy).replace('"', '\\"').replace('=\\"#', '="#').replace('>\\"', '>"')
    tiled = "sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}"
    assert spec_of(read, f"{tiled}, {escaped}", HEADER) == spec


def test_a_vector(read: Callable[..., Context]) -> None:
    context = read(
        "HloModule m, num_partitions=2\n\nENTRY %main {\n"
        "  %p = f32[8] parameter(0), sharding={devices=[2]<=[2]}\n  ROOT %n = f32[8] negate(%p)\n}\n"
    )
    (leaf,) = context.interface.parameters
    assert context.partition_specs.text(leaf.sharding) == '("d0",)'
