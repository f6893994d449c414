"""Whole computations found many at a time."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.regions import Region, find_region

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
"""
MAIN = 'ENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}, execution_thread="t"\n'


def region(text: str, limit: int = 1 << 20) -> Region | None:
    return find_region("\n" + text, 1, limit)


def test_computations_and_lines() -> None:
    text = "\n" + ADD + "\n" + MAIN + "rest\n"
    found = find_region(text, 1, len(text))
    assert found is not None
    assert found.blocks() == [("add", False, 1, 4, 0), ("main", True, 5, 6, 6)]
    assert found.items[3] == ("ROOT ", "c", "f32[] add", "%a, %b)")
    assert text[found.end :] == "rest\n"
    assert found.lines == text.count("\n", 1, found.end) == 9
    assert found.has_entry
    assert found.is_regular
    assert found.holding({"f32[] parameter"}) == {0}
    assert found.holding({"f32[4]{0} parameter", "f32[] add"}) == {0, 1}


def test_it_ends_before_its_limit_but_holds_one_computation() -> None:
    text = ADD + "\n" + MAIN
    assert [len(found) for found in (region(text, limit) for limit in (3, len(ADD) + 5, 1 << 20)) if found] == [1, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "oops\n" + ADD,
        ADD + "oops\n\n" + MAIN,
        ADD + "\noops\n" + MAIN,
        ADD + MAIN,  # no line between them
        ADD.replace("  %b", "  oops\n  %b") + "\n" + MAIN,
        ADD.replace("  %b", "\n  %b") + "\n" + MAIN,
        ADD.replace("  %b", "  // a comment\n  %b") + "\n" + MAIN,
        ADD.removesuffix("}\n") + "\n" + MAIN,
        ADD.replace("%c = f32[]", "%c == f32[]") + "\n" + MAIN,
        ADD + "\n" + MAIN.replace("parameter(0)", "parameter((0)"),
        ADD + "\n" + MAIN.replace("parameter(0)", "parameter(0) q = f32[] constant(1)"),
        ADD + MAIN.replace(" parameter(0)", " negate(%p\n)"),
        ADD + "\n" + MAIN.replace("ROOT", "ENTRY"),
        ADD + "\n" + MAIN.replace("ENTRY", "ROOT"),
        ADD + "oops\n" + MAIN,
        ADD + "\n" + MAIN.replace("(p: f32[4]) -> f32[4]", "(p: f32[4])"),
        ADD + "\n" + MAIN.replace("parameter(0)", "map(%p), to_apply={\n  %x = f32[] parameter(0)\n}"),
        ADD + "\n" + MAIN.replace("parameter(0)", 'parameter(0), metadata={op_name="x\n  %y = f32[] negate(%p)"}'),
        "",
        "\n",
        "}\n",
    ],
)
def test_what_printers_do_not_write(text: str) -> None:
    assert region(text) is None


@pytest.mark.parametrize("root", [("ROOT ", ""), ("  %b", "  ROOT %b"), ("  %a", "  ROOT %a")])
def test_computations_without_one_root_are_not_regular(root: tuple[str, str]) -> None:
    found = region(ADD.replace(*root) + "\n" + MAIN)
    assert found is not None
    assert not found.is_regular
