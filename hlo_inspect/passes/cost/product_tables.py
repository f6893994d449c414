"""Matrix multiplications of one step by the types of their operands: facts of `cost`, and its table `matmuls_by_type`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES, Tally
from hlo_inspect.figure import Figure, Quantity, exact, least, multiply, reason, total, unknown
from hlo_inspect.hlo.values.shapes import BITS
from hlo_inspect.passes.base import bounded
from hlo_inspect.report.model import FactSpec
from hlo_inspect.report.table import Column, Table, TablePlace, Value
from hlo_inspect.report.table_spec import CountedRows, TableSpec

MIXED = "mixed"
SPEC = FactSpec(
    "cost.matmul_flops.<type>",
    "flops",
    "FLOPs of matrix multiplications in one step by operand type; `mixed` if the two types differ",
    frozenset({*BITS, MIXED}),
)
_FLOAT8 = ("f8e4m3", "f8e4m3b11fnuz", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
_MATRIX_TYPES = ("bf16", "c64", "c128", "f16", "f32", "f64", "f4e2m1fn", *_FLOAT8, "s4", "s8", "u8", "s32", MIXED)
"""The types that programs multiply: none of them is known to be 0 if the type of some product is unknown."""
_FLOPS = FIGURES.index("matmul_flops")


class _Products(NamedTuple):
    """The products of one type of operands (empty if the text does not tell it), their kernels and the runs of these.

    `whole` is all FLOPs of the step, None if they are unknown.
    """

    type: str
    flops: Quantity
    sites: int
    runs: Quantity
    whole: float | None

    @property
    def share(self) -> float | None:
        return self.flops / self.whole if self.whole and not isinstance(self.flops, Figure) else None


def matmul_facts(context: Context) -> dict[str, Quantity]:
    """Return the FLOPs of one step by the name of the fact. If some products are unknown, all are lower bounds."""
    flops_of_type: dict[str, list[Quantity]] = defaultdict(list)
    for types, flops in _flops(context).items():
        flops_of_type[MIXED if "," in types else types].append(flops)
    why = _unknown_reason(context, flops_of_type.pop("", ()))
    for name in dict.fromkeys((*flops_of_type, *_MATRIX_TYPES)) if why else ():
        flops_of_type[name].append(unknown(why))
    return {f"cost.matmul_flops.{name}": total(flops_of_type[name]) for name in sorted(flops_of_type)}


def _unknown_reason(context: Context, untyped: Sequence[Quantity]) -> str:
    """Say why the products of known types may not be all; empty if they are."""
    if context.module.problems.is_truncated:
        return "the module is truncated, and its missing part counts too"
    if context.module.entry is None:
        return reason(context.cost.step["matmul_flops"])
    return next((reason(flops) or "the types of some operands are unknown" for flops in untyped), "")


def matmuls_by_type(context: Context) -> Table:
    """Return one row per type, those with most FLOPs first."""
    whole, sites = exact(context.cost.step["flops"]), _sites(context)
    rows = []
    for types, flops in _flops(context).items():
        runs = total(multiply(of_each, count) for count, of_each in sites[types])
        rows.append(_Products(types, flops, sum(count for count, _ in sites[types]), runs, whole))
    rows.sort(key=lambda row: (-least(row.flops), row.type))
    columns = MATMULS_BY_TYPE.with_flags({} if whole else {"share_of_flops": {"detail": 9}})
    return MATMULS_BY_TYPE.of(rows, columns=columns, on_page=any(least(row.flops) for row in rows))


def _is_type(value: Value, member: str) -> bool:
    return value == member or (member == MIXED and "," in str(value))


MATMULS_BY_TYPE = TableSpec(
    "matmuls_by_type",
    "Matrix multiplications of one step by type of operands",
    TablePlace("work", "Work of the step", "products by type", 5),
    in_store=True,
    assertable=True,
    counts=(CountedRows(r"cost\.matmul_flops\.(.+)", (("type", _is_type),), value="flops"),),
).with_columns(
    Column("type", meaning="element type of both operands; `mixed` if they differ", get=lambda row: row.type or None),
    bounded("flops", "flops"),
    Column(
        "share_of_flops",
        "share",
        detail=1,
        optional=True,
        meaning="share of all FLOPs of matrix multiplications",
        get=attrgetter("share"),
    ),
    Column("sites", "count", detail=1),
    bounded("runs", "count", detail=1, summed=False),
)


def _flops(context: Context) -> dict[str, Quantity]:
    """Return the FLOPs of one step by type of operands."""
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    opcodes = context.cost.opcodes
    for key, amounts in opcodes.rows.items():
        if amounts[_FLOPS]:
            tallies[key.operands].add(key, amounts)
    for (key, figure), gap in opcodes.gaps.items():
        if figure == "matmul_flops":
            tallies[key.operands].miss(key, (figure,), gap)
    return {types: tally.bounds("matmul_flops") for types, tally in tallies.items()}


def _sites(context: Context) -> defaultdict[str, list[tuple[int, Quantity]]]:
    """Return the kernels with products by type of operands: the number of those of one cost and computation, and their runs."""
    sites: defaultdict[str, list[tuple[int, Quantity]]] = defaultdict(list)
    for name, running in context.cost.running.items():
        for cost, count in Counter(running.costs).items():
            types = {key.operands for key, amounts in cost.work.rows.items() if amounts[_FLOPS]}
            types |= {key.operands for key, figure in cost.work.gaps if figure == "matmul_flops"}
            for name_of_type in types:
                sites[name_of_type].append((count, context.call_graph.runs(name)))
    return sites
