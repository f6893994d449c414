"""Limits on the work for a text: beyond them a finding with its place, and facts that are unknown."""

from __future__ import annotations

import pytest

from hlo_inspect import Report, inspect
from hlo_inspect.optimizer.algebra.normal_form import NormalForms
from hlo_inspect.optimizer.graph import Graph
from tests.linear_time import assert_linear
from tests.optimizer.programs import entry_of, facts_of

F = "f32[64]{0}"


def report_of(*lines: str, before: str = "", aliases: int = 1) -> Report:
    alias = ", ".join(f"{{{i}}}: ({i}, {{}}, may-alias)" for i in range(aliases))
    body = "\n".join(f"  {line}" for line in lines)
    return inspect(f"HloModule m, input_output_alias={{ {alias} }}\n\n{before}ENTRY e {{\n{body}\n}}\n", passes=["optimizer"])


def product_of_moments(count: int) -> list[str]:
    """Return a step along the product of `count` moments."""
    lines = [f"w = {F} parameter(0)", f'g = {F} custom-call(w), custom_call_target="k"']
    lines += [f"m{i} = {F} parameter({i + 1})" for i in range(count)]
    lines += [f"n{i} = {F} add(m{i}, g)" for i in range(count)] + [f"x0 = {F} multiply(n0, n0)"]
    lines += [f"x{i} = {F} multiply(x{i - 1}, n{i})" for i in range(1, count)] + [f"s = {F} subtract(w, x{count - 1})"]
    return [*lines, f"ROOT r = ({', '.join([F] * (count + 1))}) tuple(s, {', '.join(f'n{i}' for i in range(count))})"]


def sums_and_products(count: int) -> list[str]:
    """Return lines whose last sum, written out, has a number of terms that grows with a power of two."""
    lines = [f"a0 = {F} parameter(0)", f"b0 = {F} parameter(1)"]
    for i in range(count):
        lines += [f"a{i + 1} = {F} add(a{i}, b{i})", f"b{i + 1} = {F} multiply(a{i}, b{i})"]
    return [*lines, f"ROOT r = ({F}, {F}) tuple(a{count}, b{count})"]


def without_a_match(count: int) -> list[str]:
    """Return `count` outputs of one shape: each is a product of an input, and may be the new value of any input."""
    lines = [f"p{i} = {F} parameter({i})" for i in range(count)]
    lines += [f'a{i} = {F} custom-call(p{i}), custom_call_target="k"' for i in range(count)]
    return [*lines, f"ROOT r = ({', '.join([F] * count)}) tuple({', '.join(f'a{i}' for i in range(count))})"]


def put_together(count: int) -> list[str]:
    """Return a step that concatenates `count` batches for the loss.

    The gradient is a sum of `count` products with other inputs.
    """
    array, whole, numbers = "f32[4,4]{1,0}", f"f32[{4 * count},4]{{1,0}}", range(count)
    lines = [f"w = {array} parameter(0)"]
    lines += [f"{name}{i} = {array} parameter({i + first})" for name, first in (("m", 1), ("z", count + 1)) for i in numbers]
    lines += [f"e{i} = {array} tanh(m{i})" for i in numbers]
    lines += [f"c = {whole} concatenate({', '.join(f'e{i}' for i in numbers)}), dimensions={{0}}"]
    lines += [f"f = {whole} dot(c, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", f"q = {whole} tanh(f)"]
    lines += ["rate = f32[] constant(0.1)", f"rates = {array} broadcast(rate), dimensions={{}}"]
    for i in numbers:
        lines += [f"d{i} = {array} slice(q), slice={{[{4 * i}:{4 * i + 4}], [0:4]}}", f"k{i} = {array} tanh(z{i})"]
        lines += [f"o{i} = {array} dot(k{i}, d{i}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"]
    lines += [f"s{i} = {array} add({'o0' if i == 1 else f's{i - 1}'}, o{i})" for i in numbers[1:]]
    lines += [f"u = {array} multiply(s{count - 1}, rates)", f"new = {array} subtract(w, u)"]
    return [*lines, f"ROOT r = ({array}) tuple(new)"]


def calling_itself(count: int) -> list[str]:
    lines = [f"p = {F} parameter(0)", f"a0 = {F} call(p), to_apply=e"]
    return [*lines, *(f"a{i + 1} = {F} multiply(a{i}, p)" for i in range(count)), f"ROOT r = {F} subtract(p, a{count})"]


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n"


