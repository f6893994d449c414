"""Savings of findings: their stakes in seconds on a hardware profile, and as a share of what a step takes."""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import rate
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.figure import least
from hlo_inspect.findings import LARGE_MODULE, RULE_TABLE, RULES
from hlo_inspect.findings.rule import Resource
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.report.model import Finding

_WIDE_TYPES = {"widened-matmul": "f32", "double-precision": "f64"}
"""The type in which the FLOPs of a rule's stake are done."""


def with_saving(context: Context, finding: Finding) -> Finding:
    """Return a finding with the share of its stake; in seconds if the user names the hardware profile.

    Memory is a share of the program's need. All else is a share of the bound of a step. Without a hardware profile it is a
    share of the step's bytes, FLOPs or sent bytes.
    """
    if finding.stake is None or finding.name not in RULE_TABLE:
        return finding
    rule, machine = RULES.load(finding.name), context.on_machine
    if not rule.saves:
        return finding
    resource = rule.resource
    seconds = _seconds(context, machine.profile, finding, resource, finding.stake) if machine.profile is not None else None
    whole, whole_name, stake = 0.0, "step time", finding.stake
    if resource == "time":
        whole = least(machine.known_step or 0)
    elif seconds is not None:
        whole, stake = context.once(step_seconds), seconds
    if not whole and resource != "time":
        whole_name, find_whole = _WHOLES[resource] if RULE_TABLE[finding.name].reads != "lines" else ("memory", _arrays)
        whole, stake = context.once(find_whole), finding.stake * (2 if resource == "traffic" else 1)
    if seconds is not None and machine.profile_is_named:
        finding = finding._replace(stake=seconds, stake_unit="s")
    return finding._replace(share=min(stake / whole, 1.0), share_of=whole_name) if whole else finding


def step_seconds(context: Context) -> float:
    """Return the known part of the bound of a step; of a large program the longest of FLOPs, bytes and collectives alone."""
    times, machine = context.on_machine.kernel_times, context.on_machine
    if times is None:
        return 0.0
    if not _is_large(context):
        return least(machine.step_times.step) if machine.step_times is not None else 0.0
    from hlo_inspect.analysis.time.collective_times import ALL
    from hlo_inspect.analysis.time.step_times import bytes_time, flops_time

    alone = (
        flops_time(context.cost.opcodes, times),
        bytes_time(context.cost.opcodes, times),
        machine.collective_seconds.get(ALL, 0.0),
    )
    return max(map(least, alone))


def _is_large(context: Context) -> bool:
    return context.module.opcode_counts.total() > LARGE_MODULE


def _needed(context: Context) -> float:
    """Return the larger of need and peak; the arguments and unaliased outputs if these are unknown or take long."""
    needed = 0
    if context.module.wants.graph and not _is_large(context):
        figures = context.memory.figures
        needed = max(figures["needed_bytes"] or 0, figures["peak_bytes"] or 0)
    return needed or _arrays(context)


def _arrays(context: Context) -> float:
    """Return the bytes of the arguments and of the unaliased outputs."""
    arguments = total(leaf.shape.bytes for leaf in context.interface.parameters) or 0
    return arguments + (total(output.shape.bytes for output in context.interface.outputs if output.alias is None) or 0)


def _accessed(context: Context) -> float:
    return least(context.cost.step["bytes"])


def _flops(context: Context) -> float:
    return least(context.cost.step["flops"])


def _sent(context: Context) -> float:
    return least(context.executed.total.wire_bytes)


_WHOLES: dict[Resource, tuple[str, Callable[[Context], float]]] = {
    "memory": ("memory", _needed),
    "traffic": ("bytes", _accessed),
    "wire": ("sent bytes", _sent),
    "host": ("bytes", _accessed),
    "flops": ("FLOPs", _flops),
}
"""The whole of each resource: its name, and its amount in one step."""


def _seconds(
    context: Context, profile: HardwareProfile, finding: Finding, resource: Resource, stake: int | float
) -> float | None:
    if resource == "flops":
        peak = rate(f"matmul.{_WIDE_TYPES.get(finding.name, 'f32')}", profile)
        return stake / peak[0] if peak is not None else None
    if resource == "traffic":  # each copied byte is read and written
        return 2 * stake / profile.memory_bandwidth if profile.memory_bandwidth else None
    if resource == "host":
        return stake / profile.host_bandwidth if profile.host_bandwidth else None
    return _seconds_sent(context, finding, stake) if resource == "wire" else None


def _seconds_sent(context: Context, finding: Finding, stake: int | float) -> float | None:
    """Return the time of sent bytes at the rate of the collective that the finding is about."""
    line = finding.location.line if finding.location is not None else None
    for collective, time in zip(context.collectives, context.on_machine.collective_times, strict=True):
        if (collective.start.line, collective.start.name) == (line, finding.subject):
            if time.bound_s is None or not collective.wire_bytes:
                return None
            return time.bound_s * stake / collective.wire_bytes
    return None
