"""Times by the plain roofline, worked out from the figures of the profiles."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.figures import WORK, Gap, Tally, TallyKey
from hlo_inspect.analysis.cost.roofline import (
    bound,
    compute_seconds,
    memory_seconds,
    why_no_compute_time,
    why_no_memory_time,
)
from hlo_inspect.analysis.hardware import load_profile

H100, V5E = load_profile("h100-sxm"), load_profile("tpu-v5e")


def tally(**flops: int) -> Tally:
    found = Tally()
    for unit, count in flops.items():
        found.add(TallyKey("x", unit.replace("_", ".")), (count, 3 * count, 0, 0))
    return found


def test_each_unit_at_its_own_peak() -> None:
    """989.4 TFLOP/s of bf16 on the matrix unit, 66.9 TFLOP/s of f32 on the vector unit; transcendentals take no time."""
    found = tally(matmul_bf16=989_400_000_000, vector_f32=669_000_000)
    assert compute_seconds(found, H100) == pytest.approx(1e-3 + 1e-5, rel=1e-12)
    assert why_no_compute_time(found, H100) == ""


def test_a_rate_that_no_source_states() -> None:
    found = tally(matmul_f32=300, vector_f32=100)
    assert compute_seconds(found, H100) is None
    assert why_no_compute_time(found, H100) == "the profile h100-sxm states no rate for matmul.f32 (75.00% of the FLOPs)"
    assert why_no_compute_time(found, V5E).startswith("the profile tpu-v5e states no rate for matmul.f32, vector.f32 (100.00%")


def test_work_of_a_unit_that_is_not_told() -> None:
    found = Tally()
    found.add(TallyKey("x"), (8,))
    assert compute_seconds(found, H100) is None
    assert "not known" in why_no_compute_time(found, H100)


def test_nothing_takes_no_time() -> None:
    assert (compute_seconds(Tally(), V5E), memory_seconds(Tally(), V5E)) == (0, 0)


def test_bytes_at_the_bandwidth() -> None:
    """3352 GB/s."""
    found = Tally()
    found.add(TallyKey("x"), (0, 0, 0, 3_352_000))
    assert memory_seconds(found, H100) == pytest.approx(1e-6, rel=1e-12)


def test_a_figure_that_is_not_known_has_no_time() -> None:
    found = tally(vector_f32=8)
    found.miss(TallyKey("y"), (*WORK, "bytes"), Gap(4, "no shape"))
    assert (compute_seconds(found, H100), memory_seconds(found, H100)) == (None, None)
    assert why_no_compute_time(found, H100) == why_no_memory_time(found, H100) == "line 4: no shape"


@pytest.mark.parametrize(
    ("compute", "memory", "longer"),
    [(2.0, 1.0, "compute"), (1.0, 2.0, "memory"), (None, 1.0, None), (1.0, None, None), (0.0, 0.0, None)],
)
def test_bound(compute: float | None, memory: float | None, longer: str | None) -> None:
    assert bound(compute, memory) == longer
