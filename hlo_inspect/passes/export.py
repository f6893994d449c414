"""The step of a module as input of a network simulator: content of the files, and what they cannot express."""

from __future__ import annotations

from operator import attrgetter

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.export.step_export import StepExport, step_export
from hlo_inspect.export.written.chakra_export import ChakraExport
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.passes.base import Fact, FactSheet, Pass, specs_of
from hlo_inspect.passes.export.export_tables import COMMUNICATION, NOT_EXPRESSED, contained, headline, notes
from hlo_inspect.report.model import Section

_KINDS = frozenset(COLLECTIVE_KINDS)


def _files(export: StepExport) -> int:
    return len(export.traces.classes) if isinstance(export, ChakraExport) else 1


def _not_expressed(export: StepExport) -> int:
    return len(export.not_expressed)


def _nodes(export: StepExport) -> int:
    if isinstance(export, ChakraExport):
        return max(map(export.traces.node_count, export.traces.classes))
    return len(export.rows)


_FACTS = (
    Fact("export.ranks", "count", "ranks of the job: replicas x partitions x slices", attrgetter("ranks")),
    Fact("export.files", "count", "distinct files of ranks, or 1 of a text format", _files),
    Fact("export.nodes", "count", "nodes of the rank with most nodes, or rows of a text format", _nodes),
    Fact("export.not_expressed_count", "count", "instructions without a node or cell", _not_expressed),
)
_OF_KIND = (
    Fact(
        "export.<kind>.executed_count",
        "count",
        "runs of a kind in one step that the files hold",
        lambda rows: sum(row.runs for row in rows),
        _KINDS,
    ),
    Fact(
        "export.<kind>.executed_operand_bytes",
        "bytes",
        "operand bytes of these runs",
        lambda rows: sum(row.executed_operand_bytes for row in rows),
        _KINDS,
    ),
)


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
    specs = specs_of(_FACTS, _OF_KIND)
    tables = (COMMUNICATION, NOT_EXPRESSED)

    def run(self, context: Context) -> Section:
        export, facts = context.once(step_export), FactSheet()
        facts.put_all(_FACTS, export)
        rows = contained(export)
        for kind in COLLECTIVE_KINDS:
            facts.put_all(_OF_KIND, [row for row in rows if row.kind == kind], kind)
        tables = [COMMUNICATION.of(rows), NOT_EXPRESSED.of(export.not_expressed)]
        return Section(facts.values, tables, notes(context, export), headline(context, export))
