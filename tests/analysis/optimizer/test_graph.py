"""Equal expressions are one node, whatever they are called."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.graph import Graph


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


def test_operands_come_first_however_deep() -> None:
    graph = Graph()
    node = graph.input((0, 0, ()), 8)
    for _ in range(5000):
        node = graph.make("negate", (node,))
    order = graph.below([node])
    assert len(order) == 5001
    assert all(arg in order[:n] for n, one in enumerate(order[:50]) for arg in graph.args[one])


def test_a_rounded_constant_marks_what_holds_it() -> None:
    graph = Graph()
    x = graph.input((0, 0, ()), 8)
    assert graph.coarse[graph.make("multiply", (x, graph.constant(0.1001, is_coarse=True)))]
    assert not graph.coarse[graph.make("multiply", (x, graph.constant(0.1)))]
