"""Expressions from text, also from text that makes no sense."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from hlo_inspect.graph import frames, view
from hlo_inspect.hlo.instruction import operand_names
from hlo_inspect.hlo.values.attribute_forms import AttributeForm
from hlo_inspect.native import library
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import constant_value, is_rounded, written_value
from hlo_inspect.optimizer.step.step_dependence import InputDependence
from tests.optimizer.programs import (
    changed,
    entry_of,
    flow_of,
    overview_of,
    root_of,
    text_of,
    written,
)

P = "%p = f32[8]{0} parameter(0)"


def test_broadcast_constants_are_numbers() -> None:
    half = "%h = f32[] constant(0.5)"
    lines = (P, half, "%b = f32[8]{0} broadcast(%h), dimensions={}", "ROOT %r = f32[8]{0} multiply(%p, %b)")
    assert root_of(entry_of(*lines)) == "multiply(0.5, p0)"


def test_comparisons_keep_their_direction() -> None:
    flow, frame = flow_of(entry_of(P, "ROOT %r = pred[8]{0} compare(%p, %p), direction=GE"))
    assert flow.graph.attributes[flow.node(flow.frames.root(frame, ()))] == "GE"


def test_forgotten_places_have_the_same_nodes_and_inputs() -> None:
    """There is a single input. Reading the place again makes no other node."""
    flow, frame = flow_of(entry_of(P, "%n = f32[8]{0} negate(%p)", "ROOT %r = f32[8]{0} add(%p, %n)"))
    reach, root = InputDependence(flow.frames), flow.frames.root(frame, ())
    node, inputs, count = flow.node(root), reach.inputs(root), len(flow.graph.ops)
    flow.forget_places()
    reach.forget_places()
    assert not flow.nodes.by_place
    assert (flow.node(root), reach.inputs(root), len(flow.graph.ops)) == (node, inputs, count)
    assert inputs == 1


def test_what_depends_on_itself_ends() -> None:
    flow, frame = flow_of(
        entry_of(P, "%a = f32[8]{0} add(%p, %b)", "%b = f32[8]{0} negate(%a)", "ROOT %r = f32[8]{0} sine(%a)")
    )
    flow.node(flow.frames.root(frame, ()))
    assert {reason for _, _, reason in flow.frames.faults} == {"depends on itself"}


def test_a_computation_that_calls_itself_ends() -> None:
    loop = "%f (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} call(%x), to_apply=%f\n}\n"
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} call(%p), to_apply=%f", before=loop))
    assert flow.graph.ops[flow.node(flow.frames.root(frame, ()))] == "opaque"


def test_undefined_operands_are_a_fault() -> None:
    flow, frame = flow_of(entry_of(P, "%n = f32[8]{0} negate(%nobody)", "ROOT %r = f32[8]{0} add(%p, %n)"))
    flow.node(flow.frames.root(frame, ()))
    assert ("main", "nobody", "is not defined") in flow.frames.faults


def test_the_fault_of_an_operand_without_a_name_names_its_user() -> None:
    flow, frame = flow_of(entry_of(P, "%n = f32[8]{0} multiply(%p, null)", "ROOT %r = f32[8]{0} add(%p, %n)"))
    flow.node(flow.frames.root(frame, ()))
    assert list(flow.frames.faults) == [("main", "n", "has an operand without a name")]


def test_operands_that_are_cut_off() -> None:
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} negate()"))
    assert flow.graph.ops[flow.node(flow.frames.root(frame, ()))] == "opaque"
    assert flow.frames.faults


def test_a_chain_of_thousands() -> None:
    lines = [f"%n{i} = f32[8]{{0}} negate(%{f'n{i - 1}' if i else 'p'})" for i in range(20_000)]
    flow, frame = flow_of(entry_of(P, *lines, "ROOT %r = f32[8]{0} negate(%n19999)"))
    flow.node(flow.frames.root(frame, ()))
    assert len(flow.graph.ops) == 20_002


def test_calls_of_calls_that_multiply_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each computation calls the next one twice: 2 ** 40 values, one behind the other."""
    monkeypatch.setattr(frames, "LEAST_PLACES", 2000)
    level = "%f{0} (x{0}: f32[8]) -> f32[8] {{\n  %x{0} = f32[8]{{0}} parameter(0)\n"
    level += "  %a{0} = f32[8]{{0}} call(%x{0}), to_apply=%f{1}\n  ROOT %b{0} = f32[8]{{0}} call(%a{0}), to_apply=%f{1}\n}}\n"
    last = "%f40 (x40: f32[8]) -> f32[8] {\n  %x40 = f32[8]{0} parameter(0)\n  ROOT %s = f32[8]{0} sine(%x40)\n}\n"
    before = last + "".join(level.format(n, n + 1) for n in range(39, -1, -1))
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} call(%p), to_apply=%f0", before=before))
    flow.node(flow.frames.root(frame, ()))
    assert {reason for _, _, reason in flow.frames.faults} == {"is nested in too many expressions"}


