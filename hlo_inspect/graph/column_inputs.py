"""Numbers for each head and form of attributes, from which the library reads the values of a module.

Opcodes get their meaning here. A head is looked at once, a form once in the first of its rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, get_args

from hlo_inspect.graph.row_actions import ACTIONS_OF_OPCODES, CALLED_ROLES, Action, is_wrapper
from hlo_inspect.graph.value_graph import KINDS, MAX_NESTING, PRODUCT, SCALAR, is_computing
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.columns import USES_ELEMENTS, Columns
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, callee_roles, is_marker
from hlo_inspect.hlo.rows import Head
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, TupleShape

_ACTIONS = get_args(Action)
_HAS_OFFSETS = "slice_sizes"
"""Attribute of a permute in place, which has offsets as operands."""
_READ, _OTHERS, _UNREAD = range(3)
"""Calls of a row: as the columns have them; of other computations only; not as the columns have them."""
_SEND_RECV = frozenset({"send", "recv"})
_BY_FORM = frozenset({"takes", "joins", "cuts", "by form", *CALLED_ROLES})


class _Form(NamedTuple):
    """Numbers of a form of attributes. An element: its index. A slice: its range. A concatenation: 1 for the first dimension.

    A custom call: 1 if it passes its operands on, else the kind of its node.
    """

    low: int = -1
    high: int = 0


class ColumnInputs:
    """The inputs of a module's columns. `is_readable` is false if other ways have to read its values."""

    def __init__(self, views: Views, columns: Columns) -> None:
        self._views = views
        self._columns = columns
        count = len(columns.head_texts)
        self.kinds, self.scalars, self.actions = array("B", bytes(count)), array("B", bytes(count)), array("B", bytes(count))
        self.called = array("Q", bytes(8 * count))
        self.dimensions = array("q", [-1]) * count
        self.input_ends, self.inputs = array("i"), array("i")
        self.lows, self.highs = array("q", [-1]) * len(columns.form_texts), array("q", bytes(8 * len(columns.form_texts)))
        self._opcode_of_form: dict[int, str] = {}
        self._calls: dict[tuple[str, int], int] = {}
        self.is_readable = all(self._note_head(number) for number in range(count))

    def _note_head(self, number: int) -> bool:
        """Note what a head says. Return False if a row with it has to be read in another way."""
        columns = self._columns
        rows = columns.rows_of_head(number)
        if not rows or rows[0] >= columns.first_row[columns.count]:
            self.input_ends.append(len(self.inputs))
            return True
        view, row = self._place(rows[0])
        head = view.heads[row]
        if head.shape is None or head.opcode in _SEND_RECV:
            return False
        action = _action_of(head)
        self.actions[number] = _ACTIONS.index(action)
        self.kinds[number] = _kind_of(head)
        shape = head.shape
        if isinstance(shape, ArrayShape):
            self.scalars[number] = not shape.dimensions
            self.dimensions[number] = _first_dimension(shape)
        if action == "is input":
            self.inputs.extend(_elements(shape))
        self.input_ends.append(len(self.inputs))
        self.called[number] = _called_roles(head.opcode, action)
        return action not in _BY_FORM or self._note_forms(number, head.opcode, action)

    def _place(self, row: int) -> tuple[View, int]:
        columns = self._columns
        computation = columns.computation_of(row)
        return self._views.for_computation(columns.name(computation)), row - columns.first_row[computation]

    def _note_forms(self, number: int, opcode: str, action: Action) -> bool:
        """Note the forms of the rows with a head. Return False if they have to be read in another way."""
        columns = self._columns
        rows = columns.rows_of_head(number)
        row_of_form = dict(zip(map(columns.attribute_forms.__getitem__, rows), rows, strict=True))
        if action in CALLED_ROLES:
            return self._note_calls(number, opcode, action, row_of_form)
        for form, row in row_of_form.items():
            before = self._opcode_of_form.setdefault(form, opcode)
            if before != opcode:
                return False
            view, own = self._place(row)
            self.lows[form], self.highs[form] = _READ_FORM[action](view, own)
        return True

    def _note_calls(self, number: int, opcode: str, action: Action, row_of_form: dict[int, int]) -> bool:
        """Note what the rows with a head call. A collective with other computations than the one it runs makes one node."""
        calls = {self._calls_of(opcode, form, row, number, action) for form, row in row_of_form.items()}
        if calls == {_OTHERS}:
            self.actions[number] = _ACTIONS.index("makes")
            return True
        return calls.isdisjoint({_OTHERS, _UNREAD})

    def _calls_of(self, opcode: str, form: int, row: int, head: int, action: Action) -> int:
        """Return how the computations that a row calls are read, once for each form."""
        reading = self._calls.get((opcode, form))
        if reading is None:
            columns = self._columns
            view, own = self._place(row)
            is_asked = action != "makes each" or is_wrapper(opcode)
            callees = view.called_at(own) if is_asked else []
            counted = [callee.name for callee in callees if callee.role in CALLED_ROLES[action]]
            places = range(columns.call_end[row - 1] if row else 0, columns.call_end[row])
            given = [columns.names[columns.callees[place]] for place in places if self.called[head] >> columns.roles[place] & 1]
            is_in_place = action == "makes each" and _HAS_OFFSETS in columns.tail(row)
            reading = _READ if counted == given and not is_in_place else _UNREAD
            if reading == _READ and callees and not given:
                reading = _OTHERS
            self._calls[opcode, form] = reading
        return reading


