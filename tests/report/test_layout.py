from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hlo_inspect.figure import at_least
from hlo_inspect.report.layout import NARROW, make_grid, pad, shorten, wrap
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

PATH = "jit(step)/layer_7/attention/dot_general"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("all-reduce", 10, "all-reduce"),
        ("all-reduce.1", 7, "all…e.1"),
        ("abcdefgh", 6, "abc…gh"),
        ("{0,1,2,3}", 6, "{0,1,…"),
        ("[2,4]<=[8]", 5, "[2,4…"),
        ("(f32[2], f32[3])", 8, "(f32[2]…"),
        ("/home/me/train.py:12", 9, "…in.py:12"),
        ("jit(step)/layer/dot", 8, "…yer/dot"),
        ("あいうえお", 7, "あ … お"),  # two cells each: a half does not exist
        ("params['encoder']['mlp']['kernel']", 21, "…['mlp']['kernel']"),  # whole keys at the end
        ("params['encoder']['mlp']['kernel']", 8, "para…l']"),
        ("", 0, ""),
    ],
)
def test_shorten(text: str, width: int, expected: str) -> None:
    assert shorten(text, width) == expected


@given(st.text(st.characters(exclude_categories=("C", "M", "Z")), min_size=1), st.integers(1, 30))
def test_shortened_text_fits_its_width(text: str, width: int) -> None:
    assert cell_len(shorten(text, width)) <= width


def test_pad_counts_cells() -> None:
    assert pad("あ", 4, right=False) == "あ  "
    assert pad("7", 3, right=True) == "  7"


def _table() -> Table:
    columns = (
        Column("name"),
        Column("bytes", "bytes", summed=True),
        Column("op_name", detail=2, width=24),
        Column("channel", "number", detail=3),
        Column("axis", detail=3),
        Column("form", detail=9),
    )
    return Table("t", "T", columns, (("all-reduce.1", 2048, PATH, 17, "data", "plain"), ("b", 1024, "/b", 18, "x", "plain")))


ALL = ("name", "size", "op name", "channel", "axis")


def test_a_short_column_takes_the_room_that_is_too_small_for_one_before_it() -> None:
    columns = (Column("name"), Column("source", detail=1, width=60), Column("phase", detail=2))
    table = Table("t", "T", columns, (("a", "/train.py:12", "forward"),))
    assert make_grid(table, 40).header == ("name", "phase")
    assert make_grid(table, 120).header == ("name", "source", "phase")


@pytest.mark.parametrize(
    ("width", "header"),
    [
        # usual widths: a name 18, the sizes 8, op names 24 as their column says, "channel" 7, an axis 6; gaps of 2
        (18 + 8 + 24 + 7 + 6 + 8, ALL),
        (18 + 8 + 24 + 7 + 6 + 7, ("name", "size", "op name", "channel")),
        (18 + 8 + 24 + 7 + 6, ("name", "size", "op name", "channel")),
        (18 + 8 + 24 + 6 + 6, ("name", "size", "op name", "axis")),
        (18 + 8 + 24 + 6 + 5, ("name", "size", "op name")),
        (18 + 8 + 24 + 4, ("name", "size", "op name")),
        (18 + 8 + 24 + 3, ("name", "size", "channel", "axis")),
        (18 + 8 + 6 + 4, ("name", "size", "axis")),
        (20, ("name", "size")),
    ],
)
def test_the_least_detailed_columns_take_their_room_first(width: int, header: tuple[str, ...]) -> None:
    grid = make_grid(_table(), width)
    assert grid.header == header
    assert set(grid.hidden) == {"name", "bytes", "op_name", "channel", "axis", "form"} - {
        "bytes" if column_heading == "size" else column_heading.replace(" ", "_") for column_heading in header
    }


def test_a_column_without_a_known_value_is_not_on_a_page() -> None:
    rows = (("a", None, "", None, "x", ""), ("b", None, "", None, "y", ""))
    grid = make_grid(replace(_table(), rows=rows), 120)
    assert grid.header == ("name", "axis")
    assert grid.has_unknown  # the page still tells how to see why the size and the channel are unknown
    asked = replace(_table(), rows=rows, columns=tuple(column._replace(is_chosen=True) for column in _table().columns))
    assert make_grid(asked, 120).header == (*ALL, "form")


