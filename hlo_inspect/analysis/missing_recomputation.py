"""Recomputation that the program asks for and the compiler merged with the forward pass.

XLA on CPU drops the barriers of `jax.checkpoint`. The recomputed instructions are then equal to those of the forward pass, and
are merged with them. A merged product has the name of the recomputation, and an instruction of the forward pass reads it.
"""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.graph.readers import ViewRow
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, PRODUCT_PRIMITIVES, RECOMPUTE, scope_of
from hlo_inspect.hlo.values.shapes import ArrayShape

_SCOPE = "checkpoint"


class KeptForBackward(NamedTuple):
    """Arrays that the backward pass under `checkpoint` reads and the forward pass made, and their bytes."""

    arrays: tuple[ViewRow, ...]
    bytes: int


def find_kept(views: Views, entry: str) -> KeptForBackward | None:
    """Return what is kept although `checkpoint` asks for recomputation; None if a product is computed again.

    Also return None if no product is under the recomputation: a policy keeps them. Loops are left out: XLA keeps their bodies
    apart, so that nothing in them is merged.
    """
    view = views.for_computation(entry)
    if not any(_SCOPE in tail for tail in view.tails):
        return None
    phases = [scope_of(view.op_name(row)).phase for row in range(len(view.rows))]
    merged = {row for row, phase in enumerate(phases) if phase == RECOMPUTE and _is_read_forward(view, row, phases)}
    products = [row for row, phase in enumerate(phases) if phase == RECOMPUTE and _is_product(view, row)]
    if not products or not merged.issuperset(products):
        return None
    readers = [row for row, phase in enumerate(phases) if row not in merged and _is_backward(view, row, phase)]
    made = dict.fromkeys(operand for row in readers for operand in view.operand_rows(row) if operand is not None)
    kept = [
        row
        for row in made
        if view.opcodes[row] not in LITERAL_OPCODES and (phases[row] == FORWARD or row in merged) and _bytes(view, row)
    ]
    total = sum(_bytes(view, row) for row in kept)
    return KeptForBackward(tuple(ViewRow(view, row) for row in kept), total) if kept else None


def _is_read_forward(view: View, row: int, phases: list[str]) -> bool:
    return any(phases[user] == FORWARD for user in view.users[row])


def _is_product(view: View, row: int) -> bool:
    return scope_of(view.op_name(row)).primitive in PRODUCT_PRIMITIVES


def _is_backward(view: View, row: int, phase: str) -> bool:
    """Return True for work of the backward pass under `checkpoint`, such as the cosine for a sine."""
    return phase in {BACKWARD, RECOMPUTE} and _SCOPE in view.op_name(row)


def _bytes(view: View, row: int) -> int:
    shape = view.shapes[row]
    return shape.bytes or 0 if isinstance(shape, ArrayShape) else 0