# -- What is stepped through on the way to where a value is made --------------------------------------------------------


TWICE = "%twice (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} add(%x, %x)\n}\n"
PAIR = "%pair (x: f32[8]) -> (f32[8], f32[8]) {\n  %x = f32[8]{0} parameter(0)\n  %n = f32[8]{0} negate(%x)\n"
PAIR += "  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%n, %x)\n}\n"
SAME = [
    "ROOT %r = bf16[8]{0} convert(%p)",
    "ROOT %r = f32[8]{0} copy(%p)",
    "ROOT %r = f32[4,2]{1,0} reshape(%p)",
    "ROOT %r = f32[4,2]{1,0} bitcast(%p)",
    "ROOT %r = f32[8]{0} transpose(%p), dimensions={0}",
    "ROOT %r = f32[8]{0} reduce-precision(%p), exponent_bits=8, mantissa_bits=7",
    "ROOT %r = f32[64]{0} all-gather(%p), dimensions={0}, replica_groups={}",
    'ROOT %r = f32[8]{0} custom-call(%p), custom_call_target="Sharding"',
    'ROOT %r = f32[8]{0} custom-call(%p), custom_call_target="xla.sdy.FuncResultSharding"',
]


@pytest.mark.parametrize("line", SAME)
def test_operations_that_change_no_value_are_skipped(line: str) -> None:
    assert root_of(entry_of(P, line)) == "p0"


def test_a_broadcast_of_a_scalar_but_not_of_an_array() -> None:
    assert root_of(entry_of("%p = f32[] parameter(0)", "ROOT %r = f32[8]{0} broadcast(%p), dimensions={}")) == "p0"
    assert root_of(entry_of(P, "ROOT %r = f32[8,2]{1,0} broadcast(%p), dimensions={0}")) == "broadcast(p0)"


def test_a_conversion_that_cuts_digits_off() -> None:
    assert root_of(entry_of(P, "ROOT %r = s32[8]{0} convert(%p)")) == "truncate(p0)"
    assert root_of(entry_of("%p = s32[] parameter(0)", "ROOT %r = s64[] convert(%p)")) == "p0"


def test_fusions_calls_and_tuples() -> None:
    fusion = "%f = (f32[8]{0}, f32[8]{0}) fusion(%p), kind=kLoop, calls=%pair"
    element = "%e = f32[8]{0} get-tuple-element(%f), index=0"
    call = "ROOT %r = f32[8]{0} call(%e), to_apply=%twice"
    assert root_of(entry_of(P, fusion, element, call, before=TWICE + PAIR)) == "add(negate(p0), negate(p0))"


def test_asynchronous_pairs() -> None:
    copy = ("%s = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(%p)", "ROOT %r = f32[8]{0} copy-done(%s)")
    assert root_of(entry_of(P, *copy)) == "p0"
    start = "%s = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(%p), calls=%twice"
    pair = (start, "%u = ((f32[8]{0}), f32[8]{0}, u32[]) async-update(%s)", "ROOT %r = f32[8]{0} async-done(%u)")
    assert root_of(entry_of(P, *pair, before=TWICE)) == "add(p0, p0)"


def test_the_origin_of_a_value_is_the_instruction_that_makes_it() -> None:
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} fusion(%p), kind=kLoop, calls=%twice", before=TWICE))
    made = flow.frames.origin(flow.frames.root(frame, ()))
    assert (made.fusion, made.computation, made.line) == ("r", "twice", 11)


