"""The page that a person reads first: its facts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.parameters import Interface, Output, ParameterLeaf
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.optimizer.overview import HYPERPARAMETERS, Overview
from hlo_inspect.passes.base import Fact, FactSheet, Pass, specs_of
from hlo_inspect.passes.collectives import collectives_by_label, loops, loops_with_costs
from hlo_inspect.passes.cost import cost_by_phase
from hlo_inspect.passes.custom_calls import custom_calls_by_target
from hlo_inspect.passes.fusions import fusions_by_kind
from hlo_inspect.passes.summary.headline import headline_rows
from hlo_inspect.passes.warning_tables import WARNINGS, warnings_notes, warnings_table
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

_FACTS = (
    Fact("module.computations", "count", "computations, as printed", attrgetter("computation_count")),
    Fact("module.instructions", "count", "instructions of all computations, as printed", lambda m: m.opcode_counts.total()),
)
_ENTRY = Fact(
    "module.entry_instructions",
    "count",
    "instructions of the entry computation, as printed",
    lambda module: len(module.entry.opcodes) if module.entry else None,
)
_OF_OPCODE = Fact(
    "opcode.<opcode>", "count", "instructions of an opcode in all computations, as printed", int, frozenset(TABLE)
)


def _tables(context: Context) -> Iterator[Table]:
    with_cost = not context.request.quick
    if context.module.warnings:
        yield warnings_table(context)
    yield _buffers(context.interface)
    if with_cost:
        yield cost_by_phase(context)
        yield _optimizer_table(context.optimizer)
    yield fusions_by_kind(context, with_cost=with_cost)
    yield collectives_by_label.by_kind(context)
    yield collectives_by_label.point_to_point(context)
    yield collectives_by_label.by_axis(context)
    yield collectives_by_label.by_phase(context)
    yield loops_with_costs(context) if with_cost else loops(context)
    yield from custom_calls_by_target(context, with_cost=with_cost)
    yield from _flags_table(context)
    yield _OPCODES.of(context.module.opcode_counts.most_common())


class _Buffers(NamedTuple):
    """Arrays of the interface; None if the text does not tell which they are."""

    label: str
    leaves: Sequence[ParameterLeaf] | Sequence[Output] | None

    @property
    def number(self) -> int | None:
        return None if self.leaves is None else len(self.leaves)

    @property
    def bytes(self) -> int | None:
        return None if self.leaves is None else total(leaf.shape.bytes for leaf in self.leaves)


_BUFFERS = TableSpec(
    "buffers", "Entry parameters and outputs", TablePlace("parameters", "Parameters", "sums", 4), page_rows=0
).with_columns(
    Column("buffers", meaning="kind of arrays", get=attrgetter("label")),
    Column("count", "count", meaning="number of arrays", get=attrgetter("number")),
    Column("bytes", "bytes"),
)


def _buffers(interface: Interface) -> Table:
    parameters = interface.parameters if interface.parameters_known else None
    outputs = interface.outputs if interface.outputs_known else None
    donatable = parameters if interface.donation_known else None
    aliases = None if donatable is None or outputs is None else [o for o in outputs if o.alias]
    rows = (
        ("parameters", parameters),
        ("  aliased with an output", donatable and [p for p in donatable if p.alias]),
        ("  donated, not aliased", donatable and [p for p in donatable if p.donor and not p.alias]),
        ("  not donated", donatable and [p for p in donatable if not p.donated]),
        ("  unused", parameters and [p for p in parameters if p.unused] if interface.uses_known else None),
        ("outputs", outputs),
        ("  aliased with a parameter", aliases),
    )
    return _BUFFERS.of(map(_Buffers._make, rows))


def _hyperparameter(name: str) -> Column:
    return Column(
        name, "number", optional=True, detail=_DETAILS.get(name, 6), real=True, get=lambda overview: overview.shared(name)
    )


def _shared_rate(overview: Overview) -> str | None:
    """Return the rate that changes, if there is one; None if there are several."""
    rates = {overview.rate_of(row) for row in overview.rows} - {"constant", "absent"}
    return rates.pop() if len(rates) == 1 else None


_DETAILS = {"learning_rate": 1, "beta1": 1, "beta2": 1, "weight_decay": 1, "epsilon": 2, "momentum": 3}
"""Order in which a narrow page drops the hyper-parameters that most optimizers have."""
_UPDATE = TableSpec("optimizer_update", "Optimizer", TablePlace("optimizer", "Updates", "sum", 2)).with_columns(
    Column("rule", width=8, get=attrgetter("name")),
    Column("weights", "count", get=lambda overview: len(overview.rows)),
    Column("decayed", "count", detail=3, meaning="weights with weight decay"),
    *(_hyperparameter(name) for name in HYPERPARAMETERS if name != "nesterov"),
    Column("clip_norm", "number", optional=True, detail=4, real=True),
    Column("rate", optional=True, detail=1, get=_shared_rate),
    Column(
        "weight_bytes",
        "bytes",
        detail=5,
        meaning="bytes of the weights",
        get=lambda overview: overview.bytes_of(row.weight for row in overview.rows),
    ),
    Column(
        "state_bytes",
        "bytes",
        meaning="bytes of moments and other state",
        get=lambda overview: overview.bytes_of(overview.states),
    ),
)


def _optimizer_table(overview: Overview) -> Table:
    """Return one row for all updates, none without updates. Columns without a value are in CSV and JSON only."""
    values = [(column.name, column.get(overview)) for column in _UPDATE.columns if column.optional and column.get]
    flags = {name: {"detail": 9} for name, value in values if value is None}
    if 0 < overview.decayed < len(overview.rows):
        flags["decayed"] = {"detail": 0}  # the weight decay beside it is not that of every weight
    return _UPDATE.of([overview] if overview.rows else [], columns=_UPDATE.with_flags(flags))


_OPCODES = TableSpec(
    "opcodes", "Instructions by opcode", TablePlace("program", ""), page_rows=10, only_verbose=True
).with_columns(
    Column("opcode", get=itemgetter(0)),
    Column("count", "count", summed=True, meaning="instructions of all computations", get=itemgetter(1)),
)


_FLAGS = TableSpec("flags", "Flags that differ from XLA's defaults", TablePlace("program", "", "", 1)).with_columns(
    Column("name", width=40, meaning="flag or option", get=itemgetter(0)), Column("value", width=24, get=itemgetter(1))
)


def _flags_table(context: Context) -> Iterator[Table]:
    """Yield the flags from the file `.debug_options` beside the text, nothing without that file."""
    settings = context.settings
    if settings is not None and settings.flags is not None:
        yield _FLAGS.of(sorted(settings.flags.items()))


def _flags_notes(context: Context) -> Iterator[str]:
    """Yield why flags are unknown, for a text of a dump directory."""
    settings = context.settings
    if settings is None:
        return
    if settings.unknown:
        yield f"flags: {settings.unknown[0]}"
    elif settings.flags is None:
        yield "flags: the dump states all flags and no defaults; `hlo-inspect diff` names those that differ from another dump"


class Summary(Pass):
    """Show one page: the module, its buffers, costs, optimizer, fusions, collectives and findings; opcodes with -v.

    The command reads every line. It counts the instructions that the text prints: compact dumps leave out get-tuple-elements.
    With --quick there are no costs and no optimizer.
    """

    name = "summary"
    wants = Wants(checked=True)
    findings_of = "all"
    includes = ("params", "fusions", "collectives")
    unless_quick = ("cost", "optimizer")
    specs = specs_of((*_FACTS, _ENTRY, _OF_OPCODE))
    tables = (_BUFFERS, _UPDATE, _OPCODES, _FLAGS, WARNINGS)

    def run(self, context: Context) -> Section:
        module, facts = context.module, FactSheet()
        facts.put_all(_FACTS, module)
        facts.put(_ENTRY.name, _ENTRY.get(module), "the text ends before the entry computation")
        for opcode, count in sorted(module.opcode_counts.items()):
            facts.put_all([_OF_OPCODE], count, opcode)
        notes = (*facts.notes, *warnings_notes(context), *_flags_notes(context))
        tables, rows = (table for table in _tables(context) if table.rows), headline_rows(context)
        if not module.memory_lines:
            return Section(facts.values, tables, notes, rows)
        from hlo_inspect.passes.memory.xla_reports import out_of_memory_rows, out_of_memory_tables, reports_of

        reports = reports_of(context)
        return Section(facts.values, (*out_of_memory_tables(reports), *tables), notes, [*out_of_memory_rows(reports), *rows])
