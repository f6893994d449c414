"""Whether shapes are those of one device: what the programs of the dumps are, and the marks that tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
SHARD_MAP = {"scan_fsdp", "scan_forward", "collectives", "gathered_matmul"}
ONE_DEVICE = {"array_operators", "number_operators", "linear_algebra", "control_flow", "constants"}
COMPILED = sorted(
    path.relative_to(DATA).as_posix()
    for folder in ("cpu", "tpu", "gpu", "jax_0_5_0", "jax_0_4_13")
    for path in (DATA / folder).glob("*.txt")
)

P = "%p = f32[8]{0} parameter(0), sharding={devices=[8]<=[8]}"
N = "ROOT %n = f32[8]{0} negate(%p)"


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
    """The parameters' bytes tell too: 1792 of the whole program, 576 of one device."""
    (path,) = (DATA / "xla_dump_to").glob(f"*.{after}.before_*.txt")
    context = read(path.read_text(encoding="utf-8"))
    assert sum(leaf.shape.bytes or 0 for leaf in context.interface.parameters) == (1792 if expected == "global" else 576)
    assert context.shapes_are == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("Sharding", "global"),
        ("xla.sdy.FuncResultSharding", "global"),
        ("SPMDFullToShardShape", "mixed"),
        ("SPMDShardToFullShape", "mixed"),
        ("xla.sdy.GlobalToLocalShape", "mixed"),
        ("xla.sdy.LocalToGlobalShape", "mixed"),
        ("__cublas$gemm", "global"),
    ],
)
def test_custom_calls_of_the_front_end(entry: Entry, target: str, expected: str) -> None:
    line = f'ROOT %c = f32[8]{{0}} custom-call(%p), custom_call_target="{target}"'
    assert entry(P, line, header=", num_partitions=8").shapes_are == expected
    assert entry(P, line, header=", is_scheduled=true, num_partitions=8").shapes_are == "per_device"


def test_collectives_come_with_the_partitioner(entry: Entry) -> None:
    reduce = (
        "ROOT %r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add"
    )
    assert entry(P, N, header=", num_partitions=8").shapes_are == "global"
    assert entry(P, reduce, header=", num_partitions=8").shapes_are == "per_device"


@pytest.mark.parametrize("header", ["", ", num_partitions=1", ", num_partitions=1, replica_count=1"])
def test_one_device_has_the_whole_program(entry: Entry, header: str) -> None:
    assert entry("%p = f32[8]{0} parameter(0)", N, header=header).shapes_are == "per_device"


def test_replicas_run_one_and_the_same_program(entry: Entry) -> None:
    """`pmap`: nothing is partitioned, so that each replica's shapes are its own."""
    assert entry("%p = f32[8]{0} parameter(0)", N, header=", replica_count=8").shapes_are == "per_device"