def test_elements_of_a_tuple_parameter_are_inputs() -> None:
    tuple_ = "%p = (f32[8]{0}, f32[8]{0}) parameter(0)"
    assert root_of(entry_of(tuple_, "ROOT %r = f32[8]{0} get-tuple-element(%p), index=1")) == "p0.1"
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} fusion(%p), kind=kLoop, calls=%nobody"))
    assert flow.graph.ops[flow.node(flow.frames.root(frame, ()))] == "opaque"


# -- Instructions that are neither stepped through nor done element by element ------------------------------------------


SLICES = ("%a = f32[3]{0} slice(%p), slice={[0:3]}", "%b = f32[5]{0} slice(%p), slice={[3:8]}")


def test_slices_that_make_up_the_whole() -> None:
    assert root_of(entry_of(P, *SLICES, "ROOT %r = f32[8]{0} concatenate(%a, %b), dimensions={0}")) == "p0"
    assert root_of(entry_of(P, *SLICES, "ROOT %r = f32[8]{0} concatenate(%a, %a), dimensions={0}")) != "p0"
    joined = 'ROOT %r = f32[8]{0} custom-call(%a, %b), custom_call_target="ConcatBitcast"'
    assert root_of(entry_of(P, *SLICES, joined)) == "p0"


@pytest.mark.parametrize(
    ("first", "second"),
    [("0:3", "3:6"), ("0:3", "5:8"), ("0:4", "2:6"), ("0:4", "0:4"), ("0:8:2", "0:8:2"), ("0:4:1", "4:8:2")],
)
def test_some_slices_are_not_the_whole(first: str, second: str) -> None:
    """Parts that leave something out, that overlap though their sizes add up to the whole, or that leave elements out."""
    sizes = [len(range(*map(int, text.split(":")))) for text in (first, second)]
    slices = (
        f"%a = f32[{sizes[0]}]{{0}} slice(%p), slice={{[{first}]}}",
        f"%b = f32[{sizes[1]}]{{0}} slice(%p), slice={{[{second}]}}",
    )
    assert root_of(entry_of(P, *slices, f"ROOT %r = f32[{sum(sizes)}]{{0}} concatenate(%a, %b), dimensions={{0}}")) != "p0"


def test_slices_of_two_dimensions() -> None:
    """Four quarters, and the same with one of them twice."""
    p = "%p = f32[4,4]{1,0} parameter(0)"
    quarters = ["{[0:2], [0:2]}", "{[0:2], [2:4]}", "{[2:4], [0:2]}", "{[2:4], [2:4]}"]
    parts = [f"%{name} = f32[2,2]{{1,0}} slice(%p), slice={text}" for name, text in zip("abcd", quarters, strict=True)]
    joined = 'ROOT %r = f32[4,4]{{1,0}} custom-call({}), custom_call_target="ConcatBitcast"'
    assert root_of(entry_of(p, *parts, joined.format("%a, %b, %c, %d"))) == "p0"
    assert root_of(entry_of(p, *parts, joined.format("%a, %b, %c, %c"))) != "p0"


def test_wide_tuples_are_read_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All operands of a tuple are never listed for one of its elements."""
    names = [f"%n{i}" for i in range(50)]
    root = f"ROOT %t = ({', '.join('f32[8]{0}' for _ in names)}) tuple({', '.join(names)})"
    flow, frame = flow_of(entry_of(P, *(f"{name} = f32[8]{{0}} copy(%p)" for name in names), root))
    monkeypatch.setattr(flow.frames, "operands", None)
    assert {flow.node(flow.frames.root(frame, (n,))) for n in range(50)} == {0}


def test_no_row_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the operands nor an attribute, however many values are followed through it and however many have the same."""
    read: Counter[tuple[object, ...]] = Counter()
    make_form = AttributeForm.__init__

    def count_names(tail: str) -> list[str] | None:
        read["operands", tail] += 1
        return operand_names(tail)

    def count_form(form: AttributeForm[object], text: str, *, has_holes: bool = True) -> None:
        read["attributes", text] += 1
        make_form(form, text, has_holes=has_holes)

    monkeypatch.setattr(library, "library", lambda: None)  # operands in columns are not read from text
    monkeypatch.setattr(view, "operand_names", count_names)
    monkeypatch.setattr(view, "operands_of", None)
    monkeypatch.setattr(AttributeForm, "__init__", count_form)
    assert overview_of(text_of("adamw_bf16_master.after")).name == "adamw"
    assert {what for what, _ in read} == {"operands", "attributes"}
    assert set(read.values()) == {1}


