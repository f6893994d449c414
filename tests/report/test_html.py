"""The page as text: it holds every row, and text of a dump stays text."""

from __future__ import annotations

import gzip
import hashlib
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.errors import Location, MissingExtraError
from hlo_inspect.inspection import source_lines
from hlo_inspect.inspection.source_lines import with_finding_lines
from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.formats.html import assets
from hlo_inspect.report.formats.html.view_texts import ViewText
from hlo_inspect.report.formats.html.views import page_of
from hlo_inspect.report.model import Finding, Input, Passage, Report
from hlo_inspect.report.table import Column, Table
from tests.browser.page_data import PageData


def _page(*reports: Report, **options: Any) -> str:
    stream = StringIO()
    ALL_FORMATS["html"](reports, stream, RenderOptions(**options))
    return stream.getvalue()


@pytest.fixture(scope="module")
def text(sample: Report) -> str:
    return _page(sample)


def test_every_row_is_on_the_page(text: str, sample: Report) -> None:
    page_tables = PageData(text).tables()
    for table in sample.tables:
        if table.rows:
            assert page_tables[table.name].rows == [tuple(row) for row in table.rows]
            assert page_tables[table.name].names == [column.name for column in table.columns]
    assert "Custom calls" not in {page_table.title for page_table in page_tables.values()}


def test_values_stand_beside_what_people_read(text: str) -> None:
    collectives = PageData(text).table("collectives")
    index = collectives.names.index("operand_bytes")
    assert (collectives.rows[0][index], collectives.texts[0][index]) == (2097152, "2.00 MiB")
    assert (collectives.rows[19][index + 1], collectives.texts[19][index + 1]) == (None, "?")
    assert collectives.texts[5][0] == r"scatter\x1b[31m.5"


def test_scripts_are_those_of_the_policy(text: str) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    packed = re.findall(r'<script type="application/octet-stream" data-library="\w+">(.*?)</script>', text, re.DOTALL)
    scripts += [gzip.decompress(b64decode(library)).decode() for library in packed]
    hashes = [f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts]
    policy = PageData(text).policy
    assert len(scripts) == 2 + ('data-library="pictures"' in text)
    assert len(text) < 600_000
    assert re.findall(r"'sha256-[^']*'", policy) == hashes
    assert "unsafe-eval" not in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_links_stay_on_the_page(text: str) -> None:
    page = PageData(text)
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_a_finding_has_its_documentation(sample: Report) -> None:
    rule = Report(
        "rule", Input("", 1, 0, 0), {"rule.code": "HI101"}, passages=(Passage("How to fix it", "Donate <it> & all."),)
    )
    page = _page(sample, rule)
    assert "How to fix it" in page
    assert "Donate &lt;it&gt; &amp; all." in page


def _finding(path: str, line: int) -> Finding:
    return Finding("HI101", "warning", "a message", Location(path, line))


def test_lines_of_findings_are_quoted_from_their_own_input(tmp_path: Path) -> None:
    """The finding about line 2 of another input has no line quoted, though line 2 of this one is."""
    dump = tmp_path / "dump.txt"
    dump.write_text("line one\nline two\nline three\n")
    rule = Report("rule", Input("", 1, 0, 0), {"rule.code": "HI102"}, passages=(Passage("", "Foreign."),))
    own, foreign = _finding(str(dump), 2), _finding("other.txt", 2)._replace(rule="HI102")
    report = Report("summary", Input(str(dump), 1, 3, 30), {"module.name": "m"}, findings=(own, foreign))
    view = page_of([with_finding_lines(report), rule]).views[0]
    text = ViewText(view, {table.name: table for table in view.tables}, {}, RenderOptions())
    assert [(rule.code, text.quoted(rule)) for rule in text.rules] == [("HI101", ["line two"]), ("HI102", [])]


def test_a_note_says_how_many_lines_are_not_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text("a\nb\nc\nd\n")
    report = Report(
        "summary", Input(str(dump), 1, 4, 8), {}, findings=tuple(_finding(str(dump), line) for line in (4, 1, 2, 4))
    )
    assert not with_finding_lines(report).notes
    monkeypatch.setattr(source_lines, "MOST_LINES", 1)
    quoted = with_finding_lines(report)
    assert quoted.table("finding_lines").rows == ((1, "a"),)
    assert quoted.notes == ("finding_lines: 2 more lines that findings name are not quoted",)


def test_paths_are_relative_where_people_read_them() -> None:
    columns = (Column("name"), Column("source"))
    rows = (("a", "/home/me/train/model.py:3"), ("b", "/home/me/train/step.py:7"), ("c", ""))
    page = PageData(_page(Report("cost", Input("a", 1, 1, 1), {"module.name": "m"}, (Table("cost", "Cost", columns, rows),))))
    assert [row[1] for row in page.table("cost").rows] == [row[1] for row in rows]
    assert [row[1] for row in page.table("cost").texts] == ["model.py:3", "step.py:7", ""]
    assert "/home/me" not in page.text


def test_the_optimizer_in_words() -> None:
    """Constants that the text does not have are left out."""
    columns = (
        *(Column("rule"), Column("weights", "count"), Column("bytes", "bytes"), Column("learning_rate", "number")),
        *(Column("momentum", "number", optional=True), Column("nesterov", "bool"), Column("rate")),
    )
    rows = (("sgd", 2, 2048, 0.1, 0.9, True, "constant"), ("sgd", 1, 4, 0.1, None, False, ""))
    table = Table("optimizer_groups", "Rules", columns, rows)
    page = PageData(_page(Report("optimizer", Input("a", 1, 1, 1), {"module.name": "m"}, (table,))))
    assert "sgd updates 2 weights of 2.00 KiB: learning rate 0.1, momentum 0.9, rate constant. " in page.text
    assert "sgd updates 1 weight of 4 B: learning rate 0.1.\n" in page.text


def test_integers_that_javascript_cannot_hold_are_texts() -> None:
    table = Table("cost", "Cost", (Column("op"), Column("bytes", "bytes")), (("a", 2**53 + 1), ("b", 2**53), ("c", 10**30)))
    page = PageData(_page(Report("cost", Input("a", 1, 1, 1), {"module.name": "m"}, (table,))))
    assert [row[1] for row in page.table("cost").rows] == [str(2**53 + 1), 2**53, str(10**30)]


def test_top_cuts_tables(sample: Report) -> None:
    cut = PageData(_page(sample, top=3)).table("collectives")
    assert len(cut.rows) == 4
    assert cut.rows[-1][0] == "[22 more]"


def test_markup_of_a_dump_stays_text(sample: Report) -> None:
    name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}"
    table = replace(sample.tables[0], title=name, rows=((name, 1, 2),))
    facts = {**sample.facts, "module.name": name}
    text = _page(replace(sample, facts=facts, tables=(table,), notes=(name,)))
    assert "<img" not in text
    assert "<script>alert" not in text
    page = PageData(text)
    assert page.table("buffers").rows == [(name, 1, 2)]
    assert page.text.count(name) == 6  # title of the page, heading, title and caption of the table, its cell, note


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch, sample: Report) -> None:
    monkeypatch.setattr(assets, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"the extra \[html\]: pip install"):
        _page(sample)
