from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.figure import at_least
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.selection import TableSelection, selected
from hlo_inspect.report.table import Column, Table, lower_bound

MIB = 2**20


@pytest.fixture
def collectives(sample: Report) -> Report:
    """Return the sample of `collectives`: 25 rows whose operands have 2, 4, … 50 MiB; the wire bytes of one are unknown."""
    own, others = sample.tables[3], sample.tables[:3]
    return replace(sample, command="collectives", tables=(own, *others))


def table(report: Report, **selection: tuple[str, ...]) -> Table:
    (selected_table,) = selected(report, TableSelection(**selection)).tables
    return selected_table


def test_nothing_selected_is_the_report(collectives: Report) -> None:
    assert selected(collectives, TableSelection()) is collectives


def test_the_own_table_or_the_one_that_is_named(sample: Report, collectives: Report) -> None:
    assert table(collectives, sort=("name",)).name == "collectives"
    assert [table_.name for table_ in selected(collectives, TableSelection(sort=("count",)), "opcodes").tables] == ["opcodes"]
    with pytest.raises(UsageError, match=r"'summary' has no main table: choose one with --table \(buffers, opcodes"):
        table(sample, sort=("name",))
    with pytest.raises(UsageError, match=r"no table 'opcode' in this report.*did you mean 'opcodes'"):
        selected(collectives, TableSelection(sort=("count",)), "opcode")


def test_columns_in_the_order_asked_for(collectives: Report) -> None:
    chosen = table(collectives, columns=("wire_bytes", "operand bytes", "form", "name"))
    assert [column.name for column in chosen.columns] == ["wire_bytes", "operand_bytes", "form", "name"]
    assert chosen.rows[1] == (2 * MIB, 4 * MIB, "plain", "all-gather.1")
    with pytest.raises(UsageError, match="no column 'knd' in the table 'collectives'; did you mean 'kind'"):
        table(collectives, columns=("knd",))


@pytest.mark.parametrize("name", ["bytes", "bytes accessed", "accessed", "size"])
def test_a_column_by_its_name_or_its_heading(name: str) -> None:
    """`size` is the heading of a column `bytes` that has no other."""
    columns = (Column("name"), Column("bytes", "bytes", page_name="bytes_accessed"))
    kernels = Table("top", "Kernels", columns, (("f", 4), ("g", 8)))
    report = Report("top", Input("m.txt", 1, 1, 1), {}, (kernels,))
    assert table(report, columns=(name,)).rows == ((4,), (8,))


def test_no_column_that_is_asked_for_is_dropped(rendered: Callable[..., str], collectives: Report) -> None:
    names = tuple(column.name for column in collectives.tables[0].columns)
    page = rendered("table", selected(collectives, TableSelection(columns=names)), width=60)
    header = next(line for line in page.splitlines() if "channel id" in line)
    assert " ".join(header.split()) == "name kind operand wire replica groups channel id is async op name line form"


def test_sorting(collectives: Report) -> None:
    assert [row[0] for row in table(collectives, sort=("-operand_bytes",)).rows[:2]] == ["all-reduce.0", "all-gather.1"]
    by_kind = table(collectives, sort=("kind", "line")).rows  # lines 700 + n, all-gathers if n % 3 is 1
    assert [(row[1], row[8]) for row in by_kind[:2]] == [("all-gather", 722), ("all-gather", 716)]
    assert table(collectives, sort=("line",)).title == "Collectives, by line"
    assert table(collectives, sort=("wire_bytes",)).rows[-1][0] == "ragged-all-to-all.19"  # unknown values last
    assert table(collectives, sort=("-wire_bytes",)).rows[-1][0] == "ragged-all-to-all.19"


def test_rows_that_a_filter_hides_are_summed(rendered: Callable[..., str], collectives: Report) -> None:
    asked = TableSelection(filters=("kind = all-reduce", "operand_bytes >= 20 MiB"))  # the 10th, 13th, … 25th
    report = selected(collectives, asked)
    filtered = report.tables[0]
    assert [row[2] for row in filtered.rows] == [size * MIB for size in (20, 26, 32, 38, 44, 50)]
    assert filtered.total is not None
    assert filtered.total[2] == 210 * MIB
    assert filtered.left_out is not None
    assert (filtered.left_out.rows, filtered.left_out.sums[2]) == (19, 440 * MIB)
    assert lower_bound(filtered.left_out.sums[3]) == 200 * MIB
    page = rendered("table", report, width=80)
    (line,) = [line for line in page.splitlines() if line.startswith("[19 filtered out]")]
    assert line.split()[3:] == ["440.0", "MiB", ">=", "200.0", "MiB"]
    assert "| \\[19 filtered out\\] |" in rendered("markdown", report)
    as_json = json.loads(rendered("json", report))["tables"][0]
    assert as_json["left_out"]["rows"] == 19
    assert as_json["left_out"]["sums"][2] == 440 * MIB


def test_a_filter_that_hides_all_rows_says_what_they_are(rendered: Callable[..., str], collectives: Report) -> None:
    page = rendered("table", selected(collectives, TableSelection(filters=("kind = none",))), width=80)
    assert "\nnone\n" not in page
    (line,) = [line for line in page.splitlines() if line.startswith("[25 filtered out]")]
    assert "650.0 MiB" in line


def test_sums_stand_in_a_first_column_and_its_label_beside(rendered: Callable[..., str], collectives: Report) -> None:
    report = selected(collectives, TableSelection(columns=("operand_bytes", "name")))
    last = rendered("table", report, width=80, top=1, quiet=True).splitlines()[-1]
    assert last.split() == ["650.0", "MiB", "total"]


def test_columns_of_bounds_can_be_chosen(rendered: Callable[..., str]) -> None:
    runs = Column("runs", "count", summed=True, bounded=True)
    loops = Table("loops", "Loops", (Column("loop"), runs), (("a", at_least(4, "a loop")), ("b", 6)))
    report = Report("loops", Input("-", 1, 1, 1), {}, (loops,))
    chosen = selected(report, TableSelection(columns=("runs",)))
    assert [column["name"] for column in json.loads(rendered("json", chosen))["tables"][0]["columns"]] == ["runs"]
    assert ">= 4" in rendered("table", chosen, width=80)
    bounds = selected(report, TableSelection(columns=("loop", "runs_lower_bound"), filters=("runs_lower_bound < 5",)))
    assert json.loads(rendered("json", bounds))["tables"][0]["rows"] == [["a", 4]]
    assert [row[0] for row in table(report, sort=("runs",)).rows] == ["b", "a"]
