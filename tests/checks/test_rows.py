from __future__ import annotations

import pytest

from hlo_inspect.checks.failed_rows import MAX_ROWS, rows_that_broke
from hlo_inspect.checks.policy import parse_assertion, resolve
from hlo_inspect.report.model import FactSpec
from hlo_inspect.report.table import Column, Table, Value
from tests.checks.sample import sample_report

MORE = tuple(
    FactSpec(name, "count", "in no fact of the sample")
    for name in (
        "params.count", "params.bytes", "params.donor_bytes", "params.donated_count", "outputs.aliased_bytes", "fusions.count",
        "fusions.multi_output_count", "custom_calls.count", "optimizer.decayed_count", "optimizer.learning_rate",
        "optimizer.epsilon", "collectives.group_size.2.operand_bytes",
    )
)  # fmt: skip


def broke(assertion: str, *tables: Table, **facts: Value) -> list[object]:
    """Return the first values of the rows that broke the assertion.

    Its fact has the value that `facts` or the sample gives.
    """
    report = sample_report(tables=tables) if tables else sample_report()
    check = resolve(parse_assertion(assertion), (*report.specs, *MORE))
    actual = facts["actual"] if facts else report.facts.get(check.name, 0)
    table = rows_that_broke(check, actual, report)
    return [row[0] for row in table.rows] if table else []


@pytest.mark.parametrize(
    ("fact", "rows"),
    [
        ("collectives.all-to-all.count", ["all-to-all.1"]),
        ("collectives.all-reduce.operand_bytes", ["all-reduce.1", "all-reduce.2"]),
        ("collectives.send.count", ["send.1"]),
        ("collectives.count", ["all-reduce.1", "all-gather.1", "all-to-all.1", "all-reduce.2"]),
        ("collectives.group_size.8.count", ["all-reduce.1", "all-gather.1", "all-to-all.1"]),
        ("collectives.group_size.2.operand_bytes", ["all-reduce.2"]),
        ("collectives.phase.forward.count", ["all-gather.1", "all-to-all.1", "send.1"]),
        ("collectives.async_count", ["all-gather.1", "all-to-all.1"]),
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
def test_a_too_large_figure_shows_the_rows_that_it_counts(fact: str, rows: list[object]) -> None:
    assert broke(f"{fact} < 0") == rows


@pytest.mark.parametrize(
    ("assertion", "actual", "rows"),
    [
        ("collectives.async_count >= 4", 2, ["all-reduce.1", "all-reduce.2"]),
        ("collectives.count == 9", 4, []),  # rows cannot show missing collectives
        ("collectives.all-reduce.count > 7", 2, []),
        ("params.aliased_bytes >= 200 MiB", 188_743_680, [1, 2]),  # the parameters that are not aliased, the largest first
        ("params.donated_count == 3", 2, [2]),
        ("params.donated_count in [3, 4]", 2, [2]),
        ("params.donated_count in [0, 1]", 2, [0, 1]),
        ("params.donated_count == 1", 2, [0, 1]),
        ("params.aliased_bytes.lower_bound >= 200 MiB", 188_743_680, [1, 2]),
        ("optimizer.decayed_count >= 3", 1, ["b", "c"]),
    ],
)
def test_a_too_small_figure_shows_the_rows_that_it_could_count(assertion: str, actual: Value, rows: list[object]) -> None:
    columns = (Column("weight"), Column("weight_decay", "number"))
    weights = Table("optimizer", "Optimizer", columns, (("w", 0.1), ("b", 0.0), ("c", None)))
    assert broke(assertion, *sample_report().tables, weights, actual=actual) == rows


def test_an_unknown_figure_shows_the_rows_that_make_it_unknown() -> None:
    columns = (Column("name"), Column("kind"), Column("runs", "count"))
    rows = (("a", "all-reduce", 4), ("b", "all-gather", None), ("s", "send", None))
    table = Table("collectives", "Collectives", columns, rows)
    assert broke("collectives.executed_count <= 9", table) == ["b"]
    assert broke("collectives.executed_count <= 1", table, actual=5) == ["a", "b"]


def test_a_fact_of_each_row_shows_the_rows_that_fail() -> None:
    columns = (Column("rule"), Column("learning_rate", "number"), Column("epsilon", "number"))
    groups = Table("optimizer_groups", "Rules", columns, (("adamw", 0.1, 1e-8), ("lion", 0.2, None), ("sgd", None, None)))
    assert broke("optimizer.name == adamw", groups) == ["lion", "sgd"]
    assert broke("optimizer.learning_rate <= 0.1", groups, actual=None) == ["lion", "sgd"]
    assert broke("optimizer.epsilon known", groups, actual=None) == ["lion", "sgd"]
    assert broke("optimizer.weight_decay > 3", groups) == []  # no such column


@pytest.mark.parametrize("fact", ["collectives.reduce-scatter.count", "custom_calls.target.cc", "mesh.shape", "opcode.dot"])
def test_facts_without_rows(fact: str) -> None:
    assert broke(f"{fact} known") == []


def test_outputs() -> None:
    outputs = Table("outputs", "Outputs", (Column("index"), Column("aliased_parameter")), (("{0}", "0"), ("{1}", "")))
    assert broke("outputs.aliased_bytes <= 1", outputs, actual=2) == ["{0}"]
    assert broke("outputs.aliased_bytes > 2", outputs, actual=2) == ["{1}"]


def test_a_table_without_the_column_shows_nothing() -> None:
    assert broke("params.unused_count == 0", Table("params", "Parameters", (Column("number"),), ((0,),))) == []


def test_the_rows_keep_columns_and_say_what_they_are() -> None:
    check = resolve(parse_assertion("collectives.all-to-all.count == 0"), sample_report().specs)
    table = rows_that_broke(check, 1, sample_report())
    assert table is not None
    assert (table.name, table.title) == ("collectives", "Collectives")
    assert table.columns == sample_report().table("collectives").columns
    assert table.rows == (("all-to-all.1", "all-to-all", 2_048, 8, True, "forward"),)


@pytest.mark.parametrize(("count", "shown"), [(MAX_ROWS - 1, MAX_ROWS - 1), (MAX_ROWS, MAX_ROWS), (MAX_ROWS + 1, MAX_ROWS)])
def test_more_than_ten_rows_are_summed_in_the_last(count: int, shown: int) -> None:
    columns = (Column("name"), Column("bytes", "bytes", summed=True))
    many = Table("params", "Parameters", columns, tuple((f"p{n}", n) for n in range(count)))
    check = resolve(parse_assertion("params.bytes < 1"), MORE)
    table = rows_that_broke(check, 55, sample_report(tables=(many,)))
    assert table is not None
    assert len(table.rows) == shown
    assert table.total == many.total
    assert table.rows[0] == (f"p{count - 1}", count - 1)  # the largest first
    if count > MAX_ROWS:
        assert table.rows[-1] == ("[2 more]", 1 + 0)
        assert table.others == 2
