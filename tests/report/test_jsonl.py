from __future__ import annotations

import json
from collections.abc import Callable

from hlo_inspect.report.model import Report


def test_each_report_is_a_line_and_each_row_an_object(rendered: Callable[..., str], sample: Report) -> None:
    lines = rendered("jsonl", sample, sample).splitlines()
    assert len(lines) == 2
    report = json.loads(lines[0])
    buffers = report["tables"][0]
    assert buffers["rows"][1] == {"buffer": "not donated", "count": 3, "bytes": 165388}
    assert buffers["total"] == {"buffer": None, "count": 294, "bytes": 194152460}
    assert buffers["columns"][2] == {"name": "bytes", "unit": "bytes"}


def test_the_rest_is_that_of_json(rendered: Callable[..., str], sample: Report) -> None:
    line, whole = json.loads(rendered("jsonl", sample)), json.loads(rendered("json", sample))
    assert {name: value for name, value in line.items() if name != "tables"} == {
        name: value for name, value in whole.items() if name != "tables"
    }
    names = [column["name"] for column in whole["tables"][3]["columns"]]
    assert [[row[name] for name in names] for row in line["tables"][3]["rows"]] == whole["tables"][3]["rows"]


def test_tables_as_asked(rendered: Callable[..., str], sample: Report) -> None:
    (table,) = json.loads(rendered("jsonl", sample, table="opcodes", top=1))["tables"]
    assert [row["opcode"] for row in table["rows"]] == ["fusion", "[2 more]"]


def test_no_reports_are_no_lines(rendered: Callable[..., str]) -> None:
    assert rendered("jsonl") == ""
