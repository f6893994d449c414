"""Asynchronous collectives of dumps, read whole and without unneeded parts. tests/cases/analysis has small texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS, WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
SKIPPING = Wants(opcodes=OPCODES, targets=TARGETS)


def found(collectives: list[Collective]) -> list[tuple[object, ...]]:
    return [(c.kind, c.start.name, c.operand_bytes, c.result_bytes, c.wire_bytes, c.is_async) for c in collectives]


@pytest.mark.parametrize("wants", [None, SKIPPING], ids=["whole", "skipping"])
def test_gathered_matmul_on_tpu(read: Entry, wants: Wants | None) -> None:
    """The program gathers 2048x2048 and 8192x512 bf16 over 4 devices and scatters 4096x2048.

    TPU pads the latter to 4160 rows and moves 48 rows back with a permute; one gather is printed three times.
    """
    text = (DATA / "tpu/gathered_matmul.after.txt").read_text(encoding="utf-8")
    collectives = (read(text) if wants is None else read(text, wants)).collectives
    assert sorted(found(collectives)) == [
        ("all-gather", "all-gather.14", 8_388_608, 33_554_432, 25_165_824, False),
        ("all-gather", "async-collective-start", 8_388_608, 33_554_432, 25_165_824, True),
        ("collective-permute", "collective-permute-start", 196_608, 196_608, 196_608, True),
        ("reduce-scatter", "fusion", 17_039_360, 4_259_840, 12_779_520, False),
    ]
    assert [c.reduction for c in collectives if c.kind == "reduce-scatter"] == ["add"]


@pytest.mark.parametrize("wants", [None, WANTS], ids=["whole", "skipping"])
def test_the_copies_of_a_gather_are_one_without_attributes(read: Entry, wants: Wants | None) -> None:
    """With `print_extra_attributes=false` XLA prints neither the target of a start nor channel, groups and dimensions."""
    text = (DATA / "tpu/gathered_matmul.after.txt").read_text(encoding="utf-8")
    left_out = r"channel_id=|replica_groups=|dimensions=|use_global_device_ids=|source_target_pairs=|custom_call_target="
    bare = re.sub(rf', (?:{left_out})(?:\{{.*?\}}+|"\w+"|\w+)(?=, |\n)', "", text)
    assert not re.search(rf", (?:{left_out})", bare)
    collectives = (read(bare) if wants is None else read(bare, wants)).collectives
    assert sorted((c.kind, c.start.name, c.is_async) for c in collectives) == [
        ("all-gather", "all-gather.14", False),
        ("all-gather", "async-collective-start", True),
        ("collective-permute", "collective-permute-start", True),
        ("reduce-scatter", "fusion", False),
    ]


def test_collectives_on_tpu(read: Entry) -> None:
    """Two psums are combined to one of f32[8,8] and f32[16,16]; the scatter became a slice behind it."""
    collectives = read((DATA / "tpu/collectives.after.txt").read_text(encoding="utf-8")).collectives
    assert [(c.kind, c.operand_bytes, c.result_bytes, c.wire_bytes, c.group_size, c.is_async) for c in collectives] == [
        ("collective-permute", 1024, 1024, 1024, None, True),
        ("all-gather", 1024, 2048, 1024, 2, False),
        ("all-reduce", 1280, 1280, 1920, 4, False),
        ("all-to-all", 1024, 1024, 768, 4, False),
        ("all-reduce", 4, 4, 7, 8, False),
        ("all-reduce", 256, 256, 256, 2, False),
    ]


@pytest.mark.parametrize("name", ["collectives.after", "collectives.generic_async"])
def test_collectives_on_gpu(read: Entry, name: str) -> None:
    """Sugar and wrappers of one module: the same seven, of which four do not say is_sync."""
    collectives = read((DATA / f"gpu/{name}.txt").read_text(encoding="utf-8")).collectives
    assert sorted(
        (c.kind, c.operand_bytes, c.result_bytes, c.wire_bytes, c.group_size or 0, c.is_async) for c in collectives
    ) == [
        ("all-gather", 1024, 2048, 1024, 2, True),
        ("all-reduce", 4, 4, 7, 8, True),
        ("all-reduce", 256, 256, 256, 2, False),
        ("all-reduce", 256, 256, 384, 4, False),
        ("all-to-all", 1024, 1024, 768, 4, True),
        ("collective-permute", 1024, 1024, 1024, 0, False),
        ("reduce-scatter", 1024, 256, 768, 4, True),
    ]
