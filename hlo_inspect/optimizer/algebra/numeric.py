"""Numbers for expressions: normal forms and the graph itself, at given values of their leaves.

`agrees` holds the two against each other at a few points, so that a fault in the algebra cannot become a claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from hlo_inspect.optimizer.algebra.normal_form import NormalForms, Sum
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import apply

POINTS = 3


def value_of_form(forms: NormalForms, form: Sum, leaf: Callable[[int], float]) -> float | None:
    """A normal form where `leaf` gives the value of a leaf's node."""
    known: dict[int, float | None] = {}
    wanted = forms.atoms_below(form)
    for number in sorted(wanted):
        atom = forms.atoms[number]
        if atom.node is not None:
            known[number] = leaf(atom.node)
        elif atom.op == "zero":
            known[number] = 0.0
        else:
            parts = [_sum(part, known) for part in atom.parts]
            values = [part for part in parts if part is not None]
            known[number] = values[0] if atom.op == "sum" and values else None
            if atom.op != "sum" and len(values) == len(parts):
                known[number] = apply(atom.op, atom.attribute, values)
    return _sum(form, known)


def _sum(form: Sum, known: Mapping[int, float | None]) -> float | None:
    total = 0.0
    for monomial, coefficient in form.items():
        product = coefficient
        for atom, exponent in monomial:
            base = known[atom]
            power = apply("power", None, [base, exponent]) if base is not None else None
            if power is None:
                return None
            product *= power
        total += product
    return total


def value_of_node(graph: Graph, node: int, leaf: Callable[[int], float | None]) -> float | None:
    """A node of the graph where `leaf` gives the value of leaves, and of other nodes that are taken as such."""
    known: dict[int, float | None] = {}
    for one in graph.below([node]):
        given = leaf(one) if one != node else None
        constant = graph.value(one)
        if constant is not None:
            known[one] = constant
        elif given is not None:
            known[one] = given
        else:
            values = [value for arg in graph.args[one] if (value := known[arg]) is not None]
            whole = len(values) == len(graph.args[one]) and bool(values)
            known[one] = apply(graph.ops[one], graph.attributes[one], values) if whole else None
    return known[node]


def agrees(forms: NormalForms, node: int, form: Sum) -> bool:
    """Whether a normal form has the values of the node that it was made from, wherever both can be computed."""
    graph = forms.graph
    for point in range(POINTS):

        def leaf(one: int, point: int = point) -> float:
            return 0.3 + math.modf(abs(math.sin(12.9898 * one + 78.233 * point)) * 43758.5453)[0]

        def given(one: int) -> float | None:
            return leaf(one) if not graph.args[one] or forms.is_cut(one) else None

        left, right = value_of_node(graph, node, given), value_of_form(forms, form, leaf)
        if left is not None and right is not None and abs(left - right) > 1e-4 * max(abs(left), abs(right), 1.0):
            return False
    return True
