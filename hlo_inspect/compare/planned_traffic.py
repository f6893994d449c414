"""A workload file beside a compiled module: collectives that were planned, and those of a step, by kind and group.

Bytes are those of the file's client. SimAI counts the gathered array of an all-gather, ASTRA-sim the part of one device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.comparison import COMMAND
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.export.plan.axis_words import AxisWords, parse_axis_words
from hlo_inspect.figure import Figure, Quantity, add, exact, known_part, least, multiply, reason, total, unknown
from hlo_inspect.hlo.collective_kinds import KIND_TABLE
from hlo_inspect.passes.base import FactSheet, bounded
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, FactSpec, HeadlineRow, Input, Parts, Report, sentence
from hlo_inspect.report.table import Column, Value
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.workloads.row import HLO_KINDS
from hlo_inspect.workloads.totals import WorkloadTotals

ONLY_PLANNED, ONLY_COMPILED = "only in PLAN", "only in DUMP"
SPECS = (
    FactSpec("diff.planned_count", "count", "collectives of the workload file, each row once"),
    FactSpec("diff.planned_bytes", "bytes", "their bytes, as the file's client counts them"),
    FactSpec("diff.compiled_count", "count", "runs of collectives of the module in one step, without send and recv"),
    FactSpec("diff.compiled_bytes", "bytes", "their bytes, counted in the same way"),
    FactSpec("diff.plan_ratio", "number", "compiled bytes by planned bytes", absent="the plan moves nothing"),
)


class _Key(NamedTuple):
    """Opcode of a collective, and its group: a word, a number of devices, or mesh axes."""

    kind: str
    group: str


class _TrafficRow(NamedTuple):
    """Planned and compiled traffic of a kind and group, None if one of the two lacks it."""

    key: _Key
    planned: tuple[Quantity, Quantity] | None
    compiled: tuple[Quantity, Quantity] | None

    @property
    def ratio(self) -> float | None:
        """Compiled bytes by planned bytes."""
        if self.planned is None or self.compiled is None:
            return None
        planned, compiled = exact(self.planned[1]), exact(self.compiled[1])
        return compiled / planned if planned and compiled is not None else None

    @property
    def only_in(self) -> str | None:
        return ONLY_COMPILED if self.planned is None else ONLY_PLANNED if self.compiled is None else None


def compare_with_plan(totals: WorkloadTotals, context: Context, given: Sequence[str]) -> Report:
    """Return the report on a workload file and a module. Raise UsageError for an axis or word of `given` that is unknown."""
    planned = _planned(totals)
    compiled = _compiled(totals, context, given)
    keys = dict.fromkeys((*planned, *compiled))
    rows = [_TrafficRow(key, planned.get(key), compiled.get(key)) for key in keys]
    rows.sort(key=lambda row: -max(least(sizes[1]) for sizes in (row.planned, row.compiled) if sizes is not None))
    facts, path = _facts(rows), context.module.path
    return Report(
        command=COMMAND,
        input=Input(path, context.module.first_line, context.module.lines, context.module.bytes, counted="DUMP: "),
        facts=Facts(facts.values, SPECS),
        tables=(_PLAN.of(rows),),
        notes=tuple(facts.notes),
        specs=SPECS,
        headline=tuple(_headline(rows, facts.values)),
        title=f"{totals.workload.path} -> {context.module.name}",
    )


def _planned(totals: WorkloadTotals) -> dict[_Key, tuple[Quantity, Quantity]]:
    """Return count and bytes of the collectives of the file that a client knows."""
    traffic: dict[_Key, tuple[Quantity, Quantity]] = {}
    for collective in totals.collectives:
        label = collective.label
        if label.kind is not None:
            key = _Key(HLO_KINDS.get(label.kind, label.kind), (label.group or "").upper())
            count, size = traffic.get(key, (0, 0))
            own = unknown(collective.size.reason) if isinstance(collective.size, Figure) else collective.size
            traffic[key] = add(count, collective.count), add(size, own)
    return traffic


def _compiled(totals: WorkloadTotals, context: Context, given: Sequence[str]) -> dict[_Key, tuple[Quantity, Quantity]]:
    """Return runs and bytes of the collectives of a step."""
    groups = _Groups(totals, context, given)
    own = context.collectives
    labels = [(_Key(collective.kind, groups.name(number)), collective.group_size) for number, collective in enumerate(own)]
    executed = context.executed.by_label(labels, [not collective.is_point_to_point for collective in own])
    traffic: dict[_Key, tuple[Quantity, Quantity]] = {}
    for (key, devices), figures in executed.items():
        count, size = traffic.get(key, (0, 0))
        whole = KIND_TABLE[key.kind].whole_of_operand(1, devices or 1) if totals.workload.header.dialect == "simai" else 1
        moved = multiply(_without_limit(figures.operand_bytes), whole)
        traffic[key] = add(count, _without_limit(figures.count)), add(size, moved)
    return traffic


def _without_limit(figure: Quantity) -> Quantity:
    """Return the lower bound of a figure: the bounds of two branches may be equal, though these run different collectives."""
    return known_part(least(figure), reason(figure))


class _Groups:
    """The groups of a module's collectives in the words of a workload file: by `--axis`, else by the number of devices."""

    def __init__(self, totals: WorkloadTotals, context: Context, given: Sequence[str]) -> None:
        self._context = context
        self._dialect = totals.workload.header.dialect
        names = ("tp", "dp", "ep", "dp_ep") if (totals.parallelism.experts or 1) > 1 else ("tp", "dp")
        self._sizes = {name: totals.parallelism.sizes[name] for name in names}
        self._words: AxisWords | None = parse_axis_words(context, given) if given else None

    def name(self, number: int) -> str:
        """Return the group of a collective."""
        collective, axis = self._context.collectives[number], self._context.axes[number]
        if self._words is not None:
            return self._words.word_of(axis, self._dialect)[0] or axis or ""
        size = collective.group_size
        words = [name for name, devices in self._sizes.items() if devices == size]
        if len(words) == 1:
            return words[0].upper()
        return axis or ("" if size is None else f"{size} devices")


