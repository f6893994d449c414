"""The instructions that read a value, and the one that makes it: through moves, tuples, fusions and asynchronous pairs.

A move passes on all values of an array: copy, reshape, transpose, bitcast. Loops, calls and conditionals are not entered: they
read the whole value.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape

MOVES = opcodes_that_are("relayout") | {"opt-barrier", "copy-start"}
MAX_READERS = 4096
"""Instructions that are visited for one value; beyond it the value has unknown readers."""
MAX_PASSED = 64
"""Instructions that are passed over from a value to its maker."""


class ViewRow(NamedTuple):
    """An instruction by its computation's view and row."""

    view: View
    row: int

    @property
    def opcode(self) -> str:
        return self.view.opcodes[self.row]

    @property
    def shape(self) -> Shape | None:
        return self.view.shapes[self.row]

    @property
    def bytes(self) -> int:
        """The bytes of an array; 0 if unknown or no array."""
        shape = self.shape
        return shape.bytes or 0 if isinstance(shape, ArrayShape) else 0

    @property
    def op_name(self) -> str:
        return self.view.op_name(self.row)

    @property
    def key(self) -> tuple[str, int]:
        return self.view.computation.name, self.row

    def operand(self, number: int) -> ViewRow | None:
        """Return the instruction that makes an operand; None if there is no such operand, or nothing defines it."""
        row = self.view.operand_row(self.row, number)
        return ViewRow(self.view, row) if row is not None else None

    @property
    def operands(self) -> list[ViewRow | None]:
        """The instruction that makes each operand; None for an operand that nothing defines."""
        return [ViewRow(self.view, row) if row is not None else None for row in self.view.operand_rows(self.row)]


class _Followed(NamedTuple):
    """A value on its way: an element of a row's result. `callers` are the fusions around the row, the outermost first."""

    view: View
    row: int
    element: ShapeIndex
    callers: tuple[tuple[View, int], ...]


def readers_of(views: Views, place: ViewRow, index: ShapeIndex = ()) -> Iterator[ViewRow | None]:
    """Yield the instructions that read a value and are no moves; None for a result of the computation, or unknown readers."""
    waiting = [_Followed(place.view, place.row, index, ())]
    seen: set[tuple[str, int, ShapeIndex, int]] = set()
    while waiting:
        value = waiting.pop()
        key = (value.view.computation.name, value.row, value.element, value.callers[-1][1] if value.callers else -1)
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > MAX_READERS:
            yield None
            return
        if value.row == value.view.root:
            outside = _outside(views, value)
            if outside is None:
                yield None
            else:
                waiting.append(outside)
        for user in value.view.users[value.row]:
            for number, operand in enumerate(value.view.operand_rows(user)):
                if operand == value.row:
                    passed = list(_passed_on(views, value, user, number))
                    waiting += passed
                    drops = value.view.opcodes[user] == "get-tuple-element"  # it takes another element of the tuple
                    if not passed and not drops:
                        yield ViewRow(value.view, user)


def readers_behind(
    views: Views, place: ViewRow, index: ShapeIndex, passes: Callable[[ViewRow], bool], most: int = MAX_READERS
) -> Iterator[ViewRow | None]:
    """Yield the readers of a value, and instead of those that pass it on the readers of their results, `most` times."""
    waiting = [(place, index)]
    seen: set[tuple[str, int]] = set()
    while waiting and len(seen) < most:
        for reader in readers_of(views, *waiting.pop()):
            if reader is None or not passes(reader):
                yield reader
            elif reader.key not in seen:
                seen.add(reader.key)
                waiting.append((reader, ()))
    if waiting:
        yield None


def maker_behind(views: Views, place: ViewRow | None, passes: Container[str]) -> ViewRow | None:
    """Return the instruction that makes a value, behind those of opcodes that pass on their first operand."""
    for _ in range(MAX_PASSED):
        made = maker_of(views, place) if place is not None else None
        if made is None or made.opcode not in passes:
            return made
        place = made.operand(0)
    return None


def _outside(views: Views, value: _Followed) -> _Followed | None:
    """Return the result of the fusion around a root; None if the root is no fusion's."""
    if value.callers:
        *outer, (view, row) = value.callers
        return _Followed(view, row, value.element, tuple(outer))
    caller = views.fusions.get(value.view.computation.name)
    return _Followed(*caller, value.element, ()) if caller is not None else None


def _passed_on(views: Views, value: _Followed, user: int, number: int) -> Iterator[_Followed]:
    """Yield the values that hold the value and that an instruction makes of its operand `number`."""
    view, opcode = value.view, value.view.opcodes[user]
    if opcode == "get-tuple-element":
        element = view.element_number(user)
        if value.element[:1] in ((), (element,)):
            yield _Followed(view, user, value.element[1:], value.callers)
    elif opcode == "tuple":
        yield _Followed(view, user, (number, *value.element), value.callers)
    elif opcode == "fusion":
        fused = views.fused(view, user)
        inner = views.for_computation(fused.name) if fused is not None else None
        row = inner.parameters_by_number.get(number) if inner is not None else None
        if inner is not None and row is not None:
            yield _Followed(inner, row, value.element, (*value.callers, (view, user)))
    elif opcode in MOVES or opcode in ASYNC_ENDS:
        yield _Followed(view, user, value.element, value.callers)


def maker_of(views: Views, place: ViewRow) -> ViewRow:
    """Return the instruction that makes the values of an array, through moves, out of fusions, and into those of one result."""
    for _ in range(MAX_READERS):
        opcode, before = place.opcode, None
        if opcode == "parameter":
            caller, number = views.fusions.get(place.view.computation.name), place.view.parameter_number(place.row)
            before = ViewRow(*caller).operand(number) if caller is not None and number is not None else None
        elif opcode == "fusion":
            fused = views.fused(*place)
            inner = views.for_computation(fused.name) if fused is not None else None
            if inner is not None and inner.root is not None and inner.opcodes[inner.root] != "tuple":
                before = ViewRow(inner, inner.root)
        elif opcode in MOVES or opcode in ASYNC_ENDS:
            before = place.operand(0)
        if before is None:
            break
        place = before
    return place
