"""The columns of a store: those of all facts and tables, documented, and none that a report has and the store lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.figure import Figure
from hlo_inspect.fleet.schema import (
    FINDING_COLUMNS,
    MODULE_COLUMNS,
    MODULES,
    columns_of,
    fact_values,
    passes_of_tables,
    stored_tables,
    table_columns,
)
from hlo_inspect.passes import all_specs
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import FactSpec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
DUMPS = (
    "cpu/scan_fsdp.after.txt",
    "gpu/gathered_matmul.after.txt",
    "tpu/gathered_matmul.after.txt",
    "cpu/adamw_step.after.txt",
)


def test_the_page_has_each_column_and_table() -> None:
    for column in (*MODULE_COLUMNS, *FINDING_COLUMNS):
        assert f"| `{column.name}` | {column.type} | {column.meaning} |" in PAGE
    for name, table in stored_tables().items():
        assert f"| `{name}` | `{table.pass_name}` | {', '.join(column.name for column in table.spec.columns)} |" in PAGE


def test_each_fact_has_a_column() -> None:
    names = [column.name for column in columns_of(MODULES)]
    assert len(names) == len(set(names))
    assert {
        "collectives.count",
        "opcode.add",
        "custom_calls.target.<target>",
        "fingerprint.program",
        "memory.peak_bytes",
    } <= set(names)


@pytest.mark.parametrize("profile", [None, "h100-sxm"])
@pytest.mark.parametrize("dump", DUMPS)
def test_tables_of_reports_have_no_other_columns(dump: str, profile: str | None) -> None:
    report = hlo_inspect.inspect(ROOT / "tests" / "data" / dump, passes=passes_of_tables(stored_tables()), profile=profile)
    tables = {table.name: table for table in report.tables if table.name in stored_tables()}
    assert len(tables) > 9
    for name, table in tables.items():
        types = {column.name: column.type for column in table_columns(name)}
        flat = table.flat()
        assert {column.name for column in flat.columns} <= set(types), name
        for column, values in zip(flat.columns, zip(*flat.rows, strict=True), strict=False):
            assert (column.unit == "text") == (types[column.name] == "text"), (name, column.name)
            if types[column.name] == "int":
                assert {type(value) for value in values} <= {int, type(None)}, (name, column.name)


def test_values_of_families_bounds_and_large_numbers() -> None:
    specs = (*all_specs(), FactSpec("odd", "count", ""))
    facts = Facts(
        {
            "params.bytes": None,
            "params.bytes.lower_bound": 12,
            "collectives.executed_count": Figure(3, 5, "a branch"),
            "collectives.group_size.8.count": 3,
            "opcode.add": 2,
            "cost.flops": 1 << 70,
        },
        specs,
    )
    values, bounds, limits = fact_values(facts, [spec for spec in specs if not spec.name.startswith("fusions.")])
    row = dict(zip((column.name for column in columns_of(MODULES)[len(MODULE_COLUMNS) :]), values, strict=True))
    assert (row["opcode.add"], row["opcode.dot"], row["fusions.kind.kLoop"]) == (2, 0, None)
    assert row["collectives.group_size.<n>.count"] == {"8": 3}
    assert row["collectives.axis.<axis>.executed_count"] == {}
    assert (row["params.bytes"], row["cost.flops"]) == (None, None)
    assert bounds == {"params.bytes": 12.0, "collectives.executed_count": 3.0, "cost.flops": float((1 << 63) - 1)}
    assert limits == {"collectives.executed_count": 5.0}
    assert "collectives.<kind>.executed_count" not in row
