"""Device memory: what fills it."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.memory_tables import host_copies, largest_arrays
from hlo_inspect.report.model import Section, Table


class Memory(Pass):
    """Device memory: the largest arrays of any text, and what is copied between host and device.

    The largest arrays are those that the text makes, alike ones in one row: what makes them, their bytes with the padding of
    tiles where the text has tiles, and what they are to a parameter of the entry: a copy, transpose, conversion or slice of it,
    its gradient or its new value. Arrays below 1 % of the largest are left out. Before optimization XLA has yet to fuse, and
    many of them will be in no memory. With --quick gradients are not known.
    """

    name = "memory"
    also = ("optimizer",)
    wants = calls.WANTS | Wants(entry=True, graph=True, checked=True)
    specs = ()

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))


def _tables(context: Context) -> Iterator[Table]:
    yield largest_arrays(context)
    yield from host_copies(context)
