"""The fast path reads lines exactly as the parser does, and leaves all others to it."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.fast_path import CALLS, LineRun, find_marks, find_run, read_row
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


def run_of(text: str, *, inside: bool = False, limit: int = 1 << 20) -> LineRun | None:
    return find_run("\n" + text, 1, limit, inside=inside, is_final=True)


def rows_of_lines(lines: list[str]) -> list[Row] | None:
    run = run_of("\n".join(lines) + "\n", inside=True)
    return rows_of(run) if run is not None else None


def rows_of(run: LineRun) -> list[Row]:
    return list(zip(run.marks, run.names, run.heads, run.tails, strict=True))


def test_printed_lines_are_read_in_one_run() -> None:
    run = rows_of_lines([line for line in PRINTED if "odd" not in line])
    assert run is not None
    assert [(root, name, head) for root, name, head, _ in run] == [
        ("", "p", "f32[8]{0} parameter"),
        ("ROOT ", "out.1", "(f32[8]{0}, (s32[], token[])) tuple"),
        ("", "a-b_c.d", "f32[] constant"),
        ("", "x", "s8[2,2]{1,0:T(8,128)(4,1)E(4)S(1)} constant"),
        ("", "j", "f32[4] fusion"),
        ("ROOT ", "r", "pred[] compare"),
        ("", "w", "(s32[], /*index=1*/f32[3]{0}) while"),
    ]
    assert run[0][3] == "0)"
    assert run[4][3] == '%p), kind=kLoop, calls=%f, backend_config={"a":"}{","b":[1]}'


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
    run = find_run(text, 1, len(text), inside=True, is_final=False)
    assert run is not None
    assert (text[run.end :], run.lines) == ("d = f32[] negate(a)\n", 1)
    assert find_run(text, run.end, len(text), inside=True, is_final=False) is None


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


ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
"""
MAIN = 'ENTRY %main (p: f32[4]) -> f32[4] {\n  ROOT %p = f32[4]{0} parameter(0)\n}, execution_thread="t"\n'


def test_a_run_covers_several_computations() -> None:
    text = ADD + "\n" + MAIN
    run = run_of(text + "rest\n")
    assert run is not None
    assert run.parts == [("add", False, 1, 4, 1, True), ("main", True, 5, 6, 7, True)]
    assert rows_of(run)[3] == ("ROOT ", "c", "f32[] add", "%a, %b)")
    assert (run.end, run.lines) == (1 + len(text), text.count("\n"))


def test_blank_lines_between_computations_may_be_missing() -> None:
    """Some logs omit them. Line numbers stay correct."""
    text = ADD + ADD.replace("%add", "%sum") + "\n" + MAIN
    run = run_of(text)
    assert run is not None
    assert run.parts == [("add", False, 1, 4, 1, True), ("sum", False, 5, 8, 6, True), ("main", True, 9, 10, 12, True)]
    assert (run.end, run.lines) == (1 + len(text), text.count("\n"))


def test_a_run_may_begin_and_end_inside_a_computation() -> None:
    """A run ends after a computation if it can, else it holds at least a line."""
    text = ADD.partition("\n")[2] + "\n" + MAIN.removesuffix('}, execution_thread="t"\n')
    run = run_of(text, inside=True)
    assert run is not None
    assert run.parts == [(None, False, 0, 3, 0, True)]
    text = "\n" + text
    rest = find_run(text, run.end, len(text), inside=False, is_final=True)
    assert rest is None  # the blank line belongs to no run
    rest = find_run(text, run.end + 1, len(text), inside=False, is_final=True)
    assert rest is not None
    assert rest.parts == [("main", True, 1, 2, 1, False)]
    assert (rest.end, rest.lines) == (len(text), 2)
    first = run_of(ADD, limit=3)
    assert first is not None
    assert (first.parts, first.lines) == ([("add", False, 1, 1, 1, False)], 1)


def test_a_run_may_begin_with_a_closing_brace() -> None:
    run = run_of("}\n\n" + ADD, inside=True)
    assert run is not None
    assert run.parts == [(None, False, 0, 0, 0, True), ("add", False, 1, 4, 3, True)]
    assert run.lines == 2 + ADD.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "oops\n" + ADD,
        ADD + "\noops\n" + MAIN,
        ADD + "\n\n" + MAIN,  # two lines between them
        ADD.replace("  %b", "  oops\n  %b") + "\n" + MAIN,
        ADD.replace("  %b", "\n  %b") + "\n" + MAIN,
        ADD.replace("  %b", "  // a comment\n  %b") + "\n" + MAIN,
        ADD.removesuffix("}\n") + "\n" + MAIN,
        ADD.replace("%c = f32[]", "%c == f32[]") + "\n" + MAIN,
        ADD + "\n" + MAIN.replace("parameter(0)", "parameter((0)"),
        ADD + "\n" + MAIN.replace("parameter(0)", "parameter(0) q = f32[] constant(1)"),
        ADD + MAIN.replace(" parameter(0)", " negate(%p\n)"),
        ADD + "\n" + MAIN.replace("ROOT", "ENTRY"),
        ADD + "\n" + MAIN.replace("ENTRY", "ROOT"),
        ADD + "oops\n" + MAIN,
        ADD + "\n" + MAIN.replace("(p: f32[4]) -> f32[4]", "(p: f32[4])"),
        ADD + "\n" + MAIN.replace("parameter(0)", "map(%p), to_apply={\n  %x = f32[] parameter(0)\n}"),
        ADD + "\n" + MAIN.replace("parameter(0)", 'parameter(0), metadata={op_name="x\n  %y = f32[] negate(%p)"}'),
        "",
        "\n",
        "}\n",
    ],
)
def test_text_that_no_printer_writes_is_no_run(text: str) -> None:
    assert run_of(text) is None
