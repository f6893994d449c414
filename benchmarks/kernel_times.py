"""Times of kernels against the compiler's own estimates: `python -m benchmarks.kernel_times PROFILE DUMP…`.

The compiler's estimates are `estimated_cycles`, in seconds of the profile's clock. If an estimate is below 0.95 of a kernel's
fixed cost, the compiler assumed memory on the chip. Ranks and ratios leave such kernels out; the check of the bound does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import sqrt
from pathlib import Path
from statistics import median
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.hardware import HardwareProfile, load_profile
from hlo_inspect.analysis.time.profile_choice import MachineOptions
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules

ABOVE_FIXED_COST = 0.95
LOOSE_BOUND = 1.05
"""A bound may exceed the compiler's estimate by this, because the compiler rounds."""
MANY = 20
"""Ranks of fewer kernels say little."""


class KernelMeasurement(NamedTuple):
    """A kernel with seconds of one run: bound, estimate of the model, estimate of the compiler."""

    name: str
    bound_s: float
    estimate_s: float
    compiler_s: float

    @property
    def is_bound(self) -> bool:
        return self.bound_s <= LOOSE_BOUND * self.compiler_s

    @property
    def is_within_factor_two(self) -> bool:
        return 0.5 <= self.estimate_s / self.compiler_s <= 2


def measure_kernels(path: Path, profile: HardwareProfile) -> Iterator[KernelMeasurement]:
    """Return the kernels of a dump with an estimate of the compiler.

    A device of half a chip has half of the profile's figures.
    """
    for module in read_modules(open_source(path), KERNEL_WANTS):
        context = Context(module, options=ParsedOptions(MachineOptions((profile,))))
        times = context.on_machine.kernel_times
        if times is None:
            continue
        for kernel in context.own_kernels:
            time = times.for_kernel(kernel)
            if time.compiler_s:
                yield KernelMeasurement(kernel.instruction.name, time.bound_s, time.estimate_s, time.compiler_s)


def above_fixed_cost(kernels: Sequence[KernelMeasurement], profile: HardwareProfile) -> list[KernelMeasurement]:
    """Return the kernels for which the compiler did not assume memory on the chip."""
    return [kernel for kernel in kernels if kernel.compiler_s >= ABOVE_FIXED_COST * (profile.kernel_overhead or 0)]


def rank_correlation(kernels: Sequence[KernelMeasurement]) -> float:
    """Return Spearman's correlation of the model's and the compiler's estimates; equal estimates share their mean rank."""
    ours, theirs = (_ranks(column) for column in ([k.estimate_s for k in kernels], [k.compiler_s for k in kernels]))
    mean = (len(kernels) - 1) / 2
    both = sum((a - mean) * (b - mean) for a, b in zip(ours, theirs, strict=True))
    each = sqrt(sum((a - mean) ** 2 for a in ours) * sum((b - mean) ** 2 for b in theirs))
    return both / each if each else float("nan")


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    first = 0
    for _, equal in groupby(order, key=values.__getitem__):
        tied = list(equal)
        for index in tied:
            ranks[index] = first + (len(tied) - 1) / 2
        first += len(tied)
    return ranks


class Agreement(NamedTuple):
    """Distance of the model from the compiler, over `compared` of `read` kernels: those above the fixed cost."""

    read: int
    loose_bounds: int
    compared: int
    correlation: float
    within_factor_two: float
    ratio: float

    @classmethod
    def measure(cls, kernels: Sequence[KernelMeasurement], profile: HardwareProfile) -> Agreement:
        compared = above_fixed_cost(kernels, profile)
        count, theirs = len(compared), sum(kernel.compiler_s for kernel in compared)
        return cls(
            len(kernels),
            sum(not kernel.is_bound for kernel in kernels),
            count,
            rank_correlation(compared) if count > 1 else float("nan"),
            sum(kernel.is_within_factor_two for kernel in compared) / max(1, count),
            sum(kernel.estimate_s for kernel in compared) / theirs if theirs else float("nan"),
        )

    def __str__(self) -> str:
        return (
            f"{self.read:6} kernels, {self.loose_bounds} bounds above the estimate; {self.compared:6} above the fixed cost: "
            f"rank correlation {self.correlation:.3f}, within factor 2 {self.within_factor_two:.3f}, sum {self.ratio:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile")
    parser.add_argument("dumps", nargs="+", type=Path)
    options = parser.parse_args()
    profile = load_profile(options.profile)
    pooled: list[KernelMeasurement] = []
    ranks = []
    for path in options.dumps:
        kernels = list(measure_kernels(path, profile))
        agreement = Agreement.measure(kernels, profile)
        pooled += kernels
        ranks += [agreement.correlation] if agreement.compared >= MANY else []
        print(f"{path.name:60} {agreement}")
    print(f"{'all':60} {Agreement.measure(pooled, profile)}")
    if ranks:
        print(f"of {len(ranks)} dumps with {MANY} kernels or more: median {median(ranks):.3f}, least {min(ranks):.3f}")


if __name__ == "__main__":
    main()
