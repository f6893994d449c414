"""The text of shapes: its end, and its faults."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.values.shape_text import MAX_NESTING, ShapeError, parse_layout, parse_shape, scan_shape
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("f32[2]{0} negate(", 9),
        ("f32[2] negate(", 6),
        ("f32[] {", 5),  # a brace that opens a computation
        ("f32[] {\n  a = ", 5),
        ("f32[2] { ROOT x", 6),
        ("f32[]{:T(128)} {", 14),
        ("f32[] {0} {", 9),
        ("(f32[2]{0}, s32[]) {", 18),
        ("b(f32[4]{0}) custom-call", 12),
    ],
)
def test_end_of_a_shape(text: str, end: int) -> None:
    assert scan_shape(text, 0)[1] == end
    assert scan_shape("  " + text, 2)[1] == end + 2


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "expected a shape"),
        ("32[2]", 0, "expected a shape"),
        ("f32", 0, "expected a shape"),
        ("f32[2", 0, "expected a shape"),
        ("(f32[2]", 7, "expected ',' or ')'"),
        ("(f32[2] f32[3])", 8, "expected ',' or ')'"),
        ("(f32[2],)", 8, "expected a shape"),
        ("b(f32[2]", 8, "buffer"),
        ("f99[2]", 0, "unknown element type 'f99'"),
        ("(f32[2], tuple[3])", 9, "unknown element type 'tuple'"),
        ("f32[2,]", 4, "not a dimension"),
        ("f32[-1]", 4, "not a dimension"),
        ("f32[a]", 4, "not a dimension"),
        ("f32[<=?]", 4, "not a dimension"),
        ("f32[\u0663]", 4, "not a dimension"),  # a digit, but not of HLO
        ("f32[99999999999999999999]", 4, "not a dimension"),
        ("f32[2]{0} f32[3]", 10, "unexpected text"),
        ("f32[2]{0,x}", 0, "not a list of integers"),
        ("f32[2]{0:T(0)}", 0, "a tile has size 0"),
        ("(" * (MAX_NESTING + 2), MAX_NESTING + 1, "nested more than 100 deep"),
    ],
)
def test_malformed_shapes(text: str, position: int, message: str) -> None:
    with pytest.raises(ShapeError, match=message.replace("(", r"\(").replace(")", r"\)")) as caught:
        parse_shape(text)
    assert caught.value.position == position


def test_tuples_may_nest_to_the_limit() -> None:
    shape = parse_shape("(" * MAX_NESTING + "f32[2]" + ")" * MAX_NESTING)
    assert array_leaves(shape) == [((0,) * MAX_NESTING, ArrayShape("f32", (2,)))]


def test_a_very_long_number_in_a_shape_is_refused() -> None:
    with pytest.raises(ShapeError):
        parse_shape(f"f32[{'9' * 10_000}]")
    with pytest.raises(ShapeError):
        parse_layout(f"0:S({'9' * 10_000})")
