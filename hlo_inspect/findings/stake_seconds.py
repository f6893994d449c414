"""Stakes in seconds, on the hardware profile that the user names: the time at the bound that mending saves."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import rate
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.findings import RULE_TABLE, RULES
from hlo_inspect.findings.rule import Resource
from hlo_inspect.report.model import Finding

_WIDE_TYPES = {"widened-matmul": "f32", "double-precision": "f64"}
"""The type in which the FLOPs of a rule's stake are done."""


def in_seconds(context: Context, finding: Finding) -> Finding:
    """Return a finding with its stake in seconds.

    It keeps its stake if the user names no profile, the stake is device memory, or the profile lacks the figure.
    """
    machine = context.on_machine
    if finding.stake is None or finding.name not in RULE_TABLE or not machine.profile_is_named or machine.profile is None:
        return finding
    resource = RULES.load(finding.name).resource
    seconds = _seconds(context, machine.profile, finding, resource, finding.stake)
    return finding if seconds is None else finding._replace(stake=seconds, stake_unit="s")


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