def test_equal_cells_give_their_room_to_others() -> None:
    columns = (Column("name"), Column("kind", detail=1), Column("axis", detail=2))
    differ = (("a", "all-gather", "x"), ("b", "all-to-all", "y"))
    table = Table("t", "T", columns, differ)
    assert make_grid(table, 18 + 14 + 2).header == ("name", "kind")
    equal = replace(table, rows=tuple((name, "all-gather", axis) for name, _, axis in differ))
    assert make_grid(equal, 18 + 14 + 2).header == ("name", "axis")
    assert make_grid(equal, 120).header == ("name", "kind", "axis")
    assert make_grid(replace(equal, rows=equal.rows[:1]), 18 + 14 + 2).header == ("name", "kind")


def test_columns_without_a_detail_stay_unless_they_are_equal_and_too_wide() -> None:
    columns = (Column("name"), Column("kind"), Column("axis"))
    table = Table("t", "T", columns, (("a", "all-gather", "x"), ("b", "all-gather", "y")))
    assert make_grid(table, 18 + 14 + 6 + 4).header == ("name", "kind", "axis")
    assert make_grid(table, 18 + 14 + 6 + 3).header == ("name", "axis")


def test_rows_that_would_look_equal_get_the_column_that_tells_them_apart() -> None:
    columns = (Column("name"), Column("source", detail=1, width=30), Column("phase", detail=2), Column("shape", detail=5))
    rows = (("fusion", "a.py:1", "forward", "f32[8]"), ("fusion", "a.py:1", "forward", "f32[4]"), ("dot", "a.py:2", "", ""))
    assert make_grid(Table("t", "T", columns, rows), 18 + 30 + 9 + 4).header == ("name", "source", "shape")
    different = (("fusion", "a.py:1", "forward", "f32[8]"), ("fusion", "a.py:3", "forward", "f32[4]"), rows[2])
    assert make_grid(Table("t", "T", columns, different), 18 + 30 + 9 + 4).header == ("name", "source", "phase")
    same = tuple((name, source, phase, "f32[8]") for name, source, phase, _ in rows)
    assert make_grid(Table("t", "T", columns, same), 18 + 30 + 9 + 4).header == ("name", "source", "phase")


def test_a_column_that_tells_rows_apart_takes_the_room_of_one_with_a_detail() -> None:
    columns = (Column("name"), Column("flops", "count", detail=1), Column("phase", detail=5))
    rows = (("dot", 8_000_000_000, "forward"), ("dot", 8_000_000_000, "backward"))
    assert make_grid(Table("t", "T", columns, rows), 30).header == ("name", "phase")


def test_a_figure_is_never_cut_so_it_takes_the_room_of_a_later_column() -> None:
    columns = (Column("name"), Column("bound", "seconds"), Column("kind", detail=1))
    rows = (("a", at_least(622e-4, "a part is unknown"), "x"),)  # ">= 62.2 ms" has three cells more than usual
    assert make_grid(Table("t", "T", columns, rows), 18 + 10 + 14 + 4).header == ("name", "bound", "kind")
    assert make_grid(Table("t", "T", columns, rows), 18 + 10 + 14 + 3).header == ("name", "bound")


def test_without_a_width_cells_are_whole_and_columns_those_of_120() -> None:
    long = replace(_table(), rows=(("n" * 100, 1, "s" * 300, 17, "d", "f"),))
    grid = make_grid(long, None)
    assert grid.header == make_grid(long, 120).header == ALL
    assert grid.rows == (("n" * 100, "1 B", "s" * 300, "17", "d"),)
    assert max(map(len, make_grid(long, 120).rows[0])) < 100


@pytest.mark.parametrize("width", [None, 80])
def test_a_cell_of_a_million_characters_costs_no_more_than_it_is_long(width: int | None) -> None:
    """Nor does it widen the other rows."""
    rows = tuple((f"a.{number}", number, "{0,1}" * 200_000 if number == 7 else "", 1, "", "") for number in range(1000))
    grid = make_grid(replace(_table(), rows=rows), width)
    assert grid.width <= 240
    assert sum(len(cell) for row in grid.rows for cell in row) < 1_100_000


