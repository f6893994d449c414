"""Parsing of single instructions and computations in every layout of the language."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.read import parser


def place(text: str, position: int) -> tuple[int, int]:
    """Return the 1-based line and column of an index."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("%a = f32[2]{0} negate(%b)", ("", "a", "f32[2]{0} negate", "%b)")),
        ("ROOT a.1 = f32[] add(b, c), x=1", ("ROOT ", "a.1", "f32[] add", "b, c), x=1")),
        ("%a=f32[]negate(b)", ("", "a", "f32[] negate", "b)")),
        ("a = negate(b)", ("", "a", " negate", "b)")),  # without a shape
        ("ROOT\n  %out\n  = f32[2]\n    {0} add(\n%b,\n%c)", ("ROOT ", "out", "f32[2]\n    {0} add", "\n%b,\n%c)")),
        ("%t = (f32[2]{0}, (s32[], token[])) tuple(%a)", ("", "t", "(f32[2]{0}, (s32[], token[])) tuple", "%a)")),
        ("%t = () tuple()", ("", "t", "() tuple", ")")),
        ("%b = b(f32[4]{0}) custom-call(%p)", ("", "b", "b(f32[4]{0}) custom-call", "%p)")),
        ("%s8 = s8[3] constant({1, 2,\n 3}), x=1", ("", "s8", "s8[3] constant", "{1, 2,\n 3}), x=1")),
        ("%c = f32[]{:T(128)} copy(%b)", ("", "c", "f32[]{:T(128)} copy", "%b)")),
        (
            '%b = f32[4] custom-call(), custom_call_target="a) = ( {"',
            ("", "b", "f32[4] custom-call", '), custom_call_target="a) = ( {"'),
        ),
        ("a-b_c.d = token[] after-all()", ("", "a-b_c.d", "token[] after-all", ")")),
        ("%c = f32[2]/*x*/ /*y*/copy(%b)", ("", "c", "f32[2] copy", "%b)")),
        ("ROOT /*x*/ %c /*y*/ = /*z*/ f32[2] copy // w\n(%b)", ("ROOT ", "c", "f32[2] copy", "%b)")),
        ("%ROOT = f32[] copy(%b)", ("", "ROOT", "f32[] copy", "%b)")),
        ("%n = f32[] add(f32[] parameter(0), sqrt(x))", ("", "n", "f32[] add", "f32[] parameter(0), sqrt(x))")),
        (
            "%m = f32[] map(%a), to_apply={\n  ROOT q = f32[] negate(r)\n}, x=2",
            ("", "m", "f32[] map", "%a), to_apply={\n  ROOT q = f32[] negate(r)\n}, x=2"),
        ),
    ],
)
@pytest.mark.parametrize("after", ["", "\n", "\n  %z = f32[] negate(%a)\n", "\n}\n", "  // {\n}", " }"])
def test_instructions(text: str, row: tuple[str, str, str, str], after: str) -> None:
    assert parser.parse_instruction("  " + text + after, 2) == (row, len(text) + 2, None)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected an instruction"),
        ("this is no instruction", 1, 1, "expected an instruction"),
        ("= f32[] negate(b)", 1, 1, "expected an instruction"),
        ("ROOT = f32[] negate(b)", 1, 1, "expected an instruction"),
        ("%1a = f32[] negate(b)", 1, 1, "expected an instruction"),
        ("%a == f32[] negate(b)", 1, 1, "expected an instruction"),
        ("%a f32[] negate(b)", 1, 1, "expected an instruction"),
        ("%a = f32[] ", 1, 12, "expected an opcode"),
        ("%a = f32[] Negate(b)", 1, 12, "expected an opcode"),
        ("%a = f32[]\n  negate b", 1, 11, "expected an opcode"),
        ("%a = f32[2 negate(b)", 1, 9, "'[' is not closed"),
        ("%a = (f32[2], s32[] tuple(b)", 1, 6, "'(' is not closed"),
        ("%a = f32[2]{0 negate(b)", 1, 12, "'{' is not closed"),
        ("%a = f32[] add(b, c", 1, 15, "'(' is not closed"),
        ("%a = f32[] add(b, c]", 1, 20, "']' does not close '('"),
        ("%a = f32[] add(b) /* it", 1, 19, "a comment is not closed"),
    ],
)
def test_malformed_instructions(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(tokens.ScanError) as caught:
        parser.parse_instruction(text, 0)
    assert message in caught.value.message
    assert place(text, caught.value.position) == (line, column)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("%a = f32[] add(b),\n  x", 1, 18, "expected an attribute"),
        ("%a = f32[] add(b), x=\n", 2, 1, "expected a value"),
        ("%a = f32[] add(b), x={1\n%c = f32[] negate(d)\n", 1, 22, "'{' is not closed"),
        ("%a = f32[] add(b), x={1 ]", 1, 25, "']' does not close '{'"),
        ("%a = f32[] add(b), x={1\n  ]", 1, 22, "'{' is not closed"),  # the bracket on a later line may be right
        ('%a = f32[] add(b), x="it', 1, 22, "expected a value"),
        ('%a = f32[] add(b), x={"it', 1, 23, "a string is not closed"),
        ('%a = f32[] add(b), backend_config={"it"\n', 1, 35, "'{' is not closed"),
        ("%a = f32[] add(b),\n  ROOT %c = f32[] negate(a)\n", 1, 18, "expected an attribute"),
        ("%a = f32[] add(b), calls=\n  %c = f32[] negate(a)\n", 1, 26, "expected a value"),
    ],
)
def test_an_instruction_is_read_without_its_malformed_attributes(text: str, line: int, column: int, message: str) -> None:
    row, end, fault = parser.parse_instruction(text, 0)
    assert row == ("", "a", "f32[] add", "b)")
    assert text[:end] == "%a = f32[] add(b)"
    assert fault is not None
    assert message in fault.message
    assert place(text, fault.position) == (line, column)


