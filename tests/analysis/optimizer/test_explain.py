"""Expressions for people."""

from __future__ import annotations

import re

from hlo_inspect.analysis.optimizer.explain import MAX_LENGTH, text
from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.analysis.optimizer.normal import Forms


def test_a_sum() -> None:
    graph = Graph()
    w, v = graph.input((0, 3, ()), 8), graph.input((0, 4, (1,)), 8)
    step = graph.make("divide", (graph.opaque((0, "dot", ()), 8), graph.make("sqrt", (v,))))
    node = graph.make("add", (w, graph.make("multiply", (graph.constant(-0.1), step))))
    forms = Forms(graph)
    assert re.fullmatch(r"p3 \+ -0\.1\*p4\.1\*\*-0\.5\*x#\d", text(forms, forms.form(node)))
    assert text(forms, {}) == "0"


def test_long_and_deep_ones_are_cut() -> None:
    graph = Graph()
    nodes = [graph.input((0, n, ()), 8) for n in range(50)]
    deep = nodes[0]
    for node in nodes[1:]:
        deep = graph.make("tanh", (graph.make("add", (deep, node)),))
    forms = Forms(graph)
    found = text(forms, forms.form(deep))
    assert "…" in found
    assert len(found) <= MAX_LENGTH