def test_a_sentence_is_wrapped_and_never_cut() -> None:
    columns = (Column("parameter"), Column("not_donated_because"))
    why = "no output has its shape and its sharding, so that its buffer cannot be taken over by any of them"
    grid = make_grid(Table("t", "T", columns, (("Arg_0.1", why),)), 50)
    assert grid.width <= 50
    assert grid.rows[0][1].replace("\n", " ") == why
    assert max(map(len, grid.rows[0][1].split("\n"))) <= grid.widths[1]


def test_a_word_that_is_longer_than_a_line_breaks_after_a_slash() -> None:
    path = "/home/user/models/transformer/layers.py"
    assert wrap(f"the file {path} and what follows", 24) == [
        "the file",
        "/home/user/models/",
        "transformer/layers.py",
        "and what follows",
    ]
    assert wrap("no " + "x" * 20, 8) == ["no", "xxxxxxxx", "xxxxxxxx", "xxxx"]
    assert wrap("x" * 9 + " and more", 8) == ["xxxxxxxx", "x and", "more"]  # what follows its end stands beside it
    assert wrap("two  blanks at an end ", 12) == ["two  blanks", "at an end"]
    assert wrap("", 12) == []


def test_a_slash_at_the_beginning_of_a_long_word_has_no_line_of_its_own() -> None:
    assert wrap("see /" + "a" * 20, 12) == ["see", "/" + "a" * 11, "a" * 9]
    assert wrap("https://" + "b" * 20, 18) == ["https://" + "b" * 10, "b" * 10]


@pytest.mark.parametrize(
    ("column", "raw_bytes", "header", "cell"),
    [
        (Column("operand_bytes", "bytes"), False, "operand", "2.00 KiB"),
        (Column("operand_bytes", "bytes"), True, "operand bytes", "2,048"),
        (Column("bytes_accessed", "bytes"), False, "accessed", "2.00 KiB"),
        (Column("bytes", "bytes"), False, "size", "2.00 KiB"),
        (Column("compute_s", "seconds"), False, "compute", "2048 s"),
        (Column("matmul_flops", "flops"), False, "matmul flops", "2.05 k"),
        (Column("trip_count", "count"), False, "trip count", "2,048"),
    ],
)
def test_a_unit_stands_in_the_heading_or_in_the_cells(column: Column, raw_bytes: bool, header: str, cell: str) -> None:
    grid = make_grid(Table("t", "T", (column,), ((2048,),)), 80, raw_bytes)
    assert (grid.header, grid.rows[0]) == ((header,), (cell,))


def test_text_takes_the_loss_and_figures_none() -> None:
    grid = make_grid(_table(), 18)
    assert grid.rows == (("all-…e.1", "2.00 KiB"), ("b", "1.00 KiB"))
    assert grid.total == ("total", "3.00 KiB")
    assert make_grid(_table(), 5).rows[0][1] == "2.00 KiB"


def test_labels_stand_in_a_column_of_numbers() -> None:
    columns = (Column("number", "number"), Column("bytes", "bytes", summed=True), Column("line", "number"))
    rows = tuple((number, 1024, 100 + number) for number in range(5))
    grid = make_grid(Table("params", "Parameters", columns, rows).top(2), 80)
    assert grid.rows == (("0", "1.00 KiB", "100"), ("1", "1.00 KiB", "101"), ("[3 more]", "3.00 KiB", ""))
    assert grid.total == ("total", "5.00 KiB", "")
    assert not grid.has_unknown


BYTES = Column("bytes", "bytes", summed=True)


def test_an_unknown_value_makes_its_sum_a_lower_bound() -> None:
    table = Table("t", "T", (Column("name"), BYTES), (("a", 1), ("b", None)))
    grid = make_grid(table, 80)
    assert grid.rows[1] == ("b", "?")
    assert grid.total == ("total", ">= 1 B")
    assert grid.has_unknown
    assert (table.total, table.sums) == ((None, None), (None, at_least(1, "a row is unknown")))


def test_nothing_known_bounds_nothing() -> None:
    assert make_grid(Table("t", "T", (Column("name"), BYTES), (("b", None),)), 80).total is None
    assert make_grid(Table("t", "T", (Column("name"), BYTES), (("a", -1), ("b", None))), 80).total == ("total", "?")


