"""Which of the entry's parameters nothing reads."""

from __future__ import annotations

import pytest

import hlo_inspect

PARAMETERS = "  %p = f32[4]{0} parameter(0)\n  %t = (f32[4]{0}, s32[]) parameter(1)\n"


def unused(body: str) -> list[tuple[object, object]]:
    text = f"HloModule m\n\nENTRY %main {{\n{PARAMETERS}{body}}}\n"
    table = hlo_inspect.inspect(text, ("params",)).table("params")
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return [(row["number"], row["index"]) for row in rows if row["unused"]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("  ROOT %r = f32[4]{0} negate(%p)\n", [(1, "{0}"), (1, "{1}")]),
        ("  %g = f32[4]{0} get-tuple-element(%t), index=0\n  ROOT %r = f32[4]{0} add(%p, %g)\n", [(1, "{1}")]),
        ("  ROOT %r = f32[4]{0} add(%p, %t#0)\n", [(1, "{1}")]),
        ("  ROOT %r = (f32[4]{0}, (f32[4]{0}, s32[])) tuple(%p, %t)\n", []),
        ("  %g = s32[] get-tuple-element(%t), index=1\n  ROOT %r = (s32[]) tuple(%g)\n", [(0, "{}"), (1, "{0}")]),
    ],
)
def test_what_is_unused(body: str, expected: list[tuple[object, object]]) -> None:
    assert unused(body) == expected
