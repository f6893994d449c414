"""The tables that only pictures are drawn from: sums that equal facts of dumps. Small programs are in tests/cases."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.figure import at_least
from hlo_inspect.passes import time_events
from hlo_inspect.passes.pictures.trees import MAX_DEPTH, MAX_NODES, TreeMeasure, tree_spec, tree_table
from hlo_inspect.report.model import Report
from tests.tables import totals

DATA = Path(__file__).parents[1] / "data"

DUMPS = (
    "cpu/adamw_step.after.txt",
    "cpu/scan_fsdp.after.txt",
    "gpu/gathered_matmul.after.txt",
    "tpu/gathered_matmul.after.txt",
    "tpu/bf16_master.after.txt",
    "handmade/attention_in_a_loop.txt",
)


def records(report: Report, table: str) -> list[dict[str, Any]]:
    return report.table(table).records()


@cache
def pictures(dump: str, profile: str | None = None) -> Report:
    return hlo_inspect.inspect(DATA / dump, ("pictures", "cost", "collectives", "memory"), profile=profile)


# -- trees ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", DUMPS)
@pytest.mark.parametrize("table", ["scope_tree", "source_tree"])
def test_the_whole_of_a_tree_is_the_fact(dump: str, table: str) -> None:
    report = pictures(dump)
    rows = records(report, table)
    for column, fact in (("flops", "cost.executed_flops"), ("bytes_accessed", "cost.executed_bytes_accessed")):
        assert rows[0][column] == report.facts[fact]
        least = f"{column}_lower_bound"
        assert rows[0][least] == (report.facts.get(f"{fact}.lower_bound") or report.facts[fact] or 0)
        assert sum(row[f"{column}_own"] for row in rows) == rows[0][least]
        for number, row in enumerate(rows):
            assert row["node"] == number
            inside = sum(child[least] for child in rows if child["inside"] == number)
            assert inside + row[f"{column}_own"] == row[least]


def test_a_tree_has_the_time_of_the_step() -> None:
    report = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", ("pictures", "time"), profile="h100-sxm")
    for table in ("scope_tree", "source_tree"):
        root = records(report, table)[0]
        assert root["bound_s"] == pytest.approx(report.facts["time.step_s"])
        assert root["estimate_s"] == pytest.approx(report.facts["time.estimate_step_s"])


def test_the_smallest_nodes_of_a_large_tree_are_joined() -> None:
    """Half of 4,000 leaves are of size 2, the others of size 1, and each is known but one."""
    leaves = [(("a", f"{number}"), (1 + number % 2 if number else at_least(1, "nobody knows"),)) for number in range(4000)]
    spec = tree_spec("t", "", "path", (TreeMeasure("size", "bytes", bounded=True),))
    rows: list[dict[str, Any]] = tree_table(spec, 1, leaves).records()
    assert len(rows) == MAX_NODES + 1
    assert [rows[0]["size"], rows[0]["size_lower_bound"]] == [None, 6000]
    assert {row["size_share"] for row in rows} == {None}
    rest = next(row for row in rows if row["label"] == "(3,002 smaller)")
    assert rest["size_lower_bound"] == 6000 - 2 * (MAX_NODES - 2)
    assert sum(row["size_lower_bound"] for row in rows if row["inside"] == 1) == 6000


def test_a_deep_path_ends_in_one_node() -> None:
    spec = tree_spec("t", "", "path", (TreeMeasure("size", "bytes"),))
    rows = tree_table(spec, 1, [(tuple("x" * 1000), (1,))]).records()
    assert len(rows) == MAX_DEPTH + 1
    assert rows[-1]["path"] == "/".join("x" * 1000)


def test_before_fusion_there_is_no_roof() -> None:
    """Kernels have places by all bytes that they read and write."""
    before = {table.name: table for table in pictures("cpu/sgd_unused.before.txt", "h100-sxm").tables}
    assert "roofs" not in before
    assert len(before["roofline"].rows) == len(pictures("cpu/sgd_unused.before.txt").table("roofline").rows) > 0


# -- kernels ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", DUMPS)
def test_every_kernel_is_on_the_roofline_or_left_out(dump: str) -> None:
    report = hlo_inspect.inspect(DATA / dump, ("pictures", "top"))
    sites = sum(row["sites"] for name in ("roofline", "roofline_left_out") for row in records(report, name))
    assert sites == report.facts["kernels.count"]


def test_a_timeline_of_many_events_has_few_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sum of two numbers takes a little more than the microsecond of its launch; two of them share a mark."""
    monkeypatch.setattr(time_events, "MOST_EVENTS", 2001)
    monkeypatch.setattr(time_events, "RESOLUTION", 800)
    sums = "\n".join(f"  s{number} = f32[] add(s{number - 1}, p)" for number in range(1, 2001))
    text = f"""HloModule chain, is_scheduled=true, entry_computation_layout={{(f32[])->f32[]}}

ENTRY e {{
  p = f32[] parameter(0)
  s0 = f32[] add(p, p)
{sums}
  ROOT r = f32[] multiply(s2000, p)
}}
"""
    report = hlo_inspect.inspect(text, ("pictures", "time"), profile="h100-sxm")
    marks = records(report, "timeline")
    assert 500 < len(marks) < 1100
    assert sum(mark["events"] for mark in marks) == 2002
    assert sum(mark["busy_s"] for mark in marks) == pytest.approx(report.facts["time.estimate_kernels_s"])
    assert marks[-1]["end_s"] == pytest.approx(report.facts["time.estimate_step_s"])


