"""The command `cost` on dumps: totals as XLA has them, tables that add up. What is worked out by hand is in tests/cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.passes.cost import Cost
from hlo_inspect.report.facts import find_spec
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import LOWER_BOUND, Value
from tests.cases.case import FOLDER, cases_of
from tests.xla_sizes import count_tuples_as

DATA = Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
DUMPS = {name: dump["facts"] for name, dump in EXPECTED["dumps"].items() if "cost.flops" in dump["facts"]}

# The cost depends on omitted text: names are not unique, or operands have none.
UNTOLD = {
    "prints/no_ids.txt": ("cost.flops", "cost.transcendentals", "cost.bytes_accessed"),
    "prints/no_operand_names.txt": ("cost.bytes_accessed",),
}

TABLES = ("cost", "cost_by_fusion_kind", "cost_by_phase", "cost_by_scope", "cost_by_source")


def inspect(source: str | Path, profile: str | None = None) -> Report:
    return hlo_inspect.inspect(source, passes=["cost"], profile=profile)


def facts(source: str | Path) -> dict[str, Value]:
    return {name: value for name, value in inspect(source).facts.items() if name.startswith("cost.")}


def totals(report: Report, table: str, *names: str) -> list[Value]:
    cost_table = report.table(table)
    return [
        dict(zip([c.name for c in cost_table.columns], cost_table.total or [], strict=False)).get(name, 0) for name in names
    ]


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_dumps_cost_what_xla_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA counts minus one FLOP and byte for each custom call; here they are not counted."""
    count_tuples_as("0.12" if "jax_0_12" in name else "0.10", monkeypatch)
    report = inspect(DATA / name)
    calls = (DATA / name).read_text(encoding="utf-8").count(" custom-call(")
    for fact in ("cost.flops", "cost.transcendentals", "cost.bytes_accessed"):
        if fact in UNTOLD.get(name, ()):
            assert report.facts[fact] is None
            assert any(note.startswith(f"{fact}: line ") for note in report.notes)
        else:
            uncounted = 0 if fact == "cost.transcendentals" else calls
            assert report.facts[fact] == pytest.approx(DUMPS[name][fact] + uncounted, rel=2e-7)


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_rows_add_up(name: str) -> None:
    report = inspect(DATA / name)
    names = ("flops", "matmul_flops", "bytes_accessed")
    figures = [report.facts[f"cost.executed_{figure}"] for figure in names]
    for table in TABLES:
        assert totals(report, table, *names) == figures
    of_types = [value for fact, value in report.facts.items() if fact.startswith("cost.matmul_flops.")]
    assert figures[1] in (sum(value for value in of_types if isinstance(value, int)), None)


@pytest.mark.parametrize("folder", ["cpu", "gpu", "tpu"])
def test_two_matrix_products_on_each_backend(folder: str) -> None:
    """2 · 4096 · 2048 · 8192 multiply-adds on each device: as dots, library calls, convolutions."""
    cost_facts = facts(DATA / folder / "gathered_matmul.after.txt")
    assert (
        cost_facts["cost.matmul_flops"]
        == EXPECTED["programs"]["gathered_matmul"]["cost.matmul_flops"]
        == 2 * 2 * 4096 * 2048 * 8192
    )
    assert cost_facts["cost.executed_matmul_flops"] == cost_facts["cost.matmul_flops"]


@pytest.mark.parametrize("folder", ["cpu", "gpu", "tpu"])
def test_a_scanned_matrix_product_runs_three_times(folder: str) -> None:
    cost_facts = facts(DATA / folder / "scan_forward.after.txt")
    assert cost_facts["cost.executed_matmul_flops"] == 3 * 256
    assert cost_facts["cost.matmul_flops"] == 256


def test_split_lines_cost_the_same() -> None:
    assert facts(DATA / "handmade/split_lines.txt")["cost.matmul_flops"] == 4096


def test_unreadable_lines_are_reported() -> None:
    report = inspect(DATA / "handmade" / "unreadable_lines.txt")
    assert "cost.flops: no figure counts 2 lines that cannot be read" in report.notes


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_times_add_up(name: str) -> None:
    """To the last few bits: each row is rounded for itself."""
    report = inspect(DATA / name, "a100-sxm-80gb")
    for table in TABLES:
        times = [pytest.approx(report.facts["time.compute_s"]), pytest.approx(report.facts["time.memory_s"])]
        assert totals(report, table, "compute_s", "memory_s") == times


def test_every_fact_is_promised() -> None:
    case = next(cases_of(FOLDER / "passes/cost/loop.hlo"))
    named = {
        name for name in inspect(case.text).facts if name.startswith(("cost.", "time.")) and not name.endswith(LOWER_BOUND)
    }
    specs = [find_spec(name, Cost.specs) for name in named]
    assert {spec.name for spec, _ in filter(None, specs)} == {spec.name for spec in Cost.specs}
    assert None not in specs


GATHERED, SCAN = "gpu/gathered_matmul.after", "cpu/scan_forward.after"
# each device multiplies 4096 x 8192 and 8192 x 2048 numbers of bf16, and as many again; 2 x 8 and 8 x 8 of f32 three times
FACTS: dict[str, tuple[tuple[str, str, Value], ...]] = {
    "cost.matmul_flops.<type>": (
        (GATHERED, "cost.matmul_flops.bf16", 2 * 2 * 4096 * 2048 * 8192),
        (SCAN, "cost.matmul_flops.f32", 3 * 256),
    ),
}
COLUMNS: dict[str, tuple[str, dict[str, tuple[tuple[str, str, Value], ...]]]] = {
    "matmuls_by_type": (
        "type",
        {
            "type": ((SCAN, "f32", "f32"), (GATHERED, "bf16", "bf16")),
            "flops": ((SCAN, "f32", 3 * 256), (GATHERED, "bf16", 2 * 2 * 4096 * 2048 * 8192)),
            # also the step of a counter and its comparison, 16 squares, their sum and its division
            "share_of_flops": ((SCAN, "f32", 768 / (3 * 257 + 4 + 16 + 15 + 1)), ("gpu/scan_forward.after", "f32", 768 / 807)),
            "sites": ((SCAN, "f32", 1), (GATHERED, "bf16", 2)),
            "runs": ((SCAN, "f32", 3), (GATHERED, "bf16", 2)),
        },
    ),
}


@pytest.mark.parametrize(("stage", "name"), [("before", "bytes_as_written"), ("after", "bytes_accessed")])
def test_bytes_before_fusion_are_called_as_written(stage: str, name: str) -> None:
    report = hlo_inspect.inspect(DATA / f"cpu/adamw_step.{stage}.txt", "cost")
    for table in ("cost", "cost_by_phase", "cost_by_source"):
        assert [column.page_name for column in report.table(table).columns if column.name == "bytes_accessed"] == [name]


@pytest.mark.parametrize(("profile", "whole"), [(None, "bytes"), ("h100-sxm", "time")])
def test_a_heading_says_of_what_the_shares_are(profile: str | None, whole: str) -> None:
    report = hlo_inspect.inspect(DATA / "cpu/adamw_step.after.txt", "cost", profile=profile)
    table = report.table("cost_by_phase")
    assert [column.page_name for column in table.columns if column.name == "share"] == [f"share_of_{whole}"]
    if profile is None:
        share, size = table.records()[0]["share"], table.records()[0]["bytes_accessed"]
        assert isinstance(size, int)
        assert share == size / sum(int(str(row["bytes_accessed"])) for row in table.records())
