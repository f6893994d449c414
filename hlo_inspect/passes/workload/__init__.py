"""Questions about a network simulator's workload file: compute and collectives of its rows."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.figure import Quantity, exact, least
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.passes.base import WorkloadPass, unknown, with_lower_bound
from hlo_inspect.passes.workload import tables
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Table, Value
from hlo_inspect.workloads.header import PIPELINE_BYTES
from hlo_inspect.workloads.row import FORWARD_IN_BACKWARD, GROUPS, HLO_KINDS, PASSES, POLICIES
from hlo_inspect.workloads.totals import KIND_NAMES, UPDATE, WorkloadTotals
from hlo_inspect.workloads.writer import WRITTEN

_KINDS = frozenset(KIND_NAMES)
_PASSES = frozenset(PASSES)
_GROUPS = frozenset(GROUPS)


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
    specs = (
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
        FactSpec("workload.bytes", "bytes", "sizes of all collectives that a client knows"),
        FactSpec("workload.unknown_bytes", "bytes", "sizes of cells whose word no client knows"),
        FactSpec("workload.<kind>.count", "count", "collectives of a kind, those of size 0 too", _KINDS),
        FactSpec("workload.<kind>.bytes", "bytes", "their sizes", _KINDS),
        FactSpec("workload.<pass>.compute", "count", "compute time of a pass, in the client's unit", _PASSES),
        FactSpec("workload.<pass>.bytes", "bytes", "sizes of the collectives of a pass", _PASSES),
        FactSpec("workload.update.compute", "count", "time after collectives, in the client's unit"),
        FactSpec("workload.<group>.bytes", "bytes", "sizes of the collectives of a group, as SimAI reads it", _GROUPS),
    )

    def run(self, totals: WorkloadTotals) -> Section:
        facts = _facts(totals)
        notes = [*tables.conventions(totals), *(f"{name}: {_unknown_reason(name, totals)}" for name in unknown(facts))]
        return Section(facts, _tables(totals), notes, tables.headline(totals))


def _tables(totals: WorkloadTotals) -> Iterator[Table]:
    rows = tables.equal_row_list(totals)
    yield tables.equal_rows(totals, rows)
    yield tables.by_pass(totals)
    yield tables.by_collective(totals)
    yield from tables.unknown_words(totals)
    yield tables.by_group(totals)
    yield tables.by_layer(totals, rows)
    yield tables.header_keys(totals)


def _facts(totals: WorkloadTotals) -> dict[str, Value]:
    workload, parallelism = totals.workload, totals.parallelism
    facts: dict[str, Value] = {
        "workload.dialect": workload.header.dialect,
        "workload.policy": workload.header.policy,
        "workload.time_unit": tables.time_unit(totals),
        "workload.rows": len(workload.rows),
        "workload.stated_rows": workload.stated_rows,
        "workload.distinct_rows": len(workload.distinct),
        "workload.parallelism": parallelism.text,
        "workload.devices": parallelism.devices,
        "workload.pp_comm": workload.header.number(PIPELINE_BYTES),
    }
    facts |= {f"workload.{group}.devices": devices for group, devices in parallelism.sizes.items()}
    for name, figure in _sums(totals):
        with_lower_bound(facts, name, exact(figure), least(figure) or None)
    if not totals.has_groups:
        facts |= {f"workload.{group}.bytes": None for group in GROUPS}
    return facts


def _sums(totals: WorkloadTotals) -> Iterator[tuple[str, Quantity]]:
    yield "workload.bytes", totals.size()
    yield "workload.unknown_bytes", totals.unknown_size()
    for kind in KIND_NAMES:
        yield f"workload.{kind}.count", totals.count(kind=kind)
        yield f"workload.{kind}.bytes", totals.size(kind=kind)
    for name in PASSES:
        yield f"workload.{name}.compute", totals.compute[name]
        yield f"workload.{name}.bytes", totals.size(pass_name=name)
    yield f"workload.{UPDATE}.compute", totals.compute[UPDATE]
    if totals.has_groups:
        for group in GROUPS:
            yield f"workload.{group}.bytes", totals.size(group=group)


def _unknown_reason(name: str, totals: WorkloadTotals) -> str:
    """Return why a fact is unknown."""
    header = totals.workload.header
    if name == "workload.stated_rows":
        return "the line after the first holds no number"
    if name in ("workload.parallelism", "workload.devices", "workload.pp_comm") or name.endswith(".devices"):
        return (
            "the header does not say" if header.policy in POLICIES else f"{header.policy} is not a policy that a client knows"
        )
    if name.split(".")[1] in GROUPS and not totals.has_groups:
        return f"SimAI reads groups from the words of {FORWARD_IN_BACKWARD}, and this is {header.policy}"
    return f"the row on line {totals.first_unknown} cannot be read whole"


_HLO_KINDS = frozenset(COLLECTIVE_KINDS)


class WorkloadCollectives(WorkloadPass):
    """List the collectives of a workload file: kind, size, group, pass; each runs once in one pass over the rows.

    Operand bytes are sizes as the file's own client counts them. Sent bytes are what one device sends with a bandwidth-optimal
    algorithm, if the header gives the number of devices of a group.
    """

    name = "collectives"
    specs = (
        FactSpec("collectives.count", "count", "collectives that a client knows, each row once"),
        FactSpec("collectives.operand_bytes", "bytes", "their sizes"),
        FactSpec("collectives.executed_count", "count", "runs of collectives in one pass over the rows"),
        FactSpec("collectives.executed_operand_bytes", "bytes", "sizes of all runs in one pass over the rows"),
        FactSpec("collectives.executed_wire_bytes", "bytes", "bytes that one device sends in one pass over the rows"),
        FactSpec("collectives.<kind>.count", "count", "collectives of a kind", _HLO_KINDS),
        FactSpec("collectives.<kind>.operand_bytes", "bytes", "their sizes", _HLO_KINDS),
        FactSpec("collectives.<kind>.executed_count", "count", "runs of a kind in one pass over the rows", _HLO_KINDS),
        FactSpec(
            "collectives.<kind>.executed_operand_bytes", "bytes", "sizes of all runs in one pass over the rows", _HLO_KINDS
        ),
        FactSpec(
            "collectives.<kind>.executed_wire_bytes", "bytes", "bytes that one device sends for them in one pass", _HLO_KINDS
        ),
        FactSpec("collectives.axis.<axis>.executed_count", "count", "runs over a group of devices in one pass", _GROUPS),
        FactSpec(
            "collectives.axis.<axis>.executed_operand_bytes", "bytes", "sizes of all runs in one pass over the rows", _GROUPS
        ),
        FactSpec(
            "collectives.axis.<axis>.executed_wire_bytes", "bytes", "bytes that one device sends for them in one pass", _GROUPS
        ),
    )

    def run(self, totals: WorkloadTotals) -> Section:
        facts: dict[str, Value] = {}
        for name, figure in _collective_sums(totals):
            with_lower_bound(facts, name, exact(figure), least(figure) or None)
        notes = [*tables.conventions(totals), *(f"{name}: {_collectives_reason(totals)}" for name in unknown(facts))]
        return Section(facts, _collective_tables(totals), notes, tables.headline(totals))


def _collective_tables(totals: WorkloadTotals) -> Iterator[Table]:
    yield tables.cells(totals)
    yield tables.by_collective(totals)
    yield from tables.unknown_words(totals)
    yield tables.by_group(totals)


def _collective_sums(totals: WorkloadTotals) -> Iterator[tuple[str, Quantity]]:
    yield from _collective_facts("collectives", totals.count(), totals.size(), totals.wire())
    for kind, opcode in HLO_KINDS.items():
        yield from _collective_facts(
            f"collectives.{opcode}", totals.count(kind=kind), totals.size(kind=kind), totals.wire(kind=kind)
        )
    for group in GROUPS if totals.has_groups else ():
        name = f"collectives.axis.{group}.executed"
        yield f"{name}_count", totals.count(group=group)
        yield f"{name}_operand_bytes", totals.size(group=group)
        yield f"{name}_wire_bytes", totals.wire(group=group)


def _collective_facts(name: str, count: Quantity, size: Quantity, wire: Quantity) -> Iterator[tuple[str, Quantity]]:
    """Yield the facts of collectives, each at one place and run once."""
    yield f"{name}.count", count
    yield f"{name}.operand_bytes", size
    yield f"{name}.executed_count", count
    yield f"{name}.executed_operand_bytes", size
    yield f"{name}.executed_wire_bytes", wire


def _collectives_reason(totals: WorkloadTotals) -> str:
    if totals.first_unknown is not None:
        return f"the row on line {totals.first_unknown} cannot be read whole"
    if totals.workload.header.dialect != "simai":
        return "the header of an ASTRA-sim file has no group sizes"
    return "the header lacks the size of a group, or a word names no group"


class WorkloadSummary(WorkloadPass):
    """Sum up a workload file by pass, collective, group and layer."""

    name = "summary"
    specs = ()
    includes = ("workload", "collectives")

    def run(self, totals: WorkloadTotals) -> Section:
        return Section({}, (table for table in _summary_tables(totals) if table.rows), headline=tables.headline(totals))


def _summary_tables(totals: WorkloadTotals) -> Iterator[Table]:
    yield tables.by_pass(totals)
    yield tables.by_collective(totals)
    yield from tables.unknown_words(totals)
    yield tables.by_group(totals)
    yield tables.by_layer(totals, tables.equal_row_list(totals))
