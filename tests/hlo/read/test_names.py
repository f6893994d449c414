"""Names that are used and not defined, or defined twice, and parameters that no instruction reads."""

from __future__ import annotations

import pytest

import hlo_inspect
from tests.hlo.reading import module, problems

ADD = """%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}
"""


def entry(*lines: str) -> str:
    """Write a module with `lines` from line 8 on."""
    return f"HloModule m\n{ADD}ENTRY %main (p: f32[2]) -> f32[2] {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def faults(*lines: str) -> list[tuple[str, int | None, str]]:
    return [(code, line, message) for code, line, _, message, _ in problems(module(entry(*lines)))]


@pytest.mark.parametrize(
    "lines",
    [
        ("%p = f32[2] parameter(0)", "ROOT %r = f32[2] negate(%p)"),
        ("p = f32[2] parameter(0)", "ROOT %r = f32[2] add(%p, p)"),
        ("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add(f32[2]{0} %p,f32[2]{0} %p)"),
        ("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add( %p /*index=1*/ ,\n %p )"),
        ("%p = f32[2] parameter(0)", 'ROOT %r = f32[2] custom-call(%p, // %ghost, nobody\n %p), custom_call_target="t"'),
        ("%p = (f32[2], f32[2]) parameter(0)", "ROOT %r = f32[2] add(%p#0, %p#1)"),
        ("%p = (f32[2], f32[2]) parameter(0)", "ROOT %r = f32[2] add(f32[2]{0} %p#0, f32[2] %p#1)"),
        ("%p = f32[2] parameter(0)", "%r = f32[2] add(null , %p)"),
        ("%p = f32[2] parameter(0)", "%r = f32[2] add(f32[2], f32[2])"),
        ("ROOT %r = f32[2] add(f32[2] parameter(0), f32[2] sqrt(f32[2] constant({1, 2})))",),
        ("%c = s32[] constant(7)", "ROOT %d = s8[2] constant({a, b})"),
        ("ROOT %r = f32[2] negate(%p)", "%p = f32[2] parameter(0)"),  # before its line, but defined
        ("%p = f32[2] parameter(0)", "ROOT %r = f32[2] reduce(%p, %p), dimensions={0}, to_apply=%add"),
        ("%p = f32[2] parameter(0)", 'ROOT %r = f32[2] negate(%p), metadata={op_name="x, to_apply=%nobody, calls=none"}'),
        ("%p = f32[2] parameter(0)", "ROOT %r = f32[2] map(%p), to_apply={ ROOT %q = f32[] negate(f32[] parameter(0)) }"),
        ("%p = f32[2] parameter(0)", "ROOT %r = f32[2] conditional(%p), branch_computations={%add, /*index=1*/ add}"),
    ],
)
def test_defined_names_in_all_spellings_have_no_fault(lines: tuple[str, ...]) -> None:
    assert faults(*lines) == []


@pytest.mark.parametrize(
    ("lines", "line", "name"),
    [
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] negate(%q)"), 9, "q"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add(f32[2]{0} %p, f32[2]{0} q.1)"), 9, "q.1"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add(%p#0, %q#1#0)"), 9, "q"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] negate(%x)"), 9, "x"),  # a name of another computation
        (("%a = f32[2] negate(%q)", "%b = f32[2] negate(%q)"), 8, "q"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add(%p,%q)"), 9, "q"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] tuple(%p, /*index=1*/%q)"), 9, "q"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add((f32[2], f32[2]) %p, (f32[2], s32[]) %q)"), 9, "q"),
        (("%p = f32[2] parameter(0)", "ROOT %r = f32[2] add(%p %p, q)"), 9, "q"),  # the number of `%` equals that of operands
    ],
)
def test_an_undefined_operand_is_a_fault(lines: tuple[str, ...], line: int, name: str) -> None:
    assert faults(*lines) == [("HI008", line, f"operand {name} is not defined in computation main")]


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("to_apply=%gone", ["gone"]),
        ("calls=gone.1", ["gone.1"]),
        ("condition=%add, body=%gone", ["gone"]),
        ("branch_computations={%add, %gone, lost}", ["gone", "lost"]),
        ("true_computation=%gone, false_computation=%add", ["gone"]),
        ("called_computations={%gone}", ["gone"]),
    ],
)
def test_an_undefined_computation_is_a_fault(attribute: str, names: list[str]) -> None:
    messages = faults("%p = f32[2] parameter(0)", f"ROOT %r = f32[2] custom-call(%p), {attribute}")
    assert messages == [("HI009", 9, f"computation {name} is called but not defined") for name in names]


