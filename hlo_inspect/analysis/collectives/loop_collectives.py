"""Collectives that need not send, or not in each iteration: of constants, of fixed values, of sums that a loop adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import place_of, results_of, runs_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.loops import Loop
from hlo_inspect.graph.readers import ViewRow, maker_behind, maker_of, readers_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import (
    COLLECTIVE_KINDS,
    DEVICE_NUMBERS,
    ELEMENTWISE,
    POINT_TO_POINT,
    opcodes_that_are,
    opcodes_that_give,
)
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape

MAX_STEPS = 64
"""Operands that are followed, at any depth, to see if a value is constant."""

_REPEATABLE = (
    (ELEMENTWISE | DEVICE_NUMBERS | opcodes_that_give("move", "part") | opcodes_that_are("product", "reduction"))
    .union(COLLECTIVE_KINDS, {"constant", "iota"})
    .difference(POINT_TO_POINT)
)
"""Opcodes with the same result for the same operands."""

_SUMS = {"add", "subtract"}
_WRITE = "dynamic-update-slice"
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
    """Yield the all-reduces in the body of a loop of which arrays are only added to elements of a loop's state.

    An inner loop may stack its arrays first: an outer loop adds up the stacks. Reduce-scatters are left out: without them each
    device holds the whole sum until the loop ends.
    """
    sums = [collective for collective in collectives if collective.kind == "all-reduce" and collective.reduction == "add"]
    for collective, _ in _sent(calls, sums, least):
        name = collective.start.computation.name
        if _loop_of_body(calls, name) is None:
            continue
        results = list(results_of(views, calls, (collective,)))
        whole, added = sum(result.bytes for result in results), Counter[int]()
        for result in results:
            runs = _runs_outside(views, calls, result.place, result.element)
            if runs is not None:
                added[runs_of(calls, name) - runs] += result.bytes
        saved = sum((collective.wire_bytes or 0) * runs * arrays // whole for runs, arrays in added.items())
        if saved >= max(least, 1):
            yield SavedSends(collective, saved)


def _runs_outside(views: Views, calls: CallGraph, place: ViewRow, index: ShapeIndex) -> int | None:
    """Return how often a value in a loop's body has to be summed over devices if loops add it up before; None if none does.

    A loop that stacks it needs a sum for each iteration, and a loop around it has to add up the stacks.
    """
    body = place.view
    loop = _loop_of_body(calls, body.computation.name)
    outer = views.find(loop.instruction.computation.name) if loop is not None else None
    row = outer.index(loop.instruction.name) if outer is not None and loop is not None else None
    if outer is None or row is None:
        return None
    added = _added_element(views, place, index)
    stacked = _stack_element(views, place, index) if added is None else None
    element = added if added is not None else stacked
    if element is None:
        return None
    behind = _runs_outside(views, calls, ViewRow(outer, row), (element,))
    once = runs_of(calls, outer.computation.name)
    if added is not None:
        return once if behind is None else behind
    return behind * runs_of(calls, body.computation.name) // once if behind is not None else None


def _loop_of_body(calls: CallGraph, name: str) -> Loop | None:
    """Return the loop whose body a computation is."""
    loop = next(calls.loops_around(name), None)
    return loop if loop is not None and loop.body == name else None


def _sent(calls: CallGraph, collectives: Iterable[Collective], least: float) -> Iterator[tuple[Collective, int]]:
    """Yield the collectives that send `least` bytes or more in one step, with these bytes."""
    for collective in collectives:
        sent = (collective.wire_bytes or 0) * runs_of(calls, collective.start.computation.name)
        if sent >= max(least, 1):
            yield collective, sent


def _saved_outside_loop(calls: CallGraph, collective: Collective, sent: int) -> int:
    """Return the bytes that a collective saves outside of the loop whose body it stands in; 0 outside of loops."""
    loop = _loop_of_body(calls, collective.start.computation.name)
    if loop is None:
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


def initial_value(views: Views, calls: CallGraph, place: ViewRow) -> ViewRow | None:
    """Return what a loop gets for an element of its state that its body never changes; None for other values."""
    element = element_of_state(views, place)
    loop = _loop_of_body(calls, element[0].computation.name) if element is not None else None
    if element is None or loop is None or not _is_unchanged(views, place, element[0]):
        return None
    outer = views.find(loop.instruction.computation.name)
    row = outer.index(loop.instruction.name) if outer is not None else None
    state = ViewRow(outer, row).operand(0) if outer is not None and row is not None else None
    made = maker_of(views, state) if state is not None else None
    return made.operand(element[1]) if made is not None and made.opcode == "tuple" else None


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


def _added_element(views: Views, place: ViewRow, index: ShapeIndex) -> int | None:
    """Return the element of the state that a value is added to, if nothing else reads the value or the element.

    Linear work may stand between: conversions, the factor of a mean, the addition of another value.
    """
    body, total = place.view, None
    for _ in range(MAX_STEPS):
        readers = list(readers_of(views, place, index))
        if readers == [None]:
            new = new_state(body, total) if total is not None else None
            return total if new is not None and maker_of(views, new) == place else None
        reader = readers[0] if len(readers) == 1 else None
        if reader is None or reader.opcode not in _LINEAR:
            return None
        others = _other_operands(views, reader, place)
        if reader.opcode in _FACTORS and not (others and all(_is_fixed(views, other, body) for other in others)):
            return None
        for other in others if reader.opcode in _SUMS else ():
            element = _sum_so_far(views, other, reader)
            if element is not None and element[0] is body:
                if reader.opcode == "subtract" and other == reader.operand(1):
                    return None
                total = element[1]
        place, index = reader, ()
    return None


def _sum_so_far(views: Views, place: ViewRow, reader: ViewRow) -> tuple[View, int] | None:
    """Return the element of the state that a value is, if the sum `reader` alone reads it.

    XLA for TPU drops the zeros that a loop begins with, and selects zeros in the first iteration (`select_add_fusion`).
    """
    made, only = _without_conversion(views, place), reader
    if made.opcode == "select":
        chosen = [operand for operand in made.operands[1:] if operand is not None and not _is_zero(views, operand)]
        if len(chosen) != 1 or list(readers_of(views, made)) != [reader] or not _is_same_on_devices(views, made.operand(0)):
            return None
        made, only = _without_conversion(views, chosen[0]), made
    element = element_of_state(views, made)
    return element if element is not None and _only_reader(views, *element) == only else None


def _is_zero(views: Views, place: ViewRow) -> bool:
    """Return True if all elements of an array are the constant 0."""
    made = maker_behind(views, place, {"broadcast", "convert"})
    if made is None or made.opcode != "constant":
        return False
    return made.view.instruction_at(made.row).literal.strip("-0.") == ""


def _is_same_on_devices(views: Views, value: ViewRow | None) -> bool:
    """Return True if a predicate is made of constants and of counters and flags of the state alone."""
    waiting, seen = [value], set[tuple[str, int]]()
    while waiting:
        place = waiting.pop()
        made = maker_of(views, place) if place is not None and len(seen) <= MAX_STEPS else None
        if made is None:
            return False
        shape = made.shape
        is_counter = isinstance(shape, ArrayShape) and shape.dtype.startswith(("s", "u", "pred"))
        if made.key not in seen and not (is_counter and element_of_state(views, made) is not None):
            if made.opcode not in _REPEATABLE - DEVICE_NUMBERS:
                return False
            waiting += made.operands
        seen.add(made.key)
    return True


def _stack_element(views: Views, place: ViewRow, index: ShapeIndex) -> int | None:
    """Return the element of the state into which a value is written as a slice, if nothing else reads value or element.

    Conversions and fixed factors may stand between.
    """
    body = place.view
    for _ in range(MAX_STEPS):
        readers = list(readers_of(views, place, index))
        reader = readers[0] if len(readers) == 1 else None
        if reader is None or reader.opcode not in _FACTORS | {"convert", "negate", _WRITE}:
            return None
        if reader.opcode == _WRITE:
            stack = reader.operand(0)
            element = element_of_state(views, stack) if stack is not None else None
            new = new_state(*element) if element is not None and element[0] is body else None
            if element is None or new is None or maker_of(views, new) != reader:
                return None
            return element[1] if _only_reader(views, *element) == reader else None
        others = _other_operands(views, reader, place)
        if reader.opcode in _FACTORS and not (others and all(_is_fixed(views, other, body) for other in others)):
            return None
        place, index = reader, ()
    return None


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
