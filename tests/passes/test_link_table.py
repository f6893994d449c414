"""Collectives of a step on their links, by kind, axis and size, summed by hand."""

from __future__ import annotations

import pytest

import hlo_inspect
from tests.tables import totals

ADD = """add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
"""
SUM = "use_global_device_ids=true, to_apply=add"
ROWS, COLUMNS = "replica_groups={{0,1,2,3,4,5,6,7},{8,9,10,11,12,13,14,15}}", "replica_groups=[8,2]<=[2,8]T(1,0)"
LAYOUT = "entry_computation_layout={(f32[1048576]{0})->f32[1048576]{0}}"
PROGRAM = f"""HloModule m, is_scheduled=true, num_partitions=16, {LAYOUT}
{ADD}
ENTRY main {{
  p = f32[1048576]{{0}} parameter(0)
  a = f32[1048576]{{0}} all-reduce(p), channel_id=1, {ROWS}, {SUM}
  b = f32[1048576]{{0}} all-reduce(a), channel_id=2, {ROWS}, {SUM}
  c = f32[8]{{0}} slice(b), slice={{[0:8]}}
  d = f32[8]{{0}} all-reduce(c), channel_id=3, {ROWS}, {SUM}
  e = f32[1048576]{{0}} all-reduce(b), channel_id=4, {COLUMNS}, {SUM}
  ROOT r = f32[1048576]{{0}} negate(e)
}}
"""


