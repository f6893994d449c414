"""Every spelling of an expression has the same form, and other expressions have others."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.optimizer.algebra import normal_form
from hlo_inspect.optimizer.algebra.normal_form import ONE, NormalForms, is_constant, key_of, split_zero
from hlo_inspect.optimizer.algebra.numeric import agrees, value_of_form, value_of_node
from hlo_inspect.optimizer.algebra.unexplained_updates import MAX_LENGTH, describe
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import apply


def leaves(count: int) -> tuple[Graph, list[int]]:
    graph = Graph()
    return graph, [graph.input((0, n, ()), 8) for n in range(count)]


def test_nested_divisions() -> None:
    graph, (a, b, c) = leaves(3)
    forms = NormalForms(graph)
    left = graph.make("divide", (graph.make("divide", (a, b)), c))
    right = graph.make("divide", (a, graph.make("multiply", (b, c))))
    assert forms.form(left) == forms.form(right)


def test_roots_are_exponents() -> None:
    graph, (a, b) = leaves(2)
    forms = NormalForms(graph)
    total = graph.make("add", (a, b))
    left = graph.make("divide", (a, graph.make("sqrt", (total,))))
    right = graph.make("multiply", (graph.make("rsqrt", (total,)), a))
    power = graph.make("multiply", (a, graph.make("power", (total, graph.constant(-0.5)))))
    assert forms.form(left) == forms.form(right) == forms.form(power)


def test_the_root_of_a_square_is_not_its_base() -> None:
    graph, (a,) = leaves(1)
    forms = NormalForms(graph)
    assert forms.form(graph.make("sqrt", (graph.make("multiply", (a, a)),))) != forms.form(a)


def test_sums_that_differ_by_a_factor_are_one_atom() -> None:
    graph, (a, b) = leaves(2)
    forms = NormalForms(graph)
    total = graph.make("add", (a, b))
    fifth = graph.make("multiply", (graph.constant(0.2), total))
    left = graph.make("multiply", (fifth, fifth))
    right = graph.make("multiply", (graph.constant(0.04), graph.make("multiply", (total, total))))
    assert key_of(forms.form(left)) == key_of(forms.form(right))


def test_sums_with_a_live_value_are_opened() -> None:
    graph, (w, u) = leaves(2)
    inner = graph.make("add", (u, graph.make("multiply", (graph.constant(0.1), w))))
    new = graph.make("add", (w, graph.make("multiply", (graph.constant(-0.5), inner))))
    live = NormalForms(graph, live=frozenset({w}))
    atom, other = ((live.leaf(w), 1.0),), ((live.leaf(u), 1.0),)
    assert key_of(live.form(new)) == key_of({atom: 0.95, other: -0.5})


def test_a_factor_of_zero_keeps_its_term() -> None:
    graph, (w,) = leaves(1)
    forms = NormalForms(graph)
    form = forms.form(graph.make("add", (w, graph.make("multiply", (graph.constant(0.0), w)))))
    assert len(form) == 2
    assert split_zero(form) == {((forms.leaf(w), 1.0),): 1.0}


def test_terms_that_cancel_out_are_dropped() -> None:
    graph, (w,) = leaves(1)
    assert NormalForms(graph).form(graph.make("subtract", (w, w))) == {}


def test_cut_nodes_are_atoms_and_have_a_definition() -> None:
    graph, (a, b) = leaves(2)
    total = graph.make("add", (a, b))
    forms = NormalForms(graph, cut=frozenset({total}))
    assert forms.form(total) == {((forms.leaf(total), 1.0),): 1.0}
    assert len(forms.definition(total)) == 2


def test_constants() -> None:
    graph, _ = leaves(0)
    forms = NormalForms(graph)
    assert forms.form(graph.make("multiply", (graph.constant(2.0), graph.constant(3.0)))) == {ONE: 6.0}
    assert is_constant(forms.form(graph.constant(0.5)))
    assert not is_constant(forms.form(graph.constant(float("inf"))))


def test_a_chain_of_thousands() -> None:
    graph, (a,) = leaves(1)
    node = a
    for _ in range(20_000):
        node = graph.make("add", (node, a))
    forms = NormalForms(graph)
    assert forms.form(node) == {((forms.leaf(a), 1.0),): 20_001.0}


def test_a_long_sum_is_made_at_once() -> None:
    graph, nodes = leaves(3000)
    total = nodes[0]
    for node in nodes[1:]:
        total = graph.make("add", (total, node))
    forms = NormalForms(graph)
    assert len(forms.form(total)) == 3000
    assert not forms.is_cut_short


def test_too_much_work_leaves_the_rest_opaque(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal_form, "LEAST_WORK", 50)
    monkeypatch.setattr(normal_form, "MAX_FACTORS", 0)
    graph, nodes = leaves(40)
    total = nodes[0]
    for node in nodes[1:]:
        total = graph.make("tanh", (graph.make("add", (total, node)),))
    forms = NormalForms(graph)
    ((monomial, _), *_) = forms.form(total).items()
    assert forms.is_cut_short
    assert forms.atoms[monomial[0][0]].op == "opaque"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "subtract", "multiply", "divide", "maximum", "sqrt", "negate", "abs"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=12,
)


@given(STEPS)
def test_a_form_has_the_values_of_its_expression(steps: list[tuple[str, int, int]]) -> None:
    graph, nodes = leaves(3)
    nodes = [*nodes, graph.constant(0.5), graph.constant(-2.0)]
    for op, left, right in steps:
        args = (nodes[left % len(nodes)], nodes[right % len(nodes)])
        nodes.append(graph.make(op, args[:1] if op in {"sqrt", "negate", "abs"} else args))
    forms = NormalForms(graph)
    assert agrees(forms, nodes[-1], forms.form(nodes[-1]))


# -- Expressions for people ---------------------------------------------------------------------------------------------


def test_a_sum() -> None:
    graph = Graph()
    w, v = graph.input((0, 3, ()), 8), graph.input((0, 4, (1,)), 8)
    step = graph.make("divide", (graph.opaque((0, 7, ()), 8), graph.make("sqrt", (v,))))
    node = graph.make("add", (w, graph.make("multiply", (graph.constant(-0.1), step))))
    forms = NormalForms(graph)
    assert re.fullmatch(r"p3 \+ -0\.1\*p4\.1\*\*-0\.5\*x#\d", describe(forms, forms.form(node)))
    assert describe(forms, {}) == "0"


def test_long_and_deep_expressions_are_shortened_in_print() -> None:
    graph = Graph()
    nodes = [graph.input((0, n, ()), 8) for n in range(50)]
    deep = nodes[0]
    for node in nodes[1:]:
        deep = graph.make("tanh", (graph.make("add", (deep, node)),))
    forms = NormalForms(graph)
    text = describe(forms, forms.form(deep))
    assert "…" in text
    assert len(text) <= MAX_LENGTH


# -- Expressions as numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "attribute", "values", "result"),
    [
        ("compare", "LT", [1.0, 2.0], 1.0),
        ("select", None, [0.0, 5.0, 7.0], 7.0),
        ("clamp", None, [0.0, 9.0, 3.0], 3.0),
        ("rsqrt", None, [4.0], 0.5),
        ("sign", None, [-3.0], -1.0),
        ("broadcast", None, [3.0], 3.0),
        ("integer-divide", None, [-7.0, 2.0], -3.0),
    ],
)
def test_operations(op: str, attribute: str | None, values: list[float], result: float) -> None:
    assert apply(op, attribute, values) == result


@pytest.mark.parametrize(("op", "values"), [("divide", [1.0, 0.0]), ("sqrt", [-1.0]), ("exponential", [1e9]), ("dot", [1.0])])
def test_undefined_values_have_no_form(op: str, values: list[float]) -> None:
    assert apply(op, None, values) is None


def test_the_two_ways_agree_with_arithmetic() -> None:
    graph = Graph()
    x = graph.input((0, 0, ()), 8)
    node = graph.make("divide", (x, graph.make("add", (graph.make("sqrt", (x,)), graph.constant(1.0)))))
    forms = NormalForms(graph)
    assert value_of_node(graph, node, lambda leaf: 4.0 if leaf == x else None) == 4 / 3
    value = value_of_form(forms, forms.form(node), lambda _: 4.0)
    assert value is not None
    assert math.isclose(value, 4 / 3)


def test_a_wrong_form_is_noticed() -> None:
    graph = Graph()
    x = graph.input((0, 0, ()), 8)
    node = graph.make("multiply", (x, x))
    forms = NormalForms(graph)
    assert agrees(forms, node, forms.form(node))
    assert not agrees(forms, node, {((forms.leaf(x), 1.0),): 1.0})
    assert not agrees(forms, node, {ONE: 1.0})


def test_products_of_shared_sums_stay_small() -> None:
    """`a' = a + b; b' = a * b`: multiplied out, the 40th of these would have more terms than there are atoms."""
    graph = Graph()
    a, b = (graph.input((0, number, ()), 4) for number in range(2))
    live = frozenset({a, b})
    for _ in range(40):
        a, b = graph.make("add", (a, b)), graph.make("multiply", (a, b))
    forms = NormalForms(graph, live=live)
    assert len(forms.form(a)) < 20_000
    assert not forms.is_cut_short


@pytest.mark.parametrize("op", ["multiply", "divide"])
def test_products_of_hundreds_stay_short(op: str) -> None:
    """Each product of a chain would hold all factors of those before it."""
    graph, nodes = leaves(450)
    chain = [nodes[0]]
    for node in nodes[1:]:
        chain.append(graph.make(op, (chain[-1], node)))
    forms = NormalForms(graph)
    lengths = [len(monomial) for node in chain for monomial in forms.form(node)]
    assert lengths[:100] == list(range(1, 101))
    assert max(lengths) == 100
    assert agrees(forms, chain[-1], forms.form(chain[-1]))
    assert not forms.is_cut_short
