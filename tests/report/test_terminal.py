from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

import hlo_inspect
from hlo_inspect.errors import Location
from hlo_inspect.figure import at_least
from hlo_inspect.report.model import Amount, Finding, HeadlineRow, Input, Report
from hlo_inspect.report.page import page_notes
from hlo_inspect.report.table import Column, Table

OPTIMIZERS = Path(__file__).parents[1] / "data" / "optimizers"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def _line(text: str, start: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return line


@pytest.mark.parametrize("width", [80, 100, 130, 200])
def test_lines_fit_the_width(rendered: Callable[..., str], sample: Report, width: int) -> None:
    text = rendered("table", sample, width=width, verbose=True)
    assert max(map(cell_len, text.splitlines())) <= width
    assert not any(line.endswith(" ") for line in text.splitlines())


@pytest.mark.parametrize("width", [80, 120])
def test_weights_without_decay_are_told_from_those_with_it(rendered: Callable[..., str], width: int) -> None:
    """The mask of `adamw` decays the matrix and not the bias."""
    lines = rendered("table", hlo_inspect.inspect(OPTIMIZERS / "adamw.after.hlo"), width=width).splitlines()
    index = next(number for number, line in enumerate(lines) if line.startswith("rule "))
    assert lines[index].split()[:3] == ["rule", "weights", "decayed"]
    assert lines[index + 2].split()[:3] == ["adamw", "2", "1"]


def test_without_a_width_pages_are_those_of_120(rendered: Callable[..., str], sample: Report) -> None:
    assert rendered("table", sample) == rendered("table", sample, width=120)


def test_a_wrapped_cell_takes_several_lines(rendered: Callable[..., str], sample: Report) -> None:
    table = Table("t", "T", (Column("fact"), Column("meaning"), Column("n", "count")), (("a", "one two three four " * 3, 7),))
    lines = rendered("table", replace(sample, tables=(table,)), table="t", width=40, quiet=True).splitlines()
    index = lines.index(next(line for line in lines if line.startswith("a ")))
    assert lines[index].split() == ["a", "one", "two", "three", "four", "one", "two", "7"]
    assert lines[index + 1].strip() == "three four one two three four"


def test_a_title_that_is_longer_than_a_line_is_wrapped(rendered: Callable[..., str], sample: Report) -> None:
    """The rule of its table is no longer than a line either."""
    title = "Kernels of one step, merged, by share of the step"
    table = Table("t", title, (Column("name"), Column("count", "count")), (("a", 1),))
    lines = rendered("table", replace(sample, tables=(table,)), table="t", width=40, quiet=True).splitlines()
    assert lines[-5:] == ["Kernels of one step, merged, by share of", "the step", "name  count", "─" * 40, "a         1"]


def test_sums_are_those_of_the_rows(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample, width=80, table="collectives")
    cut = _line(text, "[5 more]").split()
    assert cut == ["[5", "more]", "230.0", "MiB", "115.0", "MiB"]  # 42 + 44 + 46 + 48 + 50
    assert _line(text, "total").split() == ["total", "650.0", "MiB", ">=", "305.0", "MiB"]  # 2 + 4 + … + 50
    buffers = rendered("table", sample, table="buffers", raw_bytes=True)
    assert _line(buffers, "total").split() == ["total", "294", "194,152,460"]


def test_the_total_of_rows_that_are_cut_bounds_all(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample, width=80, table="collectives", top=3)
    assert _line(text, "[22 more]").split()[-3:] == [">=", "299.0", "MiB"]  # 305 - 1 - 2 - 3
    assert _line(text, "total").split()[-3:] == [">=", "305.0", "MiB"]


HEADLINE = (
    HeadlineRow("", ("train step: adamw on ", Amount(77, "count", "weight"), ", mesh d0=2 d1=8")),
    HeadlineRow("compute", (Amount(631_400_000_000, "flops"), " in ", Amount(at_least(0.0055, "a bound"), "seconds"))),
    HeadlineRow("collectives", (Amount(1, "count", "run"), ", ", Amount(0.9996, "share"), " of it forward")),
    HeadlineRow("findings", ("1 error",), severity="error"),
)


def test_the_first_lines(rendered: Callable[..., str], sample: Report) -> None:
    report = replace(sample, headline=HEADLINE)
    assert rendered("table", report, width=120).splitlines()[2:6] == [
        "train step: adamw on 77 weights, mesh d0=2 d1=8",
        "compute      631.4 GFLOP in >= 5.50 ms",
        "collectives  1 run, 99.96 % of it forward",
        "findings     1 error",
    ]
    narrow = rendered("table", report, width=40)  # an amount stays in one line
    assert "\ncompute      631.4 GFLOP in >= 5.50 ms\ncollectives  1 run, 99.96 % of it\n             forward\n" in narrow
    assert "\x1b[1;31m1 error" in rendered("table", report, color=True)


def test_rows_as_asked(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample, table="collectives", top=0, width=80)
    assert "more rows]" not in text
    assert "all-reduce.24" in text
    assert "[22 more]" in rendered("table", sample, table="collectives", top=3, width=80)


def test_text_of_the_dump_is_printed_as_it_stands(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample, width=200)
    assert "[bold]all-reduce.3[/]" in text
    assert r"scatter\x1b[31m.5" in text
    assert text.startswith("jit_train_step.[bold]42  8 devices · 8 partitions · per-device shapes · scheduled\n")
    assert "\x1b" not in text


def test_no_text_can_steer_the_terminal(rendered: Callable[..., str]) -> None:
    evil = "a\x1b]0;b\x07\u202e\x9b1m\r\n:smile: [link=x]"
    table = Table(evil, evil, (Column(evil),), ((evil,),))
    finding = Finding("HI001", "error", evil, Location(evil, 1))
    report = Report("params", Input(evil, 1, 1, 1), {"module.name": evil}, (table,), (finding,), (evil,), profile=evil)
    text = rendered("table", report, verbose=True, width=200)
    assert all(char.isprintable() or char == "\n" for char in text)
    # name, input, profile, title, heading, cell, message, place, note
    assert text.count(":smile: [link=x]") == 9


def test_color_adds_nothing_but_color(rendered: Callable[..., str], sample: Report) -> None:
    colored = rendered("table", sample, color=True)
    assert ESCAPE.sub("", colored) == rendered("table", sample)
    assert "\x1b[1;31merror" in colored
    assert "\x1b[1;35mwarning" in colored


def test_output_does_not_depend_on_who_looks(
    rendered: Callable[..., str], sample: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, colored = rendered("table", sample), rendered("table", sample, color=True)
    for name, value in {"COLUMNS": "33", "NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "dumb", "TTY_COMPATIBLE": "1"}.items():
        monkeypatch.setenv(name, value)
    assert rendered("table", sample) == plain
    assert rendered("table", sample, color=True) == colored


def test_small_tables_stand_side_by_side_where_they_fit(rendered: Callable[..., str], sample: Report) -> None:
    # 29 and 30 columns and 4 between are 63; the title "Custom calls" takes 12 and 4 more
    assert _line(rendered("table", sample, width=79), "Parameters").split() == ["Parameters", "Instructions", "Custom", "calls"]
    assert _line(rendered("table", sample, width=78), "Parameters").split() == ["Parameters", "Instructions"]
    assert _line(rendered("table", sample, width=62), "Parameters") == "Parameters"


def test_hidden_columns_are_named_when_asked(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample, width=200, verbose=True)
    assert "more columns, for --columns: Collectives (form)\n" in text
    # names 18, kinds 14, "operand" 9, "wire" 9, op names 40, "is async" 8, line 6: 116 with gaps of 2
    text = rendered("table", sample, width=120, verbose=True)
    assert "more columns, for --columns: Collectives (replica_groups, channel_id, form)\n" in text
    assert "more columns" not in rendered("table", sample, width=120)


def test_findings_stand_before_the_tables(rendered: Callable[..., str], sample: Report) -> None:
    for name in ("table", "markdown"):
        text = rendered(name, replace(sample, headline=HEADLINE))
        assert text.index("train step") < text.index("Do first") < text.index("Parameters") < text.index("depend on values")


def test_the_summary_has_its_three_first_findings(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample)
    assert re.findall(r"^\w+ +(HI\d+)", text, re.MULTILINE) == ["HI001", "HI101", "HI204"]
    assert "\nand 2 more: -v or `hlo-inspect lint`\n" in text
    for all_of_them in (rendered("table", sample, verbose=True), rendered("table", replace(sample, command="params"))):
        assert re.findall(r"^\w+ +(HI\d+)", all_of_them, re.MULTILINE) == ["HI001", "HI101", "HI204", "HI104", "HI501"]


def test_a_page_has_the_first_findings_and_says_how_many_there_are(rendered: Callable[..., str], sample: Report) -> None:
    many = replace(sample, command="params", findings=sample.findings * 10)
    text = rendered("table", many)
    assert len(re.findall(r"^\w+ +(HI\d+)", text, re.MULTILINE)) == 20
    assert "\nand 30 more: -v or `hlo-inspect lint`\n" in text
    assert "more: -v" not in rendered("table", many, verbose=True)


def test_no_findings(rendered: Callable[..., str], sample: Report) -> None:
    assert "\nDo first\nnone\n" in rendered("table", replace(sample, findings=()))
    assert "Findings" not in rendered("table", replace(sample, command="params", findings=()))
    assert "Do first" not in rendered("table", replace(sample, findings=(), headline=HEADLINE))


def test_the_reason_for_an_unknown_value_can_be_found(rendered: Callable[..., str], sample: Report) -> None:
    assert rendered("table", sample).endswith("\n? is an unknown value: -v says why (1 note)\n")
    assert "-v shows why" not in rendered("table", sample, table="buffers")
    assert "depends on a parameter" in rendered("table", sample, verbose=True, width=200)


def test_a_remark_is_always_shown(rendered: Callable[..., str], sample: Report) -> None:
    """A note that explains no unknown fact is something that everybody has to know."""
    assert "depend on values" in rendered("table", sample, table="buffers", width=200)


def test_quiet_is_headline_and_tables(rendered: Callable[..., str], sample: Report) -> None:
    text = rendered("table", sample, quiet=True, width=80)
    assert "Findings" not in text
    assert text.splitlines()[-1].split() == ["total", "650.0", "MiB", ">=", "305.0", "MiB"]


def test_a_bare_report(rendered: Callable[..., str]) -> None:
    report = Report("params", Input("-", 1, 1, 512), {"module.name": "m", "module.devices": None, "module.shapes": "mixed"})
    assert rendered("table", report) == "m  ? devices · global shapes with per-device regions\n- · 1 line · 512 B\n"


def test_reports_follow_each_other(rendered: Callable[..., str], sample: Report) -> None:
    page = rendered("table", sample)
    assert rendered("table", sample, sample) == f"{page}\n{page}"
    assert rendered("table") == ""


@pytest.mark.parametrize("width", [80, 200])
def test_golden(rendered: Callable[..., str], sample: Report, width: int, same_as_golden: Callable[[str, str], None]) -> None:
    same_as_golden(f"terminal_{width}.txt", rendered("table", sample, width=width))
    same_as_golden(f"terminal_{width}_verbose.txt", rendered("table", sample, width=width, verbose=True, raw_bytes=True, top=3))


def test_a_note_speaks_of_figures_and_not_of_facts(sample: Report) -> None:
    notes = (
        "memory.temp_bytes: not scheduled",
        "time.compute_s: not scheduled",
        "cost.matmul_flops: not scheduled",
        "memory.heap_bytes: not scheduled",
        "memory.host_bytes: not scheduled",
        "collectives.wire_bytes: no size",
        "custom_calls.target.my_call: no rule",
        "sizes are SimAI's: of one device",
    )
    report = replace(sample, notes=notes, command="memory")
    assert page_notes(report).remarks == [
        "temporary bytes, compute time, matmul FLOPs and 2 others: not scheduled",
        "collective sent bytes: no size",
        "my_call: no rule",
        "sizes are SimAI's: of one device",
    ]
    assert page_notes(replace(report, command="check")).remarks[1] == "collectives.wire_bytes: no size"