def test_rows_and_total() -> None:
    """4 MiB over 8 A100 in a node, twice: 2·7/8 of them over 300 GB/s; over 2 nodes 1 of them over 25 GB/s."""
    report = hlo_inspect.inspect(PROGRAM, "time", profile="a100-sxm-80gb")
    table = report.table("collective_links")
    rows = table.records()
    size = 4 * 2**20
    assert [(row["kind"], row["axis"], row["level"], row["sent_a_run"], row["runs"]) for row in rows] == [
        ("all-reduce", "d0", "network", "to 32 MiB", 1),
        ("all-reduce", "d1", "nvlink", "to 32 MiB", 2),
        ("all-reduce", "d1", "nvlink", "to 32 KiB", 1),
    ]
    assert [row["wire_bytes"] for row in rows] == [size, 2 * size * 7 // 4, 56]
    assert [row["bound_s"] for row in rows] == pytest.approx([size / 25e9, 2 * size * 1.75 / 300e9, 56 / 300e9])
    # LL128 on NVLink: 14 us, 14 steps of 1.9 us, 92 % of 240 GB/s; LL of 32 bytes: 6.6 us and 14 steps of 0.6 us
    large = 2 * (40.6e-6 + size * 1.75 / (240e9 * 0.92))
    small = 15e-6 + 56 / 87.7e9
    assert [row["estimate_s"] for row in rows[1:]] == pytest.approx([large, small])
    assert rows[1]["bus_bandwidth"] == pytest.approx(2 * size * 1.75 / large)
    assert totals(table)["bound_s"] == pytest.approx(report.facts["time.collective_s"])


def test_rows_without_an_estimate_keep_their_bound() -> None:
    table = hlo_inspect.inspect(PROGRAM, "time", profile="mi300x").table("collective_links")
    records = table.records()
    assert {row["estimate_s"] for row in records} == {None}
    assert {row["bus_bandwidth"] for row in records} == {None}
    assert all(row["bound_s"] for row in records)


IN_LOOP = f"""HloModule m, is_scheduled=true, num_partitions=16, {LAYOUT}
{ADD}
body {{
  x = f32[1048576]{{0}} parameter(0)
  ROOT sum = f32[1048576]{{0}} all-reduce(x), channel_id=1, {ROWS}, {SUM}
}}

condition {{
  x = f32[1048576]{{0}} parameter(0)
  first = f32[1]{{0}} slice(x), slice={{[0:1]}}
  number = f32[] reshape(first)
  ROOT more = pred[] compare(number, number), direction=LT
}}

ENTRY main {{
  p = f32[1048576]{{0}} parameter(0)
  ROOT w = f32[1048576]{{0}} while(p), condition=condition, body=body
}}
"""


@pytest.mark.parametrize(("command", "table"), [("time", "collective_links"), ("collectives", "collectives")])
def test_in_a_loop_of_unknown_length_sums_are_lower_bounds(command: str, table: str) -> None:
    """The loop runs once at least: 2·7/8 of 4 MiB over 300 GB/s. The speed of the links is known, whatever the runs."""
    report = hlo_inspect.inspect(IN_LOOP, command, profile="a100-sxm-80gb")
    (row,) = report.table(table).records()
    sent = 4 * 2**20 * 7 // 4
    least = {"runs": 1, "bound_s": sent / 300e9, "estimate_s": 40.6e-6 + sent / (240e9 * 0.92)}
    if command == "time":
        least["wire_bytes"] = sent
    for name, value in least.items():
        assert row[name] is None, name
        assert row[f"{name}_lower_bound"] == pytest.approx(value), name
    assert row["bus_bandwidth"] == pytest.approx(sent / least["estimate_s"])


def test_bandwidth_is_unknown_for_several_sizes_and_unknown_runs() -> None:
    """The unknown runs of the collective in the loop give an unknown weight against the one of half the size outside."""
    half = "half = f32[524288]{0} slice(w), slice={[0:524288]}"
    after = f"small = f32[524288]{{0}} all-reduce(half), channel_id=2, {ROWS}, {SUM}"
    root = "ROOT r = f32[1048576]{0} concatenate(small, small), dimensions={0}"
    text = IN_LOOP.replace("ROOT w =", "w =").replace("body=body", f"body=body\n  {half}\n  {after}\n  {root}")
    (row,) = hlo_inspect.inspect(text, "time", profile="a100-sxm-80gb").table("collective_links").records()
    assert (row["sites"], row["runs"], row["bus_bandwidth"]) == (2, None, None)
    sizes = hlo_inspect.inspect(text, "collectives", profile="a100-sxm-80gb").table("collectives_by_axis").records()
    assert [record["bus_bandwidth"] for record in sizes] == [None]


def test_exposed_time_in_a_loop_of_unknown_length() -> None:
    (row,) = hlo_inspect.inspect(IN_LOOP, "collectives", profile="a100-sxm-80gb").table("collectives").records()
    assert row["exposed_s"] is None
    assert row["exposed_s_lower_bound"] == pytest.approx(4 * 2**20 * 7 / 4 / 300e9)


SIZES = "offsets, offsets, offsets, offsets"
LAYOUT_OF_RAGGED = "entry_computation_layout={(f32[64]{0}, s64[8]{0})->f32[64]{0}}"
RAGGED = f"""HloModule m, is_scheduled=true, num_partitions=8, {LAYOUT_OF_RAGGED}

ENTRY main {{
  p = f32[64]{{0}} parameter(0)
  offsets = s64[8]{{0}} parameter(1)
  ROOT r = f32[64]{{0}} ragged-all-to-all(p, p, {SIZES}), channel_id=1, replica_groups={{{{0,1,2,3,4,5,6,7}}}}
}}
"""


def test_unknown_bytes_are_unknown_and_not_0() -> None:
    """A ragged all-to-all sends what its operands say at run time."""
    (row,) = hlo_inspect.inspect(RAGGED, "time", profile="a100-sxm-80gb").table("collective_links").records()
    assert (row["runs"], row["wire_bytes"], row["wire_bytes_lower_bound"], row["bus_bandwidth"]) == (1, None, 0, None)


def test_exposed_time_of_an_unknown_estimate_is_unknown() -> None:
    (row,) = hlo_inspect.inspect(RAGGED, "collectives", profile="a100-sxm-80gb").table("collectives").records()
    assert (row["bound_s"], row["exposed_s"], row["exposed_s_lower_bound"]) == (None, None, 0)
