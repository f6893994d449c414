from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hlo_inspect.report.formats.markdown import escape
from hlo_inspect.report.model import Report

BLANK = "\u200b"  # no width


def _parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def _text(token: Token) -> str:
    """Return the text of an inline token that a reader sees."""
    assert {child.type for child in token.children or ()} <= {"text", "text_special", "strong_open", "strong_close"}
    return "".join(child.content for child in token.children or ())


def _rows(text: str, table: int) -> list[list[str]]:
    """Return the cells of the nth table of a page, as its reader sees them."""
    tables: list[list[list[str]]] = []
    open_cell = False
    for token in _parsed(text):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in ("td_open", "th_open"):
            open_cell = True
        elif token.type == "inline" and open_cell:
            tables[-1][-1].append(_text(token))
            open_cell = False
    return tables[table]


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1))
def test_escaped_text_is_read_as_it_stands(text: str) -> None:
    (token,) = MarkdownIt("commonmark").enable("strikethrough").parseInline(escape(text))
    assert _text(token).replace(BLANK, "") == text.replace(BLANK, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", r"a\|b"),
        ("<img src=x>", r"\<img src=x\>"),
        ("`rm`", r"\`rm\`"),
        ("all-reduce.1", "all-reduce.1"),
        ("ask @team", "ask @&#8203;team"),
        ("fixes #12", r"fixes \#&#8203;12"),
        ("a @ b", "a @ b"),
    ],
)
def test_escape(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_tables_are_read_back(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("markdown", sample)
    assert _rows(text, 0) == [
        ["buffer", "count", "size"],
        ["donated", "290", "185.0 MiB"],
        ["not donated", "3", "161.5 KiB"],
        ["unused", "1", "512 B"],
        ["total", "294", "185.2 MiB"],  # 193,986,560 + 165,388 + 512 = 194,152,460
    ]
    collectives = _rows(text, 2)
    assert len(collectives) == 1 + 20 + 1 + 1
    assert collectives[4][0] == "[bold]all-reduce.3[/]"
    assert collectives[5][0] == "=all|gather.4"
    assert collectives[6][0] == r"scatter\x1b[31m.5"
    assert collectives[21][:4] == ["[5 more]", "", "230.0 MiB", "115.0 MiB"]  # 42 + 44 + 46 + 48 + 50, and half of it
    assert collectives[22][:4] == [
        "total",
        "",
        "650.0 MiB",
        ">= 305.0 MiB",
    ]  # 1 + 2 + … + 25, without the 20 of the ragged all-to-all


def test_every_row_has_the_cells_of_its_header(rendered: Callable[..., str], sample: Report) -> None:
    widths = {len(row) for row in _rows(rendered("markdown", sample), 2)}
    assert len(widths) == 1


def test_all_rows_when_asked(rendered: Callable[..., str], sample: Report) -> None:
    rows = _rows(rendered("markdown", sample, top=0, table="collectives", raw_bytes=True), 0)
    assert sum(int(row[2].replace(",", "")) for row in rows[1:-1]) == 650 * 2**20
    assert rows[-1][2] == "681,574,400"


def test_cells_are_whole(rendered: Callable[..., str], sample: Report) -> None:
    assert (
        "jit(train_step)/jit(main)/transpose(jvp(decoder))/layer_0/attention/dot_general"
        in _rows(rendered("markdown", sample), 2)[1]
    )


def test_a_table_without_rows_says_so(rendered: Callable[..., str], sample: Report) -> None:
    assert "**Custom calls**\n\nnone\n" in rendered("markdown", sample)


def test_the_reader_finds_all_notes_and_the_first_findings(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("markdown", sample)
    assert "<summary>2 notes</summary>" in text
    assert "while.7 (line 812) depends on a parameter" in text
    assert text.count("\n- **") == 3
    assert "and 2 more: -v or `hlo-inspect lint`" in text
    assert rendered("markdown", sample, verbose=True).count("\n- **") == 5
    assert rendered("markdown", replace(sample, command="params")).count("\n- **") == 5


def test_quiet_is_headline_and_tables(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("markdown", sample, quiet=True)
    assert text.startswith("### jit\\_train\\_step.\\[bold\\]42\n")
    assert "Do first" not in text
    assert "note" not in text


def test_several_reports_follow_each_other(rendered: Callable[..., str], sample: Report) -> None:
    page = rendered("markdown", sample)
    assert rendered("markdown", sample, sample) == f"{page}\n{page}"


def test_golden(rendered: Callable[..., str], sample: Report, same_as_golden: Callable[[str, str], None]) -> None:
    same_as_golden("markdown.txt", rendered("markdown", sample))
