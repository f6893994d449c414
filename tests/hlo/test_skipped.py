"""What is noted of computations that are skipped."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.module import Module, Wants
from hlo_inspect.hlo.skipped import skip, small_root

ADD = """%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}
"""
LESS = """cond {
  i = s32[] parameter(0)
  n = s32[] constant(4), metadata={}
  ROOT less = pred[] compare(i, n), direction=LT
}
"""
LARGE = "%large () -> f32[] {\n" + "  %x = f32[] parameter(0)\n" * 256 + "  ROOT %s = f32[] tanh(%x)\n}\n"
LAST = "%last (y: f32[2]) -> f32[2] {\n  ROOT %y = f32[2] parameter(0)\n}\n"


def noted(text: str, *, loops: bool, line: int = 10) -> Module:
    module = Module(Header("m"), "path", 1, Wants(loops=loops))
    text = "\n" + text + LAST
    assert text[skip(module, Heads(frozenset()), text, 1, len(text), line) :] == LAST
    assert module.computation_count == text.count("\n}") - 1
    return module


def test_roots_of_small_computations() -> None:
    module = noted(ADD + LARGE + "\n" + LESS, loops=False)
    assert module.root_opcodes == {"add": "add", "cond": "compare"}
    assert module.computations == {}


def test_parts_of_loops() -> None:
    module = noted(ADD + "\n" + LESS + ADD, loops=True)
    assert list(module.computations) == ["cond"]
    cond = module.computations["cond"]
    assert (cond.line, cond.root_opcode, len(cond.instructions)) == (16, "compare", 0)
    assert {(i.name, i.line, i.is_root) for i in cond.scalars.values()} == {
        ("i", 17, False),
        ("n", 18, False),
        ("less", 19, True),
    }


def test_a_second_computation_of_a_name_changes_nothing() -> None:
    other = LESS.replace("constant(4)", "constant(9)")
    module = noted(LESS + other, loops=True)
    assert module.computations["cond"].scalars["n"].operand_text == "4"


@pytest.mark.parametrize("between", ["\n", "\n\n\n", ', execution_thread="t"\n\n'])
def test_what_may_stand_between_computations(between: str) -> None:
    assert noted(ADD.rstrip("\n") + between, loops=False).root_opcodes == {"add": "add"}


@pytest.mark.parametrize(
    "text", [LAST, ADD, ADD + "oops\n", ADD + "ENTRY " + LAST, ADD + "  ROOT %y = f32[] negate(%add)\n}\n"]
)
def test_what_no_computation_follows_is_not_passed_over(text: str) -> None:
    """A brace may close a computation in place."""
    module = Module(Header("m"), "path", 1, Wants())
    assert skip(module, Heads(frozenset()), "\n" + text, 1, len(text) + 1, 1) == 1
    assert module.computation_count == 0


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        ("  ROOT %s = f32[] add(%x, %y)\n  %t = f32[] tanh(%s)\n", "add"),
        ("  %s = f32[] add(%x, %y)\n  %t = f32[] tanh(%s)\n", None),
        ("  %x = f32[] parameter(0)\n" * 16 + "  ROOT %t = f32[] tanh(%x)\n", None),
    ],
)
def test_the_root_of_few_lines(lines: str, root: str | None) -> None:
    assert small_root("\n" + lines, 1, len(lines) + 1) == root
