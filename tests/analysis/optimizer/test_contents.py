"""Bits of what atoms hold, however deep."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.contents import Contents
from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.analysis.optimizer.normal import Forms


def test_values_and_inputs_of_nested_atoms() -> None:
    graph = Graph()
    w, m, count = graph.input((0, 0, ()), 8), graph.input((0, 1, ()), 8), graph.input((0, 2, ()), 1)
    gradient = graph.opaque((0, "dot", ()), 8)
    inner = graph.make("sqrt", (graph.make("add", (m, graph.make("maximum", (gradient, count)))),))
    node = graph.make("tanh", (inner,))
    forms = Forms(graph)
    atoms = {name: forms.leaf(one) for name, one in {"w": w, "m": m}.items()}
    contents = Contents(forms, atoms.values(), lambda _: 0b100)
    form = forms.form(node)
    assert list(contents.atoms(contents.values(form))) == [atoms["m"]]
    assert contents.inputs(form) == 0b100
    ((monomial, _),) = form.items()
    assert not contents.are_scalars(monomial[0][0])
    assert contents.are_scalars(forms.leaf(count))
    assert contents.values_in(forms.leaf(count)) == contents.inputs_in(forms.leaf(count)) == 0
