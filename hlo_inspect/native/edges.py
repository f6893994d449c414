"""Lists of nodes as two arrays, for the library."""

from __future__ import annotations

import ctypes
from array import array


class Edges(ctypes.Structure):
    """The struct of `source/edges.h`. Its arrays stay the caller's."""

    _fields_ = [
        ("count", ctypes.c_int64),
        ("ends", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("operands", ctypes.c_void_p),
    ]


def address(numbers: array[int]) -> int:
    return numbers.buffer_info()[0]


def edges_of(ends: array[int], operands: array[int]) -> Edges:
    """Return the struct of lists, from each of `ends` to the next."""
    return Edges(len(ends), address(ends), len(operands), address(operands))
