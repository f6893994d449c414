"""Time by the plain roofline: work at a device's dense peak, bytes at its memory bandwidth, each as if the other took no time.

FLOPs run at the peak of the unit that does them, in the type that they have; transcendentals take no time of their own, as
no profile states a rate for them. A peak that the profile does not state leaves the time unknown.
"""

from __future__ import annotations

import math
from collections import Counter

from hlo_inspect.analysis.cost.figures import FIGURES, Tally
from hlo_inspect.analysis.hardware import HardwareProfile

_FLOPS = FIGURES.index("flops")


def compute_seconds(tally: Tally, profile: HardwareProfile) -> float | None:
    """The time of all FLOPs; `None` where it is not known, `why_no_compute_time` says why."""
    if why_no_compute_time(tally, profile):
        return None
    return math.fsum(flops / (profile.value(unit) or 1) for unit, flops in sorted(_by_unit(tally).items()))


def why_no_compute_time(tally: Tally, profile: HardwareProfile) -> str:
    """Why the compute time is not known; nothing where it is."""
    unknown = tally.why_unknown("flops")
    if unknown:
        return unknown
    by_unit = _by_unit(tally)
    missing = [unit for unit, _ in by_unit.most_common() if profile.value(unit) is None]
    if not missing:
        return ""
    share = sum(by_unit[unit] for unit in missing) / by_unit.total()
    named = ", ".join(unit or "work whose unit or type is not known" for unit in missing)
    return f"the profile {profile.name} states no rate for {named} ({share:.2%} of the FLOPs)"


def memory_seconds(tally: Tally, profile: HardwareProfile) -> float | None:
    """The time of all bytes; `None` where it is not known, `why_no_memory_time` says why."""
    size, bandwidth = tally.total("bytes"), profile.memory_bandwidth
    return None if size is None or bandwidth is None else size / bandwidth


def why_no_memory_time(tally: Tally, profile: HardwareProfile) -> str:
    """Why the memory time is not known; nothing where it is."""
    if profile.memory_bandwidth is None:
        return f"the profile {profile.name} states no memory bandwidth"
    return tally.why_unknown("bytes")


def bound(compute: float | None, memory: float | None) -> str | None:
    """What takes longer: `compute` or `memory`."""
    if compute is None or memory is None or compute == memory:
        return None
    return "compute" if compute > memory else "memory"


def _by_unit(tally: Tally) -> Counter[str]:
    """FLOPs by the unit that does them; units without FLOPs are left out."""
    by_unit: Counter[str] = Counter()
    for key, row in tally.rows.items():
        if row[_FLOPS]:
            by_unit[key.unit] += row[_FLOPS]
    return by_unit
