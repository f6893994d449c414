"""What computations that are applied to elements allocate: reducers, comparators and the like.

`BufferAssigner::RunAssignBuffers` gives each of their values an allocation of its own on the host's stack, which counts
nowhere, except constants.
"""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.memory.sizes import Sizes
from hlo_inspect.analysis.view import Views
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import TABLE, callee_roles

_NO_VALUE = frozenset({"get-tuple-element", "bitcast", "opt-barrier", "domain"})
_APPLIED = frozenset({"applied", "custom"})
_APPLYING = frozenset(opcode for opcode in TABLE if not _APPLIED.isdisjoint(callee_roles(opcode).values()))


class ThreadLocal(NamedTuple):
    """How many allocations there are that count nowhere, and the bytes of constants, which count."""

    allocations: int
    constant_bytes: int


def find_thread_local(module: Module, views: Views, sizes: Sizes) -> ThreadLocal:
    """The allocations of all computations of the module that are applied to elements."""
    names: dict[str, None] = {}
    for name in module.computations:
        opcodes = module.computations[name].rows.opcodes
        if _APPLYING.isdisjoint(opcodes):
            continue
        view = views.of(name)
        for row in [row for row, opcode in enumerate(opcodes) if opcode in _APPLYING]:
            try:
                names.update((callee.name, None) for callee in view.called(row) if callee.role in _APPLIED)
            except tokens.ScanError:
                continue
    allocations = constant_bytes = 0
    for name in names:
        if name not in module.computations:
            continue
        view = views.of(name)
        for row, opcode in enumerate(view.opcodes):
            if opcode == "constant":
                constant_bytes += sizes.bytes(view.shapes[row]) or 0
            elif opcode not in _NO_VALUE:
                allocations += 1
    return ThreadLocal(allocations, constant_bytes)
