"""Recomputation that the program asks for and the compiler merged with the forward pass.

XLA on CPU drops the barriers of `jax.checkpoint`. The recomputed instructions are then equal to those of the forward pass, and
are merged with them. A merged product may have the name of the recomputation, and the forward pass reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.graph.readers import ViewRow, maker_of, readers_behind
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, SLICES
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, PRODUCT_PRIMITIVES, RECOMPUTE, UNKNOWN, scope_of

_SCOPE = "checkpoint"
_PARTS = SLICES | {"convert", "get-tuple-element"}
MAX_STEPS = 64
"""Instructions without a name that are followed from one array, and steps from a product to its weight."""


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
    phases = _phases(view)
    products = [row for row, phase in enumerate(phases) if phase == RECOMPUTE and _is_product(view, row)]
    if not _are_merged(views, view, phases, products):
        return None
    forward = {row for row, phase in enumerate(phases) if phase == FORWARD or _is_read_forward(views, view, row)}
    made = [ViewRow(view, row) for row in sorted(forward.union(products))]
    arrays = (array for array in made if array.opcode not in LITERAL_OPCODES and array.bytes)
    kept = tuple(array for array in arrays if _is_read_backward(views, array))
    return KeptForBackward(kept, sum(array.bytes for array in kept)) if kept else None


def is_merged(views: Views, module: Module) -> bool:
    """Return True if the names of the recomputation stand on the forward pass, because the compiler merged both.

    A loop may still compute its body again: a program with one is not merged.
    """
    entry = module.entry
    if entry is None or not module.header.is_scheduled or entry.name not in views.computations:
        return False
    return "while" not in views.for_computation(entry.name).opcodes and find_kept(views, entry.name) is not None


def _phases(view: View) -> list[str]:
    """Return the phase of each row by its name; one without a name, such as a conversion on CPU, has that of its operand."""
    phases: list[str] = []
    for row in range(len(view.rows)):
        operands = view.operand_rows(row)
        before = operands[0] if len(operands) == 1 else None
        phase = scope_of(view.op_name(row)).phase
        is_named = phase != UNKNOWN or before is None or before >= row or view.op_name(row)
        phases.append(phase if is_named or before is None else phases[before])
    return phases


def _are_merged(views: Views, view: View, phases: list[str], products: list[int]) -> bool:
    """Return True if the forward pass reads the recomputed products, or has none of the same weight.

    One that only the backward pass reads may be that of the last layer, whose result nothing else needs.
    """
    weights = {
        row: _weights(views, view, row) for row, phase in enumerate(phases) if phase == FORWARD and _is_product(view, row)
    }
    of_forward = set().union(*weights.values())
    unread = [row for row in products if not _is_read_forward(views, view, row)]
    is_again = any(_weights(views, view, row) & of_forward for row in unread)
    return not is_again and (len(unread) < len(products) or any(_weights(views, view, row) for row in unread))


def _weights(views: Views, view: View, row: int) -> set[tuple[int, int]]:
    """Return the parameters that a product multiplies, each by row and element of a tuple."""
    weights = set()
    for operand in ViewRow(view, row).operands:
        place, element = operand, -1
        for _ in range(MAX_STEPS):
            made = maker_of(views, place) if place is not None else None
            if made is None or made.opcode not in _PARTS:
                break
            element = made.view.element_number(made.row) or element if made.opcode == "get-tuple-element" else element
            place = made.operand(0)
        if made is not None and made.opcode == "parameter" and made.view is view:
            weights.add((made.row, element))
    return weights


def _is_product(view: View, row: int) -> bool:
    return scope_of(view.op_name(row)).primitive in PRODUCT_PRIMITIVES


def _is_read_forward(views: Views, view: View, row: int) -> bool:
    return any(scope_of(name).phase == FORWARD for name in _names_of_readers(views, ViewRow(view, row)))


def _is_read_backward(views: Views, array: ViewRow) -> bool:
    """Return True if work of the backward pass under `checkpoint` reads an array, such as the cosine for a sine."""
    names = _names_of_readers(views, array)
    return any(_SCOPE in name and scope_of(name).phase in {BACKWARD, RECOMPUTE} for name in names)


def _names_of_readers(views: Views, place: ViewRow) -> Iterator[str]:
    """Yield the op_names of the instructions that read an array, in fusions too, behind instructions without a name."""
    readers = readers_behind(views, place, (), lambda reader: not reader.op_name, MAX_STEPS)
    return (reader.op_name for reader in readers if reader is not None)
