from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.body import Body, Fusing
from hlo_inspect.analysis.cost.model import Gap, UnknownCostError
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo.module import Computation
from tests.analysis.cost.small import body_of


def order(*lines: str) -> list[str]:
    body = body_of(*lines)
    return [body.rows[index][1] for index in body.in_xla_order()]


def test_operands_come_first_and_in_their_order() -> None:
    lines = ["%a = f32[] parameter(0)", "%b = f32[] parameter(1)", "%c = f32[] negate(%a)", "%d = f32[] negate(%b)"]
    assert order(*lines, "ROOT %r = f32[] subtract(%d, %c)") == ["b", "d", "a", "c", "r"]


def test_what_nothing_uses_comes_before_the_root() -> None:
    lines = ["%a = f32[] parameter(0)", "ROOT %r = f32[] negate(%a)", "%unused = f32[] abs(%a)"]
    assert order(*lines) == ["a", "unused", "r"]


def test_the_last_is_the_root_where_none_is_marked() -> None:
    assert order("%a = f32[] parameter(0)", "%b = f32[] negate(%a)", "%c = f32[] abs(%a)") == ["a", "b", "c"]


def test_uses_that_go_round_and_names_that_are_not_there() -> None:
    assert sorted(order("%a = f32[] negate(%b)", "%b = f32[] negate(%a)", "ROOT %r = f32[] abs(%gone)")) == ["a", "b", "r"]


def test_a_chain_longer_than_python_recurses() -> None:
    lines = ["%x0 = f32[] parameter(0)", *(f"%x{i} = f32[] negate(%x{i - 1})" for i in range(1, 5000))]
    assert order(*lines) == [f"x{i}" for i in range(5000)]


@pytest.mark.parametrize(
    ("operands", "uses"),
    [
        ("", []),
        ("%a, %b.1, %a", ["a", "b.1", "a"]),
        ("a, b", ["a", "b"]),
        ("f32[4,2]{1,0} %a, pred[] %b", ["a", "b"]),
        ("%a, /*index=5*/%b", ["a", "b"]),
        ("%a#0, %b#1#2", ["a#0", "b#1#2"]),
        ("f32[4]{0:T(256)} %a, (f32[], s32[]) %b", ["a", "b"]),
        ("f32[4], f32[] %b", ["", "b"]),
        ("((f32[], s32[4]{0}), s32[]) %a.1, /*index=1*/(f32[2]{0:T(256)}, pred[]) %b", ["a.1", "b"]),
        ("%a, f32[4] b", ["a", "b"]),
    ],
)
def test_uses(operands: str, uses: list[str]) -> None:
    assert body_of(f"%r = f32[4] tuple({operands}), dimensions={{0}}").uses(0) == uses


@pytest.mark.parametrize("line", ["%r = f32[] constant(1)", "%r = f32[] parameter(0)", "%r = f32[] constant((1, 2))"])
def test_a_literal_uses_nothing(line: str) -> None:
    assert body_of(line).uses(0) == []


def test_numbers_of_parameters() -> None:
    assert body_of("%p = f32[] parameter(12)").parameter_number(0) == 12
    assert body_of("%p = f32[] parameter( /*twelve*/ 12 )").parameter_number(0) == 12
    with pytest.raises(UnknownCostError):
        body_of("%p = f32[] parameter(x)").parameter_number(0)


def test_shapes_by_name() -> None:
    body = body_of("%a = f32[4] parameter(0)", "%b = q9[4] negate(%a)", "%a = f32[5] abs(%b)", "%c = s32[] negate(%b)")
    assert {name: shape and str(shape) for name, shape in body.shapes.items()} == {"a": None, "b": None, "c": "s32[]"}


def test_lines_of_gaps() -> None:
    """The entry of these texts starts at line 10."""
    body = body_of("%a = f32[4] parameter(0)", "%b = f32[4] negate(%a)")
    assert body.gap(1, UnknownCostError("no shape")) == Gap(12, "b: no shape")
    elsewhere = Gap(3, "there")
    assert body.gap(1, UnknownCostError("no shape", elsewhere)) == elsewhere


def test_callers() -> None:
    body = body_of(
        "%a = f32[] call(), to_apply=%add", "%b = f32[] negate(%a)", "%c = ((f32[]), f32[]) call-start(%b), to_apply=%add"
    )
    assert body.callers == [0, 2]
    assert [body.callees(index, "running") for index in range(3)] == [[("running", "add")], [], [("running", "add")]]


@pytest.mark.parametrize(
    ("attributes", "fusing"),
    [
        ("kind=kLoop, calls=%f.1", Fusing("kLoop", "f.1")),
        ("kind=kLoop, calls=f", Fusing("kLoop", "f")),
        ('kind=kInput, output_to_operand_aliasing={{0}: (0, {})}, calls=%f, metadata={op_name="x"}', Fusing("kInput", "f")),
        ('frontend_attributes={a=", kind=kOut, calls=%g"}, kind=kLoop, calls=%f', Fusing("kLoop", "f")),
        ("calls=%f", Fusing("", "f")),
    ],
)
def test_what_a_fusion_says_of_itself(attributes: str, fusing: Fusing) -> None:
    body = body_of("%a = f32[] parameter(0)", f"%b = f32[] fusion(%a), {attributes}")
    assert body.fusing(1) == fusing
    assert body.callees(1, "running") == [("fused", fusing.callee)]


def test_a_fusion_that_calls_nothing() -> None:
    body = body_of("%b = f32[] fusion(), kind=kLoop")
    assert body.callees(0, "running") == []
    with pytest.raises(UnknownCostError, match="not named"):
        body.fusing(0)


def test_a_computation_without_instructions() -> None:
    body = Body(View(Computation("empty", 3, is_entry=False)))
    assert (body.root, list(body.in_xla_order()), body.callers) == (None, [], [])


def test_operands_that_are_not_closed() -> None:
    """A row that was kept although its parenthesis stays open, as where another one makes up for it."""
    computation = Computation("broken", 3, is_entry=False)
    computation.keep_rows([("", "f", "f32[4] fusion", "%a, kind=kLoop, calls=%c")], 4)
    body = Body(View(computation))
    assert body.uses(0) == [""]
    with pytest.raises(UnknownCostError, match="not closed"):
        body.operation(0)
