from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from hlo_inspect.errors import Location, UsageError
from hlo_inspect.report.formats.json import report_to_dict
from hlo_inspect.report.model import Finding, Input, Report
from hlo_inspect.report.table import Column, Table

SMALL = Report(
    command="collectives",
    input=Input("dump.txt", 4, 62, 10301),
    facts={
        "module.name": "step\u001b",
        "collectives.count": 2,
        "collectives.executed_count": None,
        "module.is_scheduled": True,
    },
    tables=(
        Table(
            "collectives", "Collectives", (Column("kind"), Column("bytes", "bytes", summed=True)), (("all-reduce", 7), ("x", 8))
        ),
        Table("plain", "No sums", (Column("name"), Column("rate", "number")), (("a", 0.001),)),
    ),
    findings=(
        Finding("HI201", "warning", "resharding", Location("dump.txt", 61, 3), "all-to-all", 5),
        Finding("HI001", "info", "nowhere"),
    ),
    notes=("collectives.executed_count: unknown trip count",),
)

EXPECTED = {
    "schema_version": 1,
    "tool": {"name": "hlo-inspect", "version": "7.8.9"},
    "command": "collectives",
    "input": {"path": "dump.txt", "first_line": 4, "lines": 62, "bytes": 10301},
    "profile": None,
    "facts": {
        "module.name": "step\u001b",
        "collectives.count": 2,
        "collectives.executed_count": None,
        "module.is_scheduled": True,
    },
    "tables": [
        {
            "name": "collectives",
            "title": "Collectives",
            "columns": [{"name": "kind", "unit": "text"}, {"name": "bytes", "unit": "bytes"}],
            "rows": [["all-reduce", 7], ["x", 8]],
            "total": [None, 15],
        },
        {
            "name": "plain",
            "title": "No sums",
            "columns": [{"name": "name", "unit": "text"}, {"name": "rate", "unit": "number"}],
            "rows": [["a", 0.001]],
            "total": None,
        },
    ],
    "findings": [
        {
            "rule": "HI201",
            "severity": "warning",
            "message": "resharding",
            "location": {"path": "dump.txt", "line": 61, "column": 3},
            "subject": "all-to-all",
            "name": "",
            "stake": 5,
            "stake_unit": "bytes",
            "share": None,
            "share_of": None,
            "source": None,
            "fingerprint": "",
        },
        {
            "rule": "HI001",
            "severity": "info",
            "message": "nowhere",
            "location": None,
            "subject": None,
            "name": "",
            "stake": None,
            "stake_unit": None,
            "share": None,
            "share_of": None,
            "source": None,
            "fingerprint": "",
        },
    ],
    "notes": ["collectives.executed_count: unknown trip count"],
}


@pytest.fixture(autouse=True)
def _version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlo_inspect.report.formats.json.__version__", "7.8.9")


def test_json_of_one_report_is_an_object(rendered: Callable[..., str]) -> None:
    assert report_to_dict(SMALL) == EXPECTED
    text = rendered("json", SMALL)
    assert json.loads(text) == EXPECTED
    assert list(json.loads(text)) == list(EXPECTED)
    assert text.endswith("}\n")


def test_several_reports_are_one_object(rendered: Callable[..., str]) -> None:
    assert json.loads(rendered("json", SMALL, SMALL)) == {"schema_version": 1, "reports": [EXPECTED, EXPECTED]}


def test_a_row_is_a_line_of_ascii(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("json", sample)
    assert text.isascii()
    assert "\x1b" not in text
    assert "\n" + 4 * " " + '["dot", 97, 631400000000],\n' in text


def test_numbers_that_json_lacks_are_strings(rendered: Callable[..., str]) -> None:
    columns = (Column("a", "number", summed=True), Column("b", "number"), Column("c", "number"))
    table = Table("t", "T", columns, ((math.inf, -math.inf, math.nan),))
    text = rendered("json", Report("cost", Input("x", 1, 1, 1), {"time.step_s": math.inf}, (table,)))

    def refuse(token: str) -> None:
        raise AssertionError(token)

    report = json.loads(text, parse_constant=refuse)
    assert report["facts"] == {"time.step_s": "Infinity"}
    assert report["tables"][0]["rows"] == [["Infinity", "-Infinity", "NaN"]]
    assert report["tables"][0]["total"] == ["Infinity", None, None]


def test_rows_are_cut_only_when_asked(rendered: Callable[..., str], sample: Report) -> None:
    whole = json.loads(rendered("json", sample))["tables"][3]
    cut = json.loads(rendered("json", sample, top=24, table="collectives"))["tables"]
    assert len(whole["rows"]) == 25
    assert [len(table["rows"]) for table in cut] == [25]
    assert cut[0]["rows"][-1][:4] == ["[1 more]", None, 52428800, 26214400]
    assert cut[0]["total"] == whole["total"] == [None, None, 681574400, None, *[None] * 6]


def test_a_table_that_is_not_there(rendered: Callable[..., str], sample: Report) -> None:
    with pytest.raises(UsageError, match="buffers, opcodes, custom_calls, collectives"):
        rendered("json", sample, table="fusions")


def test_golden(rendered: Callable[..., str], sample: Report, same_as_golden: Callable[[str, str], None]) -> None:
    same_as_golden("json.txt", rendered("json", sample))
