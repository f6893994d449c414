"""Heads are parsed once and sorted."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.heads import Heads, holds_scalar
from hlo_inspect.hlo.shape_text import parse_shape


@pytest.mark.parametrize(
    "shape",
    ["s32[]", "u64[]", "pred[]", "s4[]", "s32[]{:T(128)S(6)}", "(f32[8]{0}, s32[])", "((f32[], (pred[])), f32[])", "(u32[])"],
)
def test_shapes_that_hold_an_integer_scalar(shape: str) -> None:
    assert holds_scalar(parse_shape(shape))


@pytest.mark.parametrize(
    "shape", ["f32[]", "bf16[]", "s32[1]", "s32[0]", "token[]", "c64[]", "()", "(s32[2], f32[])", "opaque[]"]
)
def test_shapes_that_hold_none(shape: str) -> None:
    assert not holds_scalar(parse_shape(shape))
    assert not holds_scalar(None)


def test_heads_are_sorted() -> None:
    heads = Heads(frozenset({"while", "add"}))
    texts = [
        "s32[] add",
        "(s32[], f32[2]{0}) while",
        "f32[2]{0} while",
        "f32[2]{0} tanh",
        "x32[] add",
        "s32[] frob",
        "f32[2 add",
        "(f32[2]{0}, f32[2]{1,0}) tuple",
    ]
    found = [heads[text] for text in texts]
    assert [head.opcode for head in found] == ["add", "while", "while", "tanh", "add", "frob", "add", "tuple"]
    assert heads.wanted == {"s32[] add", "(s32[], f32[2]{0}) while", "f32[2]{0} while", "x32[] add"}
    assert heads.scalar == {"s32[] add", "(s32[], f32[2]{0}) while", "s32[] frob"}
    assert heads.unreadable == {"f32[2 add"}
    assert heads.unknown == {
        "x32[] add": ("HI006", "unknown element type in x32[]"),
        "s32[] frob": ("HI004", "unknown opcode 'frob'"),
        "(f32[2]{0}, f32[2]{1,0}) tuple": (
            "HI013",
            "a layout that does not number each dimension in (f32[2]{0}, f32[2]{1,0})",
        ),
    }
    assert heads["s32[] add"] is found[0]
