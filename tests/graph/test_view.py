"""Rows of a computation: their parts, operands and users."""

from __future__ import annotations

import pytest

from hlo_inspect.graph.frames import Frames
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import join_rows
from tests.analysis.cost.small import as_xla, module_of
from tests.hlo.reading import rows_of

PARAMETER = "%p = f32[8]{0} parameter(0)"


def view_of(*lines: str) -> View:
    """Return the view of an entry of these lines, the first of which is line 11."""
    entry = module_of(*lines).entry
    assert entry is not None
    return View(entry)


def test_a_view_has_the_rows_of_a_computation_with_their_lines() -> None:
    computation = Computation("f", 3, is_entry=False)
    parts = [rows_of([("", "a", "f32[] parameter", "0)"), ("", "b", "f32[] constant", "7)")], 4)]
    parts.append(rows_of([("ROOT ", "c", "f32[] add", "%a, %b)")], 9))
    computation.rows = join_rows(parts)
    views = Views({"f": computation})
    view = views.for_computation("f")
    assert views.for_computation("f") is view
    assert [(row[1], line) for row, line in zip(view.rows, view.lines, strict=True)] == [("a", 4), ("b", 5), ("c", 9)]
    assert list(view.opcodes) == ["parameter", "constant", "add"]
    assert [str(shape) for shape in view.shapes] == ["f32[]"] * 3
    assert [view.operand_rows(index) for index in range(3)] == [(), (), (0, 1)]
    assert view.users == [[2], [2], []]


def test_the_view_of_an_empty_computation_has_no_root() -> None:
    view = View(Computation("f", 3, is_entry=False))
    assert (list(view.rows), view.root, view.users, view.index("a")) == ([], None, [], None)


def test_an_unreadable_shape_is_none() -> None:
    view = view_of("%a = q9[8] parameter(0)", "%b = f32[8] negate(%a)")
    assert [shape and str(shape) for shape in view.shapes] == [None, "f32[8]"]
    assert view.operand_shape(1, 0) is None


# -- the root ---------------------------------------------------------------------------------------------------------------

TWO_ROOTS = (PARAMETER, "ROOT %a = f32[8]{0} negate(%p)", "ROOT %b = f32[8]{0} abs(%p)", "%c = f32[8]{0} sine(%p)")


def test_the_last_of_two_roots_is_the_root() -> None:
    assert view_of(*TWO_ROOTS).root == 2


def test_the_last_row_is_the_root_if_none_is_marked() -> None:
    assert view_of(PARAMETER, "%a = f32[8]{0} negate(%p)").root == 1


def test_cost_and_optimizer_use_the_same_root() -> None:
    """The fusion writes the 8 bytes of its last root. The first root has 32."""
    rows = (PARAMETER, "ROOT %a = f32[8]{0} negate(%p)", "ROOT %b = f32[2]{0} slice(%p), slice={[0:2]}")
    before = "%f {\n" + "".join(f"  {row}\n" for row in rows) + "}\n"
    lines = (PARAMETER, "ROOT %r = f32[2]{0} fusion(%p), kind=kLoop, calls=%f")
    assert as_xla(*lines, before=before) == (8, 0, 0, 32 + 8 + 8)
    frames = Frames(Views(module_of(*lines, before=before).computations))
    frame = frames.open("f")
    assert frame is not None
    assert frames.name(frames.root(frame, ())) == "b"


# -- names and operands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ("", []),
        ("%p", ["p"]),
        ("%p, %q.1, %p", ["p", "q.1", "p"]),
        ("p, q.1", ["p", "q.1"]),
        ("f32[8,4]{1,0:T(8,128)} %p, (f32[8], (s32[], pred[])) %q.1", ["p", "q.1"]),
        ("%p, /*index=1*/%q.1", ["p", "q.1"]),
        ("%p, f32[8] q.1", ["p", "q.1"]),
        ("%p#1#0, %q.1", ["p#1#0", "q.1"]),
        ("f32[8], f32[] %p", [None, "p"]),
        ("%p, null", ["p", None]),
        ("/*first*/ p", ["p"]),
    ],
)
def test_operands(operands: str, expected: list[str | None]) -> None:
    operands_of_row = view_of(f"%r = f32[4] tuple({operands}), dimensions={{0}}").operands(0)
    assert [name and "#".join([name, *map(str, path)]) for name, path, _ in operands_of_row] == expected


@pytest.mark.parametrize(
    ("operands", "rows", "is_whole"),
    [
        ("%a, %b", (0, 1), True),
        ("b, a", (1, 0), True),
        ("a, %a", (0, 0), True),
        ("f32[4]{0} %b, f32[4] %a", (1, 0), True),
        ("", (), True),
        ("%a, %gone", (0, None), False),
        ("%a, null", (0, None), False),
        ("%a#0, %b", (0, 1), False),
        ("%%a", (None,), False),
    ],
)
def test_rows_of_operands(operands: str, rows: tuple[int | None, ...], is_whole: bool) -> None:
    """Operands that are the names of rows alone are read at once, all others one by one."""
    view = view_of("%a = f32[4] parameter(0)", "%b = f32[4] parameter(1)", f"%r = f32[4] custom-call({operands})")
    assert view.whole_operands(2) == (rows if is_whole else None)
    assert view.operand_rows(2) == rows
    assert view.operands_of_rows == [(), (), rows]


