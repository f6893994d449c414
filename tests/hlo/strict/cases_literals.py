"""Constants."""

from __future__ import annotations

from collections.abc import Iterable

from tests.hlo.strict.cases import Case, in_entry


def constants(rows: Iterable[tuple[str, str, str, str]]) -> list[Case]:
    return in_entry(
        "HI014",
        ((f"c = {shape} constant({good})", f"c = {shape} constant({bad})", text) for shape, good, bad, text in rows),
    )


NESTING = constants(
    [
        ("f32[]", "1", "»{1}", "nested deeper than the 0 dimensions"),
        ("f32[2]", "{1, 2}", "{1, 2, »3}", "more elements than the 2 of f32[2]"),
        ("f32[2]", "{1 2}", "{1»}", "expected 2 elements of f32[2], found 1"),
        ("f32[2]", "{...}", "{»{1,2}}", "nested deeper than the 1 dimensions"),
        ("f32[2,2]", "{{1,2},{3,4}}", "{»1,2,3,4}", "expected 2 levels of braces"),
        ("f32[2,2]", "{{1,2},{3,4}}", "{{1,2},{3»}}", "found 1"),
        ("f32[2,2]", "{...}", "{{»...},{...}}", "stands for all of an array"),
        ("f32[2,0]", "{{},{}}", "{{},{},»{}}", "more elements than the 2"),
        ("f32[]", "1", "»", "expected a number"),
        ("s32[2]", "{,1,,2,}", "{1,2»;}", "expected an integer"),
    ]
)
VALUES = constants(
    [
        ("pred[2]", "{true, 0}", "{true, »0.5}", "expected an integer"),
        ("s32[]", "1", "»true", "s32 has no truth values"),
        ("s32[]", "1", "»1.5", "expected an integer"),
        ("s32[]", "-2147483648", "»-2147483649", "out of the range of s32"),
        ("u8[]", "255", "»256", "256 is out of the range of u8"),
        ("u32[]", "0", "»-1", "-1 is out of the range of u32"),
        ("u64[]", "-1", "»18446744073709551616", "expected an integer"),
        ("s4[2]", "{-8,7}", "{-8,»8}", "8 is out of the range of s4"),
        ("u1[]", "1", "»2", "2 is out of the range of u1"),
        ("f16[]", "65519.9", "»65520", "65520 is out of the range of f16"),
        ("bf16[]", "3.39e38", "»3.4e38", "3.4e38 is out of the range of bf16"),
        ("f32[]", "3.4028235e38", "»3.5e38", "out of the range of f32"),
        ("f64[]", "1e308", "»1.8e308", "out of the range of f64"),
        ("f8e4m3fn[]", "464", "»465", "465 is out of the range of f8e4m3fn"),
        ("f8e5m2[]", "61439", "»61440", "out of the range of f8e5m2"),
        ("f8e4m3b11fnuz[]", "30", "»31", "out of the range"),
        ("f8e8m0fnu[]", "1", "»0", "0 is out of the range of f8e8m0fnu"),
        ("f4e2m1fn[]", "700", "»a", "expected a number"),
        ("f32[]", "-nan(0x7fffff)", "»nan(0x800000)", "no NaN of this payload"),
        ("bf16[]", "nan(0x7f)", "»nan(0x3ff)", "no NaN of this payload"),
        ("f8e4m3fn[]", "nan", "»nan(0x1)", "no NaN of this payload"),
        ("f64[]", "nan(0x01)", "»nan(0x0)", "no NaN of this payload"),
        ("f32[3]", "{inf, -inf, 5.}", "{inf, -inf, ».5}", "expected a number"),
        ("c64[]", "(1, -2.5)", "»1", "expected '('"),
        ("c64[2]", "{(1,2), (3,4)}", "{(1,2), (3»)}", "expected ','"),
        ("c64[]", "(1,2)", "(»1e100,2)", "out of the range of f32"),
        ("(f32[], s32[])", "(1, 2)", "(1»)", "expected ','"),
        ("(f32[], s32[])", "()", "(1, »2.5)", "expected an integer"),
        ("f32[2,2]{0,1}", "{{1,2},{3,4}}", "{{1,2},{3,»a}}", "expected a number"),
    ]
)
LAYOUTS = in_entry(
    "HI014",
    [
        ("c = f32[2,2]{0,1} constant({...})", "c = f32[2,2]{0,0} constant(»{...})", "does not number each dimension"),
        ("c = f32[] constant(1)", "c = token[] constant(»1)", "there are no literals of token[]"),
        (
            'q = f32[] custom-call(), custom_call_target="a", literal=(s32[] 1, f32[] 2)',
            'q = f32[] custom-call(), custom_call_target="a", literal=(s32[] »1.5, f32[] 2)',
            "expected an integer",
        ),
    ],
)
