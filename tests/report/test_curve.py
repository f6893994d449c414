"""Tables that pages draw as curves."""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Row, Table
from hlo_inspect.report.text_curve import HEIGHT, curve_lines

COLUMNS = (Column("first", "number"), Column("bytes", "bytes"), Column("phase"), Column("loop"))


def curve(rows: list[Row]) -> Table:
    return Table("live_bytes", "Live bytes", COLUMNS, tuple(rows), page_rows=0, is_curve=True)


def lines(rows: list[Row], width: int = 80) -> list[str]:
    return list(curve_lines(curve(rows), width))


def test_each_height_is_its_share_of_the_highest() -> None:
    """The heights in 8 lines are 0, half, all, and a sixteenth, which is half of the lowest line."""
    curve = lines([(0, 0, "", ""), (1, 512, "", ""), (2, 1024, "", ""), (3, 64, "", "")] * 10)
    drawn = [line.partition("┤")[2] or line.partition("│")[2] for line in curve[:HEIGHT]]
    assert {line[0:4] for line in drawn[:3]} == {"  █ "}
    assert [line[0:4].rstrip() for line in drawn[3:]] == ["  █", " ██", " ██", " ██", " ██▄"]
    assert curve[0].startswith("1.00 KiB ┤")
    assert curve[4].startswith("   512 B ┤")
    assert curve[HEIGHT].startswith("       0 └")


def test_many_rows_show_the_highest_of_each_column() -> None:
    rows: list[Row] = [(i, 1000 if i == 777 else 1, "", "") for i in range(1000)]
    curve = lines(rows)
    assert curve[0].count("█") == 1
    assert all(len(line) <= 80 for line in curve)


def test_bands_say_where_a_text_begins() -> None:
    phases = ["forward"] * 20 + ["unknown"] * 4 + ["forward"] * 6 + ["loss"] * 1 + ["backward"] * 15 + ["optimizer"] * 14
    loops = [""] * 10 + ["while.1"] * 20 + [""] * 30
    curve = lines([(i, 1024, phase, loop) for i, (phase, loop) in enumerate(zip(phases, loops, strict=True))])
    assert [len(line) - len(line.lstrip()) for line in curve[-2:]] == [10, 20]
    assert curve[-2].split() == ["|forward", "|backward", "|optimizer"]
    assert curve[-1].split() == ["|while.1"]
    assert curve[-2].index("|backward") == 10 + 31


def test_the_axis_has_its_positions() -> None:
    (axis,) = [line for line in lines([(i, 1024, "", "") for i in range(0, 120, 3)]) if "schedule" in line]
    words = axis.split()
    assert (words[0], words[-1]) == ("0", "117")
    assert " ".join(words[1:-1]) == "position in the schedule"
    assert "schedule" not in "".join(lines([(0, 1024, "", "")], 20))


def test_an_empty_curve() -> None:
    assert lines([(0, 0, "", "")]) == ["none"]
    assert lines([]) == ["none"]


def test_pages_draw_it_and_tables_list_it(rendered: Callable[..., str]) -> None:
    table = curve([(0, 1024, "forward", ""), (1, 2048, "backward", "")])
    report = Report("memory", Input("a.txt", 1, 1, 1), {}, (table,))
    for name in ("table", "markdown"):
        text = rendered(name, report)
        assert "┤" in text
        assert "forward" in text
    assert "┤" not in rendered("table", report, table="live_bytes")
    assert "┤" not in rendered("csv", report)
