"""Assertions on rows: figures by hand of small tables, doubts, and what is wrong with a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.checks.policy import Policy, parse_assertion
from hlo_inspect.checks.runner import CheckResult, CheckRun
from hlo_inspect.errors import UsageError
from hlo_inspect.figure import Figure
from hlo_inspect.passes import ASSERTABLE_TABLES
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Row, Table, plain
from tests.calling import call_text
from tests.checks.sample import parse_policy

DATA = Path(__file__).parents[1] / "data"
KINDS = frozenset({"all-gather", "all-reduce"})
COLUMNS = (
    Column("name"),
    Column("kind", members=KINDS),
    Column("axis"),
    Column("runs", "count", summed=True),
    Column("operand_bytes", "bytes", summed=True),
    Column("is_async", "bool"),
    Column("role", optional=True),
)
ROWS: tuple[Row, ...] = (
    ("ag.1", "all-gather", "model", 24, 1 << 20, True, None),
    ("ag.2", "all-gather", "data", 1, 4 << 20, False, None),
    ("ar.3", "all-reduce", "model", 2, 1 << 10, False, None),
)


def result(assertion: str, rows: tuple[Row, ...] = ROWS) -> CheckResult:
    """Return the result of an assertion on a report with these collectives."""
    table = Table("collectives", "Collectives", COLUMNS, rows)
    report = Report("check", Input("a.txt", 1, 1, 1), {"module.name": "m"}, (table,))
    (outcome,) = CheckRun(Policy((parse_assertion(assertion),))).outcomes([report])
    return outcome.results[0]


@pytest.mark.parametrize(
    ("assertion", "actual", "passed"),
    [
        ("collectives[kind=all-gather, axis=model].runs == 24", 24, True),
        ("collectives[kind=all-gather].runs == 25", 25, True),
        ("collectives[kind = all-gather axis = data].sum(runs) <= 1", 1, True),
        ("collectives[kind=all-gather].count == 2", 2, True),
        ("collectives[].count == 3", 3, True),
        ("collectives[kind=all-gather].max(operand_bytes) <= 2 MiB", 4 << 20, False),
        ("collectives[is_async=no].min(operand_bytes) >= 1 KiB", 1 << 10, True),
        ("collectives[operand_bytes>=1MiB, name ~ ag].count == 2", 2, True),
        ("collectives[axis=expert].runs == 0", 0, True),
        ("collectives[axis=expert].max(operand_bytes) <= 1 B", 0, True),
        ("collectives[axis='model', kind != all-reduce].runs in [20, 30]", 24, True),
    ],
)
def test_figures_are_those_of_the_rows_that_meet_all_comparisons(assertion: str, actual: int, passed: bool) -> None:
    found_result = result(assertion)
    assert (found_result.actual, found_result.passed) == (actual, passed)


def test_a_failed_sum_shows_its_rows_and_a_failed_maximum_those_above_it() -> None:
    broke = result("collectives[kind=all-gather].runs == 0").broke
    assert broke is not None
    assert [row[0] for row in broke.rows] == ["ag.1", "ag.2"]
    broke = result("collectives[kind=all-gather].max(operand_bytes) <= 2 MiB").broke
    assert broke is not None
    assert [row[0] for row in broke.rows] == ["ag.2"]


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ("collectives[axis=model].count == 2", "unknown: axis of ag.9"),
        ("collectives[kind=all-gather].runs >= 0", "unknown: runs of ag.9"),
        ("collectives[axis=expert].count == 0", "unknown: axis of ag.9"),
        ("collectives[axis=expert].min(runs) > 0", "unknown: axis of ag.9"),
    ],
)
def test_a_row_whose_value_is_unknown_is_never_passed_over(assertion: str, reason: str) -> None:
    rows = (*ROWS, ("ag.9", "all-gather", None, None, 1, False, None))
    undecided = result(assertion, rows)
    assert (plain(undecided.actual), undecided.passed, undecided.is_unknown, undecided.reason) == (None, False, True, reason)


def test_bounds_decide_a_count_and_a_sum() -> None:
    """A gather is along `model`, another may be: there are one or two, and they run 24 or 25 times."""
    rows = (*ROWS, ("ag.9", "all-gather", None, 1, 1, False, None))
    figures = {"count": Figure(1, 2, "some rows may be a part"), "runs": Figure(24, 25, "some rows may be a part")}
    for name, figure in figures.items():
        below = result(f"collectives[axis=model, kind=all-gather].{name} <= {figure.greatest}", rows)
        assert (below.passed, below.actual) == (True, figure)
        above = result(f"collectives[axis=model, kind=all-gather].{name} < {figure.least}", rows)
        assert (above.passed, above.is_unknown) == (False, False)
        assert result(f"collectives[axis=model, kind=all-gather].{name} == {figure.least}", rows).is_unknown


def test_a_row_that_another_comparison_excludes_is_no_doubt() -> None:
    rows = (*ROWS, ("ar.9", "all-reduce", None, 1, 1, False, None))
    assert result("collectives[kind=all-gather, axis=model].runs == 24", rows).passed
    assert result("collectives[axis=?].count == 1", rows).passed


def test_the_minimum_of_no_rows_is_unknown() -> None:
    undecided = result("collectives[axis=expert].min(runs) >= 0")
    assert (undecided.passed, undecided.reason) == (False, "no row has such a value")


def test_a_column_that_the_module_leaves_empty_decides_nothing() -> None:
    """A program without recognized weights has no weight that is not donated: that is no promise kept."""
    assert not result("collectives[role=weight].count == 0").passed
    with_role = (*ROWS, ("x", "all-reduce", "data", 1, 1, False, "weight"))
    assert result("collectives[role=weight].count == 1", with_role).passed


@pytest.mark.parametrize(
    ("assertion", "message"),
    [
        ("collective[kind=all-gather].runs == 0", "there is no table 'collective' for assertions; did you mean 'collectives'?"),
        ("collectives[knd=all-gather].runs == 0", "no column 'knd' in the table 'collectives'; did you mean 'kind'?"),
        ("collectives[kind=all-gathr].runs == 0", "column 'kind' is never 'all-gathr'; did you mean 'all-gather'?"),
        ("collectives[kind=all-gather].rnus == 0", "no column 'rnus' in the table 'collectives'; did you mean 'runs'?"),
        ("collectives[kind=all-gather].name == 0", "column 'name' holds no numbers"),
        ("collectives[kind=all-gather].max(axis) == 0", "column 'axis' holds no numbers"),
        ("collectives[kind=all-gather]runs == 0", "an assertion on rows is"),
        ("collectives[kind].runs == 0", "'kind' is not a comparison"),
        ("collectives[kind=all-gather].runs == 1 MiB", "1 MiB"),
        ("collectives[operand_bytes > 3 FLOP].runs == 1", "column 'operand_bytes': "),
        ("collectives[kind=all-gather].runs adamw", "adamw"),
    ],
)
def test_what_is_misspelt_is_an_error_with_its_place(assertion: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        result(assertion)
    assert message in str(error.value)
    assert str(error.value).startswith("--assert:1:")


def test_a_policy_has_figures_of_rows_among_its_facts() -> None:
    policy = parse_policy("checks:\n  collectives[kind=all-gather, axis=model].runs: 0\n  collectives.count: 3\n", "p.yaml")
    figure = policy.assertions[0].rows
    assert figure is not None
    assert (figure.table, figure.function, figure.column) == ("collectives", "sum", "runs")
    assert policy.assertions[1].rows is None
    with pytest.raises(UsageError, match=r"p\.yaml:2:3: there is no table 'colectives'"):
        parse_policy("checks:\n  colectives[].runs: 0\n", "p.yaml")


def test_the_command_line_reads_what_the_table_needs() -> None:
    """An all-reduce of 516 B goes along d0. All seven arrays of the training state are donated."""
    done = call_text(
        "check",
        DATA / "cpu/adamw_step.after.txt",
        *("--assert", "collectives[kind=all-reduce, axis=d0].executed_operand_bytes == 516 B"),
        *("--assert", "params[role=weight, donated=no].count == 0"),
        *("--assert", "params[donated=yes].count == 7"),
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ASSERTABLE_TABLES)
def test_each_table_is_made_by_its_command(name: str) -> None:
    dumps = ["cpu/adamw_step.after.txt", "cpu/bf16_master.after.txt", "cpu/scan_forward.after.txt", "handmade/custom_calls.txt"]
    dumps += ["memory/gpu_scan.hlo", "cpu/constants.after.txt"]
    tables = {table.name for dump in dumps for table in hlo_inspect.inspect(str(DATA / dump), ASSERTABLE_TABLES[name]).tables}
    assert name in tables


def test_the_columns_with_a_closed_list_of_values_have_no_others() -> None:
    """A value outside of the list would make its filter an error."""
    for dump in ("cpu/adamw_step.after.txt", "gpu/collectives.after.txt", "tpu/collectives.after.txt"):
        for command in ("collectives", "params", "fusions", "top"):
            for table in hlo_inspect.inspect(str(DATA / dump), command).tables:
                for index, column in enumerate(table.columns):
                    if column.members:
                        values = {row[index] for row in table.rows} - {None}
                        assert values <= column.members, (dump, table.name, column.name)


def test_a_filter_with_a_misspelt_value_of_a_closed_list_is_an_error() -> None:
    done = call_text("collectives", DATA / "cpu/adamw_step.after.txt", "--filter", "kind = all-gathr")
    assert done.returncode == 2
    assert "did you mean 'all-gather'" in done.stderr