def test_an_attribute_value_may_be_on_the_next_line() -> None:
    text = "%a = f32[] fusion(b), kind=kLoop, calls=\n  %c\n}\n"
    assert parser.parse_instruction(text, 0) == (("", "a", "f32[] fusion", "b), kind=kLoop, calls=\n  %c"), len(text) - 3, None)


def test_a_literal_has_a_shape_and_a_value() -> None:
    text = '%a = s32[] custom-call(), custom_call_target="f", literal=s32[] 1, x=2'
    assert parser.parse_instruction(text, 0).end == len(text)


@pytest.mark.parametrize(
    ("text", "name", "is_entry"),
    [
        ("ENTRY %main (p: f32[2]) -> f32[2] {", "main", True),
        ("ENTRY main {", "main", True),
        ("body.1 {", "body.1", False),
        ("%body{", "body", False),
        ("%f () -> () {", "f", False),
        ("%f (p: (s32[], f32[4]), q: f32[2]{0}) -> (s32[], f32[4]) {", "f", False),
        ("%f (p: f32[2]) -> f32[2]{0} {", "f", False),  # a layout, since a number follows the brace
        ("%f (p: f32[]) -> f32[]{:T(128)} {", "f", False),
        ("%f (x: f32[],\n    y: f32[])\n  -> f32[]\n{", "f", False),
        ("%f /* reducer */ (x: f32[], /*index=1*/ y: f32[]) -> f32[] {", "f", False),
        ("ENTRY\n  %main // here\n {", "main", True),
        ("ENTRY /*x*/ %main /*y*/ (p: f32[2]) /*z*/ -> /*z*/ f32[2] /*z*/ {", "main", True),
        ("%b (p: b(f32[4])) -> b(f32[4]) {", "b", False),
        ("%(p: f32[2], p: f32[2]) -> f32[2] {", "", False),
        ("ENTRY %(p: f32[2]) -> f32[2] {", "", True),
        ("ENTRY {", "", True),
        ("{", "", False),
    ],
)
def test_first_lines_of_computations(text: str, name: str, is_entry: bool) -> None:
    body = "\n  %a = f32[] negate(%p)\n}\n"
    assert parser.parse_first_line(text + body, 0) == (name, is_entry, len(text))


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected a computation"),
        ("= f32[] {", 1, 1, "expected a computation"),
        ("1 (p: f32[]) -> f32[] {", 1, 1, "expected a computation"),
        ("% main {", 1, 1, "expected a computation"),
        ("main", 1, 5, "expected '{'"),
        ("main;", 1, 5, "expected '{'"),
        ("main (p: f32[]) {", 1, 17, "expected '->'"),
        ("(p: f32[]) {", 1, 12, "expected '->'"),
        ("main (p: f32[]) -> f32[]\n  ;", 2, 3, "expected '{'"),
        ("main (p: f32[]", 1, 6, "'(' is not closed"),
        ("main (p: f32[]] -> f32[] {", 1, 15, "']' does not close '('"),
    ],
)
def test_malformed_first_lines_of_computations(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(tokens.ScanError) as caught:
        parser.parse_first_line(text, 0)
    assert message in caught.value.message
    assert place(text, caught.value.position) == (line, column)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("}", 1),
        ("}\nENTRY", 1),
        ('}, execution_thread="host"\n', 26),
        ('} , execution_thread = "a\\"b"', 29),
        ('}, execution_thread="open\n', 1),
        ("} // name", 1),
    ],
)
def test_the_end_of_a_closing_brace_includes_its_thread(text: str, end: int) -> None:
    assert parser.closer_end(text, 0) == end


ON_LINES_OF_THEIR_OWN = (
    ("ROOT", "/* a */", "%a", "=", "f32", "[2]", "{0}", "fusion", "(", "%b", ")", ",", "calls=", "%c", ",", "x={", '"d"', "}"),
    ("%a", "=", "(f32[2],", "s32[])", "tuple", "(%b)", ", y=", "mesh['a'=2]", "{'a'}", ", z=[1]", "<=[1]"),
)


@pytest.mark.parametrize("words", ON_LINES_OF_THEIR_OWN)
def test_an_instruction_truncated_at_a_line_end_is_never_misread(words: tuple[str, ...]) -> None:
    """Pieces of the input end at line ends. An instruction before one is incomplete, or ends there."""
    for count in range(1, len(words) + 1):
        text = "\n".join(words[:count]) + "\n"
        try:
            _, end, _ = parser.parse_instruction(text, 0, is_final=False)
        except tokens.ScanError as error:
            assert isinstance(error, tokens.IncompleteError)
        else:
            assert end == len(text.rstrip())
    assert end == len(text) - 1


def test_a_first_line_truncated_at_a_line_end_is_incomplete() -> None:
    words = ("ENTRY", "// a", "%main", "(p:", "f32[2])", "->", "(f32", "[2],", "s32[])")
    for count in range(1, len(words) + 1):
        with pytest.raises(tokens.IncompleteError):
            parser.parse_first_line("\n".join(words[:count]) + "\n", 0)
    assert parser.parse_first_line("\n".join(words) + "\n{", 0)[:2] == ("main", True)
