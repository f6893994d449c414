"""The neighbours of instructions, in modules whose edges are counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.passes import instructions

DATA = Path(__file__).parents[1] / "data"

STEP = """HloModule step, is_scheduled=true

%body (arg: (s32[], f32[8])) -> (s32[], f32[8]) {
  %arg = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %x = f32[8] get-tuple-element(%arg), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %twice = f32[8] add(%x, %x), metadata={op_name="jit(f)/while/body/add" source_file="f.py" source_line=7}
  ROOT %out = (s32[], f32[8]) tuple(%next, %twice)
}

%cond (arg.1: (s32[], f32[8])) -> pred[] {
  %arg.1 = (s32[], f32[8]) parameter(0)
  %i.1 = s32[] get-tuple-element(%arg.1), index=0
  %four = s32[] constant(4)
  ROOT %less = pred[] compare(%i.1, %four), direction=LT
}

%fused (p: f32[8], q: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  %q = f32[8] parameter(1)
  ROOT %m = f32[8] multiply(%p, %q)
}

ENTRY %main (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8] parameter(0)
  %b = f32[8] parameter(1)
  %zero = s32[] constant(0)
  %shaped = f32[8] bitcast(%a)
  %start = (s32[], f32[8]) tuple(%zero, %shaped)
  %loop = (s32[], f32[8]) while(%start), condition=%cond, body=%body
  %done = f32[8] get-tuple-element(%loop), index=1
  ROOT %product = f32[8] fusion(%done, %b), kind=kLoop, calls=%fused
}
"""


def _rows(text: str) -> dict[str, dict[str, object]]:
    table = hlo_inspect.inspect(text, passes=("top", "instructions")).table("instructions")
    return {str(row["name"]): dict(row) for row in table.records()}


def test_instructions_that_only_forward_values_are_no_step() -> None:
    rows = _rows(STEP)
    assert list(rows["product"].values()) == [
        "product", "fusion", "f32[8]", "loop * b", "loop, b", "(returned)", "main", "", "", 34,
        "ROOT %product = f32[8] fusion(%done, %b), kind=kLoop, calls=%fused",
    ]  # fmt: skip
    assert rows["a"]["used_by"] == "loop"  # through a bitcast and a tuple
    assert rows["b"]["used_by"] == "product"
    assert rows["loop"]["operands"] == "zero, a"  # through the tuple, as a is used by the loop
    assert rows["loop"]["used_by"] == "product"
    assert rows["twice"]["operands"] == "arg"
    assert rows["twice"]["used_by"] == "(returned)"
    assert (rows["twice"]["op_name"], rows["twice"]["source"]) == ("jit(f)/while/body/add", "f.py:7")
    assert not {"shaped", "start", "done", "zero", "i", "x", "p", "q", "m"} & rows.keys()


def test_operands_and_users_have_the_same_steps() -> None:
    text = """HloModule m
ENTRY %e (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8] parameter(0)
  %b = f32[8] parameter(1)
  %x = f32[8] negate(%a)
  %t = (f32[8], f32[8]) tuple(%x, %b)
  %kept = (f32[8], f32[8]) opt-barrier(%t)
  %first = f32[8] get-tuple-element(%kept), index=0
  %y = f32[8] abs(%first)
  %call = f32[8] custom-call(%kept, %y), custom_call_target="f"
  ROOT %z = f32[8] add(%y, %call)
}
"""
    rows = _rows(text)
    neighbours = {name: (row["operands"], row["used_by"]) for name, row in rows.items()}
    assert neighbours == {
        "a": ("", "x"),
        "b": ("", "call"),  # an element that abs does not read
        "x": ("a", "call, y"),
        "y": ("x", "call, z"),
        "call": ("x, b, y", "z"),
        "z": ("y, call", "(returned)"),
    }


def test_the_first_of_many_users_are_named() -> None:
    users = "\n".join(f"  %n{number} = f32[8] negate(%a)" for number in range(20))
    names = ", ".join(f"%n{number}" for number in range(20))
    shapes = ", ".join(["f32[8]"] * 20)
    text = f"HloModule m\nENTRY %e (a: f32[8]) -> ({shapes}) {{\n  %a = f32[8] parameter(0)\n{users}\n"
    text += f"  ROOT %t = ({shapes}) tuple({names})\n}}\n"
    used = str(_rows(text)["a"]["used_by"])
    assert used == ", ".join(f"n{number}" for number in range(16)) + ", …"


def test_neighbours_through_many_tuples_stay_few() -> None:
    """Each tuple holds the one before it behind 16 others, and all of them are read at the end."""
    lines = ["  %a = f32[8] parameter(0)", "  %t0 = (f32[8]) tuple(%a)"]
    for level in range(1, 60):
        names = [f"%x{level}_{number}" for number in range(16)]
        lines += [f"  {name} = f32[8] negate(%a)" for name in names]
        lines.append(f"  %t{level} = (f32[8]) tuple({', '.join(names)}, %t{level - 1})")
    lines += ['  ROOT %r = f32[8] custom-call(%t59), custom_call_target="f"']
    text = "HloModule m\nENTRY %e (a: f32[8]) -> f32[8] {\n" + "\n".join(lines) + "\n}\n"
    rows = _rows(text)
    assert rows["x1_0"]["used_by"] == "r"
    assert rows["r"]["operands"] == ", ".join(f"x59_{number}" for number in range(16)) + ", …"


MANY = """HloModule m
ENTRY %e (a: f32[8], b: f32[1024]) -> (f32[8], f32[1024], f32[8]) {
  %a = f32[8] parameter(0)
  %b = f32[1024] parameter(1)
  %small = f32[8] negate(%a)
  %large = f32[1024] negate(%b)
  %other = f32[8] add(%a, %a)
  ROOT %t = (f32[8], f32[1024], f32[8]) tuple(%small, %large, %other)
}
"""


def test_loops_and_the_largest_of_many_neighbours_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "MOST_INSTRUCTIONS", 4)
    # large moves 8192 bytes, and other of XLA's model 96: it reads its operand twice; small 64
    assert list(_rows(MANY)) == ["a", "b", "large", "other"]
    monkeypatch.setattr(instructions, "MOST_INSTRUCTIONS", 5)
    assert _rows(STEP).keys() == {"a", "b", "arg", "arg.1", "loop"}


def test_a_note_says_that_some_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def notes() -> list[str]:
        all_notes = hlo_inspect.inspect(MANY, passes=("instructions",)).notes
        return [note for note in all_notes if note.startswith("instructions: ")]

    assert not notes()
    monkeypatch.setattr(instructions, "MOST_INSTRUCTIONS", 4)
    assert notes() == ["instructions: 4 of 5 are listed: parameters, loops, and the largest by bytes accessed"]


@pytest.mark.parametrize(
    "name", ["cpu/adamw_step.after.txt", "gpu/gathered_matmul.after.txt", "cpu/number_operators.before.txt"]
)
def test_the_text_of_an_instruction_is_its_line(name: str) -> None:
    path = DATA / name
    lines = path.read_text(encoding="utf-8").splitlines()
    records = hlo_inspect.inspect(path, ["instructions"]).table("instructions").records()
    assert len(records) > 5
    assert [record["text"] for record in records] == [lines[int(str(record["line"])) - 1].strip() for record in records]


def test_the_end_of_a_long_line_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "LONGEST_LINE", 20)
    texts = [record["text"] for record in hlo_inspect.inspect(STEP, ["instructions"]).table("instructions").records()]
    assert "%a = f32[8] paramete…" in texts
