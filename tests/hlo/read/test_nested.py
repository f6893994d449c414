"""Inline computations and inline operands."""

from __future__ import annotations

import pytest

import hlo_inspect
from benchmarks.shapes import branches_in_place
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.read.parser import MAX_DEPTH, nested_computations, with_nested_operands
from tests.hlo.reading import module
from tests.linear_time import assert_linear

BODY = "to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
TEXT = f"""HloModule m

ENTRY main {{
  p = f32[4]{{0}} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={{0}}, {BODY}
}}
"""


def test_inline_computations_are_counted() -> None:
    report = hlo_inspect.inspect(TEXT)
    assert (report.facts["module.computations"], report.facts["module.instructions"]) == (2, 3 + 3)
    assert (report.facts["module.entry_instructions"], report.facts["opcode.add"]) == (3, 1)
    assert report.findings == ()


def test_a_single_unmarked_computation_is_the_entry() -> None:
    facts = hlo_inspect.inspect(TEXT.replace("ENTRY ", "")).facts
    assert (facts["params.count"], facts["outputs.bytes"], facts["module.entry_instructions"]) == (1, 4, 3)


def test_inline_computations_within_inline_branches_are_counted() -> None:
    reduce = f"ROOT r = f32[] reduce(q, z), dimensions={{0}}, {BODY}"
    branch = f"{{ q = f32[4]{{0}} parameter(0) z = f32[] constant(0) {reduce} }}"
    branches = f"branch_computations={{ {branch}, {branch} }}"
    text = f"""HloModule m

ENTRY main {{
  i = s32[] parameter(0)
  p = f32[4]{{0}} parameter(1)
  ROOT c = f32[] conditional(i, p, p), {branches}
}}
"""
    facts = hlo_inspect.inspect(text).facts
    assert facts["module.computations"] == 1 + 2 + 2
    assert facts["module.instructions"] == 3 + 2 * 3 + 2 * 3


def test_a_fault_in_an_inline_computation_is_counted() -> None:
    report = hlo_inspect.inspect(TEXT.replace("ROOT c = f32[] add(a, b)", "ROOT c = f32[ add(a, b)"))
    assert report.facts["module.unparsed_lines"] == 1
    assert [finding.rule for finding in report.findings if finding.rule == "HI001"] == ["HI001"]


def test_a_malformed_shape_in_an_inline_computation_is_counted() -> None:
    """The fault has the line of its instruction. The other instructions are read."""
    body = "{\n    %a = f32[] parameter(0)\n    %b = f32[8x] parameter(1)\n    ROOT %c = f32[] add(%a, %a)\n  }"
    call = f"  ROOT %r = f32[] call(%p), to_apply={body}\n"
    parsed = module(f"HloModule m\n\nENTRY %e {{\n  %p = f32[] parameter(0)\n{call}}}\n")
    assert parsed.unparsed_lines == 1
    assert [(problem.message, problem.location.line) for problem in parsed.problems] == [("'8x' is not a dimension", 7)]
    assert parsed.opcode_counts == {"parameter": 2, "add": 1, "call": 1}


@pytest.mark.parametrize(
    ("tail", "rows"),
    [
        ("%a, %b), x={ c(d) }", [("", "n", "f32[] add", "%a, %b), x={ c(d) }")]),
        (
            "f32[] constant(6), b)",
            [("", "n.operand-0", "f32[] constant", "6)"), ("", "n", "f32[] add", "f32[] %n.operand-0, b)")],
        ),
        ("b, sqrt(a)), x=1", [("", "n.operand-1", " sqrt", "a)"), ("", "n", "f32[] add", "b, %n.operand-1), x=1")]),
        (
            "f32[] sqrt(f32[] constant(4)), f32[2]{0:T(8)} iota())",
            [
                ("", "n.operand-0.operand-0", "f32[] constant", "4)"),
                ("", "n.operand-0", "f32[] sqrt", "f32[] %n.operand-0.operand-0)"),
                ("", "n.operand-1", "f32[2]{0:T(8)} iota", ")"),
                ("", "n", "f32[] add", "f32[] %n.operand-0, f32[2]{0:T(8)} %n.operand-1)"),
            ],
        ),
        ("(f32[], (s32[])) %a, f32[]{:T(128)} b)", [("", "n", "f32[] add", "(f32[], (s32[])) %a, f32[]{:T(128)} b)")]),
        ("f32[] 6(b))", [("", "n", "f32[] add", "f32[] 6(b))")]),
    ],
)
def test_inline_operands_become_rows_of_their_own(tail: str, rows: list[tuple[str, str, str, str]]) -> None:
    assert with_nested_operands(("", "n", "f32[] add", tail)) == rows


