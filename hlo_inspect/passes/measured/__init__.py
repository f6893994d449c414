"""The measured times of a program beside its bounds: the profile says what was slow, the module what it could have been."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.utilization import executed_seconds, model_seconds
from hlo_inspect.figure import least, reason
from hlo_inspect.findings.measured_problems import FASTER_THAN_BOUND, UNATTRIBUTED, UNKNOWN_INSTRUCTIONS
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.measured.rows import MeasuredRows
from hlo_inspect.passes.measured.tables import measured_tables
from hlo_inspect.profiler.measurements import labels_of_devices
from hlo_inspect.report.model import Amount, FactSpec, Finding, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Unit, Value, number_of

_NO_TIMES = "only a recorded profile has measured times"
_FACTS: tuple[tuple[str, Unit, str], ...] = (
    ("program_id", "text", "id of the program"),
    ("platform", "text", "cpu, gpu or tpu"),
    ("hosts", "count", "hosts whose profiles have the program"),
    ("devices", "count", "devices that ran it"),
    ("runs", "count", "runs of the program"),
    ("samples", "count", "pairs of a run and a device"),
    ("cut_samples", "count", "samples that the trace does not hold whole, which are left out"),
    ("runs_from", "text", "source of the runs: run_id, modules or order"),
    ("events", "count", "events of devices that name an instruction"),
    ("joined_events", "count", "events whose instruction is in the module"),
    ("unattributed_events", "count", "events of devices that name no instruction"),
    ("unattributed_s", "seconds", "time of these events in a step"),
    ("step_s", "seconds", "median of a step over all samples"),
    ("step_p90_s", "seconds", "90th percentile of a step"),
    ("busy_s", "seconds", "median of the time in which a device executes something"),
    ("idle_s", "seconds", "step without busy time"),
    ("period_s", "seconds", "median time from start to start of successive runs"),
    ("kernels_s", "seconds", "self times of all instructions of a step, mean over samples"),
    ("exposed_collective_s", "seconds", "self time of collectives, with start and done"),
    ("wait_s", "seconds", "time that collectives wait for the slowest device"),
    ("mfu", "share", "MFU: FLOPs of matrix products without recomputation / (step × peak)"),
    ("hfu", "share", "HFU: executed FLOPs of matrix products / (step × peak)"),
    ("step_over_bound", "number", "measured step / bound of the step"),
)


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
    specs: ClassVar[tuple[FactSpec, ...]] = tuple(
        FactSpec(f"measured.{name}", unit, meaning, absent=_NO_TIMES) for name, unit, meaning in _FACTS
    )

    def run(self, context: Context) -> Section:
        facts: dict[str, Value] = dict.fromkeys(spec.name for spec in self.specs)
        if context.measured is None:
            return Section(facts, headline=(HeadlineRow("", (f"no measured times: {_NO_TIMES}",)),))
        rows = MeasuredRows(context, context.measured)
        reasons: dict[str, str] = {}
        facts |= {f"measured.{name}": value for name, value in _facts(context, rows, reasons).items()}
        notes = [f"measured.{name}: {reason}" for name, reason in reasons.items() if facts[f"measured.{name}"] is None]
        notes += _notes(rows)
        return Section(facts, measured_tables(context, rows), notes, _headline(context, rows, facts), findings=_findings(rows))


def _facts(context: Context, rows: MeasuredRows, reasons: dict[str, str]) -> dict[str, Value]:
    """Return the facts. `reasons` gets why one is unknown."""
    times = rows.times
    step, p90 = times.step_quantiles()
    waits = [row.wait_s for row in rows.collectives]
    is_whole = all(wait is not None for wait in waits)
    reasons["wait_s"] = "a collective is a permute or asynchronous, or the profile lacks devices of its group"
    reasons["period_s"] = "there is one run only"
    return {
        "program_id": rows.recorded.label.rpartition("(")[2].removesuffix(")"),
        "platform": times.platform,
        "hosts": times.hosts,
        "devices": len(times.devices),
        "runs": times.runs,
        "samples": len(times.samples),
        "cut_samples": times.cut_samples,
        "runs_from": times.runs_from,
        "events": times.events,
        "joined_events": rows.joined_events,
        "unattributed_events": times.unattributed.events,
        "unattributed_s": times.seconds_of_step(times.unattributed.duration),
        "step_s": step,
        "step_p90_s": p90,
        "busy_s": times.busy_s,
        "idle_s": step - times.busy_s,
        "period_s": times.period_s,
        "kernels_s": rows.kernels_s,
        "exposed_collective_s": math.fsum(row.self_s for row in rows.collectives),
        "wait_s": math.fsum(wait or 0.0 for wait in waits) if is_whole else None,
        **_utilization(context, step, reasons),
    }


def _utilization(context: Context, step: float, reasons: dict[str, str]) -> Mapping[str, Value]:
    """Return MFU, HFU and the distance from the bound; None without a hardware profile."""
    kernel_times, bounds = context.on_machine.kernel_times, context.on_machine.step_times
    names = ("mfu", "hfu", "step_over_bound")
    if kernel_times is None or bounds is None or not step:
        reasons |= dict.fromkeys(names, "times need a hardware profile: give --profile NAME")
        return dict.fromkeys(names)
    model, executed = model_seconds(context.cost, kernel_times), executed_seconds(context.cost, kernel_times)
    reasons |= {"mfu": reason(model), "hfu": reason(executed), "step_over_bound": "the bound of the step is 0"}
    return {
        "mfu": None if reason(model) else least(model) / step,
        "hfu": None if reason(executed) else least(executed) / step,
        "step_over_bound": step / least(bounds.step) if least(bounds.step) else None,
    }


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
    yield HeadlineRow("busy", tuple(sentence("{}, idle {} of the step", amount("busy_s"), amount("idle_s"))))
    if rows.collectives:
        yield HeadlineRow("collectives", tuple(_collective_words(rows, facts)))
    if facts["measured.mfu"] is not None:
        profile = context.on_machine.profile
        text = "{} (FLOPs of matrix products without recomputation / (step × peak of {})), HFU {}"
        hfu = amount("hfu", "share")
        yield HeadlineRow("MFU", tuple(sentence(text, amount("mfu", "share"), profile.name if profile else "", hfu)))
    bounds = context.on_machine.step_times
    if facts["measured.step_over_bound"] is not None and bounds is not None:
        yield HeadlineRow("bound", tuple(_bound_words(rows, facts["measured.step_over_bound"], least(bounds.step))))


def _collective_words(rows: MeasuredRows, facts: Mapping[str, Value]) -> Parts:
    """Yield the share of collectives and of waiting."""
    whole, exposed, wait = rows.kernels_s, facts["measured.exposed_collective_s"], facts["measured.wait_s"]
    share = Amount(exposed / whole if isinstance(exposed, float) and whole else None, "share")
    yield from sentence("{} of a step, {} of all self times", Amount(exposed, "seconds"), share)
    if isinstance(wait, float):
        yield from sentence("; {} of it waiting for the slowest device", Amount(wait, "seconds"))
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


def _bound_words(rows: MeasuredRows, ratio: Value, bound: float) -> Parts:
    """Yield how far the step is from its bound, and the kernels that would have to be faster."""
    yield from sentence(
        "{} × the bound of {}",
        Amount(round(ratio if isinstance(ratio, int | float) else 0.0, 2), "number"),
        Amount(bound, "seconds"),
    )
    over = sorted((row for row in rows.kernels if row.bound_s is not None), key=lambda row: (row.bound_s or 0) - row.self_s)
    for index, row in enumerate(over[:_NAMED]):
        lost = Amount(row.self_s - (row.bound_s or 0.0), "seconds")
        yield from sentence(", {} {}" if index else "; longest above their bound: {} {}", row.name, lost)
