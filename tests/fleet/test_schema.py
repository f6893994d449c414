"""The columns of a store: those of all facts and tables, documented, and none that a report has and the store lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.fleet.schema import (
    FINDING_COLUMNS,
    MODULE_COLUMNS,
    MODULES,
    columns_of,
    fact_values,
    passes_of_tables,
    table_columns,
)
from hlo_inspect.fleet.table_columns import TABLE_COLUMNS
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
    for table, spec in TABLE_COLUMNS.items():
        assert f"| `{table}` | `{spec.pass_name}` | {', '.join(table_columns(table))} |" in PAGE


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
    report = hlo_inspect.inspect(ROOT / "tests" / "data" / dump, passes=passes_of_tables(TABLE_COLUMNS), profile=profile)
    tables = {table.name: table for table in report.tables if table.name in TABLE_COLUMNS}
    assert len(tables) > 9
    for name, table in tables.items():
        assert {column.name for column in table.columns} <= set(table_columns(name)), name
        units = {column.name: column.unit for column in table.columns}
        for column, type_ in table_columns(name).items():
            if column in units:
                assert (units[column] == "text") == (type_ == "text"), (name, column)


def test_values_of_families_bounds_and_large_numbers() -> None:
    specs = (*all_specs(), FactSpec("odd", "count", ""))
    facts = Facts(
        {
            "params.bytes": None,
            "params.bytes.lower_bound": 12,
            "collectives.group_size.8.count": 3,
            "opcode.add": 2,
            "cost.flops": 1 << 70,
        },
        specs,
    )
    values, bounds = fact_values(facts, [spec for spec in specs if not spec.name.startswith("fusions.")])
    row = dict(zip((column.name for column in columns_of(MODULES)[len(MODULE_COLUMNS) :]), values, strict=True))
    assert (row["opcode.add"], row["opcode.dot"], row["fusions.kind.kLoop"]) == (2, 0, None)
    assert row["collectives.group_size.<n>.count"] == {"8": 3}
    assert row["collectives.axis.<axis>.executed_count"] == {}
    assert (row["params.bytes"], row["cost.flops"]) == (None, None)
    assert bounds == {"params.bytes": 12.0, "cost.flops": float((1 << 63) - 1)}
