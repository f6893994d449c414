"""Mended faults that can be put back, to show that the fuzzer finds them: `python -m tests.fuzz --with-fault NAME`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest import mock

from hlo_inspect.compare import device_permutation
from hlo_inspect.errors import InternalError, Location
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.optimizer import transfer_functions


def asynchronous_end() -> AbstractContextManager[object]:
    """Follow the end of an asynchronous pair to an operation of any kind, as if that moved values."""
    return mock.patch.object(transfer_functions, "SOME_VALUES", frozenset(TABLE))


def missing_operand() -> AbstractContextManager[object]:
    """Take the row of an operand by its position, as if there were one at each."""

    def operand_row(self: View, index: int, number: int) -> int | None:
        return self.operand_rows(index)[number]

    return mock.patch.object(View, "operand_row", operand_row)


def lost_modules() -> AbstractContextManager[object]:
    """End the command at an internal error of one module."""

    def from_exception(error: Exception, _location: Location, _module: str = "") -> InternalError:
        raise error

    return mock.patch.object(InternalError, "from_exception", from_exception)


def endless_cycle() -> AbstractContextManager[object]:
    """Follow only operands without remembering them, as if no instruction were made of itself."""

    def origin(self: View, row: int, through: frozenset[str]) -> int:
        while self.opcodes[row] in through and len(self.operand_rows(row)) == 1:
            row = self.operand_rows(row)[0] or 0
        return row

    return mock.patch.object(View, "origin", origin)


def unequal_groups() -> AbstractContextManager[object]:
    """Pair the groups of two programs one by one, as if both could be read to the end."""
    return mock.patch.object(device_permutation, "len", lambda items: 0 if isinstance(items, list) else len(items), create=True)


MENDED: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "": nullcontext,
    "asynchronous-end": asynchronous_end,
    "missing-operand": missing_operand,
    "lost-modules": lost_modules,
    "endless-cycle": endless_cycle,
    "unequal-groups": unequal_groups,
}
"""Faults by name; none has the empty name."""
