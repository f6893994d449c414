"""Replicas and partitions: from the header, else from the ids that the text names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.groups import DeviceCounts

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
P = "%p = f32[8]{0} parameter(0)"
FLATTENED = "channel_id=1, use_global_device_ids=true, to_apply=%add"


@pytest.mark.parametrize(
    ("header", "counts"),
    [
        (", num_partitions=8", DeviceCounts(1, 8)),
        (", replica_count=4", DeviceCounts(4, 1)),
        (", replica_count=2, num_partitions=4", DeviceCounts(2, 4)),
        (", num_partitions=1", DeviceCounts(1, 1)),
    ],
)
def test_a_header_that_states_counts_is_believed(entry: Entry, header: str, counts: DeviceCounts) -> None:
    line = f"ROOT %r = f32[8]{{0}} all-reduce(%p), replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, {FLATTENED}"
    assert entry(P, line, header=header).device_counts == counts


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add", DeviceCounts(4, 1)),
        (f"all-reduce(%p), replica_groups={{{{0,1}},{{2,3}}}}, {FLATTENED}", DeviceCounts(1, 4)),
        (f"all-reduce(%p), replica_groups=[2,8]<=[16], {FLATTENED}", DeviceCounts(1, 16)),
        ("all-to-all(%p), channel_id=1, replica_groups={{0,1,2}}, dimensions={0}", DeviceCounts(1, 3)),
        ("all-to-all(%p), replica_groups={{0,1,2}}, dimensions={0}", DeviceCounts(3, 1)),
        ("collective-permute(%p), channel_id=1, source_target_pairs={{0,1},{1,5}}", DeviceCounts(1, 6)),
        ("collective-permute(%p), source_target_pairs={{0,3}}", DeviceCounts(4, 1)),
        ("negate(%p), sharding={devices=[2,4]<=[8]}", DeviceCounts(1, 8)),
        ("negate(%p), sharding={devices=[2]0,1}", DeviceCounts(1, 2)),
    ],
)
def test_without_counts_the_ids_tell(entry: Entry, line: str, counts: DeviceCounts) -> None:
    assert entry(P, f"ROOT %r = f32[8]{{0}} {line}").device_counts == counts


def test_replica_ids_and_partition_ids_tell_one_each(entry: Entry) -> None:
    """The all-reduce names replica 0, which brings all partitions with it; the all-to-all names four of them."""
    reduce = "%r = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0}}, to_apply=%add"
    exchange = "ROOT %e = f32[8]{0} all-to-all(%r), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}"
    assert entry(P, reduce, exchange).device_counts == DeviceCounts(1, 4)


def test_flattened_ids_run_over_replicas_and_partitions(entry: Entry) -> None:
    """Eight flattened ids among two replicas are four partitions, not eight."""
    replicas = "%r = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add"
    flattened = f"ROOT %f = f32[8]{{0}} all-reduce(%r), replica_groups={{{{0,1,2,3,4,5,6,7}}}}, {FLATTENED}"
    counts = entry(P, replicas, flattened).device_counts
    assert counts.devices == 8
    assert counts == DeviceCounts(2, 4)


@pytest.mark.parametrize(
    "line",
    ["negate(%p)", "negate(%p), sharding={replicated}", "all-reduce(%p), replica_groups={}, to_apply=%add"],
)
def test_nothing_tells(entry: Entry, line: str) -> None:
    counts = entry(P, f"ROOT %r = f32[8]{{0}} {line}").device_counts
    assert counts == DeviceCounts(None, None)
    assert counts.devices is None


def test_groups_that_make_no_sense_tell_nothing(entry: Entry) -> None:
    line = f"ROOT %r = f32[8]{{0}} all-reduce(%p), replica_groups={{{{0,x}}}}, {FLATTENED}"
    assert entry(P, line).device_counts.devices is None


@pytest.mark.parametrize("name", ["jax_0_4_13/sgd_unused.after.txt", "jax_0_4_13/collectives.before.txt"])
def test_old_dumps_without_counts_are_for_the_8_devices_they_were_made_for(read: Entry, name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    assert "num_partitions" not in text
    assert read(text).device_counts.devices == 8