def test_slices_fetched_ahead() -> None:
    start = "%s = ((f32[8]{0}), f32[3]{0}, s32[]) slice-start(%p), slice={[0:3]}"
    done = "%a = f32[3]{0} slice-done(%s)"
    lines = (P, start, done, SLICES[1], "ROOT %r = f32[8]{0} concatenate(%a, %b), dimensions={0}")
    assert root_of(entry_of(*lines)) == "p0"


def test_equal_constants_that_are_moved_stay_equal() -> None:
    constant = ("%c = f32[] constant(0.9)", "%b = f32[8]{0} broadcast(%c), dimensions={}")
    moved = "ROOT %r = f32[8]{0} all-to-all(%b), dimensions={0}, replica_groups={}"
    assert root_of(entry_of(*constant, moved)) == "0.9"
    assert root_of(entry_of(*constant, "ROOT %r = f32[16]{0} concatenate(%b, %b), dimensions={0}")) == "0.9"


def test_factors_of_a_product_of_matrices() -> None:
    lines = ("%a = f32[4,4]{1,0} parameter(0)", "%b = f32[4,4]{1,0} parameter(1)", "%c = f32[4,4]{1,0} parameter(2)")
    config = '"{\\"alpha_real\\":0.25,\\"alpha_imag\\":0,\\"beta\\":1}"'
    call = 'ROOT %r = f32[4,4]{1,0} custom-call(%a, %b, %c), custom_call_target="__cublas$gemm", backend_config='
    assert root_of(entry_of(*lines, call + config)) == "add(multiply(0.25, <r>), p2)"
    assert root_of(entry_of(*lines, call + '"no json"')) == "<r>"
    assert root_of(entry_of(*lines, call + '"[]"')) == "<r>"


def test_branches_become_a_choice() -> None:
    branch = "%{0} (x: f32[8]) -> f32[8] {{\n  %x{0} = f32[8]{{0}} parameter(0)\n  ROOT %y{0} = f32[8]{{0}} {1}(%x{0})\n}}\n"
    before = branch.format("t", "sine") + branch.format("f", "cosine")
    lines = ("%q = pred[] parameter(1)", P)
    named = "ROOT %r = f32[8]{0} conditional(%q, %p, %p), true_computation=%t, false_computation=%f"
    numbered = ("%i = s32[] convert(%q)", "ROOT %r = f32[8]{0} conditional(%i, %p, %p), branch_computations={%f, %t}")
    assert root_of(entry_of(*lines, named, before=before)) == "select(p1, sine(p0), cosine(p0))"
    assert root_of(entry_of(*lines, *numbered, before=before)) == "select(p1, sine(p0), cosine(p0))"


LOOP_BODY = "%body (s: (f32[8], f32[8])) -> (f32[8], f32[8]) {\n  %s = (f32[8]{0}, f32[8]{0}) parameter(0)\n"
LOOP_BODY += "  %k = f32[8]{0} get-tuple-element(%s), index=0\n  %v = f32[8]{0} get-tuple-element(%s), index=1\n"
LOOP_BODY += "  %n = f32[8]{0} negate(%v)\n  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%k, %n)\n}\n"


def test_a_value_that_a_loop_does_not_change_is_its_initial_value() -> None:
    lines = (
        P,
        "%i = (f32[8]{0}, f32[8]{0}) tuple(%p, %p)",
        "%w = (f32[8]{0}, f32[8]{0}) while(%i), condition=%c, body=%body",
    )
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=0", before=LOOP_BODY)) == "p0"
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=1", before=LOOP_BODY)) == "<w>"
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=9", before=LOOP_BODY)) == "<w>"


