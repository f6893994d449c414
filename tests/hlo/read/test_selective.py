"""Selective reading: skipped text, picked lines, and facts noted about the rest."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.cursor import Span
from hlo_inspect.hlo.read.open_computation import read_skipped
from hlo_inspect.hlo.read.selective import Selection, small_root
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.wants import Wants

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


def selection_of(module: Module, *holders: str) -> Selection:
    return Selection(module, set(holders))


def module_after_skipping(text: str, *, loops: bool, line: int = 10) -> Module:
    module = Module(Header("m"), "path", 1, Wants(frozenset({"all-reduce"}), loops=loops))
    text = "\n" + text + LAST
    assert text[selection_of(module).skip(text, 1, line)[0] :] == LAST
    assert module.computation_count == text.count("\n}") - 1
    return module


def test_scalar_roots_of_skipped_computations_are_noted() -> None:
    module = module_after_skipping(ADD + LARGE + "\n" + LESS, loops=False)
    assert module.root_opcodes == {"add": "add", "large": "tanh", "cond": "compare"}
    assert module.computations == {}


def test_possible_loop_conditions_are_read_on_demand() -> None:
    module = module_after_skipping(ADD + "\n" + LESS + LARGE.replace("f32[]", "s32[]"), loops=True)
    assert module.root_opcodes == {"add": "add", "large": "tanh"}
    assert (module.computations, module.root_opcode("cond"), module.root_opcode("add")) == ({}, "compare", "add")
    read_skipped(module)
    assert list(module.computations) == ["cond"]
    cond = module.computations["cond"]
    assert (cond.line, cond.root_opcode, len(cond.instructions)) == (16, "compare", 0)
    assert {(i.name, i.line, i.is_root) for i in cond.scalars.values()} == {
        ("i", 17, False),
        ("n", 18, False),
        ("less", 19, True),
    }


def test_the_first_of_two_skipped_computations_of_a_name_is_kept() -> None:
    other = LESS.replace("constant(4)", "constant(9)")
    module = module_after_skipping(LESS + other, loops=True)
    read_skipped(module)
    assert module.computations["cond"].scalars["n"].literal == "4"


@pytest.mark.parametrize("between", ["\n", "\n\n\n", ', execution_thread="t"\n\n'])
def test_text_between_computations_is_skipped(between: str) -> None:
    assert module_after_skipping(ADD.rstrip("\n") + between, loops=False).root_opcodes == {"add": "add"}


@pytest.mark.parametrize(
    "text", [LAST, ADD, ADD + "oops\n", ADD + "ENTRY " + LAST, ADD + "  ROOT %y = f32[] negate(%add)\n}\n"]
)
def test_text_is_not_skipped_unless_a_computation_follows(text: str) -> None:
    """The last brace may close an inline computation."""
    module = Module(Header("m"), "path", 1, Wants(frozenset({"all-reduce"})))
    assert selection_of(module).skip("\n" + text, 1, 1)[0] == 1
    assert module.computation_count == 0


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        ("  ROOT %s = f32[] add(%x, %y)\n  %t = f32[] tanh(%s)\n", "add"),
        ("  %s = f32[] add(%x, %y)\n  %t = f32[] tanh(%s)\n", None),
        ("  %x = f32[] parameter(0)\n" * 16 + "  ROOT %t = f32[] tanh(%x)\n", None),
    ],
)
def test_the_root_of_a_short_computation(lines: str, root: str | None) -> None:
    assert small_root("\n" + lines, 1, len(lines) + 1) == root


BODY = """
  %p = f32[8] parameter(0)
  %f = f32[8] fusion(%p), kind=kLoop, calls=%holder
  %g = f32[8] fusion(%f), kind=kLoop, calls=%other
  %c = f32[8] custom-call(%g), custom_call_target="wanted"
  %d = f32[8] custom-call(%c), custom_call_target="unwanted!"
  %a = f32[8] all-reduce(%d), to_apply=%add
  ROOT %r = f32[8] negate(%a)
"""


def picked_names(wants: Wants, *holders: str, end: int | None = None, text: str = BODY) -> list[str] | None:
    """Return the names of the rows that are picked."""
    selection = selection_of(Module(Header("m"), "path", 1, wants), *holders)
    picked = selection.pick(Span(text, 1, len(text) if end is None else end, 2))
    return [row[1] for _, row in picked] if picked is not None else None


def test_opcodes_targets_and_callers_are_picked() -> None:
    wants = Wants(frozenset({"all-reduce-start"}), targets=frozenset({'"wanted"'}))
    before = BODY.index("  %a")
    assert picked_names(wants) == ["c", "a"]  # an all-reduce may be half of an asynchronous pair
    assert picked_names(wants, end=before) == []  # text with custom calls alone is not searched
    assert picked_names(wants, "holder") == ["f", "c", "a"]
    assert picked_names(wants, "holder", end=before) == ["f", "c"]
    assert picked_names(Wants()) == []


@pytest.mark.parametrize(
    "line",
    [
        "  %a = f32[8] all-reduce(%d),",
        "  all-reduce( oops",
        '  %x = f32[] negate(%p), x="',
        "  %x = f32[] negate(%p) /*",
    ],
)
def test_ambiguous_lines_are_left_to_the_parser(line: str) -> None:
    assert picked_names(Wants(frozenset({"all-reduce"})), text=f"\n{line}{BODY}") is None


@pytest.mark.parametrize("wants", [Wants(), Wants(frozenset({"all-reduce"}))])
def test_an_open_comment_is_left_to_the_parser(wants: Wants) -> None:
    assert picked_names(wants, text="\n  %x = f32[] negate(%p) /*\n") is None
    assert picked_names(wants, text="\n  %x = f32[] negate(%p) /* */\n") == []


def test_an_escaped_quote_does_not_end_a_string() -> None:
    wants = Wants(frozenset({"all-reduce"}))
    assert picked_names(wants, text='\n  %x = f32[] negate(%p), x="\\\\\\""' + BODY) == ["a"]
    assert picked_names(wants, text='\n  %x = f32[] negate(%p), x="\\\\\\"' + BODY) is None


def test_a_caller_of_a_wanted_instruction_is_not_skipped() -> None:
    module = Module(Header("m"), "path", 1, Wants(frozenset({"all-reduce"})))
    text = "\n" + ADD + "\n" + LAST.replace("parameter(0)", "fusion(%x), calls=%add") + "\n" + LAST
    assert text[selection_of(module).skip(text, 1, 1)[0] :] == LAST
    assert text[selection_of(module, "add").skip(text, 1, 1)[0] :].startswith("%last")
    assert text[selection_of(module, "add").skip(text, 1, 1)[0] :] != LAST
