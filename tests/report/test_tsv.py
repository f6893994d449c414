"""TSV is CSV with tabs and without quotes: each line has the fields of the header between its tabs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Row, Table


def _read(text: str) -> list[list[str]]:
    assert "\r" not in text
    assert text.endswith("\n")
    return [line.split("\t") for line in text[:-1].split("\n")]


def _report(*rows: Row, name: str = "step", path: str = "a.txt") -> Report:
    columns = (Column("name"), Column("rate", "number"), Column("is_async", "bool"))
    return Report("cost", Input(path, 1, 1, 1), {"module.name": name}, (Table("cost", "Cost", columns, rows),))


def test_a_text_of_a_dump_breaks_no_row(rendered: Callable[..., str]) -> None:
    """Tabs, line ends and control characters are escaped; quotes and commas stand as they are, a backslash too."""
    text = rendered("tsv", _report(('a"b,c\td\ne\rf\x1b[31m', 0.5, True), ('"x"', None, False), ("a\\tb", 1, None)))
    assert text == (
        "name\trate\tis_async\n"
        'a"b,c\\td\\ne\\rf\\x1b[31m\t0.5\ttrue\n'
        '"x"\t\tfalse\n'
        "a\\tb\t1\t\n"
    )  # fmt: skip
    assert {len(row) for row in _read(text)} == {3}


def test_a_text_without_control_characters_is_whole(rendered: Callable[..., str]) -> None:
    assert _read(rendered("tsv", _report(("weights['ü']", 2, None))))[1] == ["weights['ü']", "2", ""]


def test_formulas_are_disarmed_and_numbers_stay(rendered: Callable[..., str]) -> None:
    """People paste TSV into spreadsheets."""
    assert _read(rendered("tsv", _report(("=1+1", -0.5, None))))[1] == ["'=1+1", "-0.5", ""]


def test_rows_are_those_of_csv(rendered: Callable[..., str], sample: Report) -> None:
    rows = _read(rendered("tsv", sample, table="collectives"))
    assert rows[0][:4] == ["name", "kind", "operand_bytes", "wire_bytes"]
    assert len(rows) == 1 + 25
    assert sum(int(row[2]) for row in rows[1:]) == 650 * 2**20
    assert rows[6][0] == r"scatter\x1b[31m.5"


@pytest.mark.parametrize("has_tables", [True, False])
def test_the_summary_and_a_report_without_tables_are_facts(
    rendered: Callable[..., str], sample: Report, has_tables: bool
) -> None:
    rows = _read(rendered("tsv", sample if has_tables else replace(sample, command="cost", tables=())))
    assert rows[0] == ["fact", "value"]
    facts = dict(rows[1:])
    assert (facts["params.bytes"], facts["collectives.executed_count"]) == ("194152460", "")
    assert len(rows) == 1 + len(sample.facts)


def test_several_reports_share_a_header(rendered: Callable[..., str]) -> None:
    text = rendered("tsv", _report(("x", 1, None)), _report(("y", 2, None), name="in\tit", path="b.txt"))
    assert _read(text) == [["input", "name", "rate", "is_async"], ["a.txt#step", "x", "1", ""], ["b.txt#in\\tit", "y", "2", ""]]


def test_different_tables_are_refused(rendered: Callable[..., str], sample: Report) -> None:
    with pytest.raises(UsageError, match="one TSV cannot hold: choose one with --table"):
        rendered("tsv", _report(("x", 1, None)), sample)


def test_a_line_can_be_empty(rendered: Callable[..., str]) -> None:
    """The only column has an unknown value."""
    table = Table("axes", "Axes", (Column("axis"),), (("data",), (None,)))
    assert rendered("tsv", Report("axes", Input("a.txt", 1, 1, 1), {}, (table,))) == "axis\ndata\n\n"
