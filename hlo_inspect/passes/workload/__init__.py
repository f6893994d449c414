"""Questions about a network simulator's workload file: compute and collectives of its rows."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.figure import unknown
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.passes.base import FactSheet, WorkloadPass
from hlo_inspect.passes.workload import workload_tables as tables
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Table
from hlo_inspect.workloads.row import FORWARD_IN_BACKWARD, GROUPS, HLO_KINDS, PASSES, POLICIES
from hlo_inspect.workloads.totals import KIND_NAMES, UPDATE, WorkloadTotals
from hlo_inspect.workloads.workload_header import PIPELINE_BYTES
from hlo_inspect.workloads.writer import WRITTEN

_GROUPS = frozenset(GROUPS)
_FILE = (
    FactSpec(
        "workload.dialect", "text", "client (simulator) that the header is written for", frozenset({"simai", "astra-sim"})
    ),
    FactSpec("workload.policy", "text", "policy: the first word, which says how the model is divided"),
    FactSpec("workload.time_unit", "text", "unit of the times", frozenset({"ns", "cycles"})),
    FactSpec("workload.rows", "count", "rows in the file"),
    FactSpec("workload.stated_rows", "count", "number of rows by the second line"),
    FactSpec("workload.distinct_rows", "count", "distinct rows"),
    FactSpec("workload.parallelism", "text", "tensor x pipeline x data parallel devices, for example 8x16x8"),
    FactSpec("workload.devices", "count", "devices of the job that the header states"),
    FactSpec("workload.<group>.devices", "count", "devices of a group; for pp the number of stages", _GROUPS | {"pp"}),
    FactSpec("workload.pp_comm", "bytes", "bytes that one pipeline stage sends to the next, per micro-batch"),
)


def _put_file(facts: FactSheet, totals: WorkloadTotals) -> None:
    """Set the facts of the header, and the numbers of rows."""
    workload, header, parallelism = totals.workload, totals.workload.header, totals.parallelism
    facts.put("workload.dialect", header.dialect)
    facts.put("workload.policy", header.policy)
    facts.put("workload.time_unit", tables.time_unit(totals))
    facts.put("workload.rows", len(workload.rows))
    facts.put("workload.stated_rows", workload.stated_rows, "the line after the first holds no number")
    facts.put("workload.distinct_rows", len(workload.distinct))
    why = "the header does not say" if header.policy in POLICIES else f"{header.policy} is not a policy that a client knows"
    facts.put("workload.parallelism", parallelism.text, why)
    facts.put("workload.devices", parallelism.devices, why)
    facts.put("workload.pp_comm", header.number(PIPELINE_BYTES), why)
    for group, devices in parallelism.sizes.items():
        facts.put(f"workload.{group}.devices", devices, why)


_KINDS = frozenset(KIND_NAMES)
_PASSES = frozenset(PASSES)
_SUMS = (
    FactSpec("workload.bytes", "bytes", "sizes of all collectives that a client knows"),
    FactSpec("workload.unknown_bytes", "bytes", "sizes of cells whose word no client knows"),
    FactSpec("workload.<kind>.count", "count", "collectives of a kind, those of size 0 too", _KINDS),
    FactSpec("workload.<kind>.bytes", "bytes", "their sizes", _KINDS),
    FactSpec("workload.<pass>.compute", "count", "compute time of a pass, in the client's unit", _PASSES),
    FactSpec("workload.<pass>.bytes", "bytes", "sizes of the collectives of a pass", _PASSES),
    FactSpec("workload.update.compute", "count", "time after collectives, in the client's unit"),
    FactSpec("workload.<group>.bytes", "bytes", "sizes of the collectives of a group, as SimAI reads it", _GROUPS),
)


def _put_sums(facts: FactSheet, totals: WorkloadTotals) -> None:
    """Set the sums over the rows."""
    facts.put("workload.bytes", totals.size())
    facts.put("workload.unknown_bytes", totals.unknown_size())
    for kind in KIND_NAMES:
        facts.put(f"workload.{kind}.count", totals.count(kind=kind))
        facts.put(f"workload.{kind}.bytes", totals.size(kind=kind))
    for name in PASSES:
        facts.put(f"workload.{name}.compute", totals.compute[name])
        facts.put(f"workload.{name}.bytes", totals.size(pass_name=name))
    facts.put(f"workload.{UPDATE}.compute", totals.compute[UPDATE])
    no_groups = f"SimAI reads groups from the words of {FORWARD_IN_BACKWARD}, and this is {totals.workload.header.policy}"
    for group in GROUPS:
        facts.put(f"workload.{group}.bytes", totals.size(group=group) if totals.has_groups else unknown(no_groups))


class WorkloadFile(WorkloadPass):
    """Read a network simulator's workload file: totals by pass, kind and group; or convert it to another dialect.

    The command reads files of ASTRA-sim 1.0, SimAI and aicb; aicb writes SimAI's dialect. Each row counts once, as in one
    pass of the simulator. Sizes are bytes as the file's own client counts them. Times are in its unit and never converted to
    seconds. Groups are those that SimAI reads if the policy is HYBRID_TRANSFORMER_FWD_IN_BCKWD.

    With --to the rows are written in another dialect. If that dialect cannot express a row, the error names what would be lost.
    With its own dialect a file stays the same, byte for byte.
    """

    name = "workload"
    writes = WRITTEN
    specs = (*_FILE, *_SUMS)
    tables = (
        tables.WORKLOAD,
        tables.WORKLOAD_PASSES,
        tables.WORKLOAD_COLLECTIVES,
        tables.WORKLOAD_UNKNOWN,
        tables.WORKLOAD_GROUPS,
        tables.WORKLOAD_LAYERS,
        tables.WORKLOAD_HEADER,
    )

    def run(self, totals: WorkloadTotals) -> Section:
        facts = FactSheet()
        _put_file(facts, totals)
        _put_sums(facts, totals)
        return Section(facts.values, _tables(totals), [tables.conventions(totals), *facts.notes], tables.headline(totals))


def _tables(totals: WorkloadTotals) -> Iterator[Table]:
    rows = tables.equal_row_list(totals)
    yield tables.equal_rows(totals, rows)
    yield tables.by_pass(totals)
    yield tables.by_collective(totals)
    yield from tables.unknown_words(totals)
    yield tables.by_group(totals)
    yield tables.by_layer(totals, rows)
    yield tables.header_keys(totals)


_HLO_KINDS = frozenset(COLLECTIVE_KINDS)
_COLLECTIVES = (
    FactSpec("collectives.count", "count", "collectives that a client knows, each row once"),
    FactSpec("collectives.operand_bytes", "bytes", "their sizes"),
    FactSpec("collectives.executed_count", "count", "runs of collectives in one pass over the rows"),
    FactSpec("collectives.executed_operand_bytes", "bytes", "sizes of all runs in one pass over the rows"),
    FactSpec("collectives.executed_wire_bytes", "bytes", "bytes that one device sends in one pass over the rows"),
    FactSpec("collectives.<kind>.count", "count", "collectives of a kind", _HLO_KINDS),
    FactSpec("collectives.<kind>.operand_bytes", "bytes", "their sizes", _HLO_KINDS),
    FactSpec("collectives.<kind>.executed_count", "count", "runs of a kind in one pass over the rows", _HLO_KINDS),
    FactSpec("collectives.<kind>.executed_operand_bytes", "bytes", "sizes of all runs in one pass over the rows", _HLO_KINDS),
    FactSpec("collectives.<kind>.executed_wire_bytes", "bytes", "bytes that one device sends for them in one pass", _HLO_KINDS),
    FactSpec("collectives.axis.<axis>.executed_count", "count", "runs over a group of devices in one pass", _GROUPS),
    FactSpec("collectives.axis.<axis>.executed_operand_bytes", "bytes", "sizes of all runs in one pass over the rows", _GROUPS),
    FactSpec(
        "collectives.axis.<axis>.executed_wire_bytes", "bytes", "bytes that one device sends for them in one pass", _GROUPS
    ),
)


def _put_runs(facts: FactSheet, start: str, totals: WorkloadTotals, **chosen: str) -> None:
    """Set the facts of the runs of collectives, of which each runs once."""
    facts.put(f"{start}.executed_count", totals.count(**chosen))
    facts.put(f"{start}.executed_operand_bytes", totals.size(**chosen))
    facts.put(f"{start}.executed_wire_bytes", totals.wire(**chosen))


class WorkloadCollectives(WorkloadPass):
    """List the collectives of a workload file: kind, size, group, pass; each runs once in one pass over the rows.

    Operand bytes are sizes as the file's own client counts them. Sent bytes are what one device sends with a bandwidth-optimal
    algorithm, if the header gives the number of devices of a group.
    """

    name = "collectives"
    specs = _COLLECTIVES
    tables = (tables.CELLS, tables.WORKLOAD_COLLECTIVES, tables.WORKLOAD_UNKNOWN, tables.WORKLOAD_GROUPS)

    def run(self, totals: WorkloadTotals) -> Section:
        facts = FactSheet()
        of_kinds = ((f"collectives.{opcode}", {"kind": kind}) for kind, opcode in HLO_KINDS.items())
        for name, chosen in (("collectives", {}), *of_kinds):
            facts.put(f"{name}.count", totals.count(**chosen))
            facts.put(f"{name}.operand_bytes", totals.size(**chosen))
            _put_runs(facts, name, totals, **chosen)
        for group in GROUPS if totals.has_groups else ():
            _put_runs(facts, f"collectives.axis.{group}", totals, group=group)
        notes = [tables.conventions(totals), *facts.notes]
        return Section(facts.values, _collective_tables(totals), notes, tables.headline(totals))


def _collective_tables(totals: WorkloadTotals) -> Iterator[Table]:
    yield tables.cells(totals)
    yield tables.by_collective(totals)
    yield from tables.unknown_words(totals)
    yield tables.by_group(totals)


class WorkloadSummary(WorkloadPass):
    """Sum up a workload file by pass, collective, group and layer."""

    name = "summary"
    includes = ("workload", "collectives")

    def run(self, totals: WorkloadTotals) -> Section:
        return Section({}, (table for table in _summary_tables(totals) if table.rows), headline=tables.headline(totals))


def _summary_tables(totals: WorkloadTotals) -> Iterator[Table]:
    yield tables.by_pass(totals)
    yield tables.by_collective(totals)
    yield from tables.unknown_words(totals)
    yield tables.by_group(totals)
    yield tables.by_layer(totals, tables.equal_row_list(totals))
