"""Schedules that are computed as a small array of segments: each element is 0 outside of its own segment, and their sum is the
rate. `cosine_onecycle_schedule`, `linear_onecycle_schedule` and `piecewise_interpolate_schedule` of optax are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.algebra.normal_form import ONE, NormalForms, Sum, added, scaled
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import ELEMENTWISE, constant_values

MAX_ELEMENTS = 12
MAX_NODES = 200  # of which an array is made


def with_segments(flow: Dataflow, forms: NormalForms, rate: Sum) -> Sum:
    """A rate in which sums over small arrays of constants and scalars are written out."""
    totals = {leaf: total for leaf in forms.leaves(rate) if (total := _total(flow, forms, leaf)) is not None}
    return _replaced(forms, rate, totals) if totals else rate


def _total(flow: Dataflow, forms: NormalForms, leaf: int) -> Sum | None:
    """The sum of an array's elements that a leaf is, element by element."""
    frames, node = flow.frames, forms.atoms[leaf].node
    place = flow.graph.places.get(node) if node is not None else None
    if place is None or frames.opcode(place) != "reduce" or frames.size(place) != 1 or not frames.applies(place, "add"):
        return None
    operands = frames.operands(place)
    if len(operands) != 2 or not 1 < frames.size(operands[0]) <= MAX_ELEMENTS:
        return None
    array, start = map(flow.node, operands)
    below = _below(flow.graph, array)
    if flow.graph.value(start) != 0.0 or below is None:
        return None
    total: Sum = {}
    for number in range(frames.size(operands[0])):
        element = _element(flow, below, number, frames.size(operands[0]))
        if element is None:
            return None
        total = added(total, forms.form(element))
    return total


def _below(graph: Graph, array: int) -> list[int] | None:
    """The nodes that an array is made of, operands first, down to scalars; `None` where there are too many."""
    found = {array}
    stack = [array]
    while stack:
        node = stack.pop()
        new = set(graph.args[node]) - found if graph.sizes[node] != 1 else set()
        found |= new
        stack += new
        if len(found) > MAX_NODES:
            return None
    return sorted(found)


def _element(flow: Dataflow, below: Sequence[int], number: int, size: int) -> int | None:
    """The node of one element of the last node, an array of that size; `below` are the nodes that it is made of."""
    graph = flow.graph
    found: dict[int, int] = {}
    for node in below:
        values = _numbers(flow, node)
        if graph.sizes[node] == 1:
            found[node] = node
        elif values is not None and len(values) == size:
            found[node] = graph.constant(values[number])
        elif graph.ops[node] in ELEMENTWISE and graph.sizes[node] == size:
            found[node] = graph.make(graph.ops[node], tuple([found[arg] for arg in graph.args[node]]), graph.attributes[node])
        else:
            return None
    return found[below[-1]]


def _numbers(flow: Dataflow, node: int) -> Sequence[float] | None:
    """The numbers of which a node is an array with one dimension: a constant, or 0, 1, 2 and so on."""
    place = flow.graph.places.get(node)
    instruction = flow.frames.instruction(place) if place is not None else None
    shape = instruction.shape if instruction is not None else None
    if instruction is None or not isinstance(shape, ArrayShape) or len(shape.dimensions) != 1:
        return None
    if instruction.opcode == "constant":
        return constant_values(instruction.literal)
    return range(shape.elements or 0) if instruction.opcode == "iota" else None


def _replaced(forms: NormalForms, form: Sum, by: Mapping[int, Sum]) -> Sum:
    """A sum in which other sums stand for some leaves, at any depth."""
    found: dict[int, Sum] = {}
    for number in sorted(forms.atoms_below(form)):
        atom = forms.atoms[number]
        parts = tuple([_put_in(forms, part, found) for part in atom.parts])
        if number in by or not parts:
            found[number] = by.get(number, {((number, 1.0),): 1.0})
        else:
            found[number] = parts[0] if atom.op == "sum" else forms.function(atom.op, parts, atom.attribute)
    return _put_in(forms, form, found)


def _put_in(forms: NormalForms, form: Sum, found: Mapping[int, Sum]) -> Sum:
    """A sum in which each atom is replaced."""
    total: Sum = {}
    for monomial, value in form.items():
        product: Sum = {ONE: 1.0}
        for atom, exponent in monomial:
            product = forms.multiply(product, forms.power(found[atom], exponent))
        total = added(total, scaled(product, value))
    return total
