"""Collectives that need not send, or not in each iteration: of constants, of fixed values, of sums that a loop adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hlo_inspect.analysis.collective_results import place_of, results_of, runs_of
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_of, readers_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import ELEMENTWISE

MAX_STEPS = 64
"""Operands that are followed, at any depth, to see if a value is constant."""

_UNIFORM = ELEMENTWISE | {"broadcast", "slice"}


class SavedSends(NamedTuple):
    """A collective, and the bytes that a device sends for it in one step and need not."""

    collective: Collective
    bytes: int


def find_constant(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SavedSends]:
    """Yield the collectives whose operands are made of constants alone."""
    for collective, sent in _sent(calls, collectives, least):
        place = place_of(views, collective)
        if place is not None and all(_is_fixed(views, place.view, row, None) for row in place.view.operand_rows(place.row)):
            yield SavedSends(collective, sent)


def find_invariant(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SavedSends]:
    """Yield the collectives in the body of a loop whose operands are the same in each iteration, and no constants."""
    for collective, sent in _sent(calls, collectives, least):
        saved = _saved_outside_loop(calls, collective, sent)
        place = place_of(views, collective) if saved >= least and saved else None
        if place is None:
            continue
        rows = place.view.operand_rows(place.row)
        is_constant = all(_is_fixed(views, place.view, row, None) for row in rows)
        if not is_constant and all(_is_fixed(views, place.view, row, place.view) for row in rows):
            yield SavedSends(collective, saved)


def find_accumulated(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SavedSends]:
    """Yield the sums in the body of a loop of which each array is only added to an element of the loop's state."""
    sums = [collective for collective in collectives if collective.reduction == "add"]
    for collective, sent in _sent(calls, sums, least):
        saved = _saved_outside_loop(calls, collective, sent)
        if saved < max(least, 1):
            continue
        results = list(results_of(views, calls, (collective,)))
        whole = sum(result.bytes for result in results)
        added = sum(result.bytes for result in results if _is_added_up(views, result.place, result.element))
        if added and saved * added // whole >= least:
            yield SavedSends(collective, saved * added // whole)


def _sent(calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[tuple[Collective, int]]:
    """Yield the collectives that send `least` bytes or more in one step, with these bytes."""
    for collective in collectives:
        sent = (collective.wire_bytes or 0) * runs_of(calls, collective.start.computation.name)
        if sent >= max(least, 1):
            yield collective, sent


def _saved_outside_loop(calls: CallGraph, collective: Collective, sent: int) -> int:
    """Return the bytes that a collective saves outside of the loop whose body it stands in; 0 outside of loops."""
    name = collective.start.computation.name
    loop = next(calls.loops_around(name), None)
    if loop is None or loop.body != name:
        return 0
    return sent - (collective.wire_bytes or 0) * runs_of(calls, loop.instruction.computation.name)


# -- values -------------------------------------------------------------------------------------------------------------


def element_of_state(views: Views, place: ViewRow) -> tuple[View, int] | None:
    """Return the computation and number of the element of its parameter that a value is; None if it is another value."""
    made = maker_of(views, place)
    row = made.view.operand_row(made.row, 0) if made.opcode == "get-tuple-element" else None
    number = made.view.element_number(made.row) if row is not None else None
    if row is None or number is None or made.view.opcodes[row] != "parameter":
        return None
    return made.view, number


def new_state(view: View, number: int) -> ViewRow | None:
    """Return the value that a body gives to an element of its state."""
    root = view.root
    row = view.operand_row(root, number) if root is not None and view.opcodes[root] == "tuple" else None
    return ViewRow(view, row) if row is not None else None


def _is_fixed(views: Views, view: View, row: int | None, body: View | None) -> bool:
    """Return True if a value is made of constants, and of elements of the state that `body` never changes, alone."""
    waiting = [ViewRow(view, row) if row is not None else None]
    for _ in range(MAX_STEPS):
        if not waiting:
            return True
        place = waiting.pop()
        if place is None:
            return False
        made = maker_of(views, place)
        if made.opcode in {"constant", "iota"}:
            continue
        if made.opcode in _UNIFORM:
            operands = made.view.operand_rows(made.row)
            waiting += [ViewRow(made.view, operand) if operand is not None else None for operand in operands]
            continue
        element = element_of_state(views, made)
        if body is None or element is None or element[0] is not body:
            return False
        new = new_state(*element)
        if new is None or element_of_state(views, new) != element:
            return False
    return False


def _is_added_up(views: Views, place: ViewRow, index: tuple[int, ...]) -> bool:
    """Return True if a value is only added to an element of the state, and nothing else reads old or new value."""
    readers = list(readers_of(views, place, index))
    total = readers[0] if len(readers) == 1 else None
    if total is None or total.opcode != "add":
        return False
    for number in range(2):
        operand = total.view.operand_row(total.row, number)
        element = element_of_state(views, ViewRow(total.view, operand)) if operand is not None else None
        if element is not None and element[0] is place.view:
            new = new_state(*element)
            is_kept = new is not None and maker_of(views, new) == total
            return is_kept and list(readers_of(views, total)) == [None] and _reads_of_state(views, *element) == [total]
    return False


def _reads_of_state(views: Views, view: View, number: int) -> list[ViewRow | None]:
    """Return the instructions that read an element of the state."""
    parameters = [row for row, opcode in enumerate(view.opcodes) if opcode == "parameter"]
    return [reader for row in parameters[:1] for reader in readers_of(views, ViewRow(view, row), (number,))]
