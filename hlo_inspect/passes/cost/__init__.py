"""FLOPs and bytes: as XLA counts them, and for one run of the program; with a hardware profile, the time that they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.step_calls import attention_of_step, total_of_step
from hlo_inspect.analysis.cost.figures import EXACT_UP_TO, CostFigure, Tally
from hlo_inspect.analysis.cost.kernels import phases_of_kernels
from hlo_inspect.analysis.cost.roofline import NOT_KNOWN, bound, percent, rates_taken
from hlo_inspect.analysis.phases import phases
from hlo_inspect.figure import Figure, Quantity, exact, least, reason
from hlo_inspect.hlo.values.op_names import RECOMPUTE
from hlo_inspect.passes.base import Fact, FactSheet, Pass, bounded, specs_of
from hlo_inspect.passes.cost import step_facts as step_times
from hlo_inspect.passes.cost.product_tables import MATMULS_BY_TYPE, SPEC, matmul_facts, matmuls_by_type
from hlo_inspect.passes.instruction_rows import phase_notes
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Table, TablePlace, Unit, number_of
from hlo_inspect.report.table_spec import CountedRows, TableSpec
from hlo_inspect.report.units import format_value

if TYPE_CHECKING:
    from hlo_inspect.analysis.cost.module_cost import ModuleCost
    from hlo_inspect.analysis.hardware import HardwareProfile
    from hlo_inspect.analysis.time.kernel_times import KernelTimes


def _as_xla(figure: CostFigure) -> Callable[[ModuleCost], Quantity]:
    return lambda cost: cost.as_xla.bounds(figure)


def _of_step(figure: CostFigure) -> Callable[[ModuleCost], Quantity]:
    return lambda cost: cost.step[figure]


_AS_XLA = (
    Fact("cost.flops", "flops", "XLA's FLOPs, in float32: a loop counts once, custom calls not at all", _as_xla("flops")),
    Fact("cost.transcendentals", "count", "XLA's count of transcendental functions", _as_xla("transcendentals")),
    Fact("cost.bytes_accessed", "bytes", "XLA's count of bytes accessed", _as_xla("bytes")),
)
_MATMULS = "FLOPs of matrix multiplications and custom calls; a loop counts once"
_AS_XLA_EXACT = Fact("cost.matmul_flops", "flops", _MATMULS, _as_xla("matmul_flops"))
_EXECUTED = (
    Fact("cost.executed_flops", "flops", "FLOPs of one step", _of_step("flops")),
    Fact(
        "cost.executed_matmul_flops",
        "flops",
        "FLOPs of matrix multiplications in one step",
        _of_step("matmul_flops"),
    ),
    Fact("cost.executed_bytes_accessed", "bytes", "bytes accessed in one step", _of_step("bytes")),
)
_OF_CALLS = (
    Fact("cost.attention_flops", "flops", "FLOPs of attention kernels in one step", lambda cost: attention_of_step(cost.calls)),
    Fact("cost.unknown_custom_calls", "count", "custom calls whose cost is unknown", lambda cost: len(cost.unknown_calls)),
)


def _notes(context: Context, reasons: Sequence[str]) -> Iterator[str]:
    cost = context.cost
    yield from step_times.profile_notes(context)
    yield from reasons
    yield from share_notes(cost.opcodes, context.on_machine.kernel_times)
    yield from _divided(context)
    yield from _rates(cost.opcodes, context.on_machine.profile)
    yield from _recomputed(context)
    yield from _uncounted(context)
    yield from phase_notes(context, phases_of_kernels(cost))


def _tables(context: Context) -> Iterator[Table]:
    cost = context.cost
    yield _cost_table(context, _COST, cost.opcodes)
    yield from [products] if (products := matmuls_by_type(context)).rows else []
    if not context.request.skips_graph_phases:
        yield cost_by_phase(context)
    yield _cost_table(context, _BY_SCOPE, cost.tally("scope"))
    yield _cost_table(context, _BY_SOURCE, cost.tally("source"))
    yield _cost_table(context, _BY_FUSION_KIND, cost.tally("kind"))


_ROUNDING = "the text leaves out operands and so XLA's order of addition; its sum may be rounded differently"


def step_reason(amount: Quantity) -> str:
    """Return why a figure of one run is unknown, and its largest excess over the lower bound if that is limited."""
    if not isinstance(amount, Figure) or amount.greatest is None or not amount.least:
        return reason(amount)
    more = amount.greatest / amount.least - 1
    return f"{amount.reason}: figures count the cheapest branch; the most expensive adds {percent(more)} more"


def _divided(context: Context) -> list[str]:
    """Note the number of devices that share the work, if the shapes are those of all of them."""
    times = context.on_machine.kernel_times
    if times is None or times.devices == 1:
        return []
    regions = ", including regions written for one device" if context.shapes_are == "mixed" else ""
    return [
        f"time.compute_s: FLOPs of the whole program divided by {times.devices:,} devices, as its shardings split it{regions}"
    ]


def _rates(tally: Tally, profile: HardwareProfile | None) -> list[str]:
    """Return the rates that stand in for units of which the profile states none."""
    taken = rates_taken(tally, profile) if profile is not None else {}
    named = {unit: f"of {unit}" if unit else "whose unit or type is unknown" for unit in taken}
    return [
        f"time.compute_s: FLOPs {named[unit]} count at the rate of {figure}{_WHY.get(unit, '')}"
        for unit, figure in taken.items()
    ]


_WHY = {
    "matmul.f32": ": XLA rounds the operands to that type, unless operand_precision or the algorithm forbids it",
    "matmul.c64": ": a product of complex numbers is four of their parts",
    "matmul.c128": ": a product of complex numbers is four of their parts",
    NOT_KNOWN: ", the fastest",
}


_LEAST_RECOMPUTED = 0.001
"""The least share of recomputation that a note is worth."""


def _recomputed(context: Context) -> list[str]:
    """Return the FLOPs that a formula for model FLOPs leaves out, since people compare with those.

    They are the recomputation for the backward pass, by phase, and the scores within attention kernels.
    """
    by_phase = {phase: least(tally.bounds("flops")) for phase, tally in context.cost.tally("phase").by_label()}
    again = by_phase.get(RECOMPUTE, 0) + least(total_of_step(context.cost.calls, "recomputed_flops"))
    flops = exact(context.cost.step["flops"])
    if not again or not flops or context.request.skips_graph_phases or context.module.problems.is_truncated:
        return []
    if again < _LEAST_RECOMPUTED * flops:
        return []
    share, rest = percent(again / flops), flops - again
    return [f"cost.executed_flops: {share} or more is recomputation; {format_value(rest, 'flops')} or less without it"]


def _uncounted(context: Context) -> list[str]:
    counts, lines = Counter(call.target for call in context.cost.unknown_calls), context.module.unparsed_lines
    notes = []
    if counts:
        targets = ", ".join(
            f"{target or 'custom calls without a target'} ({number_of(count, 'call')})"
            for target, count in counts.most_common()
        )
        notes.append(
            f"cost.unknown_custom_calls: no figure counts the work of {targets}, which is unknown; --custom-calls can state it"
        )
    if lines:
        notes.append(f"cost.flops: no figure counts {number_of(lines, 'line')} that cannot be read")
    return notes


class _CostRow(NamedTuple):
    """A label with its figures and times. `weight` orders the rows; it is a lower bound if it is unknown.

    `share` is that of the weights of all rows; None if one of them is unknown.
    """

    label: str
    tally: Tally
    compute: Quantity
    memory: Quantity
    weight: float
    weight_is_known: bool
    share: float | None = None

    @property
    def bound(self) -> str | None:
        """The resource that takes longer; None if the other one is a lower bound, which could exceed it."""
        longer = bound(least(self.compute), least(self.memory))
        other = self.memory if longer == "compute" else self.compute
        return longer if not isinstance(other, Figure) else None

    @property
    def order(self) -> tuple[float | str, ...]:
        figures = (least(self.tally.bounds(figure)) for figure in ("flops", "transcendentals"))
        return (-self.weight, *(-figure for figure in figures), self.label)


def _figure(name: str, unit: Unit, figure: CostFigure, detail: int = 0) -> Column:
    return bounded(name, unit, lambda row: row.tally.bounds(figure), detail)


_COSTS = (
    _figure("flops", "flops", "flops"),
    _figure("transcendentals", "count", "transcendentals", detail=3)._replace(rounded=True),
    _figure("matmul_flops", "flops", "matmul_flops", detail=1),
    _figure("bytes_accessed", "bytes", "bytes"),
    Column("share", "share", detail=1, meaning="share of the time, or of the bytes without a profile"),
    bounded("compute_s", "seconds", attrgetter("compute")),
    bounded("memory_s", "seconds", attrgetter("memory")),
)
_BOUND = Column("bound", detail=2, optional=True, meaning="resource whose time is longer, compute or memory")
_TIMES = frozenset({"compute_s", "memory_s", "bound"})


def _cost_by(label: str, words: str, rank: int) -> TableSpec:
    """Return the table of the cost of one step by a label."""
    columns = (Column(label, get=attrgetter("label")), *_COSTS, _BOUND)
    place = TablePlace("work", "Work of the step", f"by {words}", rank)
    return TableSpec(f"cost_by_{label}", f"Cost of one step by {words}", place).with_columns(*columns)


_COST = TableSpec(
    "cost",
    "Cost of one step by opcode",
    TablePlace("work", "Work of the step", "by opcode", 3),
    in_store=True,
    counts=(CountedRows(r"cost\.executed_(\w+)"),),
).with_columns(Column("opcode", get=attrgetter("label")), *_COSTS)  # a fusion's work counts inside, its bytes with the fusion
_BY_SCOPE = _cost_by("scope", "scope", 0)
_BY_SOURCE = replace(_cost_by("source", "source line", 1), in_store=True)
BY_PHASE = replace(_cost_by("phase", "phase", 2), in_store=True)
_KIND = Column("kind", meaning="kind that XLA prints, such as `kLoop`", get=attrgetter("label"))
_BY_FUSION_KIND = _cost_by("fusion_kind", "kind of fusion", 4).with_columns(_KIND, *_COSTS, _BOUND)


def _cost_table(context: Context, spec: TableSpec, tally: Tally) -> Table:
    """Return one row per label; rows add up to the facts of one run.

    The longest time comes first, without a profile the most bytes. `share` is that of the time or of the bytes; no row has
    one if one weight is unknown (`share_notes`). A page leaves out `share` and `bound` if no row has them, and a table that
    has one row, except that of opcodes.
    """
    times = context.on_machine.kernel_times
    rows = [_row(*labelled, times) for labelled in tally.by_label()]
    whole = sum(row.weight for row in rows) if all(row.weight_is_known for row in rows) else None
    if whole:
        rows = [row._replace(share=row.weight / whole) for row in rows]
    flags: dict[str, dict[str, object]] = {"bytes_accessed": {"page_name": step_times.bytes_name(context)}}
    flags["share"] = {"page_name": "share_of_bytes" if times is None else "share_of_time"}
    hidden = {"share": whole is None, "bound": not any(row.bound for row in rows)}
    flags |= {name: {"detail": _NOT_ON_PAGE} for name, is_hidden in hidden.items() if is_hidden}
    return spec.of(
        sorted(rows, key=attrgetter("order")),
        columns=spec.with_flags(flags),
        without=_TIMES if times is None else (),
        on_page=spec is _COST or len(rows) > 1,
    )


def _row(label: str, tally: Tally, times: KernelTimes | None) -> _CostRow:
    if times is None:
        size = tally.bounds("bytes")
        return _CostRow(label, tally, _NO_TIME, _NO_TIME, least(size), not isinstance(size, Figure))
    from hlo_inspect.analysis.time.step_times import bytes_time, flops_time

    compute, memory = flops_time(tally, times), bytes_time(tally, times)
    are_known = not isinstance(compute, Figure) and not isinstance(memory, Figure)
    return _CostRow(label, tally, compute, memory, max(least(compute), least(memory)), are_known)


_NO_TIME = 0.0
_NOT_ON_PAGE = 9


def share_notes(tally: Tally, times: KernelTimes | None) -> list[str]:
    """Return a note if the rows of the tables of a tally have no shares."""
    if _row("", tally, times).weight_is_known:
        return []
    return [f"share: tables of cost have none, because some {'bytes' if times is None else 'times'} are lower bounds"]


def cost_by_phase(context: Context) -> Table:
    """Return one row per phase of the training step."""
    return _cost_table(context, BY_PHASE, context.cost.tally("phase"))


class Cost(Pass):
    """Count FLOPs and bytes by opcode, kind of fusion, phase and source line; with --profile also time.

    Figures are those of one device if the module's shapes are per device. A multiply-add is two FLOPs; transcendentals
    (exponential, square root, power, …) count apart. Bytes are what instructions read and write. A fusion reads its parameters
    and writes its results; of an array that it slices or updates
    in place, only that slice counts.

    XLA's own figures (`HloCostAnalysis`) count a loop once and custom calls not at all. They are rounded to float32, as in
    XLA. Figures of a step are exact: they count each run of a loop, and custom calls with a known formula or estimate. They
    are unknown if a trip count is unknown, and for instructions inside the branches of a conditional. FLOPs are lower bounds
    if the work of a custom call is unknown.

    Times are those of the plain roofline: FLOPs at the device's dense peak of their type, bytes at its memory bandwidth.
    """

    name = "cost"
    includes = ("custom-calls",)
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    tables = (_COST, MATMULS_BY_TYPE, BY_PHASE, _BY_SCOPE, _BY_SOURCE, _BY_FUSION_KIND)
    specs = (*specs_of((*_AS_XLA, _AS_XLA_EXACT), _EXECUTED), SPEC, *specs_of(_OF_CALLS), *step_times.SPECS)

    def run(self, context: Context) -> Section:
        cost, facts = context.cost, FactSheet()
        for fact in _AS_XLA:
            amount = fact.get(cost)
            facts.put(fact.name, amount)
            if isinstance(amount, int | float) and amount > EXACT_UP_TO and not cost.has_xla_order:
                facts.notes.append(f"{fact.name}: {_ROUNDING}")
        facts.put_all([_AS_XLA_EXACT], cost)
        executed = {fact.name: cast("Quantity", fact.get(cost)) for fact in _EXECUTED}
        for name, amount in (executed | matmul_facts(context)).items():
            facts.put(name, amount, step_reason(amount))
        attention, unknown_calls = _OF_CALLS
        facts.put(attention.name, attention.get(cost), with_bound=True)
        facts.put_all([unknown_calls], cost)
        step_times.put_times(context, facts)
        return Section(facts.values, _tables(context), _notes(context, facts.notes))
