"""Depth, time and rows of inline computations and operands. Their figures are in tests/cases/hlo/read/inline_*.hlo."""

from __future__ import annotations

import pytest

from benchmarks.shapes import branches_in_place
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.parser import MAX_DEPTH, nested_computations, with_nested_operands
from tests.hlo.reading import module
from tests.linear_time import assert_linear


@pytest.mark.parametrize(
    ("tail", "rows"),
    [
        ("%a, %b), x={ c(d) }", [("", "n", "f32[] add", "%a, %b), x={ c(d) }")]),
        (
            "f32[] constant(6), b)",
            [("", "n.operand-0", "f32[] constant", "6)"), ("", "n", "f32[] add", "f32[] %n.operand-0, b)")],
        ),
        ("b, sqrt(a)), x=1", [("", "n.operand-1", " sqrt", "a)"), ("", "n", "f32[] add", "b, %n.operand-1), x=1")]),
        (
            "f32[] sqrt(f32[] constant(4)), f32[2]{0:T(8)} iota())",
            [
                ("", "n.operand-0.operand-0", "f32[] constant", "4)"),
                ("", "n.operand-0", "f32[] sqrt", "f32[] %n.operand-0.operand-0)"),
                ("", "n.operand-1", "f32[2]{0:T(8)} iota", ")"),
                ("", "n", "f32[] add", "f32[] %n.operand-0, f32[2]{0:T(8)} %n.operand-1)"),
            ],
        ),
        ("(f32[], (s32[])) %a, f32[]{:T(128)} b)", [("", "n", "f32[] add", "(f32[], (s32[])) %a, f32[]{:T(128)} b)")]),
        ("f32[] 6(b))", [("", "n", "f32[] add", "f32[] 6(b))")]),
    ],
)
def test_inline_operands_become_rows_of_their_own(tail: str, rows: list[tuple[str, str, str, str]]) -> None:
    assert with_nested_operands(("", "n", "f32[] add", tail)) == rows


def test_the_depth_of_inline_operands_is_limited() -> None:
    tail = "negate(" * 10_000 + "%x" + ")" * 10_000 + ")"
    assert len(with_nested_operands(("", "n", "f32[] negate", tail))) == MAX_DEPTH + 1


def test_the_depth_of_inline_computations_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level is read once per level around it, which is quadratic without a limit."""
    read: list[int] = []
    parse = parser.parse_instruction

    def counting(text: str, start: int, *, is_final: bool = True) -> parser.ParsedInstruction:
        parsed = parse(text, start, is_final=is_final)
        read.append(parsed.end - start)
        return parsed

    monkeypatch.setattr(parser, "parse_instruction", counting)
    depth = 300
    begin = "".join(f"r{i} = f32[4] call(p{i}), to_apply={{ p{i + 1} = f32[4] parameter(0)\n" for i in range(depth))
    text = f"HloModule m\n\nENTRY e {{\n p0 = f32[4] parameter(0)\n{begin}ROOT q = f32[4] negate(p{depth})\n" + "}" * (
        depth + 1
    )
    parsed = module(text + "\n")
    assert parsed.computation_count == MAX_DEPTH + 2
    assert [problem.code for problem in parsed.problems] == ["HI001"]
    assert sum(read) < (MAX_DEPTH + 3) * len(text)


def test_many_branches_in_one_instruction_take_linear_time() -> None:
    """Each branch has the line of its opening brace."""

    def read(count: int) -> None:
        tail = branches_in_place(count).partition("conditional(")[2].rpartition("\n}")[0]
        nested = list(nested_computations(("", "r", "f32[] conditional", tail), 5))
        assert [computation.line for computation in nested] == list(range(5, 5 + count))

    assert_linear(read, 8_000)