def test_a_computation_may_be_defined_after_its_caller() -> None:
    text = "HloModule m\nENTRY %main () -> f32[] {\n  ROOT %r = f32[] call(), to_apply=%late\n}\n\n"
    assert problems(module(text + "%late () -> f32[] {\n  ROOT %c = f32[] constant(1)\n}\n")) == []


def test_a_name_defined_twice_in_a_computation_is_a_fault() -> None:
    lines = ("%p = f32[2] parameter(0)", "%q = f32[2] negate(%p)", "%p = f32[2] negate(%q)", "%p = f32[2] negate(%q)")
    noted = problems(module(entry(*lines)))
    assert noted == [("HI007", 10, None, "p is defined twice in computation main", 2)]


def test_two_computations_may_define_the_same_name() -> None:
    assert faults("%x = f32[2] parameter(0)", "ROOT %s = f32[2] negate(%x)") == []


def test_a_computation_defined_twice_is_a_fault_and_both_are_kept() -> None:
    parsed = module(entry("%p = f32[2] parameter(0)").replace("ENTRY", ADD + "ENTRY"))
    assert problems(parsed) == [("HI007", 7, None, "computation add is defined twice", 1)]
    assert list(parsed.computations) == ["add", "add (line 7)", "main"]
    assert parsed.opcode_counts == {"parameter": 5, "add": 2}


@pytest.mark.parametrize("spaced", ["%p, %q", "%p,%q", " %p , %q ", "p,\n    q", "%p /*a*/, /*b*/ %q", "f32[2] %p, f32[2]%q"])
def test_only_parameters_without_a_use_are_unread(spaced: str) -> None:
    lines = [f"%{name} = f32[2] parameter({number})" for number, name in enumerate("pqr")]
    parsed = module(entry(*lines, f"ROOT %s = f32[2] add({spaced})"))
    assert parsed.entry is not None
    assert parsed.entry.reads is not None
    assert parsed.entry.reads.unread == {"r"}
    assert problems(parsed) == []


@pytest.mark.parametrize("operand", ["f32[2]", "negate(" * 70 + "%p" + ")" * 70])
def test_reads_are_unknown_if_an_operand_shows_no_name(operand: str) -> None:
    """Operands in place are read down to a depth; the last one may read the parameter, as it does here."""
    parsed = module(entry("%p = f32[2] parameter(0)", f"ROOT %s = f32[2] negate({operand})"))
    assert parsed.entry is not None
    assert parsed.entry.reads is not None
    assert not parsed.entry.reads.known


PARAMETERS = "  %p = f32[4]{0} parameter(0)\n  %t = (f32[4]{0}, s32[]) parameter(1)\n"


def unused(body: str) -> list[tuple[object, object]]:
    text = f"HloModule m\n\nENTRY %main {{\n{PARAMETERS}{body}}}\n"
    rows = hlo_inspect.inspect(text, ("params",)).table("params").records()
    return [(row["number"], row["index"]) for row in rows if row["unused"]]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("  ROOT %r = f32[4]{0} negate(%p)\n", [(1, "{0}"), (1, "{1}")]),
        ("  %g = f32[4]{0} get-tuple-element(%t), index=0\n  ROOT %r = f32[4]{0} add(%p, %g)\n", [(1, "{1}")]),
        ("  ROOT %r = f32[4]{0} add(%p, %t#0)\n", [(1, "{1}")]),
        ("  ROOT %r = (f32[4]{0}, (f32[4]{0}, s32[])) tuple(%p, %t)\n", []),
        ("  %g = s32[] get-tuple-element(%t), index=1\n  ROOT %r = (s32[]) tuple(%g)\n", [(0, "{}"), (1, "{0}")]),
    ],
)
def test_unused_parameters_and_tuple_elements(body: str, expected: list[tuple[object, object]]) -> None:
    assert unused(body) == expected
