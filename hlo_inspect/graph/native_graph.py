"""The graph of values as the library reads it from columns. Calls and values become objects when something asks for them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

from hlo_inspect.graph.column_inputs import ColumnInputs, columns_of
from hlo_inspect.graph.value_graph import (
    MAX_COPIES,
    MAX_DEPTH,
    MAX_JOINED,
    MOVES,
    PARAMETER,
    CallFrame,
    RowValues,
    SlicedValue,
    Value,
    ValueGraph,
)
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.columns import Columns
from hlo_inspect.native.library import Library
from hlo_inspect.native.node_lists import NodeLists
from hlo_inspect.native.values import NativeValues, read_values

_OF_CALL = 9
_COMPUTATION, _CALLER, _CALLER_ROW, _FIRST, _STOP, _VALUES, _CHILD, _, _NEXT = range(_OF_CALL)
"""Numbers of each call."""
_OF_COMPOSITE = 3
_NO_VALUE = -1


def read_natively(library: Library, views: Views, computation: str) -> ValueGraph | None:
    """Return the values of one run of a computation; None if they have to be read in another way."""
    columns = columns_of(views)
    if columns is None or computation not in views.computations:
        return None
    inputs = ColumnInputs(views, columns)
    if not inputs.is_readable:
        return None
    rows = {
        "rows": (columns.operand_end, columns.operands),
        "calls": (columns.call_end, columns.callees),
        "inputs": (inputs.input_ends, inputs.inputs),
    }
    arrays = {
        "heads": columns.heads,
        "forms": columns.attribute_forms,
        "tails": columns.tail_start,
        "roles": columns.roles,
        "actions": inputs.actions,
        "kinds": inputs.kinds,
        "scalars": inputs.scalars,
        "called": inputs.called,
        "dimensions": inputs.dimensions,
        "lows": inputs.lows,
        "highs": inputs.highs,
        "first_rows": columns.first_row,
        "roots": columns.roots,
        "defined": columns.defined,
    }
    numbers = {
        "head_count": len(inputs.actions),
        "form_count": len(inputs.lows),
        "computation_count": columns.count,
        "name_count": len(columns.defined),
        "entry": columns.defined[columns.names.index(computation)],
        "most_rows": MAX_COPIES * views.row_count + 1000,
        "most_calls": MAX_DEPTH,
        "most_joined": MAX_JOINED,
        "passing_kind": MOVES,
        "input_kind": PARAMETER,
    }
    read = read_values(library, columns.text, rows, arrays, numbers)
    return NativeGraph(views, columns, read) if read is not None else None


class NativeGraph(ValueGraph):
    """A graph in the columns that the library filled."""

    def __init__(self, views: Views, columns: Columns, read: NativeValues) -> None:
        super().__init__()
        filled = read.columns
        self.operands = NodeLists(filled["ends"], filled["operands"])
        self.kinds = bytearray(filled["kinds"])
        self.frame_of, self.row_of = filled["call_of"], filled["row_of"]
        self.is_ordered, self.is_whole = read.is_ordered, read.is_whole
        self._calls = _Calls(views, columns, filled)
        self.frames, self.frames_by_name = self._calls, _CallsByName(self._calls)

    def callers(self) -> list[tuple[int, int] | None]:
        return self._calls.callers()


class _Calls(Sequence[CallFrame]):
    """The calls of a graph. Each is made when something asks for it."""

    def __init__(self, views: Views, columns: Columns, filled: Mapping[str, array[int]]) -> None:
        self._views = views
        self._columns = columns
        self._calls = filled["calls"]
        self._values = filled["values"]
        self._composites = _Composites(filled)
        self._made: dict[int, CallFrame] = {}

    def __len__(self) -> int:
        return len(self._calls) // _OF_CALL

    @overload
    def __getitem__(self, index: int) -> CallFrame: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CallFrame]: ...
    def __getitem__(self, index: int | slice) -> CallFrame | Sequence[CallFrame]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        frame = self._made.get(index)
        if frame is None:
            if not 0 <= index < len(self):  # `list` counts on it
                raise IndexError(index)
            frame = self._made[index] = self._make(index)
        return frame

    def _make(self, number: int) -> CallFrame:
        call = self._calls[number * _OF_CALL : (number + 1) * _OF_CALL]
        first, end = self._columns.extent(call[_COMPUTATION])
        numbers = self._values[call[_VALUES] : call[_VALUES] + end - first]
        values: RowValues = numbers if min(numbers, default=0) >= 0 else _Values(numbers, self._composites)
        return CallFrame(
            number,
            self._columns.name(call[_COMPUTATION]),
            self._views,
            (call[_CALLER], call[_CALLER_ROW]) if call[_CALLER] >= 0 else None,
            call[_FIRST],
            values,
            call[_STOP],
            self._called(call[_CHILD]),
        )

    def _called(self, child: int) -> dict[int, list[int]]:
        """Return the calls of each row, the first of which is `child`."""
        calls = self._calls
        called: defaultdict[int, list[int]] = defaultdict(list)
        while child >= 0:
            called[calls[child * _OF_CALL + _CALLER_ROW]].append(child)
            child = calls[child * _OF_CALL + _NEXT]
        return dict(called)

    @cached_property
    def by_computation(self) -> dict[str, list[int]]:
        """The calls of each computation."""
        names, columns = self._columns.names, self._columns
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for number, computation in enumerate(self._calls[_COMPUTATION::_OF_CALL]):
            numbers[computation].append(number)
        return {names[columns.computation_names[computation]]: calls for computation, calls in numbers.items()}

    def callers(self) -> list[tuple[int, int] | None]:
        """Return the caller of each call: its number and row; None for the step."""
        pairs = zip(self._calls[_CALLER::_OF_CALL], self._calls[_CALLER_ROW::_OF_CALL], strict=True)
        return [pair if pair[0] >= 0 else None for pair in pairs]


class _CallsByName(Mapping[str, Sequence[CallFrame]]):
    """The calls of each computation."""

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls
        self._made: dict[str, list[CallFrame]] = {}

    def __getitem__(self, name: str) -> Sequence[CallFrame]:
        frames = self._made.get(name)
        if frames is None:
            frames = self._made[name] = [self._calls[number] for number in self._calls.by_computation[name]]
        return frames

    def __contains__(self, name: object) -> bool:
        return name in self._calls.by_computation

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls.by_computation)

    def __len__(self) -> int:
        return len(self._calls.by_computation)


class _Values:
    """The values of the rows of a call, some of which are tuples or arrays in parts: those are made when something asks."""

    def __init__(self, numbers: Sequence[int], composites: _Composites) -> None:
        self._numbers = numbers
        self._composites = composites

    def __getitem__(self, row: int, /) -> Value:
        return self._composites.value(self._numbers[row])


class _Composites:
    """Tuples and arrays in parts."""

    def __init__(self, filled: Mapping[str, array[int]]) -> None:
        self._numbers, self._stops = filled["composites"], filled["stops"]
        self._items, self._starts = filled["items"], filled["starts"]
        self._made: dict[int, Value] = {}

    def value(self, value: int) -> Value:
        """Return a value of the library. Tuples can nest deeper than Python's stack."""
        if value >= 0:
            return value
        if value == _NO_VALUE:
            return None
        made = self._made
        waiting = [value] if value not in made else []
        while waiting:
            top = waiting[-1]
            items = self._items_of(top)
            missing = [item for item in items if item < _NO_VALUE and item not in made]
            if missing and top not in made:
                waiting += missing
                continue
            waiting.pop()
            if top not in made:
                made[top] = self._make(top, [item if item >= 0 else made.get(item) for item in items])
        return made[value]

    def _items_of(self, value: int) -> array[int]:
        start, count, _ = self._numbers_of(value)
        return self._items[start : start + count]

    def _numbers_of(self, value: int) -> array[int]:
        place = -2 - value
        return self._numbers[place * _OF_COMPOSITE : (place + 1) * _OF_COMPOSITE]

    def _make(self, value: int, items: list[Value]) -> Value:
        _, count, starts = self._numbers_of(value)
        if starts < 0:
            return tuple(items)
        nodes = [item for item in items if isinstance(item, int)]
        return SlicedValue(self._starts[starts : starts + count].tolist(), nodes, self._stops[-2 - value])
