"""The order of a computation's rows in which operands come before their users, by the library."""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING

from hlo_inspect.native.edges import address, edges_of

if TYPE_CHECKING:
    from hlo_inspect.hlo.columns import Extent
    from hlo_inspect.native.library import Library

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64


def visit_order(library: Library, extent: Extent, root: int | None) -> array[int]:
    """Return the rows of a computation as `source/order.h` says. Raise MemoryError without memory."""
    columns, first, last = extent
    function = library.functions.hlo_visit_rows
    function.argtypes, function.restype = [_POINTER, _NUMBER, _NUMBER, _NUMBER, _POINTER], _NUMBER
    order = array("i", bytes(4 * (last - first)))
    edges = ctypes.byref(edges_of(columns.operand_end, columns.operands))
    if function(edges, first, last, -1 if root is None else root, address(order)) < 0:
        raise MemoryError
    return order
