"""The step of a module as input of a network simulator: content of the files, and what they cannot express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.kernel_times import no_bytes_reason
from hlo_inspect.export.plan.kernel_work import named_times
from hlo_inspect.export.plan.not_expressed import NotExpressed
from hlo_inspect.export.plan.plan_nodes import ComputeNode
from hlo_inspect.export.step_export import StepExport, step_export
from hlo_inspect.export.written.chakra_export import ChakraExport
from hlo_inspect.export.written.workload_export import WorkloadExport
from hlo_inspect.figure import Number, or_unknown, total
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.passes.base import Fact, FactSheet, Pass, specs_of
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Column, Unit, number_of
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.workloads.row import PASSES

_KINDS = frozenset(COLLECTIVE_KINDS)


_SECONDS_OF_TICK, _NANOSECOND = 1e-6, 1e-9


class _Contained(NamedTuple):
    """Runs of a kind along an axis in groups of one size that the files hold."""

    kind: str
    axis: str | None
    group_size: int | None
    runs: int
    executed_operand_bytes: int


def _contained(export: StepExport) -> list[_Contained]:
    """Return the communications in the files by kind, axis and size of groups, those with most bytes first."""
    runs: Counter[tuple[str, str | None, int | None]] = Counter()
    sizes: Counter[tuple[str, str | None, int | None]] = Counter()
    for number, communication in enumerate(export.plan.program.communications.listed):
        count = export.plan.runs[number]
        if count:
            key = communication.kind, communication.axis, communication.collective.group_size
            runs[key] += count
            sizes[key] += count * communication.size
    return [_Contained(*key, runs[key], size) for key, size in sizes.most_common()]


_COMMUNICATION = TableSpec("export", "Communication in the files, per rank and step").with_columns(
    Column("kind"),
    Column("axis", optional=True),
    Column("group_size", "number", optional=True),
    Column("runs", "count", summed=True),
    Column("executed_operand_bytes", "bytes", summed=True),
)
_NAME = Column("name", width=24)
_AMOUNTS = Column("runs", "count", summed=True), Column("executed_operand_bytes", "bytes", summed=True)
_REASON = Column("reason", width=30, wraps=True), Column("line", "number", detail=5)
_NOT_EXPRESSED = TableSpec("not_expressed", "Not in the files").with_columns(
    _NAME, Column("kind"), Column("axis", optional=True, detail=1), *_AMOUNTS, *_REASON
)
_ASYNCHRONOUS_WORK = TableSpec("asynchronous_work", "Asynchronous copies and computations not in the files").with_columns(
    _NAME, Column("kind"), *_AMOUNTS, *_REASON
)


def _notes(context: Context, export: StepExport) -> Iterator[str]:
    """Yield what the files take from elsewhere, and what they lack."""
    plan, times = export.plan, named_times(context)
    if not context.module.header.is_scheduled:
        yield "export: the text is no schedule; nodes are in the order of its lines"
    reason = no_bytes_reason(context.module)
    if reason:
        yield f"export: {reason}; export the optimized text instead"
    if times is None:
        yield 'export: compute nodes have no time; simulate with "roofline-enabled": 1, or name a --profile'
    if plan.without_estimate:
        yield f"export: {number_of(len(plan.without_estimate), 'kernel')} without an estimate have their bound"
    if plan.unknown_work:
        yield f"export: the work of {number_of(len(plan.unknown_work), 'kernel')} is unknown and counts as 0"


def _headline(context: Context, export: StepExport) -> Iterator[HeadlineRow]:
    """Yield ranks and nodes, compute, bytes by kind, and what is not expressed."""
    if isinstance(export, ChakraExport):
        yield HeadlineRow("", tuple(_traces(export)))
        yield HeadlineRow("compute", tuple(_compute_of_nodes(context, export)))
    else:
        yield HeadlineRow("", tuple(_workload(export)))
        yield HeadlineRow("compute", tuple(_compute_of_rows(export)))
    yield HeadlineRow("collectives", tuple(_bytes_by_kind(export)))
    yield HeadlineRow("not expressed", tuple(_not_expressed(export.not_expressed)))


def _traces(export: ChakraExport) -> Parts:
    traces = export.traces
    counts = [traces.node_count(rank_class) for rank_class in traces.classes]
    yield from sentence("execution traces for ASTRA-sim 2: {}", Amount(export.ranks, "count", "rank"))
    fewer = (f" ({min(counts):,} on the smallest)",) if min(counts) < max(counts) else ()
    yield from sentence(", {} each", Amount(max(counts), "count", "node"))
    yield from fewer
    yield from sentence(", {}", Amount(len(counts), "count", "distinct file"))
    yield from sentence(", {}", Amount(len(export.groups), "count", "group"))


def _compute_of_nodes(context: Context, export: ChakraExport) -> Parts:
    nodes = [node for node in export.nodes if isinstance(node, ComputeNode)]
    kernels = Amount(export.plan.kernel_runs, "count", "kernel run")
    yield from sentence("{} of {}: ", Amount(len(nodes), "count", "node"), kernels)
    times = named_times(context)
    if times is not None:
        seconds = sum(node.duration for node in nodes) * _SECONDS_OF_TICK
        yield from sentence("{} on {}", Amount(seconds, "seconds"), times.profile.name)
        return
    flops, size = sum(node.flops for node in nodes), sum(node.size for node in nodes)
    yield from sentence("{}, {} accessed", Amount(flops, "flops"), Amount(size, "bytes"))


def _workload(export: WorkloadExport) -> Parts:
    client = {"simai": "SimAI", "astra-sim": "ASTRA-sim 1.0"}[export.dialect]
    yield from sentence("workload for {}: {}", client, Amount(len(export.rows), "count", "row"))
    yield from sentence(" of {}", Amount(len(export.layers), "count", "layer"))
    yield from (f", {word} {export.words.devices(word)}" for word in export.words.axes)
    yield from sentence(" on {}", Amount(export.ranks, "count", "rank"))


def _compute_of_rows(export: WorkloadExport) -> Parts:
    names = [name.replace("_", " ") for name in PASSES]
    times = [sum(row.cells[number][1] or 0 for row in export.rows) for number in range(len(names))]
    yield from sentence("{}", Amount(sum(times) * _NANOSECOND, "seconds"))
    for index, (name, time) in enumerate(zip(names, times, strict=True)):
        yield from sentence(", {} {}" if index else ": {} {}", name, Amount(time * _NANOSECOND, "seconds"))


def _bytes_by_kind(export: StepExport) -> Parts:
    rows = _contained(export)
    total = sum(row.executed_operand_bytes for row in rows)
    yield from sentence("{}, {}", Amount(sum(row.runs for row in rows), "count", "run"), Amount(total, "bytes"))
    by_kind = {kind: sum(row.executed_operand_bytes for row in rows if row.kind == kind) for kind in COLLECTIVE_KINDS}
    listed = [(kind, size) for kind, size in by_kind.items() if any(row.kind == kind for row in rows)]
    for index, (kind, size) in enumerate(listed):
        yield from sentence(", {} {}" if index else ": {} {}", kind, Amount(size, "bytes"))


def _not_expressed(rows: Sequence[NotExpressed]) -> Parts:
    """Yield the runs and bytes of each kind that the files lack."""
    if not rows:
        yield "nothing"
        return
    by_kind: dict[str, list[NotExpressed]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row)
    for index, (kind, own) in enumerate(by_kind.items()):
        runs = _amount([row.runs for row in own], "count", "run")
        size = _amount([row.executed_operand_bytes for row in own], "bytes")
        yield from sentence(", {} of {} ({})" if index else "{} of {} ({})", runs, kind, size)


def _amount(values: Sequence[Number | None], unit: Unit, noun: str = "") -> Amount:
    """Return the sum of values, a lower bound if one is unknown."""
    return Amount(total(or_unknown(value, "a value is unknown") for value in values), unit, noun)


def _files(export: StepExport) -> int:
    return len(export.traces.classes) if isinstance(export, ChakraExport) else 1


def _nodes(export: StepExport) -> int:
    if isinstance(export, ChakraExport):
        return max(map(export.traces.node_count, export.traces.classes))
    return len(export.rows)


def _sum(figure: str) -> Callable[[Sequence[_Contained]], int]:
    return lambda rows: sum(map(attrgetter(figure), rows))


_FACTS = (
    Fact("export.ranks", "count", "ranks of the job: replicas x partitions x slices", attrgetter("ranks")),
    Fact("export.files", "count", "distinct files of ranks, or 1 of a text format", _files),
    Fact("export.nodes", "count", "nodes of the rank with most nodes, or rows of a text format", _nodes),
    Fact("export.not_expressed_count", "count", "instructions without a node or cell", lambda e: len(e.not_expressed)),
)
_OF_KIND = (
    Fact("export.<kind>.executed_count", "count", "runs of a kind in one step that the files hold", _sum("runs"), _KINDS),
    Fact(
        "export.<kind>.executed_operand_bytes", "bytes", "operand bytes of these runs", _sum("executed_operand_bytes"), _KINDS
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
    tables = (_COMMUNICATION, _NOT_EXPRESSED, _ASYNCHRONOUS_WORK)

    def run(self, context: Context) -> Section:
        export, facts = context.once(step_export), FactSheet()
        facts.put_all(_FACTS, export)
        rows = _contained(export)
        for kind in COLLECTIVE_KINDS:
            facts.put_all(_OF_KIND, [row for row in rows if row.kind == kind], kind)
        other_work = [row for row in export.not_expressed if row.is_other_work]
        lacking = [row for row in export.not_expressed if not row.is_other_work]
        tables = [
            _COMMUNICATION.of(rows),
            _NOT_EXPRESSED.of(lacking),
            _ASYNCHRONOUS_WORK.of(other_work, on_page=bool(other_work)),
        ]
        return Section(facts.values, tables, _notes(context, export), _headline(context, export))
