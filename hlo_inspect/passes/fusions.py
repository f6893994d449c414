"""Fusions by kind, root and content, the largest by bytes moved; and the custom calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import countable
from hlo_inspect.analysis.cost.kernels import CostsOfRows, CountedCost
from hlo_inspect.analysis.fusion_contents import CUSTOM_CALL, FUSION, OPCODES, Fusion, fusion_at
from hlo_inspect.figure import Number, Quantity, least, multiply
from hlo_inspect.figure import total as sum_figures
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.module import Computation, count_opcodes
from hlo_inspect.hlo.opcodes import is_marker
from hlo_inspect.hlo.values.op_names import Origin
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Fact, FactSheet, Pass, bounded, specs_of
from hlo_inspect.passes.custom_calls import BY_TARGET, MOVED_BYTES, custom_calls_by_target
from hlo_inspect.passes.instruction_rows import CALL_STACKS, group_rows, joined_name, stacks_of
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Table, TablePlace, Value
from hlo_inspect.report.table_spec import CountedRows, TableSpec, is_member

KINDS = frozenset({"kLoop", "kInput", "kOutput", "kCustom"})


def _sum_of_kinds(count: str) -> Callable[[Context], int]:
    return lambda context: sum(map(attrgetter(count), context.fusion_kinds))


def _markers(context: Context) -> int:
    return sum(count for target, count in context.custom_call_targets.items() if is_marker(target))


_COUNT = Fact("fusions.count", "count", "fusion instructions in all computations", _sum_of_kinds("members"))
_COUNT_OF_KIND = Fact("fusions.kind.<kind>", "count", "fusions of a kind", int, KINDS)
_OTHER_COUNTS = (
    Fact("fusions.multi_output_count", "count", "fusions whose root is a tuple", _sum_of_kinds("multi_output")),
    Fact(
        "custom_calls.count", "count", "custom-call instructions in all computations", lambda c: c.custom_call_targets.total()
    ),
    Fact("custom_calls.marker_count", "count", "custom calls that compute and move nothing themselves", _markers),
)
_COUNT_OF_TARGET = Fact("custom_calls.target.<target>", "count", "custom calls of a target", int)


def _tables(context: Context) -> Iterator[Table]:
    yield from fusion_tables(context)
    yield from custom_calls_by_target(context, with_cost=True)
    yield from stacks_of((fusion.view.metadata(fusion.row) for fusion in context.fusions), context.module.frames)


class _FusionStep(NamedTuple):
    """The runs, FLOPs and bytes of fusions in one step."""

    runs: Quantity
    flops: Quantity
    size: Quantity

    def times(self, count: int) -> _FusionStep:
        """Return the figures of `count` fusions."""
        return _FusionStep(*[multiply(figure, count) for figure in self])


class _FusionForm(NamedTuple):
    """The properties that equal fusions share. `root` and `instructions` are those of the fused computation.

    `weight` only orders rows: for a fusion that does not run or is inside of another, it is the sizes of its arrays.
    """

    kind: str
    operand_bytes: int | None
    result_bytes: int | None
    shape: str
    outputs: int
    is_multi_output: bool
    root: str | None
    instructions: int | None
    source: str
    per_step: _FusionStep
    weight: tuple[Number, int]


class _FusionRow(NamedTuple):
    """A fusion, with the values that all tables need of it. `callee` is the fused computation, None if the text lacks it."""

    name: str
    line: int
    computation: str
    callee: Computation | None
    form: _FusionForm
    op_name: str

    @property
    def per_step(self) -> _FusionStep:
        return self.form.per_step


class _EqualFusions(NamedTuple):
    """The fusions of one form, and the sum of their costs in one step. `rows` are empty if no table has names."""

    form: _FusionForm
    sites: int
    per_step: _FusionStep
    rows: Sequence[_FusionRow] = ()


def fusion_tables(context: Context) -> Iterator[Table]:
    """Yield the tables of fusions, merged fusions and kinds, those with most bytes first; of roots; and of the content."""
    fusions = list(_rows(context))
    rows = sorted(fusions, key=_WEIGHT, reverse=True)
    yield _FUSIONS.of(rows)
    groups = group_rows(rows, lambda row: id(row.form))
    equal = [_EqualFusions(same[0].form, len(same), same[0].per_step.times(len(same)), same) for same in groups]
    by_size = sorted(equal, key=lambda group: (least(group.per_step.size), group.form.weight[1] * group.sites), reverse=True)
    yield _FUSION_GROUPS.of(by_size)
    yield _by_kind_of_step(equal)
    roots = Counter([(row.form.kind, row.form.root) for row in fusions])
    yield _FUSIONS_BY_ROOT.of(roots.most_common())
    fused = {row.callee.name: row.callee for row in fusions if row.callee is not None}
    yield _FUSION_CONTENT.of(count_opcodes(fused.values()).most_common())


class _Forms:
    """The forms of fusions, found once for those of equal class, cost and source in a computation."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._by_key: dict[tuple[object, ...], _FusionForm] = {}
        self._shared: dict[_FusionForm, _FusionForm] = {}

    def get(self, fusion: Fusion, cost: CountedCost | None, source: str) -> _FusionForm:
        """Return the form of a fusion with its cost, if it runs by itself."""
        key = fusion.view, self._context.views.classes.of_rows(fusion.view)[fusion.row], id(cost), source
        form = self._by_key.get(key)
        if form is None:
            form = self._find(fusion, cost, source)
            form = self._by_key[key] = self._shared.setdefault(form, form)
        return form

    def _find(self, fusion: Fusion, cost: CountedCost | None, source: str) -> _FusionForm:
        moved, result_bytes, callee = fusion.operand_bytes, fusion.result_bytes, fusion.callee
        root, instructions = (None, None) if callee is None else (callee.root_opcode, len(callee.opcodes))
        per_step = _step_traffic(self._context, fusion.view.computation.name, cost)
        weight = least(per_step.size), (moved or 0) + (result_bytes or 0)
        of_result = (result_bytes, str(fusion.shape), fusion.outputs, fusion.is_multi_output)
        return _FusionForm(fusion.kind, moved, *of_result, root, instructions, source, per_step, weight)


