from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.memory import FREE, accessed_bytes
from hlo_inspect.analysis.cost.model import UnknownCostError
from tests.analysis.cost.small import operation

ARRAY, INDEX = "f32[8,4]{1,0}", "s32[]"
"""128 and 4 bytes."""


def read_and_written(line: str, *shapes: str) -> int:
    return accessed_bytes(operation(*[f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)], line))


@pytest.mark.parametrize(
    ("line", "shapes", "size"),
    [
        (f"%r = {ARRAY} add(%p0, %p1)", (ARRAY, ARRAY), 3 * 128),
        (f"%r = {ARRAY} add(%p0, %p0)", (ARRAY,), 3 * 128),  # read twice
        (f"%r = {ARRAY} broadcast(%p0), dimensions={{}}", ("f32[]",), 128 + 4),
        ("%r = f32[32]{0} reshape(%p0)", (ARRAY,), 2 * 128),
        (f"%r = {ARRAY} iota(), iota_dimension=0", (), 128),
        (
            f"%r = ({ARRAY}, token[]) recv-done(%p0)",
            (f"({ARRAY}, u32[], token[])",),
            128 + 3 * 8,
        ),  # of a tuple only its pointers
        ("%r = f32[2,4] slice(%p0), slice={[0:2], [0:4]}", (ARRAY,), 2 * 32),
        ("%r = f32[2,4] dynamic-slice(%p0, %p1, %p2)", (ARRAY, INDEX, INDEX), 2 * 32 + 4),  # the first index only
        (f"%r = {ARRAY} dynamic-update-slice(%p0, %p1, %p2, %p3)", (ARRAY, "f32[2,4]", INDEX, INDEX), 2 * 32 + 4),
        ("%r = f32[3,4] gather(%p0, %p1)", (ARRAY, "s32[3,1]"), 2 * 48 + 12),
        (f"%r = {ARRAY} scatter(%p0, %p1, %p2)", (ARRAY, "s32[3,1]", "f32[3,4]"), 3 * 48 + 12),
        (f"%r = ({ARRAY}, {ARRAY}) scatter(%p0, %p0, %p1, %p2, %p2)", (ARRAY, "s32[3,1]", "f32[3,4]"), 3 * 96 + 12),
        (f"%r = ({ARRAY}, {ARRAY}) tuple(%p0, %p0)", (ARRAY,), 16),
        (f"%r = (({ARRAY}, {INDEX}), token[]) infeed(%p0)", ("token[]",), 128 + 4),
        ("%r = token[] outfeed(%p0, %p1)", (f"({ARRAY}, {INDEX})", "token[]"), 128 + 4),
        ("%r = f32[4,2] triangular-solve(%p0, %p1)", ("f32[4,4]", "f32[4,2]"), 32 + 32 + 32),
        ("%r = f32[4,4] cholesky(%p0)", ("f32[4,4]",), 64),
        (f"%r = ({ARRAY}, {INDEX}) all-reduce(%p0, %p1)", (ARRAY, INDEX), 132 + 132),
        (f"%r = {ARRAY} all-reduce-start(%p0)", (ARRAY,), 256),
        (f"%r = {ARRAY} all-reduce-done(%p0)", (ARRAY,), 256),
        ("%r = (f32[8,4], f32[16,4]) all-gather-start(%p0)", (ARRAY,), 128 + 256 + 128),
        ("%r = f32[16,4] all-gather-done(%p0)", ("(f32[8,4], f32[16,4])",), 256 + 16),
        ("%r = ((f32[8,4]), f32[4,4]) reduce-scatter-start(%p0)", (ARRAY,), 64 + 128),
    ],
)
def test_bytes(line: str, shapes: tuple[str, ...], size: int) -> None:
    assert read_and_written(line, *shapes) == size


@pytest.mark.parametrize("opcode", sorted(FREE))
def test_what_costs_nothing(opcode: str) -> None:
    assert read_and_written(f"%r = {ARRAY} {opcode}(%p0)", ARRAY) == 0


@pytest.mark.parametrize(
    ("result", "size"),
    [
        ("f32[4,8]{0,1}", 0),  # the rows lie where they were
        ("f32[4,8]{1,0}", 256),
        ("f32[4,8]", 256),  # the usual layout
        ("s32[4,8]{0,1}", 256),  # another type is no bitcast
    ],
)
def test_a_transpose_that_moves_nothing(result: str, size: int) -> None:
    assert read_and_written(f"%r = {result} transpose(%p0), dimensions={{1,0}}", ARRAY) == size


def test_a_transpose_of_three_dimensions() -> None:
    """Result dimension i is operand dimension p(i): the memory order of the operand has to be p of the result's."""
    line = "%r = f32[4,2,3]{{{}}} transpose(%p0), dimensions={{2,0,1}}"
    assert read_and_written(line.format("0,2,1"), "f32[2,3,4]{2,1,0}") == 0
    assert read_and_written(line.format("2,1,0"), "f32[2,3,4]{2,1,0}") == 192
    assert read_and_written("%r = f32[4,2,3] transpose(%p0)", "f32[2,3,4]") == 192  # without dimensions


@pytest.mark.parametrize("line", ["%r = f32[?] negate(%p0)", f"%r = {ARRAY} negate(%gone)", "%r = f32[2] dynamic-slice(%p0)"])
def test_what_is_not_known(line: str) -> None:
    with pytest.raises(UnknownCostError):
        read_and_written(line, ARRAY)
