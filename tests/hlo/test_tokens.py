"""White space, comments, strings and brackets. Each expected index is counted by hand."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import tokens


def split_mark(marked: str) -> tuple[str, int]:
    """Return a text without its `^`, and the index of that mark, the expected end."""
    return marked.replace("^", ""), marked.index("^")


@pytest.mark.parametrize(
    "marked",
    [
        "^x",
        "   ^x",
        " \t\r\n ^x",
        "/* a */^x",
        "/* * / ** */ /**/^x",
        "// to the end\n  ^x",
        "// a /* no comment\n^x */",
        "/* // still */^x",
        "//^",
        "  ^/x",
        "  ^",
    ],
)
def test_skip_space(marked: str) -> None:
    text, end = split_mark(marked)
    assert tokens.skip_space(text, 0) == end


def test_an_open_comment_is_incomplete_text() -> None:
    with pytest.raises(tokens.IncompleteError, match="comment") as caught:
        tokens.skip_space("  /* a *", 0)
    assert caught.value.position == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[2]", "f32[2]"),
        ("(a, /*index=1*/ b)", "(a,             b)"),
        ("a // b\nc", "a     \nc"),
        ('{x="http://host/*not*/"} /**/', '{x="http://host/*not*/"}     '),
        ("'//' //", "'//'   "),
        (r'"\"/*" /*"*/', r'"\"/*"      '),
        ("1 / 2", "1 / 2"),
    ],
)
def test_comments_are_replaced_by_spaces(text: str, expected: str) -> None:
    assert tokens.without_comments(text) == expected


@pytest.mark.parametrize(
    "marked",
    [
        "()^",
        "(a, [b], {c})^ d)",
        '("it\'s )" )^)',
        "(')')^)",
        r'("\")\\")^)',
        '("a\nb )")^)',
        "(/* ) */)^)",
        "(// )\n)^)",
        "(a / b)^",
        "{\n  { 1, 2 },\n  { 3, 4 }\n}^)",
        "{don't}^",  # a quote without a closing one is an apostrophe
    ],
)
def test_balanced_end(marked: str) -> None:
    text, end = split_mark(marked)
    assert tokens.balanced_end(text, 0) == end


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("(a", 0, "'(' is not closed"),
        ("(a {b)", 5, "')' does not close '{'"),
        ("({)}", 2, "')' does not close '{'"),
        ("([a, {b, c]", 10, "']' does not close '{'"),
        ("([a, {b,\nc]", 5, "'{' is not closed"),
        ('("a', 1, "a string is not closed"),
        ("(/* a", 1, "a comment is not closed"),
        ("(a,\n  %b = f32[] add(c))", 0, "'(' is not closed"),
        ("(a {b,\nENTRY main {\n", 3, "'{' is not closed"),
        ("(a,\nHloModule m\n)", 0, "'(' is not closed"),
        ("(a,\nbody (p: f32[]) -> f32[] {\n)", 0, "'(' is not closed"),
        ("(a,\nbody {\n)", 0, "'(' is not closed"),
        ('("a\n  ROOT b = f32[] add(c)\n")', 1, "'\"' is not closed"),
    ],
)
def test_unbalanced_brackets_are_an_error(text: str, position: int, message: str) -> None:
    with pytest.raises(tokens.ScanError) as caught:
        tokens.balanced_end(text, 0)
    assert (caught.value.position, caught.value.message) == (position, message)


@pytest.mark.parametrize(
    ("text", "more_may_help"), [("(a", True), ('("', True), ("(/*", True), ("(a}", False), ("(\nENTRY x", False)]
)
def test_only_text_that_ends_too_early_is_incomplete(text: str, more_may_help: bool) -> None:
    with pytest.raises(tokens.ScanError) as caught:
        tokens.balanced_end(text, 0)
    assert isinstance(caught.value, tokens.IncompleteError) == more_may_help


def test_an_inline_computation_may_hold_instructions() -> None:
    text = "{\n  ROOT a = f32[] parameter(0)\n}, b=1"
    assert tokens.balanced_end(text, 0, holds_lines=True) == text.index(",")


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("index", "1^, x=2"),
        ("to_apply", "%add.1^, x=2"),
        ("to_apply", " /*here*/ add^ , x=2"),
        ("calls", "%a, %b^, kind=kLoop"),
        ("calls", "%a^"),
        ("dimensions", "{0,1}^, x={2}"),
        ("replica_groups", "[2,4]<=[4,2]T(1,0)^, x=2"),
        ("replica_groups", "[2,4] <= [4,2] T(1,0)^, x=2"),
        ("replica_groups", "mesh['a'=2,'b'=4] {'b'}^, x=2"),
        ("replica_groups", "mesh['a'=2], device_ids=([4,2]T(1,0)) {'b'}^, x=2"),
        ("literal", "f32[2]{0} {1, 2}^, x=2"),
        ("metadata", '{op_name="a } b" source_line=1}^, x=2'),
        ("source_target_pairs", "{{0,1},{1,0}}^"),
        ("custom_call_target", '"odd)({ = f32[2] add("^, x=2'),
        ("custom_call_target", "'single }'^, x=2"),
        ("backend_config", '{"open":"}}}","deep":{"a":[1,{}]}}^, x=2'),
        ("backend_config", '"a string, x=1"^, x=2'),
        ("backend_config", "{key: it's ( here}^, x=2"),  # only braces count outside of double quotes
        ("frontend_attributes", '{a.b-c="x=y, z={",k={"j":{}}}^, x=2'),
        ("padding", "0_0x-1_2_3^, x=2"),
        ("sparsity", "L.0@2:4^, x=2"),
        ("dim_labels", "b01f_01io->b01f^, x=2"),
    ],
)
def test_value_end(name: str, marked: str) -> None:
    text, end = split_mark(marked)
    assert tokens.value_end(text, 0, name=name) == end


@pytest.mark.parametrize(
    ("text", "position", "kind", "message"),
    [
        ("", 0, tokens.IncompleteError, "expected a value"),
        ("  ", 2, tokens.IncompleteError, "expected a value"),
        (", x=1", 0, tokens.ScanError, "expected a value"),
        (")", 0, tokens.ScanError, "expected a value"),
        ("{1", 0, tokens.IncompleteError, "'{' is not closed"),
        ("%a, ", 4, tokens.IncompleteError, "expected a value"),
    ],
)
def test_a_missing_or_open_value_is_an_error(text: str, position: int, kind: type[tokens.ScanError], message: str) -> None:
    with pytest.raises(tokens.ScanError) as caught:
        tokens.value_end(text, 0)
    assert (type(caught.value), caught.value.position, caught.value.message) == (kind, position, message)


def test_an_open_backend_config_is_incomplete_text() -> None:
    with pytest.raises(tokens.IncompleteError) as caught:
        tokens.value_end(' {"a":{}\n  %n = f32[] add(b)\n}', 0, name="backend_config")
    assert (caught.value.position, caught.value.message) == (1, "'{' is not closed")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("   ", []),
        ("a", ["a"]),
        ("a, b", ["a", " b"]),
        ("a,,b", ["a", "", "b"]),
        ("a,", ["a", ""]),
        ("(a, b), {c, d}, [e, f]", ["(a, b)", " {c, d}", " [e, f]"]),
        ('"a, b", c', ['"a, b"', " c"]),
        ("a /* , */ , b", ["a /* , */ ", " b"]),
        ("a // ,\n, b", ["a // ,\n", " b"]),
        ("f32[2,3]{1,0:T(8,128)} a, b", ["f32[2,3]{1,0:T(8,128)} a", " b"]),
    ],
)
def test_split_items(text: str, items: list[str]) -> None:
    assert [text[start:end] for start, end in tokens.split_items(text)] == items


def test_split_items_of_part_of_a_text() -> None:
    text = "x(a, b), c"
    assert [text[start:end] for start, end in tokens.split_items(text, 2, 6)] == ["a", " b"]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("", []),
        (" /* nothing */ ", []),
        (", index=1", [("index", "1")]),
        (", dimensions={0,1}, to_apply=%add", [("dimensions", "{0,1}"), ("to_apply", "%add")]),
        (" ,\n a = 1", None),
        (", a= 1 ,b={ 2 }", [("a", "1"), ("b", "{ 2 }")]),
        (", a=/*x*/1/*y*/, b=2", [("a", "1"), ("b", "2")]),
        (", calls=%a, %b, kind=kLoop", [("calls", "%a, %b"), ("kind", "kLoop")]),
        (
            ", replica_groups=mesh['a'=2,'b'=4], device_ids=(1,0) {'b'}, c=1",
            [("replica_groups", "mesh['a'=2,'b'=4], device_ids=(1,0) {'b'}"), ("c", "1")],
        ),
        (
            ', metadata={op_name=", to_apply=%none" source_line=3}, x=1',
            [("metadata", '{op_name=", to_apply=%none" source_line=3}'), ("x", "1")],
        ),
        (", a=1, a=2", [("a", "1"), ("a", "2")]),
        (", sharding={{replicated}, {maximal device=0}}", [("sharding", "{{replicated}, {maximal device=0}}")]),
        (', k={a={b={c="}"}}}, l=[1,(2,3)]', [("k", '{a={b={c="}"}}}'), ("l", "[1,(2,3)]")]),
        (", to_apply={ ROOT x = f32[] add(y, z) }, q=1", [("to_apply", "{ ROOT x = f32[] add(y, z) }"), ("q", "1")]),
    ],
)
def test_attributes(tail: str, expected: list[tuple[str, str]] | None) -> None:
    if expected is None:  # `a =` with a blank defines an instruction and is no attribute
        with pytest.raises(tokens.ScanError, match="expected an attribute"):
            list(tokens.attributes(tail))
    else:
        assert list(tokens.attributes(tail)) == expected


@pytest.mark.parametrize(
    ("tail", "position", "message"),
    [
        ("x", 0, "expected ','"),
        (", index=1 x", 10, "expected ','"),
        (", 1", 2, "expected an attribute"),
        (",", 1, "expected an attribute"),
        (", a=1,", 6, "expected a value"),
        (", a=", 4, "expected a value"),
        (", a={1", 4, "'{' is not closed"),
        (", a={{{(}}}", 8, "'}' does not close '('"),
        (', a="x', 4, "expected a value"),
    ],
)
def test_malformed_attributes_are_an_error(tail: str, position: int, message: str) -> None:
    with pytest.raises(tokens.ScanError) as caught:
        list(tokens.attributes(tail))
    assert (caught.value.position, caught.value.message) == (position, message)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ('"a b"', "a b"),
        ("'a b'", "a b"),
        ('""', ""),
        ('"', '"'),
        ("\"it's'", "\"it's'"),
        (r'"\"\\\'\n\t\r\a\b\f\v"', "\"\\'\n\t\r\a\b\f\v"),
        (r'"\x41\x1b\101\0"', "A\x1bA\0"),
        (r'"\u0041\u00e9"', "A\u00e9"),
        (r'"\q\?"', "q?"),
        ('"\\\n"', "\n"),
    ],
)
def test_unquote(text: str, expected: str) -> None:
    assert tokens.unquote(text) == expected


def test_escaped_utf8_bytes_are_joined_to_one_letter() -> None:
    """XLA escapes each byte of UTF-8 text separately."""
    assert tokens.unquote(r'"caf\303\251 \xe2\x80\xae"') == "caf\u00e9 \u202e"


@pytest.mark.parametrize(
    "line",
    [
        "  %a = f32[] add(b, c)\n",
        "ROOT a.b-c = (f32[], s32[]) tuple(\n",
        "ENTRY %main {\n",
        "HloModule m\n",
        "body.1 {\n",
        "  %body (p: f32[]) -> (f32[], s32[]) {\n",
    ],
)
def test_lines_that_never_continue_a_previous_line(line: str) -> None:
    assert tokens.FRESH_LINE.match(line)


@pytest.mark.parametrize("line", ["  dimensions={0}\n", "%b), x=1\n", "{ 1, 2 },\n", "%out\n", "= f32[] dot(\n", "", "}\n"])
def test_lines_that_may_continue_a_previous_line(line: str) -> None:
    assert not tokens.FRESH_LINE.match(line)