def _rows(context: Context) -> Iterator[_FusionRow]:
    """Yield the fusions in the order of the text; those with equal properties share one form."""
    forms, costs = _Forms(context), CostsOfRows(context.cost, context.call_graph)
    for fusion in context.fusions:
        view, row = fusion.view, fusion.row
        cost = costs.get(view, row)
        source, op_name = _place_in_program(context, fusion)
        form = forms.get(fusion, cost, source)
        yield _FusionRow(fusion.name, view.lines[row], view.computation.name, fusion.callee, form, op_name)


def _step_traffic(context: Context, computation: str, cost: CountedCost | None) -> _FusionStep:
    runs = countable(context.call_graph.runs(computation))
    if context.module.entry is None:  # so it is unknown which computations run
        return _FusionStep(runs, runs, runs)
    return _FusionStep(runs, *((0, 0) if cost is None else (cost.of_step("flops"), cost.of_step("bytes"))))


def _place_in_program(context: Context, fusion: Fusion) -> tuple[str, str]:
    """Return the source and `op_name` of a fusion."""
    metadata = fusion.view.metadata(fusion.row)
    origin = Origin() if metadata is None else context.provenances.get(metadata).origin
    return origin.source, origin.op_name


_OF_STEP = (
    bounded("runs", "count", attrgetter("per_step.runs"), 1),
    bounded("flops", "flops", attrgetter("per_step.flops")),
    bounded("bytes", "bytes", attrgetter("per_step.size"), page_name="bytes_accessed", meaning=MOVED_BYTES),
)


