"""Instructions as views of their text: operands, attributes, callees."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction, Operand, operands_end, operands_of
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.rows import Head, HeadTable
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.shape_text import ShapeError, ShapeTable, parse_shape


def instruction(text: str, computation: Computation | None = None) -> Instruction:
    row = parser.parse_instruction(text, 0).row
    return Instruction((computation or Computation("main", 1, is_entry=True)).enclosing(), row, HeadTable()[row[2]], 7)


def operands(text: str) -> list[tuple[str | None, tuple[int, ...], str | None]]:
    shapes = ShapeTable()
    return [(o.name, o.path, str(shape) if (shape := shapes.get(o.shape)) is not None else None) for o in operands_of(text)]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (")", []),
        (" )", []),
        ("%a)", [("a", (), None)]),
        ("%a, b.1, %c-d_e)", [("a", (), None), ("b.1", (), None), ("c-d_e", (), None)]),
        ("%a,%b , c)", [("a", (), None), ("b", (), None), ("c", (), None)]),
        ("\n  %a,\n  %b\n)", [("a", (), None), ("b", (), None)]),
        ("%a, /*index=1*/%b, /* c, d) */ %e)", [("a", (), None), ("b", (), None), ("e", (), None)]),
        ("%a, // b, c)\n %d)", [("a", (), None), ("d", (), None)]),
        ("f32[2,3]{1,0} %a, s32[] b)", [("a", (), "f32[2,3]"), ("b", (), "s32[]")]),
        ("(f32[2]{0}, (s32[], token[])) %t)", [("t", (), "(f32[2], (s32[], token[]))")]),
        ("f32[]%a, f32[]b)", [("a", (), "f32[]"), ("b", (), "f32[]")]),
        ("f32[2]{0:T(8,128)}\n%a)", [("a", (), "f32[2]")]),
        ("%t#0, %t#1#10)", [("t", (0,), None), ("t", (1, 10), None)]),
        ("f32[10]{0} %t#0)", [("t", (0,), "f32[10]")]),
        ("null , %a)", [(None, (), None), ("a", (), None)]),
        ("f32[10], f32[])", [(None, (), "f32[10]"), (None, (), "f32[]")]),
        ("f32[] parameter(0), f32[] sqrt(f32[] constant(4)))", [(None, (), None), (None, (), None)]),
        ("%a, %b, %c, %d, ...(+7))", [("a", (), None), ("b", (), None), ("c", (), None), ("d", (), None), (None, (), None)]),
        ("%null, nullable)", [("null", (), None), ("nullable", (), None)]),
    ],
)
def test_operands(tail: str, expected: list[tuple[str | None, tuple[int, ...], str | None]]) -> None:
    assert operands(tail) == expected


@pytest.mark.parametrize(
    "marked",
    [
        "^)",
        "%a, %b^), x=(1)",
        "f32[2]{0:T(8,128)} %a^)",
        "{ {1}, {2} }^), a=b",
        "(1, 2)^)",
        '"a)"^)',
        "/* ) */ a^)",
        "'q)'^)",
        "/**/%a^)\n, replica_groups=[2,4]<=[4,2]T(1,0), y=2",  # a later parenthesis looks like the end
        "(f32[], f32[]) %a^) , x=T(1,0), y=2",
        "f32[2]{0:T(8,128)} %a, /*index=1*/(s32[], f32[]) %b^), x=T(1,0), y=2",
        "f32[<=2] %a^), x=1",
    ],
)
def test_end_of_operands(marked: str) -> None:
    assert operands_end(marked.replace("^", "")) == marked.index("^")


def test_operands_without_a_closing_parenthesis_are_an_error() -> None:
    with pytest.raises(tokens.ScanError):
        operands_end("%a, %b")


def test_an_instruction_has_the_parts_of_its_text() -> None:
    text = 'ROOT %r = f32[8]{0} all-reduce(f32[8]{0} %p), replica_groups={{0,1}}, to_apply=%add, metadata={op_name="x, y"}'
    parsed = instruction(text)
    assert (parsed.name, parsed.opcode, str(parsed.shape)) == ("r", "all-reduce", "f32[8]")
    assert (parsed.is_root, parsed.line) == (True, 7)
    assert parsed.operands == (Operand("p", (), "f32[8]{0}"),)
    groups, metadata = parsed.attr("replica_groups"), parsed.attr("metadata")
    assert groups is not None and groups.groups == ((0, 1),)
    assert metadata is not None and metadata.op_name == "x, y"
    assert parsed.callee("to_apply") == "add"


@pytest.mark.parametrize("opcode", ["constant", "parameter"])
def test_constants_and_parameters_have_a_literal_and_no_operands(opcode: str) -> None:
    parsed = instruction(f"a = s32[] {opcode}(12)")
    assert parsed.operands == ()
    assert parsed.literal == "12"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), (" /*x*/ 12 ", 12), ("-1", None), ("a", None), ("", None), ("9999999999", None), ("\u0663", None)],
)
def test_parameter_numbers(text: str, number: int | None) -> None:
    assert instruction(f"a = s32[] parameter({text})").parameter_number == number


def test_an_attribute_behind_unbalanced_brackets_is_malformed() -> None:
    computation = Computation("main", 1, is_entry=True)
    parsed = Instruction(
        computation.enclosing(), ("", "a", "f32[] negate", "b), k=1, y={{{(}}} ,index=2"), Head("negate", None), 7
    )
    assert parsed.attr("k") == 1
    assert parsed.attr("index") is None
    value = parsed.value("index")
    assert isinstance(value, MalformedValue)
    assert value.reason == "'}' does not close '('"


def test_the_first_of_repeated_attributes_is_read() -> None:
    assert instruction("a = f32[] negate(b), k=1, k=2").attr("k") == 1


def test_operand_shapes_come_from_the_text_or_the_definition() -> None:
    definitions = {
        "a": HeadTable()["f32[2]{0} negate"],
        "b": HeadTable()["s8[4] negate"],
        "t": HeadTable()["(f32[2], (s32[], pred[3])) tuple"],
        "u": HeadTable()[" negate"],
    }
    parsed = instruction("x = f32[] custom-call(%a, f32[5] %a, %b, %t#1#1, %t#2, %u, %nowhere, f32[7])")
    parsed.resolve_operands(definitions)
    shapes = [None if shape is None else str(shape) for shape in parsed.operand_shapes or ()]
    assert shapes == ["f32[2]", "f32[5]", "s8[4]", "pred[3]", None, None, None, "f32[7]"]


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ("", []),
        ("%a, b", ["f32[2]", "s8[4]"]),
        ("%a, %nowhere", ["f32[2]", None]),
        ("f32[3]{0:T(8,128)} %a, /*index=1*/s8[5] b", ["f32[3]", "s8[5]"]),
        ("(f32[3]{0}) %a, s8[5]{0} %b", ["(f32[3])", "s8[5]"]),
        ("f99[3] %a", [None]),
    ],
)
def test_operand_shapes_of_each_printed_form(operands: str, expected: list[str | None]) -> None:
    parsed = instruction(f"x = f32[] custom-call({operands})")
    parsed.resolve_operands({"a": HeadTable()["f32[2]{0} negate"], "b": HeadTable()["s8[4] negate"]})
    assert [None if shape is None else str(shape) for shape in parsed.operand_shapes or ()] == expected


@pytest.mark.parametrize(
    ("tail", "value"),
    [
        (", dimensions={1}, k=2", (1,)),
        (", k=2 ,dimensions={1}", (1,)),
        (', barrier=", dimensions={3}", dimensions={4}', (4,)),
        (", k=2", None),
        (", direction=dimensions, k=1", None),
    ],
)
def test_value_of_an_attribute(tail: str, value: tuple[int, ...] | None) -> None:
    assert instruction(f"a = f32[] negate(b){tail}").attr("dimensions") == value


def test_a_head_has_opcode_shape_and_fault() -> None:
    table = HeadTable()
    assert table["f32[2]{0} negate"] == Head("negate", parse_shape("f32[2]{0}"), text="f32[2]{0} negate")
    assert table[" negate"] == Head("negate", None, text=" negate")
    assert table["f99[2] negate"] == Head("negate", None, ("HI006", "unknown element type in f99[2]"), text="f99[2] negate")
    with pytest.raises(ShapeError):
        _ = table["f32[2 negate"]


@pytest.mark.parametrize(
    ("text", "callees"),
    [
        ("a = f32[] fusion(b), kind=kLoop, calls=%f.1", [("calls", "fused", "f.1")]),
        ("a = f32[] while(b), condition=%c, body=d", [("body", "body", "d"), ("condition", "condition", "c")]),
        (
            "a = f32[] conditional(b, c, d), branch_computations={%e, /*index=1*/ f}",
            [("branch_computations", "branch", "e"), ("branch_computations", "branch", "f")],
        ),
        (
            'a = f32[] custom-call(b), custom_call_target="t", calls=%e, %f',
            [("calls", "custom", "e"), ("calls", "custom", "f")],
        ),
        ("a = f32[] map(b), to_apply={ ROOT x = f32[] negate(y) }", []),
        (
            "a = f32[] conditional(b, c, d), true_computation=%e, false_computation=%f",
            [("true_computation", "branch", "e"), ("false_computation", "branch", "f")],
        ),
        (
            'a = f32[] custom-call(b), custom_call_target="t", called_computations={%e, %f}',
            [("called_computations", "custom", "e"), ("called_computations", "custom", "f")],
        ),
        (
            "a = f32[] select-and-scatter(b, c, d), select=%e, scatter=%f",
            [("select", "applied", "e"), ("scatter", "applied", "f")],
        ),
        ('a = f32[] fusion(b), metadata={op_name=", calls=%e"}', []),
        ('a = f32[] fusion(b), metadata={op_name=", calls=%e"}, calls=%f', [("calls", "fused", "f")]),
        ("a = f32[] new-one(b), calls=%e", []),
    ],
)
def test_callees_of_an_instruction(text: str, callees: list[tuple[str, str, str]]) -> None:
    assert [tuple(callee) for callee in instruction(text).called] == callees


def test_an_attribute_is_not_read_from_strings_or_other_attributes() -> None:
    parsed = instruction(
        'a = f32[] custom-call(b), custom_call_target="x, index=1, k=2", backend_config="{\\"a\\", index=3}", '
        "frontend_attributes={k={ , index=4, k=5}}, sharding={mesh['a'=2], [{'a'}], metadata={op_name=\"no\"}}, "
        'metadata={op_name="yes"}, index=7'
    )
    assert parsed.attr("index") == 7
    assert parsed.attr("k") is None
    assert not parsed.has("k")
    metadata = parsed.attr("metadata")
    assert metadata is not None and metadata.op_name == "yes"
    assert parsed.attr("custom_call_target") == "x, index=1, k=2"


def test_an_unreadable_value_is_malformed_and_keeps_its_text() -> None:
    parsed = instruction("a = f32[] all-reduce(b), replica_groups={{0,x}}, channel_id=_, to_apply=%f")
    assert parsed.attr("replica_groups") is None
    malformed = parsed.value("replica_groups")
    assert isinstance(malformed, MalformedValue)
    assert malformed.text == "{{0,x}}" and malformed.reason == "not replica groups: '{{0,x}}'"
    assert parsed.attr("channel_id") is None and parsed.has("channel_id")
    assert parsed.value("to_apply") == ("f",) and parsed.callee("to_apply") == "f"
    assert parsed.value("dimensions") is None


def test_attribute_parts_can_leave_out_an_attribute() -> None:
    computation = Computation("main", 1, is_entry=True)
    text = 'a = f32[] custom-call(b), custom_call_target="t", calls=%%%s, metadata={op_name="%s"}'
    first, second, calls_other = (instruction(text % words, computation) for words in (("f", "x"), ("f", "y"), ("g", "x")))
    assert first.parts_without("sharding") != second.parts_without("sharding")
    assert first.parts_without("metadata") == second.parts_without("metadata") != calls_other.parts_without("metadata")
    assert first.parts_without("calls") == calls_other.parts_without("calls") != second.parts_without("calls")


def test_instructions_of_a_module_share_parsed_values() -> None:
    computation = Computation("main", 1, is_entry=True)
    text = "%s = f32[] all-reduce(b), replica_groups=[2,4]<=[8], to_apply=%%f"
    first, second = (instruction(text % name, computation) for name in "ab")
    assert first.attr("replica_groups") is second.attr("replica_groups")
    assert first.attr("replica_groups") is not instruction(text % "c").attr("replica_groups")
