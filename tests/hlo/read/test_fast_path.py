"""The fast path reads lines exactly as the parser does, and leaves all others to it."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.fast_path import CALLS, RowTexts, find_marks, find_rows, read_row
from hlo_inspect.hlo.tokens import Row

PRINTED = (
    "  %p = f32[8]{0} parameter(0)",
    "  ROOT %out.1 = (f32[8]{0}, (s32[], token[])) tuple(%p, /*index=1*/%q)",
    "a-b_c.d = f32[] constant(-1.5e-3)",
    '\tx = s8[2,2]{1,0:T(8,128)(4,1)E(4)S(1)} constant({ { 1, 2 }, { 3, 4 } }), metadata={op_name="a b"}',
    '  %c = f32[4] custom-call(%p), custom_call_target="odd)({ = f32[2] add(", backend_config="\\"}"',
    '  %j = f32[4] fusion(%p), kind=kLoop, calls=%f, backend_config={"a":"}{","b":[1]}',
    "  ROOT r = pred[] compare(f32[] %a, f32[]{:T(128)} %b), direction=LT",
    '  %w = (s32[], /*index=1*/f32[3]{0}) while(%t), condition=%c, body=%b, backend_config={"known_trip_count":{"n":"4"}}',
)


def texts_of(text: str, *, limit: int = 1 << 20) -> RowTexts | None:
    return find_rows("\n" + text, 1, limit, is_final=True)


def rows_of_lines(lines: list[str]) -> list[Row] | None:
    texts = texts_of("\n".join(lines) + "\n")
    return list(zip(*texts[:4], strict=True)) if texts is not None else None


def test_printed_lines_are_read_at_once() -> None:
    rows = rows_of_lines([line for line in PRINTED if "odd" not in line])
    assert rows is not None
    assert [(root, name, head) for root, name, head, _ in rows] == [
        ("", "p", "f32[8]{0} parameter"),
        ("ROOT ", "out.1", "(f32[8]{0}, (s32[], token[])) tuple"),
        ("", "a-b_c.d", "f32[] constant"),
        ("", "x", "s8[2,2]{1,0:T(8,128)(4,1)E(4)S(1)} constant"),
        ("", "j", "f32[4] fusion"),
        ("ROOT ", "r", "pred[] compare"),
        ("", "w", "(s32[], /*index=1*/f32[3]{0}) while"),
    ]
    assert rows[0][3] == "0)"
    assert rows[4][3] == '%p), kind=kLoop, calls=%f, backend_config={"a":"}{","b":[1]}'


@pytest.mark.parametrize("line", PRINTED)
def test_a_single_line_reads_as_the_parser_reads_it(line: str) -> None:
    text = f"\n{line}\n}}\n"
    start = len(line) - len(line.lstrip()) + 1
    parsed = parser.parse_instruction(text, start)
    assert (read_row(text, 1), len(line) + 1, None) == parsed


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
        ["  %a = f32[2] negate(%b /* open", "  */), x=1"],
        ["  %a = f32[2] negate(%b"],
        ["  %a = f32[2] negate(%b), x={1"],
        ["  %a = f32[2] map(%b), to_apply={ %c = f32[] negate(%d) }"],
        ["  %a = f32[2] negate(%b) // a comment"],
        ["  %a = f32[2] negate(%b),"],
        ["  %a = f32[2] negate(%b), calls="],
        ["  %a = f32[2] negate(%b), calls= "],
        ["  %a = f32[2] negate(%b))", "  %c = f32[2] negate((%a)"],  # the two faults cancel out in a count
        ["  %a = f32[2] broadcast(f32[] constant(6))"],
        ["  %a = f32[2] add(%b, f32[2] negate(f32[2] %b))"],
        ["  %a = f32[2] add((f32[2], (s32[])) %b, negate(%b))"],
        ["this is no instruction"],
        ["  %a == f32[] negate(%b)"],
        ["  %a = negate(%b)"],
        ["  % = f32[] negate(%b)"],
        ["  1a = f32[] negate(%b)"],
        ["ENTRY main {"],
    ],
)
def test_other_lines_are_left_to_the_parser(lines: list[str]) -> None:
    assert rows_of_lines(lines) is None
    assert rows_of_lines([PRINTED[0], *lines, PRINTED[1]]) is None


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
    ],
)
def test_a_line_that_continues_is_left_to_the_parser(text: str) -> None:
    assert read_row("\n" + text, 1) is None


def test_a_row_is_read_from_any_position() -> None:
    assert read_row("\n\na = f32[] add(b, c)\n", 2) == ("", "a", "f32[] add", "b, c)")


def test_the_last_line_is_left_if_more_text_may_follow() -> None:
    text = "\na = f32[] add(b, c)\nd = f32[] negate(a)\n"
    rows = find_rows(text, 1, len(text), is_final=False)
    assert rows is not None
    assert (text[rows.end :], rows.names) == ("d = f32[] negate(a)\n", ("a",))
    assert find_rows(text, rows.end, len(text), is_final=False) is None


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("  a(b), c={d[1]}\n  e\n", b"(){[]}\n\n"),
        ('  "([{", "\\"(", "\\\\", /*x*/ (y)\n', b"()\n"),
        ("  T(*,8)\n", b"()\n"),
        ('  "(\n)"\n', None),
        ('  "a\n', None),
        ("  /* a\n */\n", None),
        ("  /* ( */\n", None),
        ("  a // b\n", None),
    ],
)
def test_brackets_outside_of_strings_are_found(text: str, marks: bytes | None) -> None:
    assert find_marks("x" + text + "(", 1, len(text) + 1) == marks


def test_callees_in_a_text_are_found() -> None:
    assert CALLS.findall("a = f32[] fusion(b), kind=kLoop, calls=%f.1\nc = f32[] fusion(d), calls=g-2, x=1") == [
        "f.1",
        "g-2",
    ]


LINES = "  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n"


@pytest.mark.parametrize("after", ["}\n", '}, execution_thread="t"\n', "}\n\n%f {\n", "} // the end\n"])
def test_rows_end_before_their_computation_does(after: str) -> None:
    rows = texts_of(LINES + after)
    assert rows is not None
    assert (rows.names, rows.marks, rows.end) == (("a", "b", "c"), ("", "", "ROOT "), 1 + len(LINES))


@pytest.mark.parametrize(("limit", "count"), [(3, 1), (len(LINES), 2), (len(LINES) + 1, 3)])
def test_rows_end_before_a_limit(limit: int, count: int) -> None:
    rows = texts_of(LINES, limit=limit)
    assert rows is not None
    assert rows.names == ("a", "b", "c")[:count]


@pytest.mark.parametrize(
    "text",
    [
        "oops\n" + LINES,
        LINES + "oops\n",
        LINES.replace("  %b", "  oops\n  %b"),
        LINES.replace("  %b", "\n  %b"),
        LINES.replace("  %b", "  // a comment\n  %b"),
        LINES + "%f {\n" + LINES,
        LINES + "ENTRY %main (p: f32[4]) -> f32[4] {\n" + LINES,
        LINES.replace("%c = f32[]", "%c == f32[]"),
        LINES.replace("parameter(0)", "parameter((0)"),
        LINES.replace("parameter(0)", "parameter(0) q = f32[] constant(1)"),
        LINES.replace("parameter(0)", "negate(%p\n)"),
        LINES.replace("ROOT", "ENTRY"),
        LINES.replace("parameter(0)", "map(%p), to_apply={\n  %x = f32[] parameter(0)\n}"),
        LINES.replace("parameter(0)", 'parameter(0), metadata={op_name="x\n  %y = f32[] negate(%p)"}'),
        "",
        "\n",
        "}\n",
        "}\n" + LINES,
        "  %a = f32[] parameter(0),\n}\n",
    ],
)
def test_text_that_no_printer_writes_is_left_to_the_parser(text: str) -> None:
    assert texts_of(text) is None
