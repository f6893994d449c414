"""Fingerprints: equal for computations that differ only in names and metadata, different for all others."""

from __future__ import annotations

import pytest

from hlo_inspect.graph import fingerprints
from hlo_inspect.graph.fingerprints import Fingerprints
from tests.analysis.cost.small import module_of

LINES = ("%a.1 = f32[4] parameter(0)", "%b.1 = f32[4] parameter(1)", "ROOT %r.2 = f32[4] subtract(%a.1, %b.1)")


def computation(name: str, *lines: str) -> str:
    """Write a computation as printers do, so that computations share the heads of their rows."""
    return f"%{name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n"


REPEATED = 6


def share_fingerprint(first: tuple[str, ...], other: tuple[str, ...], before: str = "") -> bool:
    """Return True if two computations share a fingerprint. One copy and several copies of the first must agree."""
    ones = [f"one.{number}" for number in range(REPEATED)]
    text = before + "".join(computation(name, *first) for name in ones) + computation("other", *other)
    computations = module_of("%p = f32[] parameter(0)", before=text.removesuffix("\n")).computations
    results = []
    for requested in (ones[:1], ones):
        fingerprints = Fingerprints(computations)
        numbers = {fingerprints.get(name) for name in requested}
        last = fingerprints.get("other")
        assert None not in {*numbers, last}
        assert len(numbers) == 1
        results.append(
            (last in numbers, fingerprints.differs_only_in_names("one.0"), fingerprints.differs_only_in_names("other"))
        )
    assert results[0] == results[1]
    return results[0][0]


@pytest.mark.parametrize(
    "other",
    [
        ("%a.7 = f32[4] parameter(0)", "%b.7 = f32[4] parameter(1)", "ROOT %r.9 = f32[4] subtract(%a.7, %b.7)"),
        ("%p = f32[4] parameter(0)", "%q.1b = f32[4] parameter(1)", "ROOT %r = f32[4] subtract(%p, %q.1b)"),
        (*LINES[:2], LINES[2] + ', metadata={op_name="x" source_line=3}'),
    ],
)
def test_names_and_metadata_do_not_change_a_fingerprint(other: tuple[str, ...]) -> None:
    assert share_fingerprint(LINES, other)


@pytest.mark.parametrize(
    "other",
    [
        (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%b.1, %a.1)"),
        (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%a.1, %a.1)"),
        (*LINES[:2], "ROOT %r.2 = f32[4] add(%a.1, %b.1)"),
        (*LINES[:2], "ROOT %r.2 = f32[4]{0} subtract(%a.1, %b.1)"),
        ("%a.1 = f32[4] parameter(1)", "%b.1 = f32[4] parameter(0)", LINES[2]),
        (LINES[0], f"ROOT {LINES[1]}", LINES[2].replace("ROOT ", "")),
        (*LINES, "%s.3 = f32[4] negate(%r.2)"),
        (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%a.1, %c)"),
    ],
)
def test_operands_opcodes_shapes_and_roots_change_a_fingerprint(other: tuple[str, ...]) -> None:
    assert not share_fingerprint(LINES, other)


def test_a_redefined_name_changes_a_fingerprint() -> None:
    """Two rows define `a.1` in `twice`; both operands of its root are the second row."""
    last = "ROOT %s = f32[4] subtract(%a.1, %b.1)"
    twice = ("%a.1 = f32[4] parameter(0)", "%a.1 = f32[4] parameter(1)", last.replace("%b.1", "%a.1"))
    assert not share_fingerprint((*LINES[:2], last), twice)
    again = tuple(line.replace("%a.1", "%b.1") for line in twice)
    assert share_fingerprint(twice, again)


def test_a_callee_name_is_not_confused_with_an_instruction_name() -> None:
    before = reducer("p", "add") + reducer("f.1", "add") + reducer("q", "tanh")
    assert share_fingerprint((*INPUTS, REDUCE + "f.1"), (*INPUTS, REDUCE + "f.1"), before)
    assert not share_fingerprint((*INPUTS, REDUCE + "f.1"), (*INPUTS, REDUCE + "q"), before)
    other = tuple(line.replace("%z", "%q") for line in INPUTS)
    assert not share_fingerprint((*INPUTS, REDUCE + "f.1"), (*other, REDUCE.replace("%z", "%q") + "q"), before)