def sums_over_small_arrays(count: int) -> list[str]:
    """Return a step whose rate is a sum of sums over arrays, each of which holds a long function of a counter."""
    matrix, segments = "f32[8,8]{1,0}", "f32[3]{0}"
    lines = [f"w = {matrix} parameter(0)", f"x = {matrix} parameter(1)", "c0 = f32[] parameter(2)", "zero = f32[] constant(0)"]
    lines += [f"c{i + 1} = f32[] sine(c{i})" for i in range(10 * count)]
    lines += [f"c = {segments} broadcast(c{10 * count}), dimensions={{}}", "r0 = f32[] constant(0.1)"]
    for i in range(count):
        lines += [f"k{i} = {segments} constant({{{i}, 0.5, 0.25}})", f"p{i} = {segments} multiply(c, k{i})"]
        lines += [f"s{i} = f32[] reduce(p{i}, zero), dimensions={{0}}, to_apply=add", f"r{i + 1} = f32[] add(r{i}, s{i})"]
    lines += [f"y = {matrix} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"]
    lines += [f"g = {matrix} dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"]
    lines += [f"r = {matrix} broadcast(r{count}), dimensions={{}}", f"u = {matrix} multiply(r, g)"]
    return [*lines, f"n = {matrix} subtract(w, u)", f"ROOT t = ({matrix}) tuple(n)"]


@pytest.mark.parametrize(
    ("lines", "aliases", "reason"),
    [
        (product_of_moments(100), 101, "combines too many others to compare"),
        (sums_and_products(40), 2, "has expressions too large to compare"),
        (calling_itself(50), 1, "calls a computation that contains it"),
    ],
)
def test_expressions_too_large_to_compare_are_a_finding_and_facts_unknown(lines: list[str], aliases: int, reason: str) -> None:
    report = report_of(*lines, aliases=aliases)
    assert [report.facts[f"optimizer.{name}"] for name in ("name", "update_count", "frozen_count")] == [None, None, None]
    assert any(reason in finding.message for finding in report.findings)


def test_a_few_states_are_not_too_many() -> None:
    report = report_of(*product_of_moments(20), aliases=21)
    assert report.facts["optimizer.name"] is not None
    assert not report.findings


def test_a_sum_with_itself_many_times_over_is_walked_once() -> None:
    """Each of 1,000 sums adds the one before to itself: what is done grows with their number, not with its square."""
    graph = Graph()
    total = graph.input((0, 0, ()), 8)
    for _ in range(1000):
        total = graph.make("add", (total, total))
    forms = NormalForms(graph)
    assert forms.form(total) == {((forms.leaf(0), 1.0),): 2.0**1000}
    assert not forms.is_cut_short


def test_sums_of_functions_of_sums_take_linear_time() -> None:
    """Each sum adds a function of the one before to it."""

    def form_of_sums(count: int) -> None:
        graph = Graph()
        total = graph.input((0, 0, ()), 8)
        for _ in range(count):
            total = graph.make("add", (total, graph.make("reverse", (total,))))
        NormalForms(graph).form(total)

    assert_linear(form_of_sums, 2_000)


def test_an_element_that_is_taken_of_itself_ends_the_search() -> None:
    """Printed without ids all elements have one name, and each seems to be taken of the one before, the first of itself."""
    lines = (
        "get-tuple-element = f32[4] get-tuple-element(get-tuple-element), index=0",
        "ROOT t = (f32[4]) tuple(get-tuple-element)",
    )
    assert facts_of(entry_of("p = f32[4] parameter(0)", *lines))["name"] == "none"


def test_many_outputs_of_one_shape_are_matched_in_linear_time() -> None:
    assert_linear(lambda count: assert_nothing_is_updated(report_of(*without_a_match(count), aliases=0)), 1_000)


def test_parts_of_what_is_put_together_are_looked_up_in_linear_time() -> None:
    assert_linear(lambda count: assert_is_updated(report_of(*put_together(count), aliases=1)), 300)


def test_rates_that_are_sums_over_arrays_take_linear_time() -> None:
    assert_linear(lambda count: assert_is_updated(report_of(*sums_over_small_arrays(count), before=ADD)), 300)


def assert_is_updated(report: Report) -> None:
    assert report.facts["optimizer.update_count"] == 1


def assert_nothing_is_updated(report: Report) -> None:
    assert report.facts["optimizer.update_count"] == 0