def test_a_value_that_nested_loops_do_not_change_is_its_initial_value() -> None:
    outer = LOOP_BODY + "%outer (s: (f32[8], f32[8])) -> (f32[8], f32[8]) {\n  %s = (f32[8]{0}, f32[8]{0}) parameter(0)\n"
    outer += "  %k = f32[8]{0} get-tuple-element(%s), index=0\n  %v = f32[8]{0} get-tuple-element(%s), index=1\n"
    outer += "  %i = (f32[8]{0}, f32[8]{0}) tuple(%v, %k)\n"
    outer += "  %w = (f32[8]{0}, f32[8]{0}) while(%i), condition=%c, body=%body\n"
    outer += "  %x = f32[8]{0} get-tuple-element(%w), index=0\n  %y = f32[8]{0} get-tuple-element(%w), index=1\n"
    outer += "  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%y, %x)\n}\n"
    lines = (
        P,
        "%n = f32[8]{0} sine(%p)",
        "%i = (f32[8]{0}, f32[8]{0}) tuple(%p, %n)",
        "%w = (f32[8]{0}, f32[8]{0}) while(%i), condition=%c, body=%outer",
    )
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=0", before=outer)) == "<w>"
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=1", before=outer)) == "sine(p0)"


@pytest.mark.parametrize(("loops", "root"), [(4, "p0"), (5, "<w>")])
def test_nested_loops_are_followed_up_to_a_limit(loops: int, root: str) -> None:
    """Each returns its state as it came from the loop in it, the innermost as it is."""
    state = "(f32[8]{0})"
    before = f"%b0 (s: {state}) -> {state} {{\n  ROOT %s = {state} parameter(0)\n}}\n"
    for number in range(1, loops):
        before += f"%b{number} (s: {state}) -> {state} {{\n  %s = {state} parameter(0)\n"
        before += f"  ROOT %w = {state} while(%s), condition=%c, body=%b{number - 1}\n}}\n"
    lines = (P, f"%i = {state} tuple(%p)", f"%w = {state} while(%i), condition=%c, body=%b{loops - 1}")
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=0", before=before)) == root


def test_a_body_of_many_loops_is_opened_once() -> None:
    """20 loops one after another, each with a body of 20 loops: 20 ** 3 places, if each loop's own body were opened."""
    state = "(f32[8]{0})"
    before = f"%b0 (s: {state}) -> {state} {{\n  ROOT %s = {state} parameter(0)\n}}\n"
    for number in range(1, 4):
        before += f"%b{number} (s: {state}) -> {state} {{\n  %w0 = {state} parameter(0)\n"
        loops = [f"%w{n} = {state} while(%w{n - 1}), condition=%c, body=%b{number - 1}\n" for n in range(1, 21)]
        before += f"  {'  '.join(loops[:-1])}  ROOT {loops[-1]}}}\n"
    lines = (P, f"%i = {state} tuple(%p)", f"%w = {state} while(%i), condition=%c, body=%b3")
    flow, frame = flow_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=0", before=before))
    assert written(flow, flow.node(flow.frames.root(frame, ()))) == "p0"
    assert len(flow.frames) == 5  # the entry and four bodies


def test_a_constant_that_is_not_printed() -> None:
    assert root_of(entry_of("ROOT %r = f32[8]{0} constant({...})")) == "<r>"


# -- Fusions of one text: the third and later ones are not read, and come out the same ----------------------------------


FUSED_BODY = """%f{n} (a{n}: f32[8], b{n}: f32[8]) -> f32[8] {{
  %a{n} = f32[8]{{0}} parameter(0)
  %b{n} = f32[8]{{0}} parameter(1)
  %c{n} = f32[8]{{0}} subtract(%{x}{n}, %{y}{n})
  ROOT %d{n} = f32[8]{{0}} multiply(%c{n}, %c{n})
}}
"""


def several(*operands: str) -> str:
    before = "".join(FUSED_BODY.format(n=n, x=pair[0], y=pair[1]) for n, pair in enumerate(operands))
    parameters = [f"%p{n} = f32[8]{{0}} parameter({n})" for n in range(len(operands) + 1)]
    fusions = [f"%r{n} = f32[8]{{0}} fusion(%p{n}, %p{n + 1}), kind=kLoop, calls=%f{n}" for n in range(len(operands))]
    names = ", ".join(f"%r{n}" for n in range(len(operands)))
    shapes = ", ".join("f32[8]{0}" for _ in operands)
    return entry_of(*parameters, *fusions, f"ROOT %t = ({shapes}) tuple({names})", before=before)


