"""The graph of the values of one step, which the library reads from columns. `source/values.h` says what it is given."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hlo_inspect.native.edges import Edges, address, edges_of
from hlo_inspect.native.library import Reading

if TYPE_CHECKING:
    from hlo_inspect.native.library import Library

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64

COLUMNS = (
    "ends",
    "operands",
    "kinds",
    "call_of",
    "row_of",
    "calls",
    "values",
    "composites",
    "stops",
    "items",
    "starts",
)
_MAX_COLUMNS = 48
_CODES = {1: "B", 4: "i", 8: "q"}
_IS_ORDERED, _IS_WHOLE = 1, 2


class _ValueInputs(ctypes.Structure):
    _fields_ = [
        ("rows", Edges),
        ("calls", Edges),
        *[(name, _POINTER) for name in ("heads", "forms", "tails", "roles")],
        ("head_count", _NUMBER),
        *[(name, _POINTER) for name in ("actions", "kinds", "scalars", "called", "dimensions")],
        ("inputs", Edges),
        ("form_count", _NUMBER),
        ("lows", _POINTER),
        ("highs", _POINTER),
        ("computation_count", _NUMBER),
        ("first_rows", _POINTER),
        ("roots", _POINTER),
        ("name_count", _NUMBER),
        ("defined", _POINTER),
        ("text", _POINTER),
        *[
            (name, _NUMBER)
            for name in (
                "text_size",
                "entry",
                "most_rows",
                "most_calls",
                "most_joined",
                "passing_kind",
                "input_kind",
            )
        ],
    ]


class NativeValues:
    """The columns of a graph by name. `is_ordered` and `is_whole` are as those of `ValueGraph`."""

    def __init__(self, columns: Mapping[str, array[int]], flags: int) -> None:
        self.columns = columns
        self.is_ordered = flags & _IS_ORDERED != 0
        self.is_whole = flags & _IS_WHOLE != 0


def read_values(
    library: Library,
    text: str,
    edges: Mapping[str, tuple[array[int], array[int]]],
    arrays: Mapping[str, array[int]],
    numbers: Mapping[str, int],
) -> NativeValues | None:
    """Return the graph of one step; None if it has to be read in another way.

    `edges` are pairs of ends and items, `arrays` and `numbers` the other fields of the inputs. The text is ASCII. Raise
    MemoryError without memory.
    """
    inputs = _ValueInputs(text=library.address_of(text, None), text_size=len(text), **numbers)
    for name, (ends, items) in edges.items():
        setattr(inputs, name, edges_of(ends, items))
    for name, items in arrays.items():
        setattr(inputs, name, address(items))
    functions = library.functions
    functions.hlo_values_begin.argtypes, functions.hlo_values_begin.restype = [_POINTER], _POINTER
    for function in (functions.hlo_values_result, functions.hlo_values_flags, functions.hlo_values_end):
        function.argtypes = [_POINTER]
    functions.hlo_values_lengths.argtypes = [_POINTER] * 3
    functions.hlo_values_take.argtypes = [_POINTER] * 2
    values = functions.hlo_values_begin(ctypes.byref(inputs))
    if not values:
        raise MemoryError
    try:
        result = Reading(functions.hlo_values_result(values))
        if result == Reading.NO_MEMORY:
            raise MemoryError
        if result != Reading.READ:
            return None
        counts, widths = (_NUMBER * _MAX_COLUMNS)(), (ctypes.c_int32 * _MAX_COLUMNS)()
        columns = functions.hlo_values_lengths(values, counts, widths)
        copies = _buffers(counts[:columns], widths[:columns])
        functions.hlo_values_take(values, (_POINTER * columns)(*map(address, copies.values())))
        return NativeValues(copies, functions.hlo_values_flags(values))
    finally:
        functions.hlo_values_end(values)


def _buffers(counts: Sequence[int], widths: Sequence[int]) -> dict[str, array[int]]:
    """Return arrays of these lengths, one for each column."""
    sizes = zip(COLUMNS, counts, widths, strict=True)
    return {name: array(_CODES[width], bytes(count * width)) for name, count, width in sizes}
