"""The order of a computation's rows in which operands come before their users, by the library."""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING

from hlo_inspect.native.edges import address, edges_of

if TYPE_CHECKING:
    from hlo_inspect.native.library import Library

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64


def visit_order(library: Library, ends: array[int], operands: array[int], rows: range, root: int | None) -> array[int]:
    """Return some rows, counted from the first, as `source/order.h` says. Raise MemoryError without memory."""
    function = library.functions.hlo_visit_rows
    if function.argtypes is None:
        function.argtypes, function.restype = [_POINTER, _NUMBER, _NUMBER, _NUMBER, _POINTER], _NUMBER
    order = array("i", bytes(4 * len(rows)))
    edges = ctypes.byref(edges_of(ends, operands))
    if function(edges, rows.start, rows.stop, -1 if root is None else root, address(order)) < 0:
        raise MemoryError
    return order