_NOTHING = 0, 0
_PLAN = TableSpec("plan", "Collectives of the plan and of a step, by kind and group").with_columns(
    Column("kind", get=attrgetter("key.kind")),
    Column("group", get=attrgetter("key.group")),
    bounded("planned_count", "count", lambda row: (row.planned or _NOTHING)[0], 1),
    bounded("planned_bytes", "bytes", lambda row: (row.planned or _NOTHING)[1]),
    bounded("compiled_count", "count", lambda row: (row.compiled or _NOTHING)[0], 1),
    bounded("compiled_bytes", "bytes", lambda row: (row.compiled or _NOTHING)[1]),
    Column("ratio", "number", optional=True),
    Column("only_in", optional=True, width=14),
)
TABLES = (_PLAN,)


def _facts(rows: Sequence[_TrafficRow]) -> FactSheet:
    facts = FactSheet()
    sums: dict[str, Quantity] = {}
    for side in ("planned", "compiled"):
        pairs = [pair for row in rows if (pair := getattr(row, side)) is not None]
        for index, figure in enumerate(("count", "bytes")):
            sums[f"{side}_{figure}"] = total(pair[index] for pair in pairs)
            facts.put(f"diff.{side}_{figure}", sums[f"{side}_{figure}"])
    planned, compiled = sums["planned_bytes"], sums["compiled_bytes"]
    plan, step = exact(planned), exact(compiled)
    ratio = step / plan if plan and step is not None else None
    facts.put("diff.plan_ratio", ratio, reason(planned) or reason(compiled))
    return facts


def _headline(rows: list[_TrafficRow], facts: dict[str, Value]) -> Iterator[HeadlineRow]:
    """Yield planned and compiled bytes with their ratio, and what is in one of the two only."""
    yield HeadlineRow("", tuple(_ratio(facts)))
    for words in (ONLY_PLANNED, ONLY_COMPILED):
        names = [f"{row.key.kind} {row.key.group}".strip() for row in rows if row.only_in == words]
        if names:
            yield HeadlineRow(words, (", ".join(names),))


def _ratio(facts: dict[str, Value]) -> Parts:
    amounts = [Amount(facts[f"diff.{side}_bytes"], "bytes") for side in ("planned", "compiled")]
    yield from sentence("planned {}, compiled {} per device and step", *amounts)
    ratio = facts["diff.plan_ratio"]
    if isinstance(ratio, float):
        yield from sentence(": {} ×", Amount(round(ratio, 3), "number"))


def refuse_conditions(conditions: Iterable[str], path: str) -> None:
    """Raise UsageError for conditions on the facts of two modules."""
    if list(conditions):
        raise UsageError("is a workload file: --fail-if compares two dumps", Location(path))