def _bounded() -> Table:
    """Return a table of loops: the trip count of the second is unknown, that of the third too, with a bound."""
    runs = Column("runs", "count", summed=True, bounded=True)
    rows = (("a", 3), ("b", None), ("c", at_least(2, "a loop")), ("d", 10))
    return Table("loops", "Loops", (Column("loop"), runs), rows)


def test_a_bound_stands_in_the_cell_of_the_unknown_value() -> None:
    grid = make_grid(_bounded(), 80)
    assert grid.header == ("loop", "runs")
    assert [row[1] for row in grid.rows] == ["3", "?", ">= 2", "10"]
    assert grid.total == ("total", ">= 15")  # 3 + 2 + 10
    assert grid.hidden == ()


def test_bounds_of_rows_that_are_cut() -> None:
    table = _bounded().top(1)
    assert make_grid(table, 80).rows == (("a", "3"), ("[3 more]", ">= 12"))
    assert make_grid(table, 80).total == ("total", ">= 15")
    assert table.flat().rows[1] == ("[3 more]", None, 12)  # raw values: the sum is unknown, its bound is not
    assert table.flat().total == (None, None, 15)


def test_no_total_where_its_columns_are_not_shown() -> None:
    columns = (Column("name"), Column("shape", width=40), Column("count", "count", summed=True, detail=3))
    table = Table("t", "T", columns, (("a", "f32[]", 3),))
    assert make_grid(table, 60).total is None
    assert make_grid(table, 80).total == ("total", "", "3")


def test_the_column_of_bounds() -> None:
    """A figure is declared once: scripts read two columns of it."""
    runs = Column("runs", "count", summed=True, detail=2, bounded=True, get=lambda item: item)
    table = TableSpec("t", "T").with_columns(runs).of([3, at_least(4, "a loop")]).flat()
    column = table.columns[1]
    assert [(column_.name, column_.bound) for column_ in table.columns] == [("runs", ""), ("runs_lower_bound", "lower")]
    assert (column.unit, column.summed, column.optional, column.detail) == ("count", True, True, 9)
    assert list(table.rows) == [(3, 3), (None, 4)]


def test_no_total_without_rows_or_sums() -> None:
    assert make_grid(Table("t", "T", (Column("name"), Column("n", "count", summed=True)), ()), 80).total is None
    assert make_grid(Table("t", "T", (Column("name"), Column("n", "count")), (("a", 1),)), 80).total is None


def test_characters_that_need_no_table_take_one_cell() -> None:
    narrow = [chr(code) for code in range(0x3000) if NARROW.fullmatch(chr(code))]
    assert {"×", "µ", "…", "–", "→"} <= set(narrow)
    assert {character for character in narrow if cell_len(character) != 1} == set()


def test_values_take_several_lines_and_are_whole() -> None:
    """A part breaks behind a comma; one that is longer than a line behind a mark in its second half, else anywhere."""
    value = "(f32[1024,512]{1,0}, s32[]), get-tuple-element.1048576, " + "x" * 40
    columns = (Column("area"), Column("name"), Column("was", width=18, wraps=True), Column("bytes", "bytes"))
    table = Table("t", "T", columns, (("collectives", "n" * 40, value, 7),))
    (row,) = make_grid(table, 60).rows
    assert row[0] == "collectives"
    assert "…" in row[1]
    assert row[2].replace("\n", "").replace(" ", "") == value.replace(" ", "")
    assert row[2].splitlines()[0] == "(f32[1024,512]{1,0},"[: len(row[2].splitlines()[0])]
    assert max(map(len, row[2].splitlines())) <= 60 - 11 - 8 - 3 - 6


def test_no_column_that_tells_rows_apart_makes_a_page_too_wide() -> None:
    columns = (Column("name"), Column("bytes", "bytes"), Column("scope", width=28, detail=3), Column("phase", detail=3))
    sized = (("layer/attention", "forward"), ("layer/mlp", "backward"), ("layer/norm", "forward"))
    rows = tuple(("a", 100 << 20, scope, phase) for scope, phase in sized)
    table = Table("t", "t", columns, rows)
    assert make_grid(table, 60).header == ("name", "size", "scope")  # tells three rows apart
    assert make_grid(table, 25).header == ("name", "phase")  # tells two apart, and fits
