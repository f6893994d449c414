"""Time by the plain roofline: work at a device's dense peak, bytes at its memory bandwidth. Each ignores the time of the other.

All times are lower bounds. FLOPs run at the peak of the unit that does them, in their own type. Transcendentals take no time of
their own, as no profile states a rate for them. FLOPs without a rate take no time, and the reason states their share.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from hlo_inspect.analysis.cost.figures import FIGURES, MASKED, MAX_COUNT, NOT_MOVED, SHARED, SPACE, Tally
from hlo_inspect.analysis.cost.work import HIGHEST
from hlo_inspect.figure import Figure, Quantity, at_least, known_part, least, reason
from hlo_inspect.hlo.values.shapes import HOST_SPACE

if TYPE_CHECKING:
    from hlo_inspect.analysis.hardware import HardwareProfile

_FLOPS, _BYTES = FIGURES.index("flops"), FIGURES.index("bytes")

_OTHER_RATES = {
    "matmul.f32": ("matmul.tf32", "matmul.bf16"),
    "vector.bf16": ("vector.f32",),
    "vector.f16": ("vector.f32",),
    "matmul.f16": ("matmul.bf16",),
    "matmul.f8": ("matmul.bf16",),
}
"""Replacements for a rate that a profile does not state: the first rate of these that it states counts.

XLA widens f8 if the matrix unit lacks it (xla/service/gpu/transforms/gemm_rewriter.cc, and the TPU's matrix units of bf16).
Matrix units round f32 unless the precision is the highest, to tf32 on NVIDIA's GPUs and to bf16 on TPUs (JAX's documentation of
`jax.lax.Precision`). Vector units without 16-bit arithmetic compute in f32.
"""

_COMPLEX = {
    "matmul.c64": ("matmul.f32", 4),
    "matmul.c128": ("matmul.f64", 4),
    "vector.c64": ("vector.f32", 2),
    "vector.c128": ("vector.f64", 2),
}
"""The unit of the parts of complex numbers, and the real operations of a complex one: four in products, else at least two."""

_SMALL = 0.02
"""Share of the known time up to which work on integers without a rate, or on unknown types, does not count."""

NOT_KNOWN = ""
"""The unit of work whose hardware or type is unknown."""

_ENGINES = ("matmul.", "vector.")
HOST_MEMORY = f"{SPACE}{HOST_SPACE}"
"""The unit of bytes in the host's memory."""
_TPU_ON_CHIP = range(1, 7)


def share_of(part: Quantity, whole: Quantity) -> float | None:
    """Return the share that the known part of a time has of the `whole`; None if that is 0 or a lower bound.

    A time of which nothing is known has no share, nor has one with an upper bound.
    """
    is_open = isinstance(part, Figure) and (part.greatest is not None or not part.least)
    return None if is_open or not whole or isinstance(whole, Figure) else least(part) / whole


def rate(unit: str, profile: HardwareProfile) -> tuple[float, str] | None:
    """Return the rate of a unit in operations/s and the figure of the profile that states it; None if none fits.

    Work whose unit or type is unknown gets the fastest rate of the profile.
    """
    if unit == NOT_KNOWN:
        stated = {name: profile.value(name) or 0 for name in profile.figures if name.startswith(_ENGINES)}
        fastest = max(stated, key=lambda name: stated[name], default=unit)
        return (stated[fastest], fastest) if stated.get(fastest) else None
    if unit in _COMPLEX:
        part, operations = _COMPLEX[unit]
        of_part = rate(part, profile)
        return (of_part[0] / operations, of_part[1]) if of_part is not None else None
    others = _OTHER_RATES.get(unit, ())
    if unit == HIGHEST:  # vector units compute f32 in full, TPUs take several passes of bf16
        others = ("matmul.f32", "vector.f32" if profile.value("matmul.tf32") else "matmul.bf16")
    for name in (unit, *others):
        value = profile.value(name)
        if value is not None:
            return value, name
    return None


def rates_taken(tally: Tally, profile: HardwareProfile) -> dict[str, str]:
    """Return the units with FLOPs that run at the rate of another figure, with that figure."""
    rates = {unit: rate(unit, profile) for unit in sorted(_by_unit(tally))}
    return {unit: unit_rate[1] for unit, unit_rate in rates.items() if unit_rate is not None and unit_rate[1] != unit}


