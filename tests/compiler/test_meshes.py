"""Meshes that the user names, and the reasons why a program cannot be compiled for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hlo_inspect.compiler.meshes import Description, mesh_text, wanted_meshes
from hlo_inspect.errors import UsageError

OWN = {"data": 4, "model": 2}
MESH = 'sdy.mesh @mesh = <["data"=4, "model"=2]>'


def described(
    mesh: str = MESH, dimensions: tuple[int, ...] = (32, 64), sharding: str = '[{"data"}, {}]', **other: Any
) -> Description:
    """Return a program with one argument."""
    argument = {"dimensions": dimensions, "sdy.sharding": f"#sdy.sharding<@mesh, {sharding}>"}
    content = {
        "name": "step",
        "partitions": 8,
        "meshes": [mesh],
        "is_manual": False,
        "arguments": [argument],
        "results": [],
        "carried": [],
    }
    return Description(json.dumps({**content, **other}))


@pytest.mark.parametrize(
    ("texts", "meshes"),
    [
        (["data=8,model=1"], ["data=8,model=1"]),
        (["model=4"], ["data=4,model=4"]),  # axes that are not named keep their size
        (["data=8,model=1", "model=1,data=8"], ["data=8,model=1"]),
        (["all"], ["data=1,model=8", "data=2,model=4", "data=4,model=2", "data=8,model=1"]),
        (["all:6"], ["data=1,model=6", "data=2,model=3", "data=3,model=2", "data=6,model=1"]),
    ],
)
def test_meshes_of_the_user(texts: list[str], meshes: list[str]) -> None:
    assert [mesh_text(mesh) for mesh in wanted_meshes(texts, OWN)] == meshes


def test_a_program_of_one_axis_has_one_factoring() -> None:
    assert wanted_meshes(["all:64"], {"shard": 8}) == [{"shard": 64}]


@pytest.mark.parametrize(
    "text", ["", "data", "data=", "data=0", "data=x", "data=2,data=4", "all:", "all:x", "all:0", "all:1024", "=4"]
)
def test_what_is_no_mesh_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        wanted_meshes([text], OWN)


def test_a_mesh_that_fits_is_not_refused() -> None:
    assert described().refusal({"data": 8, "model": 1}) == ""
    assert described().mesh == OWN


@pytest.mark.parametrize(
    ("program", "sizes", "reason"),
    [
        (described(), {"rows": 8}, "no axis rows; the mesh has data, model"),
        (described(), {"data": 256, "model": 4}, "1024 devices; at most 512"),
        (described(), {"data": 3}, "dimension 0 of argument 0 has 32 elements, not divisible by 3 (data)"),
        (
            described(sharding='[{"data", "model"}, {}]'),
            {"data": 16, "model": 4},
            "dimension 0 of argument 0 has 32 elements, not divisible by 64 (data, model)",
        ),
        (described(sharding='[{"data":(1)2}, {}]'), {"data": 8}, "dimension 0 of argument 0 is divided by a part of an axis"),
        (described(is_manual=True), {"data": 2, "model": 4}, "shard_map (sdy.manual_computation)"),
        (described(is_manual=True), OWN, "shard_map (sdy.manual_computation)"),
        (described(meshes=[]), {"data": 8}, "no sdy.mesh in the text"),
        (described(meshes=[MESH, 'sdy.mesh @other = <["x"=8]>']), {"data": 8}, "more than one mesh in the text"),
        (described('sdy.mesh @mesh = <["data"=2], device_ids=[1, 0]>'), {"data": 1}, "the mesh lists its devices"),
    ],
)
def test_what_cannot_be_rewritten_is_refused(program: Description, sizes: dict[str, int], reason: str) -> None:
    assert program.refusal(sizes).startswith(reason)
