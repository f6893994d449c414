from __future__ import annotations

import pytest

from hlo_inspect.checks.rows import MAX_ROWS, rows_behind
from hlo_inspect.report.model import Column, Table
from tests.checks.sample import sample_report


def behind(fact: str, *tables: Table) -> list[object]:
    """The first values of the rows behind the fact."""
    report = sample_report(tables=tables) if tables else sample_report()
    table = rows_behind(fact, report, "rows_1")
    return [row[0] for row in table.rows] if table else []


@pytest.mark.parametrize(
    ("fact", "rows"),
    [
        ("collectives.all-to-all.count", ["all-to-all.1"]),
        ("collectives.all-reduce.operand_bytes", ["all-reduce.1", "all-reduce.2"]),
        ("collectives.send.count", ["send.1"]),
        ("collectives.count", ["all-reduce.1", "all-gather.1", "all-to-all.1", "all-reduce.2"]),
        ("collectives.executed_count", ["all-reduce.1", "all-gather.1", "all-to-all.1", "all-reduce.2"]),
        ("collectives.group_size.8.count", ["all-reduce.1", "all-gather.1", "all-to-all.1"]),
        ("collectives.group_size.2.operand_bytes", ["all-reduce.2"]),
        ("collectives.phase.forward.count", ["all-gather.1", "all-to-all.1", "send.1"]),
        ("collectives.async_count", ["all-gather.1", "all-to-all.1", "send.1"]),
        ("params.count", [0, 1, 2]),
        ("params.aliased_bytes", [0]),
        ("params.donor_bytes", [1]),
        ("params.donated_count", [0, 1]),
        ("params.unused_count", [2]),
        ("fusions.count", ["fusion.1", "fusion.2", "fusion.3"]),
        ("fusions.kind.kLoop", ["fusion.1", "fusion.3"]),
        ("fusions.multi_output_count", ["fusion.2", "fusion.3"]),
        ("custom_calls.count", ["cc.1", "cc.2", "cc.3"]),
        ("custom_calls.target.__cublas$gemm", ["cc.1", "cc.3"]),
        ("custom_calls.target.xla.sdy.FuncResultSharding", ["cc.2"]),
    ],
)
def test_which_rows_a_fact_is_about(fact: str, rows: list[object]) -> None:
    assert behind(fact) == rows


@pytest.mark.parametrize("fact", ["collectives.reduce-scatter.count", "custom_calls.target.cc", "mesh.shape", "opcode.dot"])
def test_facts_without_rows(fact: str) -> None:
    assert behind(fact) == []


def test_outputs_and_weights() -> None:
    outputs = Table("outputs", "Outputs", (Column("index"), Column("aliased_parameter")), (("{0}", 0), ("{1}", None)))
    assert behind("outputs.aliased_bytes", outputs) == ["{0}"]
    assert behind("outputs.bytes", outputs) == ["{0}", "{1}"]
    columns = (Column("weight"), Column("weight_decay", "number"))
    weights = Table("optimizer", "Optimizer", columns, (("w", 0.1), ("b", 0.0), ("c", None)))
    assert behind("optimizer.decayed_count", weights) == ["w"]
    assert behind("optimizer.name", weights) == ["w", "b", "c"]


def test_a_table_without_the_column_shows_nothing() -> None:
    assert behind("params.unused_count", Table("params", "Parameters", (Column("number"),), ((0,),))) == []


def test_the_rows_keep_columns_and_say_what_they_are() -> None:
    table = rows_behind("collectives.all-to-all.count", sample_report(), "rows_3")
    assert table is not None
    assert (table.name, table.title) == ("rows_3", "Collectives: rows behind collectives.all-to-all.count")
    assert table.columns == sample_report().table("collectives").columns
    assert table.rows == (("all-to-all.1", "all-to-all", 2_048, 8, True, "forward"),)


@pytest.mark.parametrize(("count", "shown"), [(MAX_ROWS - 1, MAX_ROWS - 1), (MAX_ROWS, MAX_ROWS), (MAX_ROWS + 1, MAX_ROWS)])
def test_more_than_ten_rows_are_summed_in_the_last(count: int, shown: int) -> None:
    columns = (Column("name"), Column("bytes", "bytes", summed=True))
    many = Table("params", "Parameters", columns, tuple((f"p{n}", n) for n in range(count)))
    table = rows_behind("params.bytes", sample_report(tables=(many,)), "rows_1")
    assert table is not None
    assert len(table.rows) == shown
    assert table.total == many.total
    if count > MAX_ROWS:
        assert table.rows[-1] == ("[2 others]", 9 + 10)
        assert table.others == 2
