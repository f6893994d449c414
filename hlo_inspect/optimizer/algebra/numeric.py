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
    """Return the value of a normal form; `leaf` returns the value of a leaf's node."""
    values_by_atom: dict[int, float | None] = {}
    wanted = forms.atoms_below(form)
    for number in sorted(wanted):
        atom = forms.atoms[number]
        if atom.node is not None:
            values_by_atom[number] = leaf(atom.node)
        elif atom.op == "zero":
            values_by_atom[number] = 0.0
        else:
            parts = [_sum(part, values_by_atom) for part in atom.parts]
            values = [part for part in parts if part is not None]
            values_by_atom[number] = values[0] if atom.op == "sum" and values else None
            if atom.op != "sum" and len(values) == len(parts):
                values_by_atom[number] = apply(atom.op, atom.attribute, values)
    return _sum(form, values_by_atom)


def _sum(form: Sum, values: Mapping[int, float | None]) -> float | None:
    total = 0.0
    for monomial, coefficient in form.items():
        product = coefficient
        for atom, exponent in monomial:
            base = values[atom]
            power = apply("power", None, [base, exponent]) if base is not None else None
            if power is None:
                return None
            product *= power
        total += product
    return total


def value_of_node(graph: Graph, node: int, leaf: Callable[[int], float | None]) -> float | None:
    """Return the value of a node; `leaf` returns the values of leaves, and of other nodes that count as leaves."""
    values_by_node: dict[int, float | None] = {}
    for member in graph.reachable([node]):
        given = leaf(member) if member != node else None
        constant = graph.value(member)
        if constant is not None:
            values_by_node[member] = constant
        elif given is not None:
            values_by_node[member] = given
        else:
            values = [value for arg in graph.args[member] if (value := values_by_node[arg]) is not None]
            whole = len(values) == len(graph.args[member]) and bool(values)
            values_by_node[member] = apply(graph.ops[member], graph.attributes[member], values) if whole else None
    return values_by_node[node]


def agrees(forms: NormalForms, node: int, form: Sum) -> bool:
    """Return True if a normal form and its node have equal values at all points at which both can be computed."""
    graph = forms.graph
    for point in range(POINTS):

        def leaf(leaf_node: int, point: int = point) -> float:
            return 0.3 + math.modf(abs(math.sin(12.9898 * leaf_node + 78.233 * point)) * 43758.5453)[0]

        def given(leaf_node: int) -> float | None:
            return leaf(leaf_node) if not graph.args[leaf_node] or forms.is_cut(leaf_node) else None

        left, right = value_of_node(graph, node, given), value_of_form(forms, form, leaf)
        if left is not None and right is not None and abs(left - right) > 1e-4 * max(abs(left), abs(right), 1.0):
            return False
    return True