def test_the_depth_of_inline_operands_is_limited() -> None:
    tail = "negate(" * 10_000 + "%x" + ")" * 10_000 + ")"
    assert len(with_nested_operands(("", "n", "f32[] negate", tail))) == MAX_DEPTH + 1


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("ROOT b = f32[2] broadcast(f32[] constant(6)), dimensions={}", {"broadcast": 1, "constant": 1}),
        (
            "ROOT c = f32[20] concatenate(f32[10] convert(f16[10] parameter(0)), f32[10] p), dimensions={0}",
            {"concatenate": 1, "convert": 1, "parameter": 2},
        ),
        ("ROOT s = f32[] add(f32[] constant(1), sqrt(f32[] constant(4)))", {"add": 1, "sqrt": 1, "constant": 2}),
    ],
)
@pytest.mark.parametrize("command", ["summary", "cost"])
def test_inline_operands_are_counted_as_instructions(line: str, counts: dict[str, int], command: str) -> None:
    """`jaxlib` counts them too."""
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[10] parameter(1)\n  {line}\n}}\n"
    report = hlo_inspect.inspect(text, (command, "summary"))
    assert report.facts["module.instructions"] == sum(counts.values()) + ("parameter" not in counts)
    assert {name.removeprefix("opcode."): count for name, count in report.facts.items() if name.startswith("opcode.")} == {
        "parameter": 1,
        **counts,
    }
    assert [finding for finding in report.findings if finding.rule.startswith("HI0")] == []


def test_the_depth_of_inline_computations_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level is read once per level around it, which is quadratic without a limit."""
    read: list[int] = []
    parse = parser.parse_instruction

    def counting(text: str, start: int, *, is_final: bool = True) -> parser.ParsedInstruction:
        parsed = parse(text, start, is_final=is_final)
        read.append(parsed.end - start)
        return parsed

    monkeypatch.setattr(parser, "parse_instruction", counting)
    depth = 300
    begin = "".join(f"r{i} = f32[4] call(p{i}), to_apply={{ p{i + 1} = f32[4] parameter(0)\n" for i in range(depth))
    text = f"HloModule m\n\nENTRY e {{\n p0 = f32[4] parameter(0)\n{begin}ROOT q = f32[4] negate(p{depth})\n" + "}" * (
        depth + 1
    )
    parsed = module(text + "\n")
    assert parsed.computation_count == MAX_DEPTH + 2
    assert [problem.code for problem in parsed.problems] == ["HI001"]
    assert sum(read) < (MAX_DEPTH + 3) * len(text)


def test_many_branches_in_one_instruction_take_linear_time() -> None:
    """Each branch has the line of its opening brace."""

    def read(count: int) -> None:
        tail = branches_in_place(count).partition("conditional(")[2].rpartition("\n}")[0]
        nested = list(nested_computations(("", "r", "f32[] conditional", tail), 5))
        assert [computation.line for computation in nested] == list(range(5, 5 + count))

    assert_linear(read, 8_000)


@pytest.mark.parametrize("before_the_brace", ["", "\n  "])
def test_inline_bodies_are_read_if_later_lines_are_as_printed(before_the_brace: str) -> None:
    text = f"""HloModule m

ENTRY %main (p: f32[16]) -> f32[16] {{
  %p = f32[16]{{0}} parameter(0)
  %c = f32[16]{{0}} call(%p), to_apply={before_the_brace}{{
    %a = f32[16]{{0}} parameter(0)
    %g = f32[16]{{0}} all-reduce(%a), replica_groups={{{{0,1}}}}, to_apply={before_the_brace}{{
      %x = f32[] parameter(0)
      %y = f32[] parameter(1)
      ROOT %s = f32[] add(%x, %y)
    }}
    ROOT %r = f32[16]{{0}} negate(%g)
  }}
  ROOT %z = f32[16]{{0}} negate(%c)
}}
"""
    facts = hlo_inspect.inspect(text, ("summary", "collectives")).facts
    assert (facts["module.computations"], facts["module.instructions"], facts["collectives.count"]) == (3, 3 + 3 + 3, 1)
    assert hlo_inspect.inspect(text, "collectives").facts["collectives.count"] == 1


ADD = "%add {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n"
GROUPS = "replica_groups={{0,1,2,3}}"
CALL = f"""  ROOT %c = f32[16]{{0}} call(%p), to_apply={{
    %a = f32[16]{{0}} parameter(0)
    ROOT %r = f32[16]{{0}} all-reduce(%a), {GROUPS}, to_apply={{
      %x = f32[] parameter(0) %y = f32[] parameter(1) ROOT %s = f32[] add(%x, %y) }}
  }}
"""
START = f"""  %rs-start = ((f32[16]{{0}}), f32[4]{{0}}) async-start(%p), calls={{
    %a = f32[16]{{0}} parameter(0)
    ROOT %r = f32[4]{{0}} reduce-scatter(%a), {GROUPS}, dimensions={{0}}, to_apply=%add
  }}
  ROOT %rs-done = f32[4]{{0}} async-done(%rs-start)
