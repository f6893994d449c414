"""`report` on the command line: statuses, what stays of an old file, bad inputs, pages that are too large."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.report.formats.html import assets, page_size
from tests.browser.page_data import PageData

DATA = Path(__file__).parent.parent / "data"
DUMP = DATA / "cpu" / "sgd_unused.after.txt"
MODULE = """HloModule {name}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT n = f32[8]{{0}} negate(p)
}}

"""


def page(path: Path) -> PageData:
    return PageData(path.read_text(encoding="utf-8"))


def sections_without(path: Path, tmp_path: Path) -> dict[str, str]:
    """Return the text of the empty sections of a page."""
    output = tmp_path / "page.html"
    assert run(["report", str(path), "-q", "-o", str(output)]) == 0
    text = output.read_text(encoding="utf-8")
    sections = re.findall(r'<section id="([\w-]+)">\s*<h2>[^<]*</h2>(.*?)</section>', text, re.DOTALL)
    assert all(re.sub(r"<[^>]*>|\s", "", inside) for _, inside in sections), "a section without a word"
    (empty,) = re.findall(r'<section class="nothing">(.*?)</section>', text, re.DOTALL)
    return dict(re.findall(r'<span id="([\w-]+)">([^<]*)</span>', empty))


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("cpu/number_operators.before.txt", {"collectives", "fusions", "custom-calls", "optimizer"}),
        ("handmade/cut_off.txt", {"optimizer", "custom-calls"}),
        ("handmade/unreadable_lines.txt", {"collectives", "optimizer"}),
        ("handmade/headerless.txt", {"optimizer", "loops"}),
    ],
)
def test_sections_that_have_nothing_say_why(name: str, empty: set[str], tmp_path: Path) -> None:
    said = sections_without(DATA / name, tmp_path)
    assert empty <= said.keys()
    assert all(len(words) > 20 and words.endswith(".") for words in said.values())


def test_quoted_lines_have_a_page(tmp_path: Path) -> None:
    quoted = tmp_path / "mail.txt"
    quoted.write_text(
        "> %all-reduce.1 = f32[1024]{0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%sum\n> what is this?\n"
    )
    output = tmp_path / "page.html"
    assert run(["report", str(quoted), "-q", "-o", str(output)]) == 0
    result = page(output)
    collectives = result.table("collectives")
    assert dict(zip(collectives.names, collectives.rows[0], strict=True))["operand_bytes"] == 4096
    assert "this partial module has" in result.text


def test_a_text_without_a_module_says_what_it_holds(tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    assert run(["report", str(DATA / "workloads" / "astra_sim.txt"), "-q", "-o", str(output)]) == 0
    text = page(output).text
    assert "This text holds no module. It holds: Pass over the rows (compute in cycles); " in text
    assert "This module has no" not in text


def test_an_input_without_a_module_leaves_the_old_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.html"
    output.write_text("old")
    assert run(["report", str(DATA / "handmade" / "empty.txt"), "-o", str(output)]) == 3
    assert output.read_text() == "old"
    assert "it is empty" in capsys.readouterr().err


def test_readable_inputs_are_on_the_page_beside_an_unreadable_one(tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    assert run(["report", str(DUMP), str(tmp_path / "none.txt"), "-q", "-o", str(output)]) == 3
    assert "jit_step" in page(output).text


def test_a_page_is_not_written_over_an_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text(MODULE.format(name="m"))
    for arguments in ([str(dump)], [str(DUMP), str(dump), "--diff"]):
        assert run(["report", *arguments, "-o", str(dump)]) == 2
        assert "is an input" in capsys.readouterr().err
    assert dump.read_text() == MODULE.format(name="m")


def test_an_output_that_cannot_be_written_leaves_the_old_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "page.html"
    old.write_text("old")
    assert run(["report", str(DUMP), "-o", str(tmp_path / "no" / "page.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hlo_inspect.report.formats.html.page_text.json_block", full)
        assert run(["report", str(DUMP), "-q", "-o", str(old)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert old.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_the_extra_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(assets, "find_spec", lambda name: None)
    assert run(["report", str(DUMP), "-o", str(tmp_path / "page.html")]) == 2
    assert "the extra [html]: pip install " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_difference_takes_two_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(DUMP), "--diff", "-o", str(tmp_path / "page.html")]) == 2
    assert "two inputs" in capsys.readouterr().err


def test_findings_reach_fail_on(tmp_path: Path) -> None:
    """A new finding fails a difference; findings of both sides do not."""
    output, cut = tmp_path / "page.html", DATA / "handmade" / "cut_off.txt"
    assert run(["report", str(cut), "-q", "--fail-on", "warning", "-o", str(output)]) == 1
    assert output.exists()
    assert run(["report", str(cut), str(cut), "--diff", "-q", "--fail-on", "warning", "-o", str(output)]) == 0
    assert run(["report", str(DUMP), str(cut), "--diff", "-q", "--fail-on", "warning", "-o", str(output)]) == 1


def test_a_page_that_is_too_large_says_what_makes_it_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, dump = tmp_path / "page.html", tmp_path / "dump.txt"
    lines = "".join(f"  n{number} = f32[8]{{0}} negate(p)\n" for number in range(800))
    large = MODULE.format(name="large").replace("  ROOT", f"{lines}  ROOT")
    dump.write_text(large + MODULE.format(name="small"))
    assert run(["report", str(dump), "-q", "-o", str(output)]) == 0
    assert capsys.readouterr().err == ""
    whole = output.stat().st_size
    monkeypatch.setattr(page_size.advice, "__defaults__", (whole - 5_000,))
    assert run(["report", str(dump), "-q", "-o", str(output)]) == 0
    said = capsys.readouterr().err
    rows = re.search(r"-n (\d+) makes it about", said)
    assert rows is not None
    assert "--module REGEX leaves modules out; the largest is large, " in said
    assert run(["report", str(dump), "-q", "-n", rows[1], "-o", str(output)]) == 0
    assert output.stat().st_size < whole - 5_000
    assert capsys.readouterr().err == ""


def test_marks_that_turn_text_are_escaped_in_the_data() -> None:
    from hlo_inspect.report.formats.html.page_text import json_block

    assert json_block("a\u202e\ud800\u00e9") == r'"a\u202e\ud800' + "\u00e9" + '"'
