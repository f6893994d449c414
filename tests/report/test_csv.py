from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Row, Table


def _read(text: str) -> list[list[str]]:
    assert "\r" not in text
    return list(csv.reader(StringIO(text)))


def _report(*rows: Row, name: str = "step", path: str = "a.txt") -> Report:
    columns = (Column("name"), Column("rate", "number"), Column("bytes", "bytes", summed=True))
    return Report("cost", Input(path, 1, 1, 1), {"module.name": name}, (Table("cost", "Cost", columns, rows),))


def test_summary_is_facts(rendered: Callable[..., str], sample: Report) -> None:
    rows = _read(rendered("csv", sample))
    assert rows[0] == ["fact", "value"]
    facts = dict(rows)
    assert facts["params.bytes"] == "194152460"
    assert facts["collectives.executed_count"] == ""
    assert facts["module.is_scheduled"] == "true"
    assert facts["optimizer.nesterov"] == "false"
    assert facts["optimizer.learning_rate"] == "0.001"
    assert facts["module.name"] == "jit_train_step.[bold]42"
    assert len(rows) == 1 + len(sample.facts)


def test_a_named_table_is_read_back(rendered: Callable[..., str], sample: Report) -> None:
    rows = _read(rendered("csv", sample, table="collectives"))
    assert rows[0][:4] == ["name", "kind", "operand_bytes", "wire_bytes"]
    assert len(rows) == 1 + 25
    assert sum(int(row[2]) for row in rows[1:]) == 650 * 2**20
    assert rows[20][:4] == ["ragged-all-to-all.19", "ragged-all-to-all", "41943040", ""]
    assert rows[1][4] == "[2,4]<=[8]"
    assert rows[6][0] == r"scatter\x1b[31m.5"
    assert rows[1][-1] == "start/done"  # a column that no terminal shows


def test_the_own_table_is_the_first(rendered: Callable[..., str], sample: Report) -> None:
    rows = _read(rendered("csv", replace(sample, command="params")))
    assert rows == [
        ["buffer", "count", "bytes"],
        ["donated", "290", "193986560"],
        ["not donated", "3", "165388"],
        ["unused", "1", "512"],
    ]


def test_a_report_without_tables_is_facts(rendered: Callable[..., str], sample: Report) -> None:
    assert _read(rendered("csv", replace(sample, command="cost", tables=())))[0] == ["fact", "value"]


def test_formulas_are_disarmed_and_numbers_stay(rendered: Callable[..., str]) -> None:
    rows = _read(
        rendered("csv", _report(("=1+1", -0.5, -8), ("+x", 1e-08, 0), ("-x", None, None), ("@x", 2.0, 1), ("a=b", 3, 2)))
    )
    assert rows[1:] == [["'=1+1", "-0.5", "-8"], ["'+x", "1e-08", "0"], ["'-x", "", ""], ["'@x", "2.0", "1"], ["a=b", "3", "2"]]


def test_a_row_is_a_line_whatever_its_text(rendered: Callable[..., str]) -> None:
    text = rendered("csv", _report(('a"b,c\nd\re', 1, 2)))
    assert text.count("\n") == 2
    assert _read(text)[1] == ['a"b,c\\nd\\re', "1", "2"]


def test_several_reports_share_a_header(rendered: Callable[..., str]) -> None:
    text = rendered("csv", _report(("x", 1, 2)), _report(("y", 3, 4), ("z", 5, 6), name="init", path="b.txt"))
    assert _read(text) == [
        ["input", "name", "rate", "bytes"],
        ["a.txt#step", "x", "1", "2"],
        ["b.txt#init", "y", "3", "4"],
        ["b.txt#init", "z", "5", "6"],
    ]


def test_different_tables_are_refused(rendered: Callable[..., str], sample: Report) -> None:
    with pytest.raises(UsageError, match="--table"):
        rendered("csv", _report(("x", 1, 2)), sample)


def test_rows_are_cut_only_when_asked(rendered: Callable[..., str]) -> None:
    report = _report(("x", 1, 2), ("y", 3, 4), ("z", 5, 6))
    assert _read(rendered("csv", report, top=1))[1:] == [["x", "1", "2"], ["[2 more]", "", "10"]]


def test_a_table_that_is_not_there(rendered: Callable[..., str], sample: Report) -> None:
    with pytest.raises(UsageError, match="no table 'fusions'"):
        rendered("csv", sample, table="fusions")


def test_golden(rendered: Callable[..., str], sample: Report, same_as_golden: Callable[[str, str], None]) -> None:
    same_as_golden("csv.txt", rendered("csv", sample, table="collectives"))
    same_as_golden("csv_facts.txt", rendered("csv", sample))
