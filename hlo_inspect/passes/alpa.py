"""Alpa's counts and costs of the collectives of a module."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hlo_inspect.analysis import collectives
from hlo_inspect.analysis.alpa import (
    GEMMS,
    KINDS,
    WANTS,
    MeshCost,
    SearchCost,
    by_axis,
    mesh_costs,
    primitive_counts,
    search_cost,
)
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Figure, at_least, least
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column, Table, Value

_COUNTS = frozenset({"total", *(kind.replace("-", "_") for kind in KINDS)})
_NO_UNIT = "alpa.search_cost: costs have no unit; compare them with each other, never with times"


class Alpa(Pass):
    """Compute Alpa's communication primitives, the cost of its first search, and the costs of its device mesh.

    No command of its own: `collectives --cost-model` shows it, and checks can name its facts.
    """

    name = "alpa"
    wants = WANTS | collectives.WANTS
    specs = (
        FactSpec("alpa.search_cost", "number", "cost of Alpa's first search: 0.001 x multiplications + elements moved"),
        FactSpec("alpa.mesh_cost.<axis>", "number", "alpha-beta cost of a step's collectives along a mesh axis"),
        FactSpec("alpa.collectives.<kind>", "count", "communication primitives as Alpa counts them", _COUNTS),
        FactSpec(
            "alpa.nonscalar_collectives.<kind>",
            "count",
            "the same without all-reduces of one number",
            _COUNTS,
        ),
    )

    def run(self, context: Context) -> Section:
        module = context.module
        search = search_cost(module)
        costs = mesh_costs(context.collectives, context.axes, context.call_graph.runs, context.mesh, context.cost_model)
        facts: dict[str, Value] = {f"alpa.collectives.{name}": count for name, count in primitive_counts(module).items()}
        without = primitive_counts(module, without_scalars=True)
        facts |= {f"alpa.nonscalar_collectives.{name}": count for name, count in without.items()}
        facts["alpa.search_cost"] = search.value
        notes = [f"alpa.search_cost: {search.reason}"] if search.value is None else []
        for axis, along in by_axis(costs):
            whole = math.fsum(least(cost.total) for cost in along)
            is_known = not any(isinstance(cost.total, Figure) for cost in along)
            facts[f"alpa.mesh_cost.{axis}"] = whole if is_known else at_least(whole, _unknown_reason(along))
            if not is_known:
                notes.append(f"alpa.mesh_cost.{axis}: {_unknown_reason(along)}")
        unpriced = sum(len(cost.runs) for cost in costs if cost.cost is None)
        if unpriced:
            which = "1 collective has" if unpriced == 1 else f"{unpriced:,} collectives have"
            notes.append(f"{which} no cost: the mesh axis is unknown, or Alpa has no formula for the kind")
        return Section(facts, _tables(context, search, costs), [*notes, _NO_UNIT])


def _unknown_reason(along: list[MeshCost]) -> str:
    """Return the first reason why a cost along an axis is unknown."""
    for cost in along:
        if cost.cost is None:
            return f"the bytes or devices of a {cost.kind} are unknown"
        for runs in cost.runs:
            if isinstance(runs, Figure):
                return runs.reason
    return "the text does not say"


def _tables(context: Context, search: SearchCost, costs: list[MeshCost]) -> Iterator[Table]:
    """Yield the table of the requested model."""
    model = context.cost_model.name if context.cost_model is not None else None
    if model in ("alpa-search", None):
        yield _search_table(search)
    if model in ("alpa-mesh", None):
        yield _mesh_table(costs)


def _search_table(search: SearchCost) -> Table:
    columns = (
        Column("kind", get=lambda part: part.kind),
        Column("count", "count", get=lambda part: part.matched),
        Column("amount", "count", optional=True, get=lambda part: part.amount),
        Column("of", get=lambda part: "multiplications" if part.kind == GEMMS else "elements" if part.factor else ""),
        Column("factor", "number", optional=True, get=lambda part: part.factor),
        Column("cost", "number", summed=True, get=lambda part: part.cost),
    )
    return Table.of("alpa_search", "Cost of Alpa's search (no unit)", columns, search.parts, page_rows=0)


def _mesh_table(costs: list[MeshCost]) -> Table:
    columns = (
        Column("kind", get=lambda row: row.kind),
        Column("axis", optional=True, get=lambda row: row.axis),
        Column("group_size", "number", optional=True, get=lambda row: row.group_size),
        Column("sites", "count", summed=True, get=lambda row: len(row.runs)),
        Column("whole_bytes", "bytes", get=lambda row: row.size),
        Column("cost_of_one", "number", get=lambda row: row.cost),
        Column("cost", "number", summed=True, bounded=True, get=lambda row: row.total),
    )
    return Table.of("alpa_mesh", "Costs on Alpa's device mesh (no unit)", columns, costs)
