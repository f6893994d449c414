"""A network simulator's workload file: what its rows compute and move."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.passes import workload_tables
from hlo_inspect.passes.base import WorkloadPass, unknown, with_lower_bound
from hlo_inspect.passes.workload_tables import headline
from hlo_inspect.report.model import FactSpec, Section, Table, Value
from hlo_inspect.workloads.header import PIPELINE_BYTES
from hlo_inspect.workloads.totals import KIND_NAMES, UPDATE, PartialSum, WorkloadTotals
from hlo_inspect.workloads.vocabulary import FORWARD_IN_BACKWARD, GROUPS, PASSES, POLICIES
from hlo_inspect.workloads.writer import WRITTEN

_KINDS = frozenset(KIND_NAMES)
_PASSES = frozenset(PASSES)
_GROUPS = frozenset(GROUPS)


class WorkloadFile(WorkloadPass):
    """A network simulator's workload file: totals by pass, kind and group; the same rows in another dialect.

    Reads the files of ASTRA-sim 1.0, of SimAI, and of aicb, which writes SimAI's. Each row counts once, as in one pass of the
    client. Sizes are bytes in the convention of the file's own client, times are in its unit and never turned into seconds.
    Groups are those that SimAI reads from the words, for its policy HYBRID_TRANSFORMER_FWD_IN_BCKWD.

    With --to the rows are written in another dialect, where they can be said there; where they cannot, the message names what
    would be lost. The file's own dialect gives the same bytes back.
    """

    name = "workload"
    writes = WRITTEN
    specs = (
        FactSpec("workload.dialect", "text", "the client that the header is for", frozenset({"simai", "astra-sim"})),
        FactSpec("workload.policy", "text", "the first word, which says how the model is divided"),
        FactSpec("workload.time_unit", "text", "what the times are counted in", frozenset({"ns", "cycles"})),
        FactSpec("workload.rows", "count", "rows that are there"),
        FactSpec("workload.stated_rows", "count", "the number of rows that the second line states"),
        FactSpec("workload.distinct_rows", "count", "rows that are different"),
        FactSpec("workload.parallelism", "text", "tensor x pipeline x data parallel devices, as 8x16x8"),
        FactSpec("workload.devices", "count", "devices of the job that the header states"),
        FactSpec("workload.<group>.devices", "count", "devices of a group; of pp the stages", _GROUPS | {"pp"}),
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
        notes = [*workload_tables.conventions(totals), *(f"{name}: {_why(name, totals)}" for name in unknown(facts))]
        return Section(facts, _tables(totals), notes, headline(totals))


def _tables(totals: WorkloadTotals) -> Iterator[Table]:
    rows = workload_tables.equal_row_list(totals)
    yield workload_tables.equal_rows(totals, rows)
    yield workload_tables.by_pass(totals)
    yield workload_tables.by_collective(totals)
    yield from workload_tables.unknown_words(totals)
    yield workload_tables.by_group(totals)
    yield workload_tables.by_layer(totals, rows)
    yield workload_tables.header_keys(totals)


def _facts(totals: WorkloadTotals) -> dict[str, Value]:
    workload, parallelism = totals.workload, totals.parallelism
    facts: dict[str, Value] = {
        "workload.dialect": workload.header.dialect,
        "workload.policy": workload.header.policy,
        "workload.time_unit": workload_tables.time_unit(totals),
        "workload.rows": len(workload.rows),
        "workload.stated_rows": workload.stated_rows,
        "workload.distinct_rows": len(workload.distinct),
        "workload.parallelism": parallelism.text,
        "workload.devices": parallelism.devices,
        "workload.pp_comm": workload.header.number(PIPELINE_BYTES),
    }
    facts |= {f"workload.{group}.devices": devices for group, devices in parallelism.sizes.items()}
    for name, found in _sums(totals):
        with_lower_bound(facts, name, found.exact, found.least or None)
    if not totals.has_groups:
        facts |= {f"workload.{group}.bytes": None for group in GROUPS}
    return facts


def _sums(totals: WorkloadTotals) -> Iterator[tuple[str, PartialSum]]:
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


def _why(name: str, totals: WorkloadTotals) -> str:
    """Why a fact is not known."""
    header = totals.workload.header
    if name == "workload.stated_rows":
        return "the line after the first holds no number"
    if name in ("workload.parallelism", "workload.devices", "workload.pp_comm") or name.endswith(".devices"):
        return "the header does not say" if header.policy in POLICIES else f"{header.policy} is no policy that a client knows"
    if name.split(".")[1] in GROUPS and not totals.has_groups:
        return f"SimAI reads groups from the words of {FORWARD_IN_BACKWARD}, and this is {header.policy}"
    return f"the row on line {totals.first_unknown} cannot be read whole"
