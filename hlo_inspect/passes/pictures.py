"""The tables that only the pictures of a page are drawn from."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collective_tables import by_axis_and_kind, sizes
from hlo_inspect.passes.cost_trees import cost_trees
from hlo_inspect.passes.live_tables import memory_picture_tables
from hlo_inspect.passes.mesh_tables import mesh_tables
from hlo_inspect.passes.roofline_tables import roofline_tables
from hlo_inspect.passes.timeline_table import timeline_table
from hlo_inspect.report.model import Section, Table


class Pictures(Pass):
    """The tables that only the pictures of a page are drawn from: trees, places on a roofline, a timeline with few marks.

    No command of its own. A table is absent where it would have nothing: without a schedule, a profile, a mesh, an entry.
    """

    name = "pictures"
    asks_phases = True
    wants = KERNEL_WANTS | phases.WANTS | Wants(entry=True)
    specs = ()

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))


def _tables(context: Context) -> Iterator[Table]:
    yield from cost_trees(context)
    yield from roofline_tables(context)
    yield from timeline_table(context)
    if context.collectives:
        yield by_axis_and_kind(context)
        yield sizes(context)
    yield from mesh_tables(context)
    yield from memory_picture_tables(context)