def test_a_percent_sign_without_a_name_is_text() -> None:
    line = "ROOT %r.2 = f32[4] subtract(%a.1, %b.1) /* 5% s %s */"
    assert share_fingerprint((*LINES[:2], line), (*LINES[:2], line.replace("%r.2", "%r.3")))
    assert not share_fingerprint((*LINES[:2], line), (*LINES[:2], line.replace("5%", "6%")))


def test_operands_are_compared_by_the_rows_that_they_name() -> None:
    head = ("%a.1 = f32[4] parameter(0)", "%a.2 = f32[4] parameter(1)")
    assert not share_fingerprint((*head, "%r = f32[4] add(%a.1, %a.2)"), (*head, "%r = f32[4] add(%a.1, %a.1)"))
    assert not share_fingerprint((*head, "%r = f32[4] add(%a.1, %a.2)"), (*head, "%r = f32[4] add(%a.2, %a.1)"))


@pytest.mark.parametrize(("negated", "difference"), [("%a", "p, %x"), ("p /*%*/", "p, x")])
def test_an_unmarked_name_is_still_an_operand(negated: str, difference: str) -> None:
    """`p` without `%` is the first parameter in one computation and the second in the other."""
    last = f"ROOT %s = f32[8] subtract({difference})"
    first, second = ("%p", "%q"), ("%q", "%p")
    computation_lines, other = (
        (
            f"{a} = f32[8] parameter(0)",
            f"{b} = f32[8] parameter(1)",
            f"%x = f32[8] negate({negated.replace('%a', a)})",
            last,
        )
        for a, b in (first, second)
    )
    assert not share_fingerprint(computation_lines, other)
    assert share_fingerprint(computation_lines, computation_lines)


def test_an_unmarked_word_that_names_a_row_changes_a_fingerprint() -> None:
    """`p` without `%` names no row in one computation and the first parameter in the other."""
    lines = (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%a.1, p)")
    assert not share_fingerprint(lines, tuple(line.replace("%a.1", "%p") for line in lines))
    assert share_fingerprint(lines, tuple(line.replace("%a.1", "%q") for line in lines))


def test_unmarked_names_may_differ_in_their_number_suffix() -> None:
    assert share_fingerprint(
        ("a.1 = f32[] parameter(0)", "b.1 = f32[] negate(a.1)"), ("a.7 = f32[] parameter(0)", "b.7 = f32[] negate(a.7)")
    )
    assert not share_fingerprint(
        ("a.1b = f32[] parameter(0)", "c = f32[] negate(a.1b)"), ("ab.1 = f32[] parameter(0)", "c = f32[] negate(ab.1)")
    )


def test_a_computation_with_calls_or_unmarked_names_may_differ_in_more() -> None:
    """Callees may differ, and a number in an unmarked line may be a constant."""
    constant, other = ("%a.1 = f32[] constant(0.9)",), ("%a.1 = f32[] constant(0.8)",)
    assert not share_fingerprint(constant, other)
    text = computation("one", *constant) + reducer("f.1", "add") + computation("calls", *INPUTS, REDUCE + "f.1")
    text += computation("bare", "a.1 = f32[] constant(0.9)", "b.1 = f32[] negate(a.1)")
    fingerprints = Fingerprints(module_of("%p = f32[] parameter(0)", before=text).computations)
    assert all(fingerprints.get(name) is not None for name in ("one", "f.1", "calls", "bare"))
    assert [name for name in ("one", "f.1", "calls", "bare") if fingerprints.differs_only_in_names(name)] == ["one", "f.1"]


REDUCE = "%r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%"
INPUTS = ("%p = f32[8] parameter(0)", "%z = f32[] parameter(1)")


def reducer(name: str, opcode: str) -> str:
    return computation(name, "%x.1 = f32[] parameter(0)", "%y.1 = f32[] parameter(1)", f"%s = f32[] {opcode}(%x.1, %y.1)")


def test_callees_are_compared_by_their_fingerprints() -> None:
    before = reducer("f.1", "add") + reducer("f.2", "add") + reducer("f.3", "tanh")
    assert share_fingerprint((*INPUTS, REDUCE + "f.1"), (*INPUTS, REDUCE + "f.2"), before)
    assert not share_fingerprint((*INPUTS, REDUCE + "f.1"), (*INPUTS, REDUCE + "f.3"), before)


def conditional_lines(*callees: str, row: str = "x", operand: str = "%x") -> tuple[str, ...]:
    """Write a choice among the callees, with `row` as its first row."""
    chosen = f"%i, {operand}), branch_computations={{{', '.join(callees)}}}" if callees else f"%i, {operand})"
    return f"%{row} = f32[4] parameter(0)", "%i = s32[] constant(0)", f"ROOT %r = f32[4] conditional({chosen}"