def test_a_defined_operand_shape_goes_before_the_printed_one() -> None:
    lines = (
        PARAMETER,
        "%t = (f32[8]{0}, s32[]) tuple(%p, %i)",
        "%r = f32[] custom-call(%t#1, f32[3] %p, f32[5]{0} %gone, %far)",
    )
    shapes = [view_of(*lines).operand_shape(2, number) for number in range(4)]
    assert [shape and str(shape) for shape in shapes] == ["s32[]", "f32[8]", "f32[5]", None]


@pytest.mark.parametrize("line", ["%r = f32[] constant(1)", "%r = f32[] parameter(0)", "%r = f32[] constant((1, 2))"])
def test_a_literal_has_no_operands(line: str) -> None:
    assert view_of(line).operands(0) == ()


def test_a_name_defined_twice_is_ambiguous() -> None:
    view = view_of("%a = f32[4] parameter(0)", "%b = f32[4] negate(%a)", "%a = f32[5] abs(%b)", "%c = f32[5] abs(%a)")
    assert view.index("a") == 2
    assert view.ambiguous == {0, 2}
    assert view.operand_rows(3) == (2,)
    assert view.operand_shape(3, 0) is None


def test_a_row_is_one_user_of_an_operand_that_it_repeats() -> None:
    assert view_of(PARAMETER, "%a = f32[8] add(%p, %p)", "%b = f32[8] add(%p, %gone)").users == [[1, 2], [], []]


def test_a_row_with_open_operands_has_an_unknown_operand() -> None:
    """The row is kept although no row closes its parenthesis."""
    computation = Computation("broken", 3, is_entry=False)
    computation.rows = rows_of([("", "f", "f32[4] fusion", "%a, kind=kLoop, calls=%c")], 4)
    view = View(computation)
    assert [operand.name for operand in view.operands(0)] == [None]
    assert view.operand_rows(0) == (None,)
    with pytest.raises(tokens.ScanError, match="not closed"):
        view.instruction(0)


@pytest.mark.parametrize(
    ("tail", "number"),
    [
        ("%t.1), index=7", 7),
        ("t.1), index=7, metadata={}", 7),
        ("(f32[8]{0:T(8,128)}, /*index=5*/(s32[], f32[])) %t), index=7", 7),
        ("%t), frontend_attributes={x=(%b), index=3}, index=7", 7),
        ('%t), metadata={op_name="x), index=3"}, index=7', 7),
        ("/* %b), index=3 */ %t), index=7", 7),
        ("%t), index=x", None),
    ],
)
def test_the_index_of_a_get_tuple_element_is_read(tail: str, number: int | None) -> None:
    assert view_of(f"%r = f32[8] get-tuple-element({tail}").element_number(0) == number


def test_numbers_of_parameters_are_read_from_their_rows() -> None:
    view = view_of("%p = f32[8]{0} parameter(0)", "%q = f32[8]{0} parameter( 11 )", "%r = f32[8]{0} parameter(x)")
    assert [view.parameter_number(index) for index in range(3)] == [0, 11, None]


# -- comments ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "element",
    [
        "%t) /*, index=0, was=*/, index=1",
        "(f32[8], f32[8] /*) %t), index=0, was=*/) %t), index=1",
        "((f32[8] /*)) %t), index=0, was=*/), f32[8]) %t), index=1",
        "%t) //, index=0, was=\n, index=1",
        "(f32[8], /*index=1*/f32[8]) %t), index=1",
    ],
)
def test_an_index_inside_a_comment_is_ignored(element: str) -> None:
    view = view_of(PARAMETER, "%t = (f32[8], f32[8]) tuple(%p, %p)", f"%e = f32[8] get-tuple-element({element}")
    assert view.element_number(2) == 1
    assert view.instruction(2).attr("index") == 1


@pytest.mark.parametrize("comments", [("/*), calls=%no, x=*/", ""), ("", "/*, calls=%no, x=*/"), ("/*index=0*/", "")])
def test_a_callee_inside_a_comment_is_ignored(comments: tuple[str, str]) -> None:
    view = view_of(PARAMETER, f"%f = f32[8] fusion(%p{comments[0]}){comments[1]}, kind=kLoop, calls=%yes")
    assert [callee.name for callee in view.called_at(1)] == ["yes"]


# -- metadata ---------------------------------------------------------------------------------------------------------------

NAMED = '{op_name="jit(f)/neg" source_line=3}'


@pytest.mark.parametrize(
    "attributes",
    [
        f"metadata={NAMED}",
        "metadata={stack_frame_id=3}",
        f"sharding={{replicated}}, metadata={NAMED}, backend_config={{}}",
        f"metadata={{stack_frame_id=3}}, metadata={NAMED}",
        f"metadata={NAMED}, metadata={{stack_frame_id=3}}",
        f'frontend_attributes={{a="x, metadata={{stack_frame_id=4}}"}}, metadata={NAMED}',
        'metadata={op_name="a}\\"{b"}, backend_config="{}"',
        "metadata={",
    ],
)
def test_a_view_and_its_instruction_have_the_same_metadata(attributes: str) -> None:
    line = f"%a = f32[8]{{0}} negate(%p), {attributes}"
    view = view_of(PARAMETER, line)
    instruction = view_of(PARAMETER, line).instruction_at(1)
    assert view.metadata(1) == (None if instruction is None else instruction.attr("metadata"))
