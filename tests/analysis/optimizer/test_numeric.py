"""Expressions as numbers."""

from __future__ import annotations

import math

import pytest

from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.analysis.optimizer.normal import ONE, Forms
from hlo_inspect.analysis.optimizer.numeric import agrees, apply, value_of_form, value_of_node


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
def test_what_is_not_defined(op: str, values: list[float]) -> None:
    assert apply(op, None, values) is None


def test_the_two_ways_agree_with_arithmetic() -> None:
    graph = Graph()
    x = graph.input((0, 0, ()), 8)
    node = graph.make("divide", (x, graph.make("add", (graph.make("sqrt", (x,)), graph.constant(1.0)))))
    forms = Forms(graph)
    assert value_of_node(graph, node, lambda one: 4.0 if one == x else None) == 4 / 3
    found = value_of_form(forms, forms.form(node), lambda _: 4.0)
    assert found is not None
    assert math.isclose(found, 4 / 3)


def test_a_wrong_form_is_noticed() -> None:
    graph = Graph()
    x = graph.input((0, 0, ()), 8)
    node = graph.make("multiply", (x, x))
    forms = Forms(graph)
    assert agrees(forms, node, forms.form(node))
    assert not agrees(forms, node, {((forms.leaf(x), 1.0),): 1.0})
    assert not agrees(forms, node, {ONE: 1.0})
