"""Workload files as reports: sums made by hand, conventions, and the ways in which they are read like modules."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest

import hlo_inspect
from tests.tables import columns

DATA = Path(__file__).parents[1] / "data/workloads"
SIMAI, ASTRA_SIM = DATA / "simai.txt", DATA / "astra_sim.txt"
HLO = "HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"


def test_every_fact_of_a_file_for_simai() -> None:
    facts = hlo_inspect.inspect(SIMAI, "workload").facts
    assert facts == {
        "workload.dialect": "simai",
        "workload.policy": "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
        "workload.time_unit": "ns",
        "workload.rows": 8,
        "workload.stated_rows": 8,
        "workload.distinct_rows": 7,
        "workload.parallelism": "2x2x4",
        "workload.devices": 16,
        "workload.tp.devices": 2,
        "workload.dp.devices": 4,
        "workload.ep.devices": 2,
        "workload.dp_ep.devices": 2,
        "workload.pp.devices": 2,
        "workload.pp_comm": 4096,
        "workload.bytes": 1000 + 2000 + 6 * 64 + 2 * 32,
        "workload.unknown_bytes": 16,
        "workload.allreduce.count": 6,
        "workload.allreduce.bytes": 6 * 64,
        "workload.allgather.count": 2,
        "workload.allgather.bytes": 1000,
        "workload.reducescatter.count": 1,
        "workload.reducescatter.bytes": 2000,
        "workload.alltoall.count": 2,
        "workload.alltoall.bytes": 2 * 32,
        "workload.allreducealltoall.count": 0,
        "workload.allreducealltoall.bytes": 0,
        "workload.forward.compute": 1548,
        "workload.forward.bytes": 3 * 64 + 32,
        "workload.input_gradient.compute": 933,
        "workload.input_gradient.bytes": 3 * 64 + 32,
        "workload.weight_gradient.compute": 623,
        "workload.weight_gradient.bytes": 3000,
        "workload.update.compute": 800,
        "workload.tp.bytes": 6 * 64,
        "workload.dp.bytes": 3000,
        "workload.ep.bytes": 2 * 32,
        "workload.dp_ep.bytes": 0,
    }


def test_collectives_of_a_file_for_simai() -> None:
    """A device of a group of n sends 2(n-1)/n of an all-reduce, (n-1)/n of others, as sizes are those of whole arrays."""
    report = hlo_inspect.inspect(SIMAI, "collectives")
    facts = report.facts
    assert facts["collectives.count"] == facts["collectives.executed_count"] == 11
    assert facts["collectives.operand_bytes"] == facts["collectives.executed_operand_bytes"] == 3448
    assert facts["collectives.executed_wire_bytes"] == 6 * 64 + 2 * 16 + 750 + 1500
    assert facts["collectives.all-reduce.executed_count"] == 6
    assert facts["collectives.all-to-all.executed_operand_bytes"] == 64
    assert facts["collectives.all-to-all.executed_wire_bytes"] == 2 * 16
    assert facts["collectives.collective-permute.count"] == 0
    assert facts["collectives.axis.dp.executed_wire_bytes"] == 2250
    assert columns(report.table("collectives"), "name", "kind", "runs", "executed_operand_bytes", "group_size", "phase")[
        :3
    ] == [
        ("grad_param_comm", "reduce-scatter", 1, 2000, 4, "weight gradient"),
        ("grad_gather", "all-gather", 1, 1000, 4, "weight gradient"),
        ("attention_layer2", "all-reduce", 2, 128, 2, "forward"),
    ]


def test_rows_are_grouped_and_add_up() -> None:
    report = hlo_inspect.inspect(SIMAI, "workload")
    assert columns(report.table("workload"), "name", "rows", "compute", "bytes")[:3] == [
        ("grad_param_comm", 1, 3, 2000),
        ("grad_gather", 1, 3, 1000),
        ("attention_layer2", 2, 2000, 256),
    ]
    assert columns(report.table("workload_layers"), "layer", "rows", "compute", "bytes")[0] == (
        "attention_layer#",
        3,
        3000,
        384,
    )
    for table, column, fact in (
        ("workload", "bytes", "workload.bytes"),
        ("workload", "rows", "workload.rows"),
        ("workload_layers", "bytes", "workload.bytes"),
        ("workload_passes", "bytes", "workload.bytes"),
        ("workload_collectives", "bytes", "workload.bytes"),
        ("workload_unknown", "bytes", "workload.unknown_bytes"),
    ):
        assert sum(int(str(row[0])) for row in columns(report.table(table), column)) == report.facts[fact]


def test_the_pipeline_is_a_group_beside_the_cells() -> None:
    """pp_comm bytes, 2 x vpp x ga times."""
    report = hlo_inspect.inspect(SIMAI, "workload")
    assert columns(report.table("workload_groups"), "group", "devices", "count", "bytes")[-1] == ("PP", 2, 24, 24 * 4096)


def test_groups_are_those_of_one_policy_only() -> None:
    report = hlo_inspect.inspect(ASTRA_SIM, "workload")
    assert report.facts["workload.tp.bytes"] is None
    assert any(note.startswith("workload.tp.bytes: SimAI reads groups") for note in report.notes)
    assert report.facts["workload.bytes"] == 359


@pytest.mark.parametrize("path", [SIMAI, ASTRA_SIM])
@pytest.mark.parametrize("command", ["workload", "summary", "collectives"])
def test_what_is_unknown_has_a_reason(path: Path, command: str) -> None:
    report = hlo_inspect.inspect(path, command)
    unknown = {name for name, value in report.facts.items() if value is None}
    assert {name for name in unknown if not any(note.startswith(f"{name}:") for note in report.notes)} == set()
    assert any("sizes as" in note for note in report.notes)


def test_a_workload_file_is_read_like_a_module(tmp_path: Path) -> None:
    """Compressed, as bytes, from an open file, and from a directory beside a module."""
    data = SIMAI.read_bytes()
    expected = hlo_inspect.inspect(SIMAI, "summary").facts
    for source in (data, io.BytesIO(gzip.compress(data)), data.decode()):
        assert hlo_inspect.inspect(source, "summary").facts == expected
    (tmp_path / "w.txt.xz").write_bytes(lzma.compress(data))
    (tmp_path / "x.txt").write_text(HLO)
    first, second = hlo_inspect.inspect_all(tmp_path, "summary")
    assert first.facts == expected
    assert second.facts["module.name"] == "m"


@pytest.mark.parametrize("command", ["fusions", "params", "optimizer", "cost", "top"])
def test_a_command_about_modules_says_what_the_file_is(command: str) -> None:
    with pytest.raises(hlo_inspect.InputError, match=f"workload file of a network simulator; `{command}` does not read it"):
        hlo_inspect.inspect(SIMAI, command)


def test_a_module_is_no_workload() -> None:
    with pytest.raises(hlo_inspect.InputError, match="is not a workload file"):
        hlo_inspect.inspect(HLO, "workload")


def test_a_workload_command_runs_beside_commands_about_modules() -> None:
    """`check` may ask all passes."""
    assert "module.name" in hlo_inspect.inspect(HLO, ("fusions", "workload")).facts
    assert "workload.rows" in hlo_inspect.inspect(SIMAI, ("fusions", "workload")).facts
