"""The measure of how far the model of kernels is from the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kernel_times import Agreement, KernelMeasurement, measure_kernels, rank_correlation
from hlo_inspect.analysis.hardware import load_profile

US = 1e-6
PROFILE = load_profile("tpu-v5e")


def kernel(bound: float, estimate: float, compiler: float) -> KernelMeasurement:
    return KernelMeasurement("k", bound * US, estimate * US, compiler * US)


def test_equal_estimates_share_a_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4 beside 1, 2, 3, 4: Spearman's coefficient is 4.5 / sqrt(4.5 * 5)."""
    kernels = [kernel(1, 2, 2), kernel(1, 3, 3), kernel(1, 3, 4), kernel(1, 5, 9)]
    assert rank_correlation(kernels) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_kernels_below_the_fixed_cost_are_not_compared() -> None:
    """The fixed cost is 1.2 us: the kernel of 1 us is not compared, but its bound of 2 us is above the compiler's."""
    kernels = [kernel(2, 2, 1), kernel(1, 2, 3), kernel(1, 9, 4)]
    agreement = Agreement.measure(kernels, PROFILE)
    assert (agreement.read, agreement.loose_bounds, agreement.compared, agreement.within_factor_two) == (3, 1, 2, 0.5)
    assert agreement.ratio == pytest.approx(11 / 7)


def test_kernels_of_a_dump() -> None:
    """The estimates that stand in the text, by kernel."""
    dump = Path(__file__).parents[1] / "data" / "tpu" / "bf16_master.after.txt"
    times = {kernel_.name: kernel_.compiler_s for kernel_ in measure_kernels(dump, PROFILE)}
    assert times == {"fusion": pytest.approx(4157 / 1.5e9), "fusion.7": pytest.approx(1837 / 1.5e9)}