def compute_time(tally: Tally, profile: HardwareProfile) -> Quantity:
    """Return the time of all FLOPs."""
    by_unit = _by_unit(tally)
    rates = {unit: rate(unit, profile) for unit in sorted(by_unit)}
    seconds = math.fsum(
        min(by_unit[unit], MAX_COUNT) / unit_rate[0] for unit, unit_rate in rates.items() if unit_rate is not None
    )
    missing = [unit for unit, _ in by_unit.most_common() if rates[unit] is None]
    if not missing:
        return known_part(seconds, reason(tally.bounds("flops")))
    share = sum(by_unit[unit] for unit in missing) / by_unit.total()
    named = ", ".join(unit or "work whose unit or type is unknown" for unit in missing)
    without_rate = f"{percent(share)} of the FLOPs have no rate: the profile {profile.name} states none for {named}"
    return known_part(seconds, "; ".join(filter(None, (without_rate, reason(tally.bounds("flops"))))))


def missing_rate(tally: Tally, profile: HardwareProfile, known_s: float) -> str:
    """Return the reason why a time may exceed its known seconds, the work that has no rate; empty if there is no such work.

    Small work on integers, such as the index of a loop, and on unknown types does not count. At the slowest rate of the vector
    unit it takes `_SMALL` of the rest or less.
    """
    small = _SMALL * known_s * _slowest_vector(profile)
    for unit, flops in _by_unit(tally).items():
        is_small = unit in ("vector.s32", NOT_KNOWN) and flops <= small
        if (unit == NOT_KNOWN or rate(unit, profile) is None) and not is_small:
            return f"the profile {profile.name} states no rate for {unit or 'work whose unit or type is unknown'}"
    return ""


def _slowest_vector(profile: HardwareProfile) -> float:
    """Return the least rate of the vector unit that the profile states; 0 if it states none."""
    rates = (profile.value(name) for name in profile.figures if name.startswith("vector."))
    return min(filter(None, rates), default=0.0)


def engine_times(tally: Tally, profile: HardwareProfile) -> dict[str, float]:
    """Return the time of the FLOPs with a rate of each engine, `matmul` and `vector`, which work at the same time."""
    times: dict[str, float] = {}
    for unit, flops in _by_unit(tally).items():
        unit_rate = rate(unit, profile)
        if unit_rate is not None:
            engine = unit_rate[1].partition(".")[0]
            times[engine] = times.get(engine, 0.0) + min(flops, MAX_COUNT) / unit_rate[0]
    return times


def limiting_rate(tally: Tally, profile: HardwareProfile) -> str | None:
    """Return the figure of the profile that binds the FLOPs; None if the slower engine works at several rates."""
    engines = engine_times(tally, profile)
    slowest = max(engines, key=lambda engine: engines[engine], default="")
    rates = {unit_rate[1] for unit in _by_unit(tally) if (unit_rate := rate(unit, profile)) is not None}
    figures = [figure for figure in rates if figure.partition(".")[0] == slowest]
    return figures[0] if len(figures) == 1 else None


def percent(share: float) -> str:
    """Format a share with two significant digits: 0.09 %, 99.987 %, 12 %, 250 %."""
    small = min(share, abs(1 - share))
    digits = min(12, max(0, 1 - math.floor(math.log10(small * 100)))) if small and share < 1 else 0
    return f"{share * 100:.{digits}f} %"


def memory_time(tally: Tally, profile: HardwareProfile) -> Quantity:
    """Return the time of all bytes that the device's memory has to move."""
    bandwidth = profile.memory_bandwidth
    if bandwidth is None:
        return at_least(0.0, f"the profile {profile.name} states no memory bandwidth")
    elsewhere = units_elsewhere(profile)
    size = sum(row[_BYTES] for key, row in tally.rows.items() if key.unit not in elsewhere)
    return known_part(min(size, MAX_COUNT) / bandwidth, reason(tally.bounds("bytes")))


def units_elsewhere(profile: HardwareProfile) -> frozenset[str]:
    """Return the memory spaces, as units of a tally, outside the memory whose bandwidth the profile states.

    These are the host's, and on TPUs those on the chip (`S(1)` is VMEM). On GPUs `S(1)` is the memory that collectives share,
    which is device memory too.
    """
    spaces = _TPU_ON_CHIP if profile.is_tpu else (HOST_SPACE,)
    return frozenset(f"{SPACE}{space}" for space in (NOT_MOVED, *spaces))


def bound(compute: float | None, memory: float | None) -> str | None:
    """Return the longer of the two times, `compute` or `memory`; None if a time is unknown or both are equal."""
    if compute is None or memory is None or compute == memory:
        return None
    return "compute" if compute > memory else "memory"


def _by_unit(tally: Tally) -> Counter[str]:
    """Return FLOPs by the unit that does them; units without FLOPs are left out."""
    by_unit: Counter[str] = Counter()
    for key, row in tally.rows.items():
        if row[_FLOPS] and key.unit not in (MASKED, SHARED):
            by_unit[key.unit] += row[_FLOPS]
    return by_unit