"""
LOOP = f"""  %zero = s32[] constant(0)
  %t = (s32[], f32[16]{{0}}) tuple(%zero, %p)
  ROOT %w = (s32[], f32[16]{{0}}) while(%t), condition={{
    %q = (s32[], f32[16]{{0}}) parameter(0)
    %i = s32[] get-tuple-element(%q), index=0
    %n = s32[] constant(5)
    ROOT %lt = pred[] compare(%i, %n), direction=LT
  }}, body={{
    %b = (s32[], f32[16]{{0}}) parameter(0)
    %j = s32[] get-tuple-element(%b), index=0
    %one = s32[] constant(1)
    %next = s32[] add(%j, %one)
    %v = f32[16]{{0}} get-tuple-element(%b), index=1
    %ar = f32[16]{{0}} all-reduce(%v), {GROUPS}, to_apply=%add
    ROOT %o = (s32[], f32[16]{{0}}) tuple(%next, %ar)
  }}
"""
MIXED = f"""  %i = s32[] parameter(1)
  %q = f32[] constant(0)
  ROOT %k = f32[] conditional(%i, %q, %q), branch_computations={{ %none, {{
    %a = f32[] parameter(0)
    ROOT %r = f32[] all-reduce(%a), {GROUPS}, to_apply=%add
  }} }}
"""
NONE = "%none {\n  ROOT %a = f32[] parameter(0)\n}\n"
BRANCHES = f"""  %i = s32[] parameter(1)
  ROOT %k = f32[16]{{0}} conditional(%i, %p, %p), branch_computations={{ {{
    %a = f32[16]{{0}} parameter(0)
    ROOT %r = f32[16]{{0}} all-reduce(%a), {GROUPS}, to_apply=%add
  }}, {{
    %a = f32[16]{{0}} parameter(0)
    ROOT %g = f32[16]{{0}} all-reduce(%a), {GROUPS}, to_apply=%add
  }} }}
"""
FUSED = """  ROOT %f = f32[16]{0} fusion(%p), kind=kLoop, calls={
    %a = f32[16]{0} parameter(0)
    %m = f32[16]{0} multiply(%a, %a)
    ROOT %r = f32[16]{0} add(%m, %a)
  }
"""


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("rows", "applied", "instructions", "flops", "collectives"),
    [  # XLA's cost analysis counts the body of a loop once
        (CALL, "", 2 + 2 + 3, 16, {"r": (False, 1)}),
        (START, ADD, 3 + 2 + 3, 0, {"rs-start": (True, 1)}),
        (LOOP, ADD, 4 + 4 + 7 + 3, 18, {"ar": (False, 5)}),
        (BRANCHES, ADD, 3 + 2 + 2 + 3, 16, {"r": (False, None), "g": (False, None)}),
        (MIXED, ADD + NONE, 4 + 1 + 2 + 3, 1, {"r": (False, None)}),
        (FUSED, "", 2 + 3, 32, {}),
    ],
)
def test_figures_include_inline_computations(
    rows: str,
    applied: str,
    instructions: int,
    flops: int,
    collectives: dict[str, tuple[bool, int | None]],
    wrapped: bool,
) -> None:
    text = f"HloModule m, replica_count=4\n\n{applied}ENTRY %main {{\n  %p = f32[16]{{0}} parameter(0)\n{rows}}}\n"
    text = text.replace("={\n", "=\n{\n").replace(", calls", ",\n    calls") if wrapped else text
    for passes in ("collectives",), ("summary", "collectives", "cost"):
        report = hlo_inspect.inspect(text, passes)
        table = next(candidate for candidate in report.tables if candidate.name == "collectives")
        assert {row["name"]: (row["is_async"], row["runs"]) for row in table.records()} == collectives
        assert [finding for finding in report.findings if finding.rule.startswith("HI0")] == []
    assert report.facts["module.instructions"] == instructions
    assert report.facts["cost.flops"] == flops


def test_inline_bodies_of_callers_of_the_same_name_are_kept_apart() -> None:
    """Both callers have the name `c`. Only the second one's body has an all-reduce."""
    plain = "%c = f32[16]{0} call(%p), to_apply={ %a = f32[16]{0} parameter(0) ROOT %r = f32[16]{0} negate(%a) }"
    summed = plain.replace("negate(%a)", f"all-reduce(%a), {GROUPS}, to_apply=%add")
    first = f"%one {{\n  %p = f32[16]{{0}} parameter(0)\n  ROOT {plain}\n}}\n"
    second = f"%two {{\n  %p = f32[16]{{0}} parameter(0)\n  ROOT {summed}\n}}\n"
    entry = "ENTRY %main {\n  %p = f32[16]{0} parameter(0)\n  %a = f32[16]{0} call(%p), to_apply=%one\n"
    last = "  ROOT %b = f32[16]{0} call(%a), to_apply=%two\n}\n"
    text = f"HloModule m, replica_count=4\n\n{ADD}{first}{second}{entry}{last}"
    for passes in ("collectives",), ("summary", "collectives"):
        assert hlo_inspect.inspect(text, passes).facts["collectives.executed_count"] == 1
    report = hlo_inspect.inspect(text, ("summary", "cost"))
    assert (report.facts["module.computations"], report.facts["cost.flops"]) == (6, 16 + 16)
    assert report.findings == ()
