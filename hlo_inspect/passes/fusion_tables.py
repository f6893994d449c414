"""The tables of fusions: one by one, equal ones together, and by kind, with what they cost in one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.calls import NOTHING, Bounds
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.executed import countable
from hlo_inspect.analysis.cost.kernels import Kernel, sum_of_step
from hlo_inspect.analysis.cost.labels import NOT_PRINTED
from hlo_inspect.analysis.fusions import Fusion
from hlo_inspect.hlo.shapes import total
from hlo_inspect.passes.grouping import group_rows, joined_name
from hlo_inspect.report.model import Column, Table, Unit


class _Fusions(NamedTuple):
    """Fusions of one row: the first with what it fuses and where it comes from, and their runs, FLOPs and bytes in one step.

    `root` and `instructions` are those of the fused computation.
    """

    fusion: Fusion
    members: Sequence[Fusion]
    root: str | None
    instructions: int | None
    source: str
    op_name: str
    runs: Bounds
    flops: Bounds
    size: Bounds

    @property
    def key(self) -> object:
        """What equal fusions have in common."""
        fusion, shape = self.fusion, self.fusion.instruction.shape
        return (fusion.kind, fusion.operand_bytes, str(shape), self.root, self.instructions, self.source, *self[6:])


def fusion_tables(context: Context) -> Iterator[Table]:
    """One row a fusion, equal ones in one row, and all of a kind; what moves most bytes comes first."""
    rows = sorted(_rows(context), key=_weight, reverse=True)
    title = "Fusions of one step, by bytes moved"
    yield Table.of("fusions", title, _COLUMNS, rows, page_as="fusion_groups")
    together = sorted(map(_sum, group_rows(rows, lambda row: row.key)), key=_weight, reverse=True)
    yield Table.of("fusion_groups", "Fusions of one step, equal ones together, by bytes moved", _GROUPS, together)
    yield _by_kind_of_step(rows)


def _rows(context: Context) -> Iterator[_Fusions]:
    kernels = {kernel.instruction: kernel for kernel in context.kernels.found if kernel.kind == "fusion"}
    runs: dict[str, Bounds] = {}
    known: dict[int, tuple[Bounds, Bounds]] = {}  # fusions that cost the same share their parts
    for fusion in context.fusions:
        name = fusion.instruction.computation.name
        if name not in runs:
            runs[name] = countable(context.call_graph.runs(name).bounds)
        kernel = kernels.get(fusion.instruction)
        parts = () if kernel is None else kernel.parts
        figures = known.get(id(parts))
        if context.module.entry is None:  # nothing says what runs
            figures = runs[name], runs[name]
        elif figures is None:
            figures = known[id(parts)] = sum_of_step(parts, "flops"), sum_of_step(parts, "bytes")
        callee = fusion.callee
        root, instructions = (None, None) if callee is None else (callee.root_opcode, len(callee.opcodes))
        source, op_name = _place_in_program(fusion, kernel)
        yield _Fusions(fusion, (fusion,), root, instructions, source, op_name, runs[name], *figures)


def _place_in_program(fusion: Fusion, kernel: Kernel | None) -> tuple[str, str]:
    """Source and `op_name` of a fusion. Its kernel has them, where it is one: metadata is not looked up once more."""
    if kernel is None:
        return fusion.origin.source, fusion.origin.op_name
    labels = kernel.labels
    return "" if labels.source == NOT_PRINTED else labels.source, labels.op_name


def _weight(row: _Fusions) -> tuple[int, int]:
    """For the order only: of a fusion that does not run, and of those inside of others, the sizes of its arrays."""
    return row.size.least, sum([fusion.moved for fusion in row.members])


def _sum(rows: Sequence[_Fusions]) -> _Fusions:
    first, times = rows[0], Bounds.exactly(len(rows))
    runs, flops, size = (figure.times(times) for figure in (first.runs, first.flops, first.size))  # all have the same
    return first._replace(members=[row.fusion for row in rows], runs=runs, flops=flops, size=size)


def _bounded(name: str, unit: Unit, figure: str, detail: int = 0) -> tuple[Column, Column]:
    column = Column(name, unit, summed=True, detail=detail, get=attrgetter(f"{figure}.exact"))
    return column, column.lower_bound(attrgetter(f"{figure}.least"))


_OF_STEP = (
    *_bounded("runs", "count", "runs", detail=1),
    *_bounded("flops", "flops", "flops"),
    *_bounded("bytes", "bytes", "size"),
)
_SOURCE = Column("source", detail=2, get=attrgetter("source"))

_COLUMNS = (
    Column("name", get=attrgetter("fusion.instruction.name")),
    Column("kind", detail=1, get=attrgetter("fusion.kind")),
    Column("root", detail=1, get=attrgetter("root")),
    *_OF_STEP,
    Column("instructions", "count", summed=True, detail=3, get=attrgetter("instructions")),
    Column("outputs", "count", summed=True, detail=4, get=attrgetter("fusion.outputs")),
    Column("operand_bytes", "bytes", summed=True, detail=5, get=attrgetter("fusion.operand_bytes")),
    Column("result_bytes", "bytes", summed=True, detail=5, get=attrgetter("fusion.result_bytes")),
    Column("computation", detail=8, get=attrgetter("fusion.instruction.computation.name")),
    Column("op_name", detail=6, get=attrgetter("op_name")),
    _SOURCE,
    Column("line", "number", detail=7, get=attrgetter("fusion.instruction.line")),
)

_GROUPS = (
    Column("name", width=28, get=lambda row: joined_name([fusion.instruction.name for fusion in row.members])),
    Column("kind", detail=1, get=attrgetter("fusion.kind")),
    Column("root", detail=1, get=attrgetter("root")),
    Column("shape", detail=9, get=lambda row: str(row.fusion.instruction.shape)),
    Column("sites", "count", summed=True, detail=2, get=lambda row: len(row.members)),
    *_OF_STEP,
    Column("instructions", "count", detail=3, get=attrgetter("instructions")),
    _SOURCE,
)


def by_kind(context: Context, *, with_cost: bool) -> Table:
    """One row a kind: with what its fusions cost in one step, or counted as they are printed."""
    if with_cost:
        return _by_kind_of_step(sorted(_rows(context), key=_weight, reverse=True))
    kinds = [_OfKind(fusions) for fusions in group_rows(context.fusions, attrgetter("kind"))]
    kinds.sort(key=lambda kind: len(kind.fusions), reverse=True)
    return Table.of("fusions_by_kind", "Fusions by kind, each counted once", _KIND, kinds)


def _by_kind_of_step(rows: Sequence[_Fusions]) -> Table:
    kinds = map(_sum_of_kind, group_rows(rows, attrgetter("fusion.kind")))
    return Table.of("fusions_by_kind", "Fusions of one step by kind", _KIND_OF_STEP, kinds)


class _OfKind(NamedTuple):
    """The fusions of a kind, the instructions that they fuse, and their runs, FLOPs and bytes in one step, where asked for."""

    fusions: Sequence[Fusion]
    instructions: int | None = None
    runs: Bounds = NOTHING
    flops: Bounds = NOTHING
    size: Bounds = NOTHING


def _sum_of_kind(rows: Sequence[_Fusions]) -> _OfKind:
    alike = Counter([(row.runs, row.flops, row.size) for row in rows])  # most are like some others
    times = [[figure.times(Bounds.exactly(count)) for figure in figures] for figures, count in alike.items()]
    figures = [reduce(Bounds.plus, column) for column in zip(*times, strict=True)]
    return _OfKind([row.fusion for row in rows], total(row.instructions for row in rows), *figures)


_KIND = (
    Column("kind", get=lambda row: row.fusions[0].kind or "(none printed)"),
    Column("count", "count", summed=True, get=lambda row: len(row.fusions)),
    Column("multi_output", "count", summed=True, detail=3, get=lambda row: sum(f.is_multi_output for f in row.fusions)),
)
_KIND_OF_STEP = (
    *_KIND,
    *_OF_STEP,
    Column("instructions", "count", summed=True, detail=4, get=attrgetter("instructions")),
    Column("operand_bytes", "bytes", summed=True, detail=9, get=lambda row: total(f.operand_bytes for f in row.fusions)),
    Column("result_bytes", "bytes", summed=True, detail=9, get=lambda row: total(f.result_bytes for f in row.fusions)),
)
