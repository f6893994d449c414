"""The collectives of a workload file, as far as they mean what those of a module mean."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.passes import workload_tables
from hlo_inspect.passes.base import WorkloadPass, unknown, with_lower_bound
from hlo_inspect.report.model import FactSpec, Section, Table, Value
from hlo_inspect.workloads.totals import PartialSum, WorkloadTotals
from hlo_inspect.workloads.vocabulary import GROUPS, HLO_KINDS

_KINDS = frozenset(COLLECTIVE_KINDS)
_GROUPS = frozenset(GROUPS)


class WorkloadCollectives(WorkloadPass):
    """The collectives of a workload file: kind, size, group, pass; each runs once in one pass over the rows.

    Operand bytes are sizes in the convention of the file's own client, wire bytes what one device has to send with a
    bandwidth-optimal algorithm, where the header says how many devices a group has.
    """

    name = "collectives"
    specs = (
        FactSpec("collectives.count", "count", "collectives that a client knows, by their places in the text"),
        FactSpec("collectives.operand_bytes", "bytes", "their sizes"),
        FactSpec("collectives.executed_count", "count", "how often they run in one pass over the rows"),
        FactSpec("collectives.executed_operand_bytes", "bytes", "their sizes in one pass"),
        FactSpec("collectives.executed_wire_bytes", "bytes", "bytes that one device has to send for them in one pass"),
        FactSpec("collectives.<kind>.count", "count", "collectives of a kind", _KINDS),
        FactSpec("collectives.<kind>.operand_bytes", "bytes", "their sizes", _KINDS),
        FactSpec("collectives.<kind>.executed_count", "count", "how often those of a kind run in one pass", _KINDS),
        FactSpec("collectives.<kind>.executed_operand_bytes", "bytes", "their sizes in one pass", _KINDS),
        FactSpec("collectives.<kind>.executed_wire_bytes", "bytes", "bytes sent for them in one pass", _KINDS),
        FactSpec("collectives.axis.<axis>.executed_count", "count", "how often those of a group of devices run", _GROUPS),
        FactSpec("collectives.axis.<axis>.executed_operand_bytes", "bytes", "their sizes in one pass", _GROUPS),
        FactSpec("collectives.axis.<axis>.executed_wire_bytes", "bytes", "bytes sent for them in one pass", _GROUPS),
    )

    def run(self, totals: WorkloadTotals) -> Section:
        facts: dict[str, Value] = {}
        for name, found in _sums(totals):
            with_lower_bound(facts, name, found.exact, found.least or None)
        notes = [*workload_tables.conventions(totals), *(f"{name}: {_why(totals)}" for name in unknown(facts))]
        return Section(facts, _tables(totals), notes, workload_tables.headline(totals))


def _tables(totals: WorkloadTotals) -> Iterator[Table]:
    yield workload_tables.cells(totals)
    yield workload_tables.by_collective(totals)
    yield from workload_tables.unknown_words(totals)
    yield workload_tables.by_group(totals)


def _sums(totals: WorkloadTotals) -> Iterator[tuple[str, PartialSum]]:
    yield from _of("collectives", totals.count(), totals.size(), totals.wire())
    for kind, opcode in HLO_KINDS.items():
        yield from _of(f"collectives.{opcode}", totals.count(kind=kind), totals.size(kind=kind), totals.wire(kind=kind))
    for group in GROUPS if totals.has_groups else ():
        name = f"collectives.axis.{group}.executed"
        yield f"{name}_count", totals.count(group=group)
        yield f"{name}_operand_bytes", totals.size(group=group)
        yield f"{name}_wire_bytes", totals.wire(group=group)


def _of(name: str, count: PartialSum, size: PartialSum, wire: PartialSum) -> Iterator[tuple[str, PartialSum]]:
    """The facts of collectives, each at one place and run once."""
    yield f"{name}.count", count
    yield f"{name}.operand_bytes", size
    yield f"{name}.executed_count", count
    yield f"{name}.executed_operand_bytes", size
    yield f"{name}.executed_wire_bytes", wire


def _why(totals: WorkloadTotals) -> str:
    if totals.first_unknown is not None:
        return f"the row on line {totals.first_unknown} cannot be read whole"
    if totals.workload.header.dialect != "simai":
        return "the header of an ASTRA-sim file does not say how many devices a group has"
    return "the header does not say how many devices each group has, or a word names no group"
