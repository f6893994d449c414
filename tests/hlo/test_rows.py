"""The fast path: what it takes has to be what the grammar takes; everything else it has to leave."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import grammar, rows

PRINTED = (
    "  %p = f32[8]{0} parameter(0)",
    "  ROOT %out.1 = (f32[8]{0}, (s32[], token[])) tuple(%p, /*index=1*/%q)",
    "a-b_c.d = f32[] constant(-1.5e-3)",
    '\tx = s8[2,2]{1,0:T(8,128)(4,1)E(4)S(1)} constant({ { 1, 2 }, { 3, 4 } }), metadata={op_name="a b"}',
    '  %c = f32[4] custom-call(%p), custom_call_target="odd)({ = f32[2] add(", backend_config="\\"}"',
    '  %j = f32[4] fusion(%p), kind=kLoop, calls=%f, backend_config={"a":"}{","b":[1]}',
    "  ROOT r = pred[] compare(f32[] %a, f32[]{:T(128)} %b), direction=LT // is it",
    '  %w = (s32[], /*index=1*/f32[3]{0}) while(%t), condition=%c, body=%b, backend_config={"known_trip_count":{"n":"4"}}',
)


def taken(lines: list[str]) -> list[rows.Row] | None:
    text = "\n" + "\n".join(lines) + "\n"
    return rows.find_rows(text, 1, len(text))


def test_printed_lines_are_taken_together() -> None:
    found = taken([line for line in PRINTED if "odd" not in line])
    assert found is not None
    assert [(root, name, head) for root, name, head, _ in found] == [
        ("", "p", "f32[8]{0} parameter"),
        ("ROOT ", "out.1", "(f32[8]{0}, (s32[], token[])) tuple"),
        ("", "a-b_c.d", "f32[] constant"),
        ("", "x", "s8[2,2]{1,0:T(8,128)(4,1)E(4)S(1)} constant"),
        ("", "j", "f32[4] fusion"),
        ("ROOT ", "r", "pred[] compare"),
        ("", "w", "(s32[], /*index=1*/f32[3]{0}) while"),
    ]
    assert found[0][3] == "0)"
    assert found[4][3] == '%p), kind=kLoop, calls=%f, backend_config={"a":"}{","b":[1]}'


@pytest.mark.parametrize("line", PRINTED)
def test_a_line_alone_is_what_the_grammar_finds(line: str) -> None:
    text = f"\n{line}\n}}\n"
    found = rows.find_row(text, 1)
    assert found is not None
    row, line_end = found
    assert text[line_end] == "\n"
    start = len(line) - len(line.lstrip()) + 1
    (root, name, head, tail), end = grammar.scan_instruction(text, start)
    assert row[:3] == (root, name, head)
    assert row[3].startswith(tail)
    assert text[end:line_end] in {"", " // is it"}


@pytest.mark.parametrize(
    "lines",
    [
        ["  %p = f32[] parameter(0)", ""],
        ["  %p = f32[] parameter(0)", "  // a comment"],
        ["  %a = f32[2] constant({1,", "    2})"],
        ["  %a = f32[2] add(%b,", "    %c)"],
        ["  %a = f32[2] add(%b, %c),", "    x=1"],
        ["  %a = f32[2] negate(%b) %c = f32[2] negate(%a)"],
        ['  %a = f32[2] negate(%b), metadata={op_name="x', 'y"}'],
        ['  %a = f32[2] custom-call(%p), custom_call_target="odd)({ = f32[2] add("'],
        ["  %a = f32[2] negate(%b /* open", "  */), x=1"],
        ["  %a = f32[2] negate(%b"],
        ["  %a = f32[2] negate(%b), x={1"],
        ["  %a = f32[2] map(%b), to_apply={ %c = f32[] negate(%d) }"],
        ["this is no instruction"],
        ["  %a == f32[] negate(%b)"],
        ["  %a = negate(%b)"],
        ["  % = f32[] negate(%b)"],
        ["  1a = f32[] negate(%b)"],
        ["ENTRY main {"],
        ["}"],
    ],
)
def test_other_lines_are_left_to_the_grammar(lines: list[str]) -> None:
    assert taken(lines) is None
    assert taken([PRINTED[0], *lines, PRINTED[1]]) is None


@pytest.mark.parametrize(
    "text",
    [
        "a = f32[] add(b, c),\n  x=1\n",
        "a = f32[] add(b, c)\n  , x=1\n",
        "a = f32[] add(b, c), x=\n  1\n",
        "a = f32[] map(b), to_apply=\n{\n",
        "a = f32[] add(b, c), r=mesh['a'=2]\n  {'a'}\n",
        "a = f32[] add(b, c), r=[1,2]\n  <=[2]\n",
        "a = f32[] add(b,\n c)\n",
        "a = f32[] add(b, c), x={\n1}\n",
        "a = f32[] add(b, c) d = f32[] negate(a)\ne = f32[] negate(d)\n",
        "a = f32[] add(b, c) %d=f32[] negate(a)\ne = f32[] negate(d)\n",
        "a = f32[] add(b, c) /*\n*/, x=1\n",
        "a = f32[] add(b, c)\n /* more */ , x=1\n",
        "a = f32[] add(b, c)\n",  # the next piece may go on with it
    ],
)
def test_a_line_that_may_go_on_is_left_to_the_grammar(text: str) -> None:
    assert rows.find_row("\n" + text, 1) is None


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("  a(b), c={d[1]}\n  e\n", b"(){[]}\n\n"),
        ('  "([{", "\\"(", "\\\\", /*x*/ (y)\n', b"**()\n"),
        ('  "(\n)"\n', None),
        ('  "a\n', None),
        ("  (\n", None),
        ("  {}}\n", None),
        ("  /* a\n */\n", None),
    ],
)
def test_marks_outside_of_strings(text: str, marks: bytes | None) -> None:
    assert rows.find_marks("x" + text + "(", 1, len(text) + 1) == marks


def test_only_the_lines_asked_for_are_taken() -> None:
    text = "\nx = f32[] negate(b)\ny = f32[] negate(x)\nz = f32[] negate(y)\n"
    found = rows.find_rows(text, text.index("y ="), text.index("z ="))
    assert found == [("", "y", "f32[] negate", "x)")]


@pytest.mark.parametrize(
    ("line", "name", "is_entry"),
    [
        ("ENTRY %main.1 (p: f32[2], q: (s32[], f32[4])) -> (s32[], f32[4]) {", "main.1", True),
        ("%body () -> f32[] {", "body", False),
        ("body.1 {  ", "body.1", False),
        ("ENTRY main {", "main", True),
    ],
)
def test_computations(line: str, name: str, is_entry: bool) -> None:
    match = rows.COMPUTATION.match(f"{line}\n  %a = f32[] negate(%p)\n")
    assert match is not None
    assert (match[2], bool(match[1]), match.end()) == (name, is_entry, len(line) + 1)


@pytest.mark.parametrize("line", ["main{", "main (p: f32[2]) {", "main", "ENTRY {", "  main {", "main { a = f32[] negate(b) }"])
def test_other_starts_of_computations_are_left_to_the_grammar(line: str) -> None:
    assert rows.COMPUTATION.match(line + "\n") is None


@pytest.mark.parametrize("line", ["}", "} // main", "}  ", '}, execution_thread="host"', '}, execution_thread="host" // main'])
def test_closers(line: str) -> None:
    match = rows.CLOSER.match(line + "\nx")
    assert match is not None
    assert match.end() == len(line) + 1


@pytest.mark.parametrize("line", ["})", "}, x=1", "} }", '}, execution_thread="a" b'])
def test_braces_that_close_something_else(line: str) -> None:
    assert rows.CLOSER.match(line + "\n") is None


def test_the_callees_of_a_text() -> None:
    assert rows.CALLS.findall("a = f32[] fusion(b), kind=kLoop, calls=%f.1\nc = f32[] fusion(d), calls=g-2, x=1") == [
        "f.1",
        "g-2",
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("  ROOT %s = f32[] add(%x, %x)", ("f32[]", "add")),
        ("  ROOT s = (s32[]{:T(128)}, f32[2]{0}) tuple(x, y)", ("(s32[]{:T(128)}, f32[2]{0})", "tuple")),
        ("  ROOT s = ((pred[]), f32[2]{0}) tuple(x, y)", ("((pred[]), f32[2]{0})", "tuple")),
        ("  ROOT s = f32[2]{0} add(x, x)", None),
        ("  ROOT s = (f32[2]{0}, s32[]) tuple(y, x)", None),
        ("  s = f32[] add(x, x)", None),
    ],
)
def test_roots_that_are_scalars(line: str, found: tuple[str, str] | None) -> None:
    match = rows.BLOCK.match(f"%f (x: f32[]) -> f32[] {{\n  %x = s32[] parameter(0)\n{line}\n}}\n\n%g {{\n")
    assert match is not None
    assert match.groups() == ("f", *(found or (None, None)))


def test_rows_that_are_picked() -> None:
    text = '\n  %a = f32[] add(%b, %b), metadata={op_name="\\""}\n  oops\n  %c = f32[] negate(%a)\n}\n'
    lines = [text.index("  %a"), text.index("  %c")]
    assert rows.pick_rows(text, 1, len(text) - 2, lines[1:]) == [(lines[1], ("", "c", "f32[] negate", "%a)"))]
    assert rows.pick_rows(text, 1, len(text) - 2, [text.index("  oops")]) is None
    for hidden in (text.replace('\\""', '\\"'), text.replace("oops", '"'), text.replace("oops", "/*")):
        assert rows.pick_rows(hidden, 1, len(hidden) - 2, [hidden.index("  %c")]) is None