def test_each_call_gets_its_own_arguments() -> None:
    flow, frame = flow_of(several("ab", "ab", "ab", "ab", "ba", "ab"))
    expressions = [written(flow, flow.node(flow.frames.root(frame, (n,)))) for n in range(6)]
    square = "multiply(subtract({0}, {1}), subtract({0}, {1}))"
    pairs = [(n, n + 1) if n != 4 else (n + 1, n) for n in range(6)]
    assert expressions == [square.format(f"p{left}", f"p{right}") for left, right in pairs]
    assert len(flow.frames) < 6


@pytest.mark.parametrize(("literal", "leaves"), [("{2, 3}", 1), ("{3, 2}", 2), ("{...}", 2), ("", 2)])
def test_a_table_that_two_fusions_hold(literal: str, leaves: int) -> None:
    """A table tells the start of a part on each device, anew in each fusion; elided and missing tables are unknown."""
    body = "%{0} () -> s32[2] {{\n  ROOT %c{0} = s32[2]{{0}} constant({1})\n}}\n"
    first = "{2, 3}" if literal == "{3, 2}" else literal
    lines = [f"%{name} = s32[2]{{0}} fusion(), kind=kLoop, calls=%{called}" for name, called in (("x", "one"), ("y", "other"))]
    text = entry_of(
        *lines, "ROOT %r = s32[2]{0} multiply(%x, %y)", before=body.format("one", first) + body.format("other", literal)
    )
    flow, frame = flow_of(text)
    assert len(set(flow.graph.args[flow.node(flow.frames.root(frame, ()))])) == leaves


