"""Opcodes of short spellings, callees by role, and rows whose parentheses stay open."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, callees
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.module import Computation
from tests.analysis.cost.small import operation, view_of
from tests.hlo.reading import rows_of


def test_a_short_spelling_stands_for_what_it_wraps() -> None:
    op = operation("%p = f32[8] parameter(0)", "%s = ((f32[8]), f32[4], u32[]) reduce-scatter-start(%p), dimensions={0}")
    assert (op.opcode, str(op.shape)) == ("reduce-scatter", "f32[4]")


@pytest.mark.parametrize("opcode", ["all-reduce-start", "copy-start", "async-start", "reduce-scatter-done"])
def test_opcodes_with_a_start_of_their_own_keep_their_shape(opcode: str) -> None:
    op = operation(f"%s = (f32[8], f32[4]) {opcode}()")
    assert (op.opcode, str(op.shape)) == (opcode, "(f32[8], f32[4])")


def test_callees_and_their_roles() -> None:
    loop = operation("%s = s32[] while(), condition=%c, body=%b, to_apply=%other")
    assert callees(loop.view, loop.index, "running") == [("running", "b"), ("running", "c")]
    assert callees(loop.view, loop.index, "fused") == [("applied", "b"), ("applied", "c")]
    branches = view_of("%s = s32[] conditional(), branch_computations={%x, %y, %x}")
    assert callees(branches, 0, "running") == [("running", "x"), ("running", "y"), ("running", "x")]
    assert callees(view_of("%s = f32[] fusion(), kind=kLoop, calls=%f"), 0, "applied") == [("fused", "f")]
    assert callees(view_of("%s = f32[] sort(), to_apply=%less"), 0, "running") == []


def test_operands_that_are_not_closed() -> None:
    """A row that the reader kept though its parenthesis stays open, because another one makes up for it."""
    computation = Computation("broken", 3, is_entry=False)
    computation.rows = rows_of([("", "f", "f32[4] fusion", "%a, kind=kLoop, calls=%c")], 4)
    with pytest.raises(UnknownCostError, match="not closed"):
        Operation(View(computation), 0)
