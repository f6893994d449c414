"""The parameters on a page: totals by role, those that are not donated, and the rest with merged rows."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.passes.params import joined_path
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from tests.optimizer.programs import ADAM, changed, step_of

KIB = 1024


def adam(*, quick: bool = False) -> Report:
    """Inspect a weight and two moments of f32[64,64], 16 KiB each, of which the second is not donated; x is f32[9,64]."""
    text = step_of(*ADAM, outputs="new m v", states=2).replace("[4,4]", "[64,64]").replace("[9,4]", "[9,64]")
    return hlo_inspect.inspect(changed(text, r", \{2\}: \(2, \{\}, may-alias\)", ""), "params", quick=quick)


def test_totals_by_role() -> None:
    """Roles in the order of a training step; a parameter that no rule names is an input. Rows add up to the facts."""
    report = adam()
    rows = {
        row["role"]: (row["arrays"], row["bytes"], row["donated_bytes"]) for row in report.table("params_by_role").records()
    }
    assert list(rows)[:3] == ["weight", "first_moment", "second_moment"]
    assert rows["weight"] == rows["first_moment"] == (1, 16 * KIB, 16 * KIB)
    assert rows["second_moment"] == (1, 16 * KIB, 0)
    total = report.table("params_by_role").total
    assert total is not None
    assert total[1:4] == tuple(report.facts[f"params.{name}"] for name in ("leaf_count", "bytes", "donated_bytes"))


def test_quick_leaves_the_roles_out() -> None:
    assert {row["role"] for row in adam(quick=True).table("params_by_role").records()} == {None}


def test_each_array_is_in_one_of_two_tables() -> None:
    report = adam()
    kept, given = report.table("params_not_donated").records(), report.table("params_donated").records()
    assert ("second_moment", "not asked for: an output fits it") in [(row["role"], row["not_donated_because"]) for row in kept]
    assert [(row["role"], row["numbers"]) for row in given] == [("weight", "0"), ("first_moment", "1")]
    assert sum(int(str(row["arrays"])) for row in kept + given) == report.facts["params.leaf_count"]


def test_equal_arrays_are_one_row() -> None:
    """Four layers, of which parameters 0, 1, 3 are alike; the largest row comes first."""
    shapes = ("8,8", "8,8", "64,64", "8,8")
    lines = [
        f"  %p{n} = f32[{shape}]{{1,0}} parameter({n}), metadata={{op_name=\"params['layers'][{n}]['w']\"}}"
        for n, shape in enumerate(shapes)
    ]
    results = ", ".join(f"%p{n}" for n in range(4))
    text = "HloModule m\n\nENTRY %main {\n" + "\n".join([*lines, f"  ROOT %t = () tuple({results})", "}", ""])
    rows = hlo_inspect.inspect(text, "params").table("params_not_donated").records()
    assert [(row["shape"], row["arrays"], row["bytes"], row["numbers"], row["path"]) for row in rows] == [
        ("f32[64,64]", 1, 16 * KIB, "2", "params['layers'][2]['w']"),
        ("f32[8,8]", 3, 3 * 256, "0-1, 3", "params['layers'][*]['w']"),
    ]


def test_outputs_in_donated_buffers_are_one_row() -> None:
    """They repeat the parameters. New outputs have a row for each shape."""
    rows = adam().table("output_groups").records()
    assert [(row["shape"], row["arrays"], row["bytes"], row["in_the_buffer_of"]) for row in rows] == [
        ("f32[64,64]", 2, 32 * KIB, "0-1"),
        ("f32[64,64]", 1, 16 * KIB, ""),
    ]


@pytest.mark.parametrize(
    ("paths", "path"),
    [
        (["a['w']"], "a['w']"),
        (["p['layers'][0]['w']", "p['layers'][1]['w']"], "p['layers'][*]['w']"),
        (["p['layers_0']['w']", "p['layers_11']['w']"], "p['layers_*']['w']"),
        (["p['wq']['kernel']", "p['wk']['kernel']"], "p['…']['kernel']"),
        (["state.mu['a']", "state.mu['b']"], "state.mu['…']"),
        (["x", "y"], "x, …"),
        (["", ""], ""),
    ],
)
def test_several_paths_join_to_one(paths: list[str], path: str) -> None:
    assert joined_path(paths) == path


NEFF = 'frontend_attributes={neff_input_names="%s"}'
TORCH = 'metadata={op_type="xla__device_data" op_name="xla__device_data" source_file="train.py" source_line=%d}'


@pytest.mark.parametrize(
    ("first", "second", "paths"),
    [
        (TORCH % 3, TORCH % 7, ["train.py:3", "train.py:7"]),
        (TORCH % 3, TORCH % 3, ["", ""]),
        (f"{NEFF % 'x'}, {TORCH % 3}", f"{NEFF % 'w'}, {TORCH % 3}", ["x", "w"]),
        ('metadata={op_name="x"}', 'metadata={op_name="w"}', ["x", "w"]),
        (TORCH % 3, 'metadata={op_name="w"}', ["xla__device_data", "w"]),
    ],
)
def test_a_path_that_all_parameters_share_is_left_out(first: str, second: str, paths: list[str]) -> None:
    """PyTorch/XLA calls each parameter `xla__device_data`; Neuron names the inputs of its own."""
    text = (
        f"HloModule m\n\nENTRY %main {{\n  %p = f32[8] parameter(0), {first}\n  %q = f32[8] parameter(1), {second}\n"
        "  ROOT %n = f32[8] add(%p, %q)\n}\n"
    )
    assert [row["path"] for row in hlo_inspect.inspect(text, "params").table("params").records()] == paths


def test_replicated_bytes_are_those_on_several_devices() -> None:
    """All 8 devices hold `bias`, two hold the same quarter of `rows`, and each has its own eighth of `batch`."""
    text = """HloModule m, num_partitions=8

ENTRY main {
  bias = f32[1024] parameter(0), sharding={replicated}
  rows = f32[64,64] parameter(1), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  batch = f32[64,64] parameter(2), sharding={devices=[8,1]<=[8]}
  ROOT all = (f32[1024], f32[64,64], f32[64,64]) tuple(bias, rows, batch)
}
"""
    report = hlo_inspect.inspect(text, "params")
    assert [row["copies"] for row in report.table("params").records()] == [8, 2, 1]
    assert [row["replicated_bytes"] for row in report.table("params_by_role").records()] == [20 * KIB]
    said = [headline_text(row).replace("\u00a0", " ") for row in report.headline if row.label == "replicated"]
    assert said == ["parameters: 20.0 KiB of 36.0 KiB (16.0 KiB on 2 devices, 4.00 KiB on 8 devices)"]


@pytest.mark.parametrize("devices", ["", ", replica_count=8"])
def test_a_program_of_one_partition_replicates_nothing(devices: str) -> None:
    """Replicas may hold different arrays."""
    text = f"HloModule m{devices}\n\nENTRY main {{\n  ROOT p = f32[8] parameter(0), sharding={{replicated}}\n}}\n"
    report = hlo_inspect.inspect(text, "params")
    assert [row["copies"] for row in report.table("params").records()] == [None]
    assert "replicated" not in [row.label for row in report.headline]