SUMS = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%one (p: f32[8,8]) -> f32[8] {
  %p = f32[8,8]{1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[8]{0} reduce(%p, %zero), dimensions={1}, to_apply=%add
}

%other (q: f32[8,8]) -> f32[8] {
  %q = f32[8,8]{1,0} parameter(0)
  %nil = f32[] constant(0)
  %t = f32[8]{0} reduce(%q, %nil), dimensions={AXIS}, to_apply=%add
  ROOT %n = f32[8]{0} negate(%t)
}

"""


@pytest.mark.parametrize(("axis", "leaves"), [("1", 1), ("0", 2)])
def test_a_sum_that_two_fusions_make(axis: str, leaves: int) -> None:
    """The compiler for GPUs adds up a small array in each kernel that needs the sum."""
    lines = ('%m = f32[8,8]{1,0} custom-call(), custom_call_target="made"', "%x = f32[8]{0} fusion(%m), kind=kLoop, calls=%one")
    rest = ("%y = f32[8]{0} fusion(%m), kind=kLoop, calls=%other", "ROOT %r = f32[8]{0} multiply(%x, %y)")
    flow, frame = flow_of(entry_of(*lines, *rest, before=SUMS.replace("AXIS", axis)))
    flow.node(flow.frames.root(frame, ()))
    assert flow.graph.ops.count("opaque") == leaves


def summed(name: str, **other: str) -> str:
    """Return a computation that sums up the divisor of a softmax, with another text in one place."""
    lines = {
        "half": "f32[] constant(0.5)",
        "halves": "f32[8,8]{1,0} broadcast(%half), dimensions={}",
        "scaled": "f32[8,8]{1,0} multiply(%p, %halves)",
        "e": "f32[8,8]{1,0} exponential(%scaled)",
        "zero": "f32[] constant(0)",
        "s": "f32[8]{0} reduce(%e, %zero), dimensions={1}, to_apply=%add",
        "b": "f32[8,8]{1,0} broadcast(%s), dimensions={0}",
        "q": "f32[8,8]{1,0} divide(%e, %b)",
        "r": "f32[8]{0} reduce(%q, %zero), dimensions={0}, to_apply=%add",
    }
    body = "".join(f"  %{key} = {other.get(key, line)}\n" for key, line in lines.items())
    body = f"  %p = f32[8,8]{{1,0}} parameter(0)\n{body}  ROOT %t = f32[8]{{0}} copy(%r)\n"
    return f"%{name} (p: f32[8,8]) -> f32[8] {{\n{body}}}\n\n"


@pytest.mark.parametrize(
    ("other", "leaves"),
    [
        ({}, 1),
        ({"half": "f32[] constant(0.25)"}, 2),
        ({"b": "f32[8,8]{1,0} broadcast(%s), dimensions={1}"}, 2),
        ({"s": "f32[8]{0} reduce(%e, %zero), dimensions={0}, to_apply=%add"}, 2),
        ({"q": "f32[8,8]{1,0} multiply(%e, %b)"}, 2),
        ({"s": 'f32[8]{0} custom-call(%e), custom_call_target="summed"'}, 2),
    ],
)
def test_a_sum_of_what_two_fusions_compute(other: dict[str, str], leaves: int) -> None:
    """The compiler for GPUs computes again what is summed up, too."""
    assert leaves_of(summed("one") + summed("other", **other)) == leaves


def leaves_of(called: str) -> int:
    """Return the number of leaves of the product of what `one` and `other` make of the same array."""
    lines = ('%m = f32[8,8]{1,0} custom-call(), custom_call_target="made"', "%x = f32[8]{0} fusion(%m), kind=kLoop, calls=%one")
    rest = ("%y = f32[8]{0} fusion(%m), kind=kLoop, calls=%other", "ROOT %r = f32[8]{0} multiply(%x, %y)")
    flow, frame = flow_of(entry_of(*lines, *rest, before=called))
    flow.node(flow.frames.root(frame, ()))
    return flow.graph.ops.count("opaque")


TABLE = "f32[8,8]{1,0} constant({...})"  # printers leave out large constants
ARRANGED = "f32[8,8]{0,1} bitcast(%p)"  # in memory as it is, so transposed
PLAIN = "f32[8,8]{1,0} bitcast(%p)"


@pytest.mark.parametrize(
    ("first", "second", "leaves"),
    [
        ({"halves": TABLE}, {"halves": TABLE}, 2),
        ({"scaled": PLAIN}, {"scaled": PLAIN}, 1),
        ({"scaled": ARRANGED}, {"scaled": ARRANGED}, 1),
        ({"scaled": PLAIN}, {"scaled": ARRANGED}, 2),
    ],
)
def test_sums_that_look_alike(first: dict[str, str], second: dict[str, str], leaves: int) -> None:
    """Attributes that are left out may differ, and a bitcast does by the layouts on both of its sides."""
    assert leaves_of(summed("one", **first) + summed("other", **second)) == leaves


def test_opaque_values_of_two_computations_are_different() -> None:
    text = changed(several("ab", "ab", "ab", "ab"), r"multiply\(", "rng-bit-generator(")
    flow, frame = flow_of(text)
    assert len({flow.node(flow.frames.root(frame, (n,))) for n in range(4)}) == 4


# -- The numbers that constants spell -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "number"),
    [("0.1", 0.1), ("-1e-08", -1e-8), ("2147483647", 2147483647.0), ("true", 1.0), ("inf", math.inf), ("{ 0.9, 0.9 }", 0.9)],
)
def test_values(literal: str, number: float) -> None:
    assert constant_value(literal) == number


def test_nan() -> None:
    value = constant_value("nan")
    assert value is not None
    assert math.isnan(value)


@pytest.mark.parametrize("literal", ["{...}", "{1, 2}", "{}", '"text"', "(1, 2)", "1" * 50, ""])
def test_constants_of_several_numbers_have_no_value(literal: str) -> None:
    assert constant_value(literal) is None


def test_rounded_constants() -> None:
    """0.001 in bfloat16 is 0x3A83, as a float32 0.000999450684; 0.1 in float16 is 0x2E66, 0.0999755859."""
    assert is_rounded(0.1, "bf16")
    assert is_rounded(0.000999450684, "f32")
    assert is_rounded(0.0999755859375, "f32")
    assert not is_rounded(0.1, "f32")
    assert not is_rounded(0.0078125, "f32")  # the mean of 128 elements
    assert not is_rounded(-65536.0, "f32")
    assert not is_rounded(0.5, "f32")
    assert not is_rounded(1e300, "f32")


@pytest.mark.parametrize(
    ("printed", "written"),
    [
        (0.010002, 0.01),
        (0.0100021362, 0.01),
        (0.099976, 0.1),
        (0.99902, 0.999),
        (-0.0030003, -0.003),
        (0.75, 0.75),
        (3.0, 3.0),
        (12544, 12544),
        (65504, 65504),
    ],
)
def test_numbers_of_float16(printed: float, written: float) -> None:
    """The spacing is 2**-17 around 0.01, 2**-14 below 0.1, 2**-11 below 1, 2**-19 below 2**-8."""
    assert written_value(printed, "f16") == written
    assert written_value(printed, "f32") == printed
    assert written_value(0.0039062, "f16") == 2.0**-8
    assert (written_value(1e9, "f16"), written_value(-math.inf, "f16")) == (1e9, -math.inf)


# -- Equal expressions are one node, whatever they are called -----------------------------------------------------------


def test_equal_expressions_are_one_node() -> None:
    graph = Graph()
    x, y = graph.input((0, 0, ()), 8), graph.input((0, 1, ()), 8)
    assert graph.make("add", (x, y)) == graph.make("add", (y, x))
    assert graph.make("subtract", (x, y)) != graph.make("subtract", (y, x))


def test_a_choice_between_equals_is_no_choice_and_not_turns_it_round() -> None:
    graph = Graph()
    p, x, y = (graph.input((0, n, ()), 1) for n in range(3))
    assert graph.make("select", (p, x, x)) == x
    assert graph.make("select", (graph.make("not", (p,)), x, y)) == graph.make("select", (p, y, x))


def test_an_assumed_truth_is_not_the_constant() -> None:
    graph = Graph()
    assert graph.truth(1) != graph.constant(1)
    assert graph.value(graph.truth(1)) == graph.value(graph.constant(1)) == 1.0


def test_nan_is_one_node() -> None:
    graph = Graph()
    assert graph.constant(float("nan")) == graph.constant(float("nan"))


def test_operands_come_first_at_any_depth() -> None:
    graph = Graph()
    node = graph.input((0, 0, ()), 8)
    for _ in range(5000):
        node = graph.make("negate", (node,))
    order = graph.reachable([node])
    assert len(order) == 5001
    assert all(arg in order[:n] for n, node in enumerate(order[:50]) for arg in graph.args[node])


def test_a_rounded_constant_marks_what_holds_it() -> None:
    graph = Graph()
    x = graph.input((0, 0, ()), 8)
    assert graph.coarse[graph.make("multiply", (x, graph.constant(0.1001, is_coarse=True)))]
    assert not graph.coarse[graph.make("multiply", (x, graph.constant(0.1)))]


def meeting(kind: str, where: str) -> str:
    """Return an array that is sent, and received by all that meet at a place."""
    attributes = 'frontend_attributes={_xla_host_transfer_rendezvous="%s",_xla_megascale_transfer_type="%s"}'
    return root_of(
        entry_of(
            "%p = f32[4]{0} parameter(0)",
            "%n = f32[4]{0} negate(%p)",
            "%t = token[] after-all()",
            f"%s = (f32[4]{{0}}, u32[], token[]) send(%n, %t), {attributes % ('here', kind)}",
            f"%r = (f32[8]{{0}}, u32[], token[]) recv(%t), {attributes % (where, kind)}",
            "%d = (f32[8]{0}, token[]) recv-done(%r)",
            "ROOT %g = f32[8]{0} get-tuple-element(%d), index=0",
        )
    )


def test_what_slices_gather_over_the_network() -> None:
    assert meeting("ALL_GATHER", "here") == "negate(p0)"
    assert meeting("ALL_GATHER", "elsewhere") == "<d>"
    assert meeting("REDUCE_SCATTER", "here") == "<d>"


def test_a_scalar_that_is_moved_stays_that_scalar() -> None:
    lines = ("%p = f32[] parameter(0)", "%b = f32[8]{0} broadcast(%p), dimensions={}")
    assert root_of(entry_of(*lines, "ROOT %a = f32[8]{0} all-to-all(%b), dimensions={0}")) == "p0"
    here = ("%i = u32[] partition-id()", "%c = f32[] convert(%i)", "%b = f32[8]{0} broadcast(%c), dimensions={}")
    assert root_of(entry_of(*here, "ROOT %a = f32[8]{0} all-to-all(%b), dimensions={0}")) == "all-to-all(<i>)"


def test_a_concatenation_of_slices_of_which_one_cannot_be_read() -> None:
    lines = (
        "%p = f32[4,2]{1,0} parameter(0)",
        "%a = f32[4,1]{1,0} slice(%p), slice={[0:4], [0:1]}",
        "%b = f32[4,1]{1,0} slice(%p), slice={[0:4], [x:2]}",
        "ROOT %r = f32[4,2]{1,0} concatenate(%a, %b), dimensions={1}",
    )
    assert root_of(entry_of(*lines)).startswith("concatenate(")
