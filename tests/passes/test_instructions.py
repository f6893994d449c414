"""The neighbours of instructions of programs with many. Small programs are in tests/cases/passes/instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.passes import instructions
from tests.cases.case import cases_of

DATA = Path(__file__).parents[1] / "data"

STEP = next(cases_of(Path(__file__).parents[1] / "cases/passes/instructions/neighbors.hlo")).text


def _rows(text: str) -> dict[str, dict[str, object]]:
    table = hlo_inspect.inspect(text, passes=("top", "instructions")).table("instructions")
    return {str(row["name"]): dict(row) for row in table.records()}


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
