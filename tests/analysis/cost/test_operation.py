from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.figures import CostGap, UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, callee_names, callees, dimension, elements, row_gap, shape_size
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.values.shape_text import parse_shape
from hlo_inspect.hlo.values.shapes import ArrayShape
from tests.analysis.cost.small import operation, view_of
from tests.hlo.reading import rows_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[4,2]{1,0}", 32),
        ("s4[10]{0}", 10),  # a byte each, unless the layout packs them
        ("s4[10]{0:E(4)}", 5),
        ("pred[]", 1),
        ("f32[0,4]", 0),
        ("token[]", 0),
        ("opaque[]", 8),
        ("(f32[100], (f32[100], f32[100]))", 8),  # two pointers, whatever they point to
        ("()", 0),
        ("f32[<=4,2]", 32 + 2 * 4),  # its bound, and the sizes of its two dimensions
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert shape_size(parse_shape(text)) == size


def test_elements() -> None:
    assert [elements(parse_shape(text)) for text in ("f32[]", "f32[4,3]", "f32[4,0]", "f32[<=5]")] == [1, 12, 0, 5]


@pytest.mark.parametrize("text", ["f32[?,4]", "(f32[4])"])
def test_the_number_of_elements_of_other_shapes_is_unknown(text: str) -> None:
    with pytest.raises(UnknownCostError):
        elements(parse_shape(text))


def test_unknown_shapes_and_dimensions() -> None:
    for shape in (None, parse_shape("f32[?]")):
        with pytest.raises(UnknownCostError):
            shape_size(shape)
    array = parse_shape("f32[3,?]")
    assert isinstance(array, ArrayShape)
    assert dimension(array, 0) == 3
    for index in (1, 2):
        with pytest.raises(UnknownCostError):
            dimension(array, index)


def test_operands_have_the_shapes_of_their_definitions() -> None:
    op = operation(
        "%p = (f32[2], (f32[3], f32[4])) parameter(0)", "%q = f32[5] parameter(1)", "%r = f32[4] add(%p#1#1, f32[9] %q)"
    )
    assert [str(shape) for shape in op.operand_shapes()] == ["f32[4]", "f32[5]"]
    assert str(op.operand_shape(1)) == "f32[5]"
    assert op.array.elements == 4


def test_an_undefined_operand_has_the_shape_that_is_printed() -> None:
    op = operation("%r = f32[4] add(f32[4] %gone, %lost)")
    assert str(op.operand_shape(0)) == "f32[4]"
    with pytest.raises(UnknownCostError, match="operand lost"):
        op.operand_shape(1)
    with pytest.raises(UnknownCostError, match="operand 2 is missing"):
        op.operand_shape(2)


def test_the_first_array_of_a_tuple() -> None:
    assert (
        str(operation("%p = (token[], ((f32[3]), s32[])) parameter(0)", "%r = ((f32[3]), s32[]) reduce(%p)").array) == "f32[3]"
    )
    with pytest.raises(UnknownCostError, match="empty tuple"):
        _ = operation("%r = ((), f32[]) reduce()").array


def test_a_shape_that_cannot_be_read() -> None:
    with pytest.raises(UnknownCostError, match="shape cannot be read"):
        _ = operation("%r = q9[4] add()").shape


def test_lists_of_integers() -> None:
    op = operation("%r = f32[] fft(), fft_length={4,16}, dimensions={}")
    assert (op.integers("fft_length"), op.integers("dimensions"), op.integers("slice_sizes")) == ((4, 16), (), ())


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


def test_the_target_of_a_custom_call() -> None:
    assert operation(r'%c = f32[] custom-call(), custom_call_target="a\"b"').custom_call_target == 'a"b'
    assert operation("%c = f32[] custom-call()").custom_call_target == ""


def test_a_fusion_that_names_its_computation_in_any_place() -> None:
    attributes = 'frontend_attributes={a=", kind=kOut, calls=%g"}, kind=kLoop, calls=%f'
    op = operation("%a = f32[] parameter(0)", f"%b = f32[] fusion(%a), {attributes}")
    assert (callees(op.view, 1, "running"), op.instruction.attr("kind")) == ([("fused", "f")], "kLoop")
    with pytest.raises(UnknownCostError, match="does not name"):
        callee_names(view_of("%b = f32[] fusion(), kind=kLoop"), 0)


def test_lines_of_gaps() -> None:
    """The entry of these texts starts at line 10."""
    op = operation("%a = f32[4] parameter(0)", "%b = f32[4] negate(%a)")
    assert row_gap(op.view, op.index, UnknownCostError("no shape")) == CostGap(12, "b: no shape")
    elsewhere = CostGap(3, "there")
    assert row_gap(op.view, op.index, UnknownCostError("no shape", elsewhere)) == elsewhere


def test_operands_that_are_not_closed() -> None:
    """A row that the reader kept though its parenthesis stays open, because another one makes up for it."""
    computation = Computation("broken", 3, is_entry=False)
    computation.rows = rows_of([("", "f", "f32[4] fusion", "%a, kind=kLoop, calls=%c")], 4)
    with pytest.raises(UnknownCostError, match="not closed"):
        Operation(View(computation), 0)
