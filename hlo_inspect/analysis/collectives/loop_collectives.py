"""Collectives that need not send, or not in each iteration: of constants, of fixed values, of sums that a loop adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import place_of, results_of, runs_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.readers import ViewRow, maker_of, readers_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import (
    COLLECTIVE_KINDS,
    DEVICE_NUMBERS,
    ELEMENTWISE,
    POINT_TO_POINT,
    opcodes_that_are,
    opcodes_that_give,
)

MAX_STEPS = 64
"""Operands that are followed, at any depth, to see if a value is constant."""

_REPEATABLE = (
    (ELEMENTWISE | DEVICE_NUMBERS | opcodes_that_give("move", "part") | opcodes_that_are("product", "reduction"))
    .union(COLLECTIVE_KINDS, {"constant", "iota"})
    .difference(POINT_TO_POINT)
)
"""Opcodes with the same result for the same operands."""

_SUMS = {"add", "subtract"}
_FACTORS = {"multiply", "divide"}
_LINEAR = _SUMS | _FACTORS | {"convert", "negate"}


class SavedSends(NamedTuple):
    """A collective, and the bytes that a device sends for it in one step and need not."""

    collective: Collective
    bytes: int


def find_constant(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SavedSends]:
    """Yield the collectives whose operands are made of constants alone."""
    for collective, sent in _sent(calls, collectives, least):
        place = place_of(views, collective)
        if place is not None and all(_is_fixed(views, operand, None) for operand in place.operands):
            yield SavedSends(collective, sent)


def find_invariant(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SavedSends]:
    """Yield the collectives in the body of a loop whose operands are the same in each iteration, and no constants."""
    for collective, sent in _sent(calls, collectives, least):
        saved = _saved_outside_loop(calls, collective, sent)
        place = place_of(views, collective) if saved >= least and saved else None
        if place is None or all(_is_fixed(views, operand, None) for operand in place.operands):
            continue
        if all(_is_fixed(views, operand, place.view) for operand in place.operands):
            yield SavedSends(collective, saved)


def find_accumulated(views: Views, calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[SavedSends]:
    """Yield the all-reduces in the body of a loop of which each array is only added to an element of the loop's state.

    Reduce-scatters are left out: without them each device holds the whole sum until the loop ends.
    """
    sums = [collective for collective in collectives if collective.kind == "all-reduce" and collective.reduction == "add"]
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
    whole = made.operand(0) if made.opcode == "get-tuple-element" else None
    number = made.view.element_number(made.row) if whole is not None and whole.opcode == "parameter" else None
    return (made.view, number) if number is not None else None


def new_state(view: View, number: int) -> ViewRow | None:
    """Return the value that a body gives to an element of its state."""
    return ViewRow(view, view.root).operand(number) if view.root is not None and view.opcodes[view.root] == "tuple" else None


def _is_fixed(views: Views, value: ViewRow | None, body: View | None) -> bool:
    """Return True if a value is made of constants, and of elements of the state that `body` never changes, alone.

    The number of the device is a constant too: each device knows what the others make of theirs.
    """
    waiting = [value]
    seen: set[tuple[str, int]] = set()
    while waiting:
        place = waiting.pop()
        made = maker_of(views, place) if place is not None and len(seen) <= MAX_STEPS else None
        if made is None:
            return False
        if made.key in seen:
            continue
        seen.add(made.key)
        if made.opcode in _REPEATABLE:
            waiting += made.operands
        elif body is None or not _is_unchanged(views, made, body):
            return False
    return True


def _is_unchanged(views: Views, place: ViewRow, body: View) -> bool:
    element = element_of_state(views, place)
    new = new_state(*element) if element is not None and element[0] is body else None
    return new is not None and element_of_state(views, new) == element


def _is_added_up(views: Views, place: ViewRow, index: tuple[int, ...]) -> bool:
    """Return True if a value is only added to an element of the state, and nothing else reads old or new value.

    Linear work may stand between: conversions, the factor of a mean, the addition of another value.
    """
    body, total = place.view, None
    for _ in range(MAX_STEPS):
        readers = list(readers_of(views, place, index))
        if readers == [None]:
            new = new_state(body, total) if total is not None else None
            return new is not None and maker_of(views, new) == place
        reader = readers[0] if len(readers) == 1 else None
        if reader is None or reader.opcode not in _LINEAR:
            return False
        others = _other_operands(views, reader, place)
        if reader.opcode in _FACTORS and not (others and all(_is_fixed(views, other, body) for other in others)):
            return False
        for other in others if reader.opcode in _SUMS else ():
            element = element_of_state(views, _without_conversion(views, other))
            if element is not None and element[0] is body and _only_reader(views, *element) == reader:
                if reader.opcode == "subtract" and other == reader.operand(1):
                    return False
                total = element[1]
        place, index = reader, ()
    return False


def _other_operands(views: Views, reader: ViewRow, place: ViewRow) -> list[ViewRow]:
    """Return the operands of a reader that are not the value which it reads; none if the value divides."""
    own = maker_of(views, place)
    operands = [operand for operand in reader.operands if operand is not None]
    others = [operand for operand in operands if _holder(views, operand) != own]
    return [] if reader.opcode == "divide" and operands[:1] == others else others


def _holder(views: Views, place: ViewRow) -> ViewRow:
    """Return the instruction that makes a value, or the tuple that holds it."""
    made = maker_of(views, place)
    whole = made.operand(0) if made.opcode == "get-tuple-element" else None
    return maker_of(views, whole) if whole is not None else made


def _without_conversion(views: Views, place: ViewRow) -> ViewRow:
    made = maker_of(views, place)
    converted = made.operand(0) if made.opcode == "convert" else None
    return made if converted is None else converted


def _only_reader(views: Views, view: View, number: int) -> ViewRow | None:
    """Return the instruction that reads an element of the state, behind a conversion; None if there are several."""
    state = next((ViewRow(view, row) for row, opcode in enumerate(view.opcodes) if opcode == "parameter"), None)
    readers = list(readers_of(views, state, (number,))) if state is not None else []
    if len(readers) == 1 and readers[0] is not None and readers[0].opcode == "convert":
        readers = list(readers_of(views, readers[0]))
    return readers[0] if len(readers) == 1 else None
