"""The page that a person reads first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.parameters import Interface, Output, ParameterLeaf
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.optimizer.overview import HYPERPARAMETERS, Overview
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collectives import tables as collective_tables
from hlo_inspect.passes.collectives.loops import loops
from hlo_inspect.passes.cost import cost_by_phase
from hlo_inspect.passes.custom_calls import custom_calls_by_target
from hlo_inspect.passes.fusions import fusions_by_kind
from hlo_inspect.passes.summary.first_lines import headline
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

_DETAILS = {"learning_rate": 1, "beta1": 1, "beta2": 1, "weight_decay": 1, "epsilon": 2, "momentum": 3, "clip_norm": 4}
"""How early a narrow page drops the hyper-parameters that most optimizers have."""


class Summary(Pass):
    """One page: what this module is, its buffers, costs, optimizer, fusions, collectives and opcodes, and what looks wrong.

    Reads every line. Instructions are counted as printed: a get-tuple-element that compact printing left out is not counted.
    With --quick there are no costs and no optimizer.
    """

    name = "summary"
    wants = Wants(checked=True)
    findings_of = "all"
    includes = ("params", "fusions", "collectives")
    unless_quick = ("cost", "optimizer")
    specs = (
        FactSpec("module.computations", "count", "computations, as printed"),
        FactSpec("module.instructions", "count", "instructions over all computations, as printed"),
        FactSpec("module.entry_instructions", "count", "instructions of the entry computation, as printed"),
        FactSpec("opcode.<opcode>", "count", "instructions of a printed opcode over all computations", frozenset(TABLE)),
    )

    def run(self, context: Context) -> Section:
        module = context.module
        counts = module.opcode_counts
        facts: dict[str, Value] = {
            "module.computations": module.computation_count,
            "module.instructions": counts.total(),
            "module.entry_instructions": len(module.entry.opcodes) if module.entry else None,
        }
        facts |= {f"opcode.{opcode}": count for opcode, count in sorted(counts.items())}
        notes = [] if module.entry else ["module.entry_instructions: the text ends before the entry computation"]
        return Section(facts, (table for table in _tables(context) if table.rows), notes, headline(context))


def _tables(context: Context) -> Iterator[Table]:
    with_cost = not context.request.quick
    yield _buffers(context.interface)
    if with_cost:
        yield cost_by_phase(context)
        yield _optimizer(context.optimizer)
    yield fusions_by_kind(context, with_cost=with_cost)
    yield collective_tables.by_kind(context)
    yield collective_tables.point_to_point(context)
    yield collective_tables.by_axis(context)
    yield collective_tables.by_phase(context)
    yield loops(context, with_cost=with_cost)
    yield custom_calls_by_target(context, with_cost=with_cost)
    yield _opcodes(context)


def _buffers(interface: Interface) -> Table:
    parameters, outputs = interface.parameters, interface.outputs
    tells_donation = interface.known and interface.donation_known
    rows = (
        ("parameters", *_sizes(parameters, interface.known)),
        ("  aliased with an output", *_sizes([p for p in parameters if p.alias], tells_donation)),
        ("  donated, not aliased", *_sizes([p for p in parameters if p.donor and not p.alias], tells_donation)),
        ("  not donated", *_sizes([p for p in parameters if not p.donated], tells_donation)),
        ("  unused", *_sizes([p for p in parameters if p.unused], interface.known and interface.uses_known)),
        ("outputs", *_sizes(outputs, interface.outputs_known)),
        ("  aliased with a parameter", *_sizes([o for o in outputs if o.alias], interface.outputs_known and tells_donation)),
    )
    columns = (Column("buffers"), Column("count", "count"), Column("bytes", "bytes"))
    return Table("buffers", "Entry parameters and outputs", columns, rows, page_rows=0)


def _sizes(leaves: Sequence[ParameterLeaf] | Sequence[Output], is_known: bool) -> tuple[int | None, int | None]:
    return (len(leaves), total(leaf.shape.bytes for leaf in leaves)) if is_known else (None, None)


def _optimizer(overview: Overview) -> Table:
    """One row for all updates, none where nothing is updated. What has no value is in CSV and JSON only."""
    rates = {overview.rate_of(row) for row in overview.rows} - {"constant", "absent"}
    rate = rates.pop() if len(rates) == 1 else None
    values = {name: overview.shared(name) for name in HYPERPARAMETERS if name != "nesterov"}
    columns = (
        Column("rule", width=8, get=lambda all_rows: overview.name),
        Column("weights", "count", get=len),
        Column("decayed", "count", detail=3, get=lambda all_rows: overview.decayed),
        *(_constant(name, value) for name, value in (*values.items(), ("clip_norm", overview.clip_norm))),
        Column("rate", optional=True, detail=9 if rate is None else 1, get=lambda all_rows: rate),
        Column("weight_bytes", "bytes", detail=5, get=lambda all_rows: overview.bytes_of(row.weight for row in all_rows)),
        Column("state_bytes", "bytes", get=lambda all_rows: overview.bytes_of(overview.states)),
    )
    return Table.of("optimizer_update", "Optimizer", columns, [overview.rows] if overview.rows else [])


def _constant(name: str, value: float | None) -> Column:
    detail = 9 if value is None else _DETAILS.get(name, 6)
    return Column(name, "number", optional=True, detail=detail, get=lambda all_rows: value)


def _opcodes(context: Context) -> Table:
    counts = context.module.opcode_counts
    columns = (Column("opcode"), Column("count", "count", summed=True))
    return Table("opcodes", "Instructions by opcode", columns, tuple(counts.most_common()), page_rows=10)
