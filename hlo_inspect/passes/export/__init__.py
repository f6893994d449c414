"""The step of a module as input of a network simulator: content of the files, and what they cannot express."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.export.chakra_export import ChakraExport
from hlo_inspect.export.step_export import StepExport, step_export
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.export.tables import (
    communication_table,
    contained,
    headline,
    not_expressed_table,
    notes,
)
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Table, Value

_KINDS = frozenset(COLLECTIVE_KINDS)


class Export(Pass):
    """Write a step as input of a network simulator: ASTRA-sim 2 (Chakra), SimAI or ASTRA-sim 1.0.

    DUMP is a scheduled, optimized module, whose loops are unrolled. With --to chakra, the folder of -o gets a trace for each
    rank and comm_groups.json. A start and its done are one node, with the kernels between them beside it. With --profile
    compute nodes have the estimated time, else FLOPs and bytes for the simulator's own roofline.

    With --to simai or astra-sim, the file of -o gets a row for each layer, scope or iteration. It needs --profile, and --axis
    for the mesh axes. Collectives stand in the cell that they block, those of DP in cells of the weight gradient.

    What a format cannot express is listed with its runs and bytes. Files and list add up to the module's collectives.
    """

    name = "export"
    findings_of = "none"
    asks_phases = True
    wants = KERNEL_WANTS | phases.WANTS
    specs = (
        FactSpec("export.ranks", "count", "ranks of the job: replicas x partitions x slices"),
        FactSpec("export.files", "count", "distinct files of ranks, or 1 of a text format"),
        FactSpec("export.nodes", "count", "nodes of the rank with most nodes, or rows of a text format"),
        FactSpec("export.not_expressed_count", "count", "instructions without a node or cell"),
        FactSpec("export.<kind>.executed_count", "count", "runs of a kind in one step that the files hold", _KINDS),
        FactSpec("export.<kind>.executed_operand_bytes", "bytes", "operand bytes of these runs", _KINDS),
    )

    def run(self, context: Context) -> Section:
        export = context.once(step_export)
        return Section(_facts(export), _tables(export), notes(context, export), headline(context, export))


def _facts(export: StepExport) -> dict[str, Value]:
    facts: dict[str, Value] = {"export.ranks": export.ranks, "export.not_expressed_count": len(export.not_expressed)}
    if isinstance(export, ChakraExport):
        traces = export.traces
        facts |= {"export.files": len(traces.classes), "export.nodes": max(map(traces.node_count, traces.classes))}
    else:
        facts |= {"export.files": 1, "export.nodes": len(export.rows)}
    for kind in COLLECTIVE_KINDS:
        rows = [row for row in contained(export) if row.kind == kind]
        facts[f"export.{kind}.executed_count"] = sum(row.runs for row in rows)
        facts[f"export.{kind}.executed_operand_bytes"] = sum(row.executed_operand_bytes for row in rows)
    return facts


def _tables(export: StepExport) -> Iterator[Table]:
    yield communication_table(export)
    yield not_expressed_table(export.not_expressed)
