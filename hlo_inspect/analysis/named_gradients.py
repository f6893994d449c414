"""Gradients among the outputs of a program by their names, if the graph does not show the backward pass."""

from __future__ import annotations

from hlo_inspect.graph.parameters import Interface, ParameterLeaf
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.values.op_names import BACKWARD, scope_of
from hlo_inspect.hlo.values.shapes import ArrayShape

MAX_STEPS = 16
"""Instructions without a name between an output and the work that makes it: conversions, copies, gathers."""


def parameters_with_named_gradients(views: Views, entry: str, interface: Interface) -> list[ParameterLeaf]:
    """Return the floating-point matrices of whose shape and type an output of the backward pass is."""
    view = views.for_computation(entry)
    root = view.root
    if root is None or view.opcodes[root] != "tuple":
        return []
    rows = [row for row in view.operand_rows(root) if row is not None]
    shapes = {_key(view.shapes[row]) for row in rows if scope_of(_name(view, row)).phase == BACKWARD} - {None}
    return [leaf for leaf in interface.parameters if len(leaf.shape.dimensions) > 1 and _key(leaf.shape) in shapes]


def _key(shape: object) -> tuple[object, ...] | None:
    is_float = isinstance(shape, ArrayShape) and shape.dtype.startswith(("f", "bf"))
    return (shape.dtype, shape.dimensions) if is_float and isinstance(shape, ArrayShape) else None


def _name(view: View, row: int) -> str:
    """Return the op_name of a value, or that of the only array that it is made of."""
    for _ in range(MAX_STEPS):
        operands = view.operand_rows(row)
        if view.op_name(row) or len(operands) != 1 or operands[0] is None:
            break
        row = operands[0]
    return view.op_name(row)
