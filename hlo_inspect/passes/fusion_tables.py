"""The tables of fusions: one by one, equal ones together, and by kind, with what they cost in one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.calls import Bounds
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.executed import countable
from hlo_inspect.analysis.cost.kernels import CountedCost, Kernel, sum_of_step
from hlo_inspect.analysis.cost.labels import printed
from hlo_inspect.analysis.fusions import Fusion, fused_opcodes
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.shapes import total
from hlo_inspect.passes.grouping import group_rows, joined_name
from hlo_inspect.report.model import Column, Table, Unit


class _FusionStep(NamedTuple):
    """What fusions run, compute and move in one step."""

    runs: Bounds
    flops: Bounds
    size: Bounds

    def times(self, count: int) -> _FusionStep:
        """The same for `count` fusions."""
        times = Bounds.exactly(count)
        return _FusionStep(*[figure.times(times) for figure in self])


class _FusionForm(NamedTuple):
    """What equal fusions have in common. `root` and `instructions` are those of the fused computation."""

    kind: str
    operand_bytes: int | None
    shape: str
    root: str | None
    instructions: int | None
    source: str
    of_step: _FusionStep


class _FusionRow(NamedTuple):
    """One fusion, with what is looked up of it once for all tables."""

    fusion: Fusion
    callee: Computation | None
    form: _FusionForm
    result_bytes: int | None
    op_name: str

    @property
    def moved(self) -> int:
        """Bytes of operands and results; one that is not known counts nothing."""
        return (self.form.operand_bytes or 0) + (self.result_bytes or 0)


class _EqualFusions(NamedTuple):
    """The fusions of one form, and what they cost together in one step."""

    form: _FusionForm
    rows: Sequence[_FusionRow]
    of_step: _FusionStep


def fusion_tables(context: Context) -> Iterator[Table]:
    """One row a fusion, equal ones in one row, and all of a kind, what moves most bytes first; by root; what is inside."""
    found = list(_rows(context))
    rows = sorted(found, key=_weight, reverse=True)
    yield Table.of("fusions", "Fusions of one step, by bytes moved", _COLUMNS, rows, page_as="fusion_groups")
    groups = [
        _EqualFusions(same[0].form, same, same[0].form.of_step.times(len(same)))
        for same in group_rows(rows, attrgetter("form"))
    ]
    groups.sort(key=lambda group: (group.of_step.size.least, sum([row.moved for row in group.rows])), reverse=True)
    yield Table.of("fusion_groups", "Fusions of one step, equal ones together, by bytes moved", _GROUPS, groups)
    yield _by_kind_of_step(rows)
    yield _by_root(found)
    yield _content(found)


def _rows(context: Context) -> Iterator[_FusionRow]:
    kernels = {kernel.instruction: kernel for kernel in context.kernels.found if kernel.kind == "fusion"}
    known: dict[tuple[str, int], _FusionStep] = {}  # fusions that cost the same share their parts
    for fusion in context.fusions:
        name, kernel, callee = fusion.instruction.computation.name, kernels.get(fusion.instruction), fusion.callee
        parts = () if kernel is None else kernel.parts
        of_step = known.get((name, id(parts)))
        if of_step is None:
            of_step = known[name, id(parts)] = _of_all_runs(context, name, parts)
        root, instructions = (None, None) if callee is None else (callee.root_opcode, len(callee.opcodes))
        source, op_name = _place_in_program(fusion, kernel)
        shape = str(fusion.instruction.shape)
        form = _FusionForm(fusion.kind, fusion.operand_bytes, shape, root, instructions, source, of_step)
        yield _FusionRow(fusion, callee, form, fusion.result_bytes, op_name)


def _of_all_runs(context: Context, computation: str, parts: Sequence[CountedCost]) -> _FusionStep:
    runs = countable(context.call_graph.runs(computation).bounds)
    if context.module.entry is None:  # nothing says what runs
        return _FusionStep(runs, runs, runs)
    return _FusionStep(runs, sum_of_step(parts, "flops"), sum_of_step(parts, "bytes"))


def _place_in_program(fusion: Fusion, kernel: Kernel | None) -> tuple[str, str]:
    """Source and `op_name` of a fusion. Its kernel has them, where it is one: metadata is not looked up once more."""
    if kernel is None:
        return fusion.origin.source, fusion.origin.op_name
    return printed(kernel.labels.source), kernel.labels.op_name


def _weight(row: _FusionRow) -> tuple[int, int]:
    """For the order only: of a fusion that does not run, and of those inside of others, the sizes of its arrays."""
    return row.form.of_step.size.least, row.moved


def _bounded(name: str, unit: Unit, figure: str, detail: int = 0) -> tuple[Column, Column]:
    column = Column(name, unit, summed=True, detail=detail, get=attrgetter(f"{figure}.exact"))
    return column, column.lower_bound(attrgetter(f"{figure}.least"))


def _of_step(of_step: str) -> tuple[Column, ...]:
    return (
        *_bounded("runs", "count", f"{of_step}.runs", detail=1),
        *_bounded("flops", "flops", f"{of_step}.flops"),
        *_bounded("bytes", "bytes", f"{of_step}.size"),
    )


_SOURCE = Column("source", detail=2, get=attrgetter("form.source"))

_COLUMNS = (
    Column("name", get=attrgetter("fusion.instruction.name")),
    Column("kind", detail=1, get=attrgetter("form.kind")),
    Column("root", detail=1, get=attrgetter("form.root")),
    *_of_step("form.of_step"),
    Column("instructions", "count", summed=True, detail=3, get=attrgetter("form.instructions")),
    Column("outputs", "count", summed=True, detail=4, get=attrgetter("fusion.outputs")),
    Column("operand_bytes", "bytes", summed=True, detail=5, get=attrgetter("form.operand_bytes")),
    Column("result_bytes", "bytes", summed=True, detail=5, get=attrgetter("result_bytes")),
    Column("computation", detail=8, get=attrgetter("fusion.instruction.computation.name")),
    Column("op_name", detail=6, get=attrgetter("op_name")),
    _SOURCE,
    Column("line", "number", detail=7, get=attrgetter("fusion.instruction.line")),
)

_GROUPS = (
    Column("name", width=28, get=lambda group: joined_name([row.fusion.instruction.name for row in group.rows])),
    Column("kind", detail=1, get=attrgetter("form.kind")),
    Column("root", detail=1, get=attrgetter("form.root")),
    Column("shape", detail=9, get=attrgetter("form.shape")),
    Column("sites", "count", summed=True, detail=2, get=lambda group: len(group.rows)),
    *_of_step("of_step"),
    Column("instructions", "count", detail=3, get=attrgetter("form.instructions")),
    _SOURCE,
)


def by_kind(context: Context, *, with_cost: bool) -> Table:
    """One row a kind: with what its fusions cost in one step, or counted as they are printed."""
    if with_cost:
        return _by_kind_of_step(sorted(_rows(context), key=_weight, reverse=True))
    kinds = sorted(context.fusion_kinds, key=attrgetter("members"), reverse=True)
    return Table.of("fusions_by_kind", "Fusions by kind, each counted once", _KIND, kinds)


def _by_kind_of_step(rows: Sequence[_FusionRow]) -> Table:
    kinds = map(_sum_of_kind, group_rows(rows, attrgetter("form.kind")))
    return Table.of("fusions_by_kind", "Fusions of one step by kind", _KIND_OF_STEP, kinds)


class _OfKind(NamedTuple):
    """The fusions of a kind; the instructions that they fuse, their bytes and their figures of one step."""

    kind: str
    members: int
    multi_output: int
    instructions: int | None
    operand_bytes: int | None
    result_bytes: int | None
    of_step: _FusionStep


def _sum_of_kind(rows: Sequence[_FusionRow]) -> _OfKind:
    alike = Counter([row.form.of_step for row in rows])  # most are like some others
    times = [of_step.times(count) for of_step, count in alike.items()]
    return _OfKind(
        rows[0].form.kind,
        len(rows),
        sum(row.fusion.is_multi_output for row in rows),
        total(row.form.instructions for row in rows),
        total(row.form.operand_bytes for row in rows),
        total(row.result_bytes for row in rows),
        _FusionStep(*[reduce(Bounds.plus, figures) for figures in zip(*times, strict=True)]),
    )


_KIND = (
    Column("kind", get=lambda kind: kind.kind or "(none printed)"),
    Column("count", "count", summed=True, get=attrgetter("members")),
    Column("multi_output", "count", summed=True, detail=3, get=attrgetter("multi_output")),
)
_KIND_OF_STEP = (
    *_KIND,
    *_of_step("of_step"),
    Column("instructions", "count", summed=True, detail=4, get=attrgetter("instructions")),
    Column("operand_bytes", "bytes", summed=True, detail=9, get=attrgetter("operand_bytes")),
    Column("result_bytes", "bytes", summed=True, detail=9, get=attrgetter("result_bytes")),
)


def _by_root(rows: Sequence[_FusionRow]) -> Table:
    columns = (Column("kind"), Column("root"), Column("count", "count", summed=True))
    counts = Counter([(row.form.kind, row.form.root) for row in rows])
    roots = tuple((kind, root, count) for (kind, root), count in counts.most_common())
    return Table("fusions_by_root", "Fusions by root", columns, roots, page_rows=12)


def _content(rows: Sequence[_FusionRow]) -> Table:
    columns = (Column("opcode"), Column("count", "count", summed=True))
    counts = fused_opcodes(row.callee for row in rows if row.callee is not None)
    return Table("fusion_content", "Inside of fusions", columns, tuple(counts.most_common()), page_rows=12)
