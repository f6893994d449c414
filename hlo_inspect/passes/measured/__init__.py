"""The measured times of a program beside its bounds: the profile says what was slow, the module what it could have been."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.module_cost import ModuleCost
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.kernel_times import KernelTimes
from hlo_inspect.analysis.time.utilization import executed_seconds, model_seconds
from hlo_inspect.figure import Figure, Quantity, least, or_unknown, reason, unknown
from hlo_inspect.findings.measured_problems import FASTER_THAN_BOUND, UNATTRIBUTED, UNKNOWN_INSTRUCTIONS
from hlo_inspect.passes.base import Fact, FactSheet, Pass, specs_of
from hlo_inspect.passes.measured.measured_rows import MeasuredRows
from hlo_inspect.passes.measured.measured_tables import TABLES, measured_tables
from hlo_inspect.profiler.measurements import labels_of_devices
from hlo_inspect.report.model import Amount, Finding, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Unit, Value, number_of

_NO_TIMES = "only a recorded profile has measured times"


class _MeasuredStep:
    """The figures of a step that facts name."""

    def __init__(self, context: Context, rows: MeasuredRows) -> None:
        self._context = context
        self.rows = rows
        self.times = rows.times
        self.step_s, self.step_p90_s = rows.times.step_quantiles()

    @property
    def program_id(self) -> str:
        return self.rows.recorded.label.rpartition("(")[2].removesuffix(")")

    @property
    def unattributed_s(self) -> float:
        return self.times.seconds_of_step(self.times.unattributed.duration)

    @property
    def exposed_collective_s(self) -> float:
        return math.fsum(row.self_s for row in self.rows.collectives)

    @property
    def period_s(self) -> Quantity:
        return or_unknown(self.times.period_s, "there is one run only")

    @property
    def wait_s(self) -> Quantity:
        waits = [row.wait_s for row in self.rows.collectives]
        seconds = [wait for wait in waits if wait is not None]
        return math.fsum(seconds) if len(seconds) == len(waits) else unknown(_NO_WAIT)

    @property
    def mfu(self) -> Quantity:
        return self._share_of_step(model_seconds)

    @property
    def hfu(self) -> Quantity:
        return self._share_of_step(executed_seconds)

    @property
    def over_bound(self) -> Quantity:
        bounds = self._context.on_machine.step_times
        if bounds is None or not self.step_s:
            return unknown(_NO_PROFILE)
        bound = least(bounds.step)
        return self.step_s / bound if bound else unknown("the bound of the step is 0")

    def _share_of_step(self, seconds_of: Callable[[ModuleCost, KernelTimes], Quantity]) -> Quantity:
        """Return the share of the step that some work takes at the peak rates."""
        kernel_times = self._context.on_machine.kernel_times
        if kernel_times is None or self._context.on_machine.step_times is None or not self.step_s:
            return unknown(_NO_PROFILE)
        seconds = seconds_of(self._context.cost, kernel_times)
        return unknown(reason(seconds)) if isinstance(seconds, Figure) else seconds / self.step_s


_NO_WAIT = "a collective is a permute or asynchronous, the profile lacks devices of its group, or several groups span hosts"
_NO_PROFILE = "times need a hardware profile: give --profile NAME"


def _fact(name: str, unit: Unit, meaning: str, get: Callable[[_MeasuredStep], Value] | None = None) -> Fact:
    """Return a fact. One without a getter is the figure of its name."""
    return Fact(f"measured.{name}", unit, meaning, get or attrgetter(name), absent=_NO_TIMES)


_FACTS = (
    _fact("program_id", "text", "id of the program"),
    _fact("platform", "text", "cpu, gpu or tpu", attrgetter("times.platform")),
    _fact("hosts", "count", "hosts whose profiles have the program", attrgetter("times.hosts")),
    _fact("devices", "count", "devices that ran it", lambda step: len(step.times.devices)),
    _fact("runs", "count", "runs of the program", attrgetter("times.runs")),
    _fact("samples", "count", "pairs of a run and a device", lambda step: len(step.times.samples)),
    _fact(
        "cut_samples",
        "count",
        "samples that the trace does not hold whole, which are left out",
        attrgetter("times.cut_samples"),
    ),
    _fact("runs_from", "text", "source of the runs: run_id, modules or order", attrgetter("times.runs_from")),
    _fact("events", "count", "events of devices that name an instruction", attrgetter("times.events")),
    _fact("joined_events", "count", "events whose instruction is in the module", attrgetter("rows.joined_events")),
    _fact(
        "unattributed_events", "count", "events of devices that name no instruction", attrgetter("times.unattributed.events")
    ),
    _fact("unattributed_s", "seconds", "time of these events in a step"),
    _fact("step_s", "seconds", "median of a step over all samples"),
    _fact("step_p90_s", "seconds", "90th percentile of a step"),
    _fact("busy_s", "seconds", "median of the time in which a device executes something", attrgetter("times.busy_s")),
    _fact("idle_s", "seconds", "step without busy time", lambda step: step.step_s - step.times.busy_s),
    _fact("period_s", "seconds", "median time from start to start of successive runs"),
    _fact("kernels_s", "seconds", "self times of all instructions of a step, mean over samples", attrgetter("rows.kernels_s")),
    _fact("exposed_collective_s", "seconds", "self time of collectives, with start and done"),
    _fact("wait_s", "seconds", "time that collectives wait for the slowest device"),
    _fact("mfu", "share", "MFU: FLOPs of matrix products without recomputation / (step × peak)"),
    _fact("hfu", "share", "HFU: executed FLOPs of matrix products / (step × peak)"),
    _fact("step_over_bound", "number", "measured step / bound of the step", attrgetter("over_bound")),
)


_NAMED = 3
"""Instructions and events that a line names."""


def _findings(rows: MeasuredRows) -> tuple[Finding, ...]:
    """Return the contradictions between the profile and the module or the hardware profile, with their times."""
    findings = []
    faster = [row for row in rows.kernels if row.ratio is not None and 0 < row.ratio < 1]
    if faster:
        shown = ", ".join(f"{row.name} ({row.ratio:.2f} × its bound)" for row in faster[:_NAMED])
        findings.append(FASTER_THAN_BOUND.finding(f"{number_of(len(faster), 'kernel')} faster than the bound: {shown}"))
    if rows.strangers:
        events = number_of(sum(times.events for _, times in rows.strangers), "event")
        spent = rows.times.seconds_of_step(sum(times.self_time for _, times in rows.strangers))
        names = ", ".join(name for name, _ in rows.strangers[:_NAMED])
        message = f"{events}, {spent * 1e6:.3g} µs a step, of instructions that the module lacks: {names}"
        findings.append(UNKNOWN_INSTRUCTIONS.finding(message))
    unattributed = rows.times.unattributed
    if unattributed.events:
        spent, names = rows.times.seconds_of_step(unattributed.duration), ", ".join(unattributed.names)
        remedy = "; record with XLA_FLAGS=--xla_gpu_enable_command_buffer=" if rows.times.platform == "gpu" else ""
        message = f"{number_of(unattributed.events, 'event')}, {spent * 1e6:.3g} µs a step, of no instruction: {names}{remedy}"
        findings.append(UNATTRIBUTED.finding(message))
    return tuple(findings)


def _notes(rows: MeasuredRows) -> Iterator[str]:
    """Yield what the profile has that is in no row, and the remedy."""
    times, recorded = rows.times, rows.recorded
    if times.cut_samples:
        yield f"samples: {times.cut_samples:,} left out, because the trace does not hold them whole"
    if times.skipped_samples:
        yield f"samples: {times.skipped_samples:,} left out by --skip"
    for fault, count in times.faults.items():
        yield f"events: {count:,} left out: {fault}"
    if times.runs_differ:
        yield "runs: hosts have different numbers of runs, which are matched by their order"
    if recorded.others:
        yield f"programs: {recorded.others:,} of the profile have no events"
    silent = [kernel.name for kernel in rows.silent if times.platform != "gpu" or kernel.started is None]
    if silent:
        yield (
            f"kernels: {len(silent):,} of the module have no events, such as {', '.join(silent[:3])}; they take no time "
            "of their own, or were not traced"
        )


def _headline(context: Context, rows: MeasuredRows, facts: Mapping[str, Value]) -> Iterator[HeadlineRow]:
    """Yield the lines for a review: step, busy time, collectives, utilization, and the distance from the bound."""
    times = rows.times

    def amount(name: str, unit: Unit = "seconds") -> Amount:
        return Amount(facts[f"measured.{name}"], unit)

    runs = f"{number_of(times.runs, 'run')} on {number_of(len(times.devices), 'device')}"
    hosts = f" of {times.hosts} hosts" if times.hosts > 1 else ""
    text = f"{{}} median, {{}} 90th percentile; {runs}{hosts}, {times.platform}"
    yield HeadlineRow("step", tuple(sentence(text, amount("step_s"), amount("step_p90_s"))))
    yield HeadlineRow("busy", tuple(sentence("{} median, idle {} of the step", amount("busy_s"), amount("idle_s"))))
    if rows.collectives:
        yield HeadlineRow("collectives", tuple(_collective_words(rows, facts)))
    if not isinstance(facts["measured.mfu"], Figure):
        profile = context.on_machine.profile
        text = "{} (FLOPs of matrix products without recomputation / (step × peak of {})), HFU {}"
        hfu = amount("hfu", "share")
        yield HeadlineRow("MFU", tuple(sentence(text, amount("mfu", "share"), profile.name if profile else "", hfu)))
    bounds = context.on_machine.step_times
    ratio = facts["measured.step_over_bound"]
    if isinstance(ratio, float) and bounds is not None:
        yield HeadlineRow("bound", tuple(_bound_words(rows, ratio, least(bounds.step))))


def _collective_words(rows: MeasuredRows, facts: Mapping[str, Value]) -> Parts:
    """Yield the share of collectives and of waiting. Shares are of means, as the times beside them are medians."""
    whole, exposed, wait = rows.kernels_s, facts["measured.exposed_collective_s"], facts["measured.wait_s"]
    share = Amount(exposed / whole if isinstance(exposed, float) and whole else None, "share")
    yield from sentence("{} of all self times", share)
    if isinstance(wait, float) and isinstance(exposed, float) and exposed:
        yield from sentence("; {} of it waiting for the slowest device", Amount(wait / exposed, "share"))
    yield from _straggler_words(rows)


_EVEN = 1.5
"""A device is named if others wait for it this many times longer than for the average device."""


def _straggler_words(rows: MeasuredRows) -> Parts:
    """Yield the device that the others wait for longest, unless they wait for all alike."""
    delays = {device: waits.held for device, waits in rows.waits.items()}
    whole = sum(delays.values())
    slowest = max(delays, key=lambda device: delays[device], default=None)
    if slowest is None or not whole or delays[slowest] * len(delays) < _EVEN * whole:
        return
    waits, label = rows.waits[slowest], labels_of_devices(rows.times.devices)[slowest]
    share = Amount(delays[slowest] / whole, "share")
    last = Amount(waits.last / waits.executions, "share")
    yield from sentence("; {} of the waiting is for device {}, the last in {} of the executions", share, label, last)


def _bound_words(rows: MeasuredRows, ratio: float, bound: float) -> Parts:
    """Yield how far the step is from its bound, and the kernels that would have to be faster."""
    yield from sentence("{} × the bound of {}", Amount(round(ratio, 2), "number"), Amount(bound, "seconds"))
    over = sorted((row for row in rows.kernels if row.lost_s is not None), key=lambda row: -(row.lost_s or 0.0))
    for index, row in enumerate(over[:_NAMED]):
        lost = Amount((row.lost_s or 0.0) / rows.kernels_s if rows.kernels_s else None, "share")
        yield from sentence(", {} {}" if index else "; most of all self times above their bound: {} {}", row.name, lost)


class Measured(Pass):
    """Show the measured time of a step beside its bound: kernels, collectives, waiting, runs and devices.

    PROFILE is a recorded profile of jax.profiler or XProf: a file .xplane.pb, compressed or not, or the folder of a run. Each
    program that ran has a report. The profile holds the modules, which the extra [xla] turns into text. With DUMP the module
    comes from that dump, and the extra is not needed.

    A run is one execution of a program on all its devices, a sample a run on one device. Medians are over all samples, or over
    all executions of an instruction. Self times are means over samples, so they add up. The self time of a loop is its time
    without that of its body. A collective waits until the last device of its group begins; the rest is its transfer.

    With --profile a kernel has a bound, and a ratio of measured to bound. MFU is the FLOPs of matrix products without
    recomputation, divided by step time and peak.
    """

    name = "measured"
    includes = ("cost",)
    asks_phases = True
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    specs = specs_of(_FACTS)
    tables = TABLES

    def run(self, context: Context) -> Section:
        if context.measured is None:
            unmeasured: dict[str, Value] = dict.fromkeys(spec.name for spec in self.specs)
            return Section(unmeasured, headline=(HeadlineRow("", (f"no measured times: {_NO_TIMES}",)),))
        rows = MeasuredRows(context, context.measured)
        facts = FactSheet()
        facts.put_all(_FACTS, _MeasuredStep(context, rows))
        headline = _headline(context, rows, facts.values)
        return Section(
            facts.values, measured_tables(context, rows), [*facts.notes, *_notes(rows)], headline, findings=_findings(rows)
        )
