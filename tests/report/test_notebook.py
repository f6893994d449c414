from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import hlo_inspect.api  # noqa: F401 - from then on reports show themselves
from hlo_inspect.report.formats import html
from hlo_inspect.report.model import Amount, HeadlineRow, Report
from hlo_inspect.report.table import Column, Table


class Tags(HTMLParser):
    """Holds that each element is closed, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str | None) -> str:
    tags = Tags()
    tags.feed(html or "")
    assert tags.open == []
    return tags.text


@pytest.mark.parametrize("has_extra", [True, False])
def test_a_report_is_a_page(sample: Report, monkeypatch: pytest.MonkeyPatch, *, has_extra: bool) -> None:
    """With the extra [html] by its template, and without as text."""
    if not has_extra:
        monkeypatch.setattr(html, "find_spec", lambda _: None)
    report = replace(sample, headline=(HeadlineRow("compute", (Amount(631_400_000_000, "flops"), " <matmul>")),))
    text = text_of(report._repr_html_()).replace("\u00a0", " ")
    for words in (
        "jit_train_step.[bold]42",
        "631.4 GFLOP <matmul>",
        "HI101",
        "=all|gather.4",
        "[5 more]",
        ">= 305.0 MiB",
    ):
        assert words in text
    assert repr(report).startswith("jit_train_step.[bold]42  8 devices")


def test_a_table_is_its_first_rows(sample: Report) -> None:
    table = sample.table("collectives")
    assert repr(table).splitlines()[0] == "Collectives"
    assert len(repr(table).splitlines()) == 3 + 20 + 1 + 2
    assert len(re.findall("<tr>", table._repr_html_() or "")) == 1 + 20 + 1 + 1


def test_the_representation_of_a_large_report_stays_small(sample: Report) -> None:
    rows = tuple((f"a.{number}", "{" + "0," * 100_000 + "}") for number in range(1000))
    table = Table("t", "T", (Column("name"), Column("replica_groups")), rows)
    report = replace(sample, command="params", tables=(table,) * 3, findings=sample.findings * 1000)
    for shown in (repr(table), table._repr_html_(), repr(report), report._repr_html_()):
        assert shown is not None
        assert len(shown) < 40_000


def test_a_table_without_rows(sample: Report) -> None:
    assert text_of(sample.table("custom_calls")._repr_html_()) == "Custom calls\nnone"


def test_sections_open_one_by_one(sample: Report) -> None:
    """The first is open; those of which the report has no table are not there, and nothing is loaded or run."""
    html = sample._repr_html_() or ""
    assert re.findall(r'<details( open="open")?>\n<summary>(.*)</summary>', html) == [
        (' open="open"', "Collectives"),
        ("", "Parameters"),
        ("", "Program"),
    ]
    assert "<script" not in html
    assert "<a " not in html