_WEIGHT = attrgetter("form.weight")
_KIND_AS_PRINTED = "kind that XLA prints, such as `kLoop`"
_KIND = Column("kind", detail=1, members=KINDS, meaning=_KIND_AS_PRINTED, get=attrgetter("form.kind"))
_ROOT = Column("root", detail=1, get=attrgetter("form.root"))
_SOURCE = Column("source", detail=2, get=attrgetter("form.source"))


def _is_several(value: Value, _: str) -> bool:
    return isinstance(value, int) and value > 1


_FUSIONS = TableSpec(
    "fusions",
    "Fusions of one step, by bytes accessed",
    TablePlace("fusions", "Fusions", "single", 1),
    in_store=True,
    assertable=True,
    counts=(
        CountedRows(r"fusions\.kind\.(.+)", (("kind", is_member),)),
        CountedRows(r"fusions\.multi_output_count", (("outputs", _is_several),)),
    ),
    page_as="fusion_groups",
).with_columns(
    Column("name"),
    _KIND,
    _ROOT,
    *_OF_STEP,
    Column("instructions", "count", summed=True, detail=3, get=attrgetter("form.instructions")),
    Column("outputs", "count", summed=True, detail=4, meaning="number of results", get=attrgetter("form.outputs")),
    Column("operand_bytes", "bytes", summed=True, detail=5, get=attrgetter("form.operand_bytes")),
    Column("result_bytes", "bytes", summed=True, detail=5, get=attrgetter("form.result_bytes")),
    Column("computation", detail=8),
    Column("op_name", detail=6),
    _SOURCE,
    Column("line", "number", detail=7),
)
_FUSION_GROUPS = TableSpec(
    "fusion_groups", "Fusions of one step, merged, by bytes accessed", TablePlace("fusions", "Fusions", "merged")
).with_columns(
    Column("name", width=28, get=lambda group: joined_name([row.name for row in group.rows])),
    _KIND,
    _ROOT,
    Column("shape", detail=9, get=attrgetter("form.shape")),
    Column("sites", "count", summed=True, detail=2),
    *_OF_STEP,
    Column("instructions", "count", detail=3, get=attrgetter("form.instructions")),
    _SOURCE,
)


def fusions_by_kind(context: Context, *, with_cost: bool) -> Table:
    """Return one row per kind: the cost of its fusions in one step, or its fusions counted as they are printed."""
    if with_cost:
        return _by_kind_of_step(sorted(_equal_fusions(context), key=_WEIGHT, reverse=True))
    kinds = sorted(context.fusion_kinds, key=attrgetter("members"), reverse=True)
    return _FUSIONS_BY_KIND.of(
        kinds, title="Fusions by kind, each site once", columns=_FUSIONS_BY_KIND.columns[: len(_AS_PRINTED)]
    )


def _equal_fusions(context: Context) -> Iterator[_EqualFusions]:
    """Yield the fusions of equal class and cost, whatever their names and sources are."""
    forms, costs = _Forms(context), CostsOfRows(context.cost, context.call_graph)
    counts: Counter[tuple[View, int, int]] = Counter()
    first: dict[tuple[View, int, int], tuple[int, CountedCost | None]] = {}
    for view, row in context.views.rows_with(FUSION):
        cost = costs.get(view, row)
        key = view, context.views.classes.of_rows(view)[row], id(cost)
        counts[key] += 1
        first.setdefault(key, (row, cost))
    for key, sites in counts.items():
        row, cost = first[key]
        form = forms.get(fusion_at(context.views, key[0], row), cost, "")
        yield _EqualFusions(form, sites, form.per_step.times(sites))


def _by_kind_of_step(groups: Sequence[_EqualFusions]) -> Table:
    return _FUSIONS_BY_KIND.of(map(_sum_of_kind, group_rows(groups, attrgetter("form.kind"))))


class _OfKind(NamedTuple):
    """The fusions of a kind; the instructions that they fuse, their bytes and their figures of one step."""

    kind: str
    members: int
    multi_output: int
    instructions: int | None
    operand_bytes: int | None
    result_bytes: int | None
    per_step: _FusionStep


