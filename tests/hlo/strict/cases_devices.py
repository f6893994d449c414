"""Replica groups and shardings."""

from __future__ import annotations

from tests.hlo.strict.cases import with_attribute

GATHER = "q = f32[4,3] all-gather(p), dimensions={0}"

GROUPS = with_attribute(
    "HI015",
    GATHER,
    [
        ("replica_groups={{0,1},{2}}", "replica_groups={»0,1}", "expected '{'"),
        ("replica_groups={}", "replica_groups={{0,»a}}", "expected an integer"),
        ("replica_groups=[2,2]<=[4]", "replica_groups=»[2,2,2]<=[8]", "groups of 3 dimensions"),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", "replica_groups=[4,2]<=[2,4]»", "expected T("),
        ("replica_groups=[2,2]<=[2,2]T(0,1)", "replica_groups=[2,2]<=[2,2]T(0,»2)", "no dimension of this number"),
        ("replica_groups=mesh['a'=2,'b'=2] {'b'}", "replica_groups=»mesh['a'=2,'b'=2] {'c'}", "no axis 'c'"),
        ("replica_groups=mesh['a'=4] {'a':(2)2}", "replica_groups=»mesh['a'=4] {'a':(3)2}", "no part of an axis"),
        ("replica_groups=mesh['a'=2] {'a'}", "replica_groups=»mesh['a'=2] {'a','a'}", "overlap"),
        (
            "replica_groups=mesh['a'=2], device_ids=(1,0) {'a'}",
            "replica_groups=mesh['a'=2], device_ids=»(0,1,2) {'a'}",
            "2 diff",
        ),
        ("replica_groups=mesh['a'=2] {'a'}", "replica_groups=»mesh['a'=2] {}", "one device each"),
        ("replica_groups=mesh['a'=2] {'a'}", "replica_groups=»maximal_mesh[device_id=1] {}", "one device each"),
        ("replica_groups=mesh['a'=2,'b'=2] {'a'}", "replica_groups=»mesh['a'=2,'a'=2] {'a'}", "two axes of one name"),
    ],
)

FOUND_LATER = with_attribute(
    "HI015",
    GATHER,
    [
        ("replica_groups=[2,4]<=[8]", "replica_groups=»[2,4]<=[6]", "8 devices in the groups, 6 in the list"),
        ("sharding={devices=[2,2]<=[4]}", "sharding={devices=»[2,2]<=[8]}", "the tiles are for 4 devices"),
    ],
)
"""What XLA's parser keeps as it stands and finds wrong once it spells the devices out."""

SHARDINGS = with_attribute(
    "HI015",
    "q = f32[2,3] negate(p)",
    [
        ("sharding={replicated}", "sharding=»replicated", "expected '{'"),
        ("sharding={{replicated}}", "sharding={{»}}", "expected devices="),
        ("sharding={replicated shard_as 1}", "sharding={replicated shard_as »}", "expected an integer"),
        ("sharding={maximal device=1}", "sharding={»maximal}", "names one device"),
        ("sharding={maximal device=1}", "sharding={maximal device=»a}", "expected an integer"),
        ("sharding={manual}", "sharding={»manual device=1}", "manual names no devices"),
        ("sharding={replicated}", "sharding={»replicated devices=[2]0,1}", "replicated names no devices"),
        ("sharding={unknown}", "sharding={»unknown device=1}", "unknown names no devices"),
        ("sharding={unreduced}", "sharding={»device=1}", "expected devices="),
        ("sharding={devices=[2]0,1}", "sharding={»devices=[1]0}", "more than one device"),
        ("sharding={devices=[2,2]<=[2,2]T(1,0)}", "sharding={devices=[2,2]<=[2,2]»}", "expected T("),
        (
            "sharding={devices=[2,2]<=[4] last_tile_dims={manual}}",
            "sharding={devices=[2,2]<=[4] last_tile_dims={»foo}}",
            "maximal",
        ),
        (
            "sharding={devices=[2,2]<=[4] last_tile_dim_replicate}",
            "sharding={»devices=[2,2]<=[4] last_tile_dims={manual} last_tile_dim_replicate}",
            "exclude each other",
        ),
        ('sharding={replicated metadata={op_name="a"}}', 'sharding={replicated», metadata={op_name="a"}}', "a part of"),
        ("sharding={replicated}", "sharding={»tiled}", "'tiled' is no part of a sharding"),
        ("sharding={replicated}", "sharding={»tiles=[2]0,1}", "a sharding has no 'tiles'"),
        ("sharding={mesh['a'=2,'b'=4], [{'a'}, {'b', ?}]}", "sharding={»mesh['a'=2,'b'=4], [{'a'}, {'c'}]}", "no axis 'c'"),
        ("sharding={mesh['a'=2], [{'a'},{}]}", "sharding={»mesh['a'=2], [{'a'},{'a'}]}", "overlap"),
        ("sharding={mesh['a'=2], replicated}", "sharding={mesh['a'=2]»}", "expected the dimensions' axes"),
        ("sharding={mesh['a'=2], [{}], manual={'a'}}", "sharding={mesh['a'=2], [{}], »open={'a'}}", "has no 'open'"),
        ("sharding={maximal_mesh[device_id=1]}", "sharding={maximal_mesh[»1]}", "expected device_id="),
    ],
)
