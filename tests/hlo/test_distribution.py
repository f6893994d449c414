"""What lines tell of how a module is spread over devices."""

from __future__ import annotations

from hlo_inspect.hlo.distribution import note_partitioning, note_shardings
from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.module import Module, Wants

TEXT = """
  %a = f32[8] custom-call(%p), custom_call_target="Sharding", sharding={devices=[2]<=[2]}
  %b = f32[8] custom-call(%a), custom_call_target="SPMDFullToShardShape", sharding={replicated}
  %c = f32[8] custom-call(%b), custom_call_target="__cublas$gemm", sharding={replicated}
"""


def test_calls_before_partitioning_and_the_first_tiling() -> None:
    module = Module(Header("m"), "path", 1, Wants())
    note_partitioning(module, TEXT, 0, len(TEXT))
    note_partitioning(module, "sharding={devices=[4]<=[4]}", 0, 27)
    assert module.partitioning_targets == {"Sharding", "SPMDFullToShardShape"}
    assert module.tiling == "{devices=[2]<=[2]}"


def test_the_header_knows_better() -> None:
    module = Module(Header("m", attributes={"is_scheduled": "true", "num_partitions": "2"}), "path", 1, Wants())
    note_partitioning(module, TEXT, 0, len(TEXT))
    assert (module.partitioning_targets, module.tiling) == (set(), "")


def test_shardings_once_each_in_order() -> None:
    module = Module(Header("m"), "path", 1, Wants())
    note_shardings(module, TEXT)
    assert list(module.shardings) == ["{devices=[2]<=[2]}", "{replicated}"]