def _sum_of_kind(groups: Sequence[_EqualFusions]) -> _OfKind:
    def total_of(size: Callable[[_FusionForm], int | None]) -> int | None:
        return total(None if (size_of_one := size(group.form)) is None else size_of_one * group.sites for group in groups)

    return _OfKind(
        groups[0].form.kind,
        sum(group.sites for group in groups),
        sum(group.sites for group in groups if group.form.is_multi_output),
        total_of(attrgetter("instructions")),
        total_of(attrgetter("operand_bytes")),
        total_of(attrgetter("result_bytes")),
        _FusionStep(*map(sum_figures, zip(*(group.per_step for group in groups), strict=True))),
    )


_AS_PRINTED = (
    Column("kind", meaning=_KIND_AS_PRINTED, get=lambda kind: kind.kind or "(none printed)"),
    Column("count", "count", summed=True, meaning="number of fusions", get=attrgetter("members")),
    Column("multi_output", "count", summed=True, detail=3, meaning="fusions with several results"),
)
_FUSIONS_BY_KIND = TableSpec(
    "fusions_by_kind", "Fusions of one step by kind", TablePlace("fusions", "Fusions", "by kind", 2)
).with_columns(
    *_AS_PRINTED,
    *_OF_STEP,
    Column("instructions", "count", summed=True, detail=4),
    Column("operand_bytes", "bytes", summed=True, detail=9),
    Column("result_bytes", "bytes", summed=True, detail=9),
)
_FUSIONS_BY_ROOT = TableSpec(
    "fusions_by_root", "Fusions by root", TablePlace("fusions", "Fusions", "by root", 3), page_rows=12
).with_columns(
    Column("kind", meaning=_KIND_AS_PRINTED, get=lambda row: row[0][0]),
    Column("root", get=lambda row: row[0][1]),
    Column("count", "count", summed=True, meaning="number of fusions", get=itemgetter(1)),
)
_FUSION_CONTENT = TableSpec(
    "fusion_content", "Opcodes inside fusions", TablePlace("fusions", "Fusions", "by opcode inside", 4), page_rows=12
).with_columns(
    Column("opcode", get=itemgetter(0)),
    Column("count", "count", summed=True, meaning="instructions of this opcode inside fusions", get=itemgetter(1)),
)


class Fusions(Pass):
    """List fusions by kind, root and content, the largest by bytes accessed; custom calls by target.

    Counts cover all computations. The root is that of the fused computation; if it is a tuple, the fusion is multi-output.
    FLOPs and bytes are those of all runs in a step by XLA's cost model. Of an array that is sliced or updated in place, only
    that slice counts. A fusion inside another accesses no memory by itself. Operand and result bytes are those of one run,
    computed from the shapes.
    """

    name = "fusions"
    wants = Wants(opcodes=OPCODES, checked=True)
    table_wants = KERNEL_WANTS | Wants(operands=CUSTOM_CALL)
    specs = specs_of((_COUNT, _COUNT_OF_KIND, *_OTHER_COUNTS, _COUNT_OF_TARGET))
    tables = (_FUSIONS, _FUSION_GROUPS, _FUSIONS_BY_KIND, _FUSIONS_BY_ROOT, _FUSION_CONTENT, *BY_TARGET, CALL_STACKS)

    def run(self, context: Context) -> Section:
        facts = FactSheet()
        facts.put_all((_COUNT,), context)
        kinds = dict.fromkeys(KINDS, 0) | {kind.kind: kind.members for kind in context.fusion_kinds}
        for kind, count in sorted(kinds.items()):
            facts.put_all((_COUNT_OF_KIND,), count, kind)
        facts.put_all(_OTHER_COUNTS, context)
        for target, count in sorted(context.custom_call_targets.items()):
            facts.put_all((_COUNT_OF_TARGET,), count, target)
        return Section(facts.values, _tables(context))