BRANCHES = "".join(computation(f"b.{n}", "%p = f32[4] parameter(0)", "ROOT %t = f32[4] tanh(%p)") for n in range(3))
TWO = conditional_lines("%b.0", "%b.1")
ROW_AS_CALLEE = conditional_lines("%b.0", "%b.1", row="b.0", operand="%b.0")


@pytest.mark.parametrize(
    ("first", "other", "expected"),
    [
        (TWO, conditional_lines("%b.1", "%b.2"), True),
        (TWO, conditional_lines("%b.1", "%b.0"), True),
        (TWO, conditional_lines("%b.0"), False),
        (TWO, conditional_lines(), False),
        (TWO, conditional_lines("%b.0", "%b.1", "%b.2"), False),
        (TWO, conditional_lines("%b.2", "%b.2"), False),
        (conditional_lines("%b.0", "%b.0"), TWO, False),
        (conditional_lines("%b.0", "%b.0"), conditional_lines("%b.2", "%b.2"), True),
        (conditional_lines("%b.0"), TWO, False),
        (TWO, ROW_AS_CALLEE, False),
        (TWO, conditional_lines("%b.0", "%b.1", row="b.2", operand="%b.2"), True),
        (ROW_AS_CALLEE, TWO, False),
        (ROW_AS_CALLEE, conditional_lines("%b.1", "%b.0", row="b.1", operand="%b.1"), True),
        (ROW_AS_CALLEE, conditional_lines("%b.0", "%b.1", row="b.1", operand="%b.1"), False),
    ],
)
def test_branches_are_compared_by_form_and_by_which_names_repeat(
    first: tuple[str, ...], other: tuple[str, ...], expected: bool
) -> None:
    assert share_fingerprint(first, other, BRANCHES) == expected


@pytest.mark.parametrize(
    "line",
    [
        REDUCE + "gone",
        REDUCE + "one",
        "%r = f32[] reduce(%p, %z), to_apply= %add",
        '%r = f32[8] custom-call(%p), custom_call_target="odd"',
        '%r = f32[8] negate(%p), frontend_attributes={a="%p"}',
        '%r = f32[8] negate(%p), frontend_attributes={a="is \\"%p"}',
        '%r = f32[8] negate(%p), frontend_attributes={a="x\\\\",b="%p"}',
        '%r = f32[8] negate(%p), /*"*/ frontend_attributes={b="%p"}',
        "%r = f32[8] negate(%p), sharding={mesh['%p'=2]}",
    ],
)
def test_computations_without_a_fingerprint(line: str) -> None:
    before = computation("one", *INPUTS, line)
    assert Fingerprints(module_of("%p = f32[] parameter(0)", before=before).computations).get("one") is None


def test_a_caller_has_a_fingerprint_only_after_its_callee() -> None:
    fused = computation("inner", *INPUTS, REDUCE + "add")
    outer = computation("outer", *INPUTS, "%f = f32[] fusion(%p, %z), kind=kLoop, calls=%inner")
    fingerprints = Fingerprints(module_of("%p = f32[] parameter(0)", before=fused + outer).computations)
    assert fingerprints.get("outer") is None
    assert fingerprints.get("inner") is not None
    assert fingerprints.get("outer") is not None


def test_a_missing_computation_has_no_fingerprint() -> None:
    assert Fingerprints({}).get("gone") is None


def test_metadata_inside_a_string_is_not_removed() -> None:
    line = '%r = f32[4] negate(%a.1), frontend_attributes={a=", metadata={", b="DIMENSIONS}"}'
    assert not share_fingerprint((LINES[0], line.replace("DIMENSIONS", "1")), (LINES[0], line.replace("DIMENSIONS", "2")))
    same = line + ', metadata={op_name="OTHER"}'
    assert share_fingerprint((LINES[0], same), (LINES[0], same.replace("OTHER", "name")))


def test_an_open_string_extends_to_the_end_of_its_line() -> None:
    text = 'a="it \\" holds \\" this, metadata={op_name=1}'
    assert fingerprints.without_metadata(text) == text


def test_a_comment_that_looks_like_metadata_is_not_removed() -> None:
    line = "%r = f32[4] reverse(%a.1)/*, metadata={*/, dimensions={0}/*}*/"
    assert not share_fingerprint((LINES[0], line), (LINES[0], line.replace("{0}", "{}")))