def test_long_events_have_marks_of_their_own() -> None:
    both = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", ("pictures", "time-events"), profile="h100-sxm")
    events = {(row["name"], row["begin_s"], row["end_s"]) for row in records(both, "time_events")}
    marks = records(both, "timeline")
    assert {(row["name"], row["begin_s"], row["end_s"]) for row in marks} == events
    assert {row["events"] for row in marks} == {1}


# -- collectives ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", [*DUMPS[:5], "cpu/collectives.after.txt", "gpu/collectives.after.txt"])
@pytest.mark.parametrize("table", ["collectives_by_axis_and_kind", "collective_sizes"])
def test_tables_of_collectives_add_up_to_the_facts(dump: str, table: str) -> None:
    report = pictures(dump)
    if not report.facts["collectives.count"]:
        assert table not in [candidate.name for candidate in report.tables]
        return
    total = totals(report.table(table))
    for column, fact in (("runs", "count"), ("executed_operand_bytes",) * 2, ("executed_wire_bytes",) * 2):
        assert total[column] == report.facts[f"collectives.executed_{fact.removeprefix('executed_')}"]


def test_sizes_are_in_classes() -> None:
    """Two all-gathers have results of 32 MiB, which is above 16; what is scattered has 16 MiB."""
    rows = records(pictures("gpu/gathered_matmul.after.txt"), "collective_sizes")
    assert [(row["up_to_bytes"], row["kind"], row["sites"]) for row in rows] == [
        (2**24, "reduce-scatter", 1),
        (2**26, "all-gather", 2),
    ]


def test_devices_are_drawn_in_the_mesh() -> None:
    report = pictures("cpu/collectives.after.txt")
    axes = [(row["axis"], row["size"], row["stride"]) for row in records(report, "mesh_axes")]
    assert axes == [("d0", 2, 4), ("d1", 4, 1)]
    devices = records(report, "mesh_devices")
    assert [(row["device"], row["row"], row["column"]) for row in devices] == [
        (index, index // 4, index % 4) for index in range(8)
    ]
    assert devices[6]["coordinates"] == "d0=1, d1=2"


# -- memory -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", [dump for dump in DUMPS if not dump.startswith("handmade")])
def test_tables_of_memory_add_up_to_the_facts(dump: str) -> None:
    report = pictures(dump)
    assert report.table("memory_parts").total == (None, report.facts["memory.needed_bytes"])
    curve = records(report, "live_curve")
    assert max(row["bytes"] for row in curve) == report.facts["memory.peak_bytes"]
    for row in curve:
        assert sum(row[f"bytes_{rank}"] or 0 for rank in (1, 2, 3)) <= row["bytes"] - row["static_bytes"]
        assert (
            row["temporaries"] > 2 or sum(row[f"bytes_{rank}"] or 0 for rank in (1, 2, 3)) == row["bytes"] - row["static_bytes"]
        )
    tree = records(report, "live_tree")
    assert tree[0]["bytes"] == report.facts["memory.peak_bytes"]
    roles = {row["role"]: row["bytes"] for row in records(report, "live_by_role")}
    assert {row["label"]: row["bytes"] for row in tree if row["inside"] == 0} == roles


def test_pictures_without_content_have_no_table() -> None:
    """A text before optimization, on no accelerator."""
    names = [table.name for table in hlo_inspect.inspect(DATA / "cpu/sgd_unused.before.txt", "pictures").tables]
    assert {"scope_tree", "source_tree"} <= set(names)
    assert not {"timeline", "roofs", "live_curve", "memory_fit", "collective_sizes"} & set(names)