def _action_of(head: Head) -> Action:
    """Return what a row with a head does. Only an array can be in parts."""
    action = ACTIONS_OF_OPCODES.get(head.opcode, "makes")
    return "makes" if action == "joins" and not isinstance(head.shape, ArrayShape) else action


@cache
def _called_roles(opcode: str, action: Action) -> int:
    """Return the places of the attributes that name the computations which count, as bits."""
    counted = CALLED_ROLES.get(action, frozenset())
    if action == "makes each" and not is_wrapper(opcode):
        counted = frozenset()
    return sum(1 << CALLEE_ATTRIBUTES.index(attribute) for attribute, role in callee_roles(opcode).items() if role in counted)


def _first_dimension(shape: ArrayShape) -> int:
    """Return the first dimension of an array; -1 if it has none or its size is unknown."""
    size = shape.dimensions[0] if shape.dimensions else None
    return -1 if size is None else size


def _kind_of(head: Head) -> int:
    if head.opcode != "dot":
        return KINDS.get(head.opcode, 0)
    is_scalar = isinstance(head.shape, ArrayShape) and not head.shape.dimensions
    return PRODUCT | (SCALAR if is_scalar else 0)


def _elements(shape: Shape | None, nesting: int = 0) -> Iterator[int]:
    """Yield the number of elements of each tuple in a shape, -1 for what is no tuple."""
    if isinstance(shape, TupleShape) and nesting < MAX_NESTING:
        yield len(shape.elements)
        for element in shape.elements:
            yield from _elements(element, nesting + 1)
    else:
        yield -1


def _read_element(view: View, row: int) -> _Form:
    number = view.element_number(row)
    return _Form(-1 if number is None else number)


def _read_dimensions(view: View, row: int) -> _Form:
    return _Form(int(view.instruction_at(row).attr("dimensions") == (0,)))


def _read_ranges(view: View, row: int) -> _Form:
    ranges = view.instruction_at(row).attr("slice")
    return _Form(ranges[0].start, ranges[0].limit) if ranges else _Form()


def _read_target(view: View, row: int) -> _Form:
    target = view.instruction_at(row).attr("custom_call_target") or ""
    return _Form(int(is_marker(target)), PRODUCT if is_computing(target) else 0)


_READ_FORM = {"takes": _read_element, "joins": _read_dimensions, "cuts": _read_ranges, "by form": _read_target}


def columns_of(views: Views) -> Columns | None:
    """Return the columns that hold all computations of a module, each operand a whole row; None if none do."""
    first = next(iter(views.computations.values()), None)
    extent = first.rows.extent if first is not None else None
    if extent is None:
        return None
    columns = extent.columns
    if len(views.computations) != columns.count or not columns.text.isascii():
        return None
    if list(views.computations) != list(map(columns.names.__getitem__, columns.computation_names[: columns.count])):
        return None
    if [computation.line for computation in views.computations.values()] != columns.lines():
        return None
    return None if columns.row_flags.tobytes().translate(_USES).find(1) >= 0 else columns


_USES = bytes([flags & USES_ELEMENTS != 0 for flags in range(256)])
