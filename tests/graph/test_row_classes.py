"""Classes: equal for rows and computations that differ only in names and metadata, different for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from hlo_inspect.graph.view import Views
from hlo_inspect.native import library
from tests.analysis.cost.small import module_of

LINES = ("%a.1 = f32[4] parameter(0)", "%b.1 = f32[4] parameter(1)", "ROOT %r.2 = f32[4] subtract(%a.1, %b.1)")
REDUCE = "ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%"
INPUTS = ("%p = f32[8] parameter(0)", "%z = f32[] parameter(1)")
LITERALS = ('%a = s8[3] constant("a)b")', "%b = s32[] constant(3)", "ROOT %c = s32[4]{0} constant({1, 2, 3, 4})")
GATHER = (
    "ROOT %r.2 = f32[8] all-gather(%a.1), channel_id=1, replica_groups={{0,1}}, dimensions={0}, control-predecessors={%b.1}"
)
TEXT = 'ROOT %r = f32[4] negate(%a.1), frontend_attributes={a=", metadata={", b="1}"}'
CHOICE = "ROOT %r = f32[4] conditional(%i, %x, %x), branch_computations={%b.0, %b.1}"
CHOSEN = ("%x = f32[4] parameter(0)", "%i = s32[] parameter(1)")

Classes = Callable[..., list[int]]


@pytest.fixture(params=["python", "native"])
def classes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Classes]:
    """Return a function that returns the classes of computations of these lines."""
    is_native = request.param == "native"
    monkeypatch.setenv(library.VARIABLE, "1" if is_native else "0")
    library.load.cache_clear()
    if is_native and library.library() is None:
        pytest.skip("no library")

    def of(*lines: Sequence[str]) -> list[int]:
        names = [f"number.{number}" for number in range(len(lines))]
        text = BEFORE + BRANCHES + "".join(map(computation, names, lines))
        views = Views(module_of("ROOT %p = f32[] parameter(0)", before=text.removesuffix("\n")).computations)
        return [views.classes.of_computation(name) for name in names]

    yield of
    library.load.cache_clear()


def computation(name: str, lines: Sequence[str]) -> str:
    """Write a computation as printers do."""
    return f"%{name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n"


def reducer(name: str, opcode: str) -> str:
    rows = ("%x.1 = f32[] parameter(0)", "%y.1 = f32[] parameter(1)", f"ROOT %s = f32[] {opcode}(%x.1, %y.1)")
    return computation(name, rows)


BEFORE = reducer("f.1", "add") + reducer("f.2", "add") + reducer("f.3", "tanh")
BRANCHES = "".join(
    computation(f"b.{number}", ("%p = f32[4] parameter(0)", f"ROOT %t = f32[4] {opcode}(%p)"))
    for number, opcode in enumerate(("tanh", "tanh", "sine"))
)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (LINES, ("%p = f32[4] parameter(0)", "%q = f32[4] parameter(1)", "ROOT %t.9 = f32[4] subtract(%p, %q)")),
        (LINES, ("%b.1 = f32[4] parameter(0)", "%a.1 = f32[4] parameter(1)", "ROOT %r.2 = f32[4] subtract(%b.1, %a.1)")),
        (LINES, tuple(line.replace("%", "") for line in LINES)),
        (LINES, (*LINES[:2], LINES[2] + ', metadata={op_name="x" source_line=3}')),
        ((*LINES[:2], GATHER), (*LINES[:2], GATHER.replace("channel_id=1", "channel_id=72"))),
        ((*LINES[:2], GATHER), (*LINES[:2], GATHER.replace("={%b.1}", "={%a.1, %b.1}"))),
        ((*INPUTS, REDUCE + "f.1"), (*INPUTS, REDUCE + "f.2")),
        ((*CHOSEN, CHOICE), (*CHOSEN, CHOICE.replace("%b.0, %b.1", "%b.1, %b.0"))),
        (LITERALS, tuple(line.replace("%", "%x") for line in LITERALS)),
    ],
)
def test_names_and_metadata_make_no_class(classes: Classes, first: Sequence[str], other: Sequence[str]) -> None:
    left, right, last = classes(first, first, other)
    assert left == right == last


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (LINES, (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%b.1, %a.1)")),
        (LINES, (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%a.1, %a.1)")),
        (LINES, (*LINES[:2], "ROOT %r.2 = f32[4] add(%a.1, %b.1)")),
        (LINES, (*LINES[:2], "ROOT %r.2 = f32[4]{0} subtract(%a.1, %b.1)")),
        (LINES, (LINES[0], LINES[1].replace("f32[4]", "f32[4]{0}"), LINES[2])),
        (LINES, ("%a.1 = f32[4] parameter(1)", "%b.1 = f32[4] parameter(0)", LINES[2])),
        (LINES, (LINES[0], f"ROOT {LINES[1]}", LINES[2].replace("ROOT ", ""))),
        (LINES, (*LINES, "%s.3 = f32[4] negate(%r.2)")),
        ((*LINES[:2], GATHER), (*LINES[:2], GATHER.replace("{{0,1}}", "{{1,0}}"))),
        ((LINES[0], TEXT), (LINES[0], TEXT.replace("1", "2"))),
        ((*INPUTS, REDUCE + "f.1"), (*INPUTS, REDUCE + "f.3")),
        ((*CHOSEN, CHOICE), (*CHOSEN, CHOICE.replace("%b.1", "%b.2"))),
        ((*CHOSEN, CHOICE), (*CHOSEN, CHOICE.replace("%b.0, ", ""))),
        (LITERALS, (LITERALS[0].replace("b", "c"), *LITERALS[1:])),
        (LITERALS, (LITERALS[0], LITERALS[1].replace("3", "4"), LITERALS[2])),
        (LITERALS, (*LITERALS[:2], LITERALS[2].replace("2, 3", "3, 2"))),
    ],
)
def test_all_else_makes_a_class(classes: Classes, first: Sequence[str], other: Sequence[str]) -> None:
    left, right, last = classes(first, first, other)
    assert last not in {left, right}


@pytest.mark.parametrize(
    "lines",
    [
        (*LINES[:2], "ROOT %r.2 = f32[4] subtract(%a.1, %gone)"),
        ("%a.1 = f32[4] parameter(0)", "%a.1 = f32[4] parameter(1)", "ROOT %r = f32[4] negate(%a.1)"),
        ("%t = (f32[4], f32[4]) parameter(0)", "ROOT %r = f32[4] negate(%t#1)"),
    ],
)
def test_rows_whose_operands_are_no_rows_have_their_own_class(classes: Classes, lines: Sequence[str]) -> None:
    left, right = classes(lines, lines)
    assert left != right


def test_a_row_has_the_class_of_its_heads_and_attributes(classes: Classes) -> None:
    """Not of its literal, nor of the rows that are its operands."""
    text = computation("one", (*LINES[:2], "%s = f32[4] subtract(%b.1, %b.1)", LINES[2]))
    views = Views(module_of("ROOT %p = f32[] parameter(0)", before=text.removesuffix("\n")).computations)
    first, second, difference, root = views.classes.of_rows(views.for_computation("one"))
    assert first == second
    assert difference == root != first


def test_a_computation_that_calls_itself_has_its_own_class(classes: Classes) -> None:
    """The readers in Python find the class of the callee first; the native one takes the name of a callee that comes later."""
    text = computation("one", (*INPUTS, REDUCE + "two")) + computation("two", (*INPUTS, REDUCE + "one"))
    views = Views(module_of("ROOT %p = f32[] parameter(0)", before=text.removesuffix("\n")).computations)
    assert views.classes.of_computation("one") != views.classes.of_computation("two")
