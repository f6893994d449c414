"""What computations that are applied to elements allocate: reducers, comparators and the like.

`BufferAssigner::RunAssignBuffers` gives each of their values an allocation of its own on the host's stack, which counts
nowhere, except constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import MARKERS, NAMING, TABLE, callee_roles

_NO_VALUE = frozenset(name for name in NAMING | MARKERS if TABLE[name].operands == 1)
_APPLIED = frozenset({"applied", "custom"})
_APPLYING = frozenset(opcode for opcode in TABLE if not _APPLIED.isdisjoint(callee_roles(opcode).values()))


class ThreadLocal(NamedTuple):
    """How many allocations there are that count nowhere, and the bytes of constants, which count."""

    allocations: int
    constant_bytes: int


def find_thread_local(module: Module, views: Views, platform: Platform) -> ThreadLocal:
    """The allocations of all computations of the module that are applied to elements."""
    allocations = constant_bytes = 0
    for name in dict.fromkeys(_applied(module, views)):
        column = module.computations[name].rows.column
        for opcode, shape in zip(column.opcodes, column.shapes, strict=True):
            if opcode == "constant":
                constant_bytes += platform.bytes_of(shape) or 0
            elif opcode not in _NO_VALUE:
                allocations += 1
    return ThreadLocal(allocations, constant_bytes)


def _applied(module: Module, views: Views) -> Iterator[str]:
    """The computations of the module that others apply, each as often as they do."""
    for name, computation in module.computations.items():
        rows = computation.rows
        for row in rows.column.calling:
            if rows.opcodes[row] in _APPLYING:
                called = views.of(name).called_at(row)
                yield from (one.name for one in called if one.role in _APPLIED and one.name in module.computations)
