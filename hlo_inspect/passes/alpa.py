"""Alpa's counts and costs of the collectives of a module."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from hlo_inspect.analysis.alpa_costs import GEMMS, KINDS, WANTS, MeshCost, by_axis, mesh_costs, primitive_counts, search_cost
from hlo_inspect.analysis.collectives import logical_collectives as collectives
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Figure, Quantity, at_least, least
from hlo_inspect.passes.base import FactSheet, Pass
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec

_COUNTS = frozenset({"total", *(kind.replace("-", "_") for kind in KINDS)})
_NO_UNIT = "alpa.search_cost: costs have no unit; compare them with each other, never with times"


_FACTS = (
    FactSpec("alpa.search_cost", "number", "cost of Alpa's first search: 0.001 x multiplications + elements moved"),
    FactSpec("alpa.mesh_cost.<axis>", "number", "alpha-beta cost of a step's collectives along a mesh axis"),
    FactSpec("alpa.collectives.<kind>", "count", "communication primitives as Alpa counts them", _COUNTS),
    FactSpec("alpa.nonscalar_collectives.<kind>", "count", "the same without all-reduces of one number", _COUNTS),
)


def _mesh_cost(along: Sequence[MeshCost]) -> Quantity:
    """Return the sum of the costs along an axis."""
    cost = math.fsum(least(cost.total) for cost in along)
    return at_least(cost, _unknown_reason(along)) if any(isinstance(cost.total, Figure) for cost in along) else cost


def _unknown_reason(along: Sequence[MeshCost]) -> str:
    """Return the first reason why a cost along an axis is unknown."""
    for cost in along:
        if cost.cost is None:
            return f"the bytes or devices of a {cost.kind} are unknown"
        for runs in cost.runs:
            if isinstance(runs, Figure):
                return runs.reason
    return "the text does not say"


def _unpriced(costs: Iterable[MeshCost]) -> Iterator[str]:
    """Yield the number of collectives without a cost."""
    unpriced = sum(len(cost.runs) for cost in costs if cost.cost is None)
    if unpriced:
        which = "1 collective has" if unpriced == 1 else f"{unpriced:,} collectives have"
        yield f"{which} no cost: the mesh axis is unknown, or Alpa has no formula for the kind"


_ALPA_SEARCH = TableSpec("alpa_search", "Cost of Alpa's search (no unit)", page_rows=0).with_columns(
    Column("kind"),
    Column("count", "count", get=attrgetter("matched")),
    Column("amount", "count", optional=True),
    Column("of", get=lambda part: "multiplications" if part.kind == GEMMS else "elements" if part.factor else ""),
    Column("factor", "number", optional=True),
    Column("cost", "number", summed=True),
)
_ALPA_MESH = TableSpec("alpa_mesh", "Costs on Alpa's device mesh (no unit)").with_columns(
    Column("kind"),
    Column("axis", optional=True),
    Column("group_size", "number", optional=True),
    Column("sites", "count", summed=True, get=lambda row: len(row.runs)),
    Column("whole_bytes", "bytes", get=attrgetter("size")),
    Column("cost_of_one", "number", get=attrgetter("cost")),
    Column("cost", "number", summed=True, bounded=True, get=attrgetter("total")),
)


class Alpa(Pass):
    """Compute Alpa's communication primitives, the cost of its first search, and the costs of its device mesh.

    No command of its own: `collectives --cost-model` shows it, and checks can name its facts.
    """

    name = "alpa"
    wants = WANTS | collectives.WANTS
    specs = _FACTS
    tables = (_ALPA_SEARCH, _ALPA_MESH)

    def run(self, context: Context) -> Section:
        facts, search = FactSheet(), search_cost(context.module)
        costs = mesh_costs(context.collectives, context.axes, context.call_graph.runs, context.mesh, context.cost_model)
        for family, without_scalars in (("collectives", False), ("nonscalar_collectives", True)):
            for name, count in primitive_counts(context.module, without_scalars=without_scalars).items():
                facts.put(f"alpa.{family}.{name}", count)
        facts.put("alpa.search_cost", search.value, search.reason)
        for axis, along in by_axis(costs):
            facts.put(f"alpa.mesh_cost.{axis}", _mesh_cost(along))
        model = context.cost_model.name if context.cost_model is not None else None
        tables = [_ALPA_SEARCH.of(search.parts)] if model in ("alpa-search", None) else []
        tables += [_ALPA_MESH.of(costs)] if model in ("alpa-mesh", None) else []
        return Section(facts.values, tables, [*facts.notes, *_unpriced(costs), _NO_UNIT])
