"""Whole computations found many at a time."""

from __future__ import annotations

from hlo_inspect.hlo.blocks import find_blocks

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
"""
MAIN = 'ENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}, execution_thread="t"\n'


def names(text: str, *, balanced: bool = True) -> list[str]:
    return [block.name for block in find_blocks("\n" + text, 1, balanced=balanced)]


def test_extents_and_lines() -> None:
    add, main = find_blocks("\n" + ADD + "\n\n" + MAIN + "rest\n", 1, balanced=True)
    assert (add.name, add.is_entry, add.line, len(add.rows)) == ("add", False, 0, 3)
    assert (main.name, main.is_entry, main.line, len(main.rows)) == ("main", True, 7, 1)  # five lines and two blank ones
    assert add.rows[2] == ("ROOT ", "c", "f32[] add", "%a, %b)")
    assert ("\n" + ADD)[add.behind :] == ""


def test_it_stops_where_something_else_stands() -> None:
    assert names(ADD + "oops\n" + MAIN) == ["add"]
    assert names("oops\n" + ADD) == []
    assert names(ADD + MAIN.removesuffix('}, execution_thread="t"\n')) == ["add"]


def test_a_line_that_is_no_row_ends_it_before_its_computation() -> None:
    assert names(ADD + MAIN.replace("  ROOT", "  /* a comment */\n  ROOT")) == ["add"]
    assert names(ADD.replace("  %b", "  oops\n  %b") + MAIN) == []


def test_unclosed_brackets_and_second_instructions_on_a_line() -> None:
    assert names(ADD + MAIN.replace("parameter(0)", "parameter((0)")) == ["add"]
    assert names(ADD + MAIN.replace("parameter(0)", "parameter((0)"), balanced=False) == ["add", "main"]
    assert names(ADD + MAIN.replace("parameter(0)", "parameter(0) q = f32[] constant(1)")) == ["add"]
