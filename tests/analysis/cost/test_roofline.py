"""Times by the plain roofline, computed from the figures of the profiles."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.figures import WORK, CostGap, Tally, TallyKey, Work
from hlo_inspect.analysis.cost.roofline import bound, compute_time, memory_time, percent, rates_taken
from hlo_inspect.analysis.cost.work import HIGHEST, tally_key, work_of
from hlo_inspect.analysis.hardware import load_profile
from hlo_inspect.figure import exact, least, reason, unknown
from tests.analysis.cost.small import operation

H100, V5E = load_profile("h100-sxm"), load_profile("tpu-v5e")


def tally(**flops: int) -> Tally:
    sums = Tally()
    for unit, count in flops.items():
        sums.add(TallyKey("x", unit.replace("_", ".")), (count, 3 * count, 0, 0))
    return sums


def test_each_unit_at_its_own_peak() -> None:
    """989.4 TFLOP/s of bf16 on the matrix unit, 66.9 TFLOP/s of f32 on the vector unit; transcendentals take no time."""
    time = compute_time(tally(matmul_bf16=989_400_000_000, vector_f32=669_000_000), H100)
    assert exact(time) == pytest.approx(1e-3 + 1e-5, rel=1e-12)


def test_a_rate_that_no_source_states() -> None:
    """66.9 TFLOP/s of f32; work without a rate is left out."""
    time = compute_time(tally(matmul_s32=3, vector_f32=66_900_000), H100)
    assert exact(time) is None
    assert least(time) == pytest.approx(1e-6, rel=1e-12)
    assert reason(time) == "0.0000045 % of the FLOPs have no rate: the profile h100-sxm states none for matmul.s32"
    assert reason(compute_time(tally(matmul_s32=8), H100)).startswith("100 % of the FLOPs")


@pytest.mark.parametrize(
    ("share", "text"), [(0.0009, "0.090 %"), (0.5, "50 %"), (0.99991, "99.9910 %"), (1, "100 %"), (2.5, "250 %")]
)
def test_shares(share: float, text: str) -> None:
    assert percent(share) == text


def test_products_of_f32_are_rounded() -> None:
    """To tf32 on the GPU, 494.7 TFLOP/s; to bf16 on the TPU, 197 TFLOP/s."""
    sums = tally(matmul_f32=4947 * 197 * 10**9)
    assert exact(compute_time(sums, H100)) == pytest.approx(1.97, rel=1e-12)
    assert exact(compute_time(sums, V5E)) == pytest.approx(4.947, rel=1e-12)
    assert rates_taken(sums, H100) == {"matmul.f32": "matmul.tf32"}
    assert rates_taken(sums, V5E) == {"matmul.f32": "matmul.bf16"}


def test_products_in_full_precision() -> None:
    """By the vector unit on the GPU, 66.9 TFLOP/s; in passes of bf16 on the TPU."""
    sums = Tally()
    sums.add(TallyKey("dot", HIGHEST), (669 * 197 * 10**9, 0, 0, 0))
    assert exact(compute_time(sums, H100)) == pytest.approx(1.97, rel=1e-12)
    assert rates_taken(sums, V5E) == {HIGHEST: "matmul.bf16"}


@pytest.mark.parametrize(
    ("attributes", "unit"),
    [
        ("", "matmul.f32"),
        (", operand_precision={high,high}", "matmul.f32"),
        (", operand_precision={default,highest}", HIGHEST),
        (", algorithm=dot_f32_f32_f32", HIGHEST),
        (", algorithm=dot_tf32_tf32_f32_x3", "matmul.tf32"),
        (", algorithm=dot_bf16_bf16_f32_x6, operand_precision={highest,highest}", "matmul.bf16"),
    ],
)
def test_the_precision_of_a_product_decides_its_unit(attributes: str, unit: str) -> None:
    dot = f"%d = f32[4,4] dot(%p, %p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{attributes}"
    op = operation("%p = f32[4,4] parameter(0)", dot)
    assert tally_key(op, work_of(op, lambda *_: pytest.fail("nothing is applied"))).unit == unit


@pytest.mark.parametrize(("precision", "unit"), [("HIGHEST", HIGHEST), ("DEFAULT", "matmul.f32")])
def test_the_precision_of_a_library_call_decides_its_unit(precision: str, unit: str) -> None:
    precisions = f'"precision_config":{{"operand_precision":["DEFAULT","{precision}"],"algorithm":"ALG_UNSET"}}'
    config = f'{{"gemm_backend_config":{{{precisions}}}}}'
    call = f'%c = f32[4,4] custom-call(%p, %p), custom_call_target="__cublas$gemm", backend_config={config}'
    op = operation("%p = f32[4,4] parameter(0)", call)
    assert tally_key(op, Work(8, 0, 8)).unit == unit


def test_work_of_a_unit_that_is_not_told_runs_at_the_fastest_rate() -> None:
    """1978.9 TFLOP/s of f8."""
    sums = Tally()
    sums.add(TallyKey("x"), (1_978_900_000,))
    assert exact(compute_time(sums, H100)) == pytest.approx(1e-6, rel=1e-12)
    assert rates_taken(sums, H100) == {"": "matmul.f8"}


def test_nothing_takes_no_time() -> None:
    assert (compute_time(Tally(), V5E), memory_time(Tally(), V5E)) == (0, 0)


def test_bytes_at_the_bandwidth() -> None:
    """3352 GB/s."""
    sums = Tally()
    sums.add(TallyKey("x"), (0, 0, 0, 3_352_000))
    assert exact(memory_time(sums, H100)) == pytest.approx(1e-6, rel=1e-12)


def test_bytes_on_the_chip_are_not_charged() -> None:
    """`S(1)` is VMEM on a TPU, and memory like all other on a GPU; `S(5)` is the host's on both."""
    sums = Tally()
    for unit, size in (("", 819_000), ("space.1", 100_000), ("space.5", 10_000)):
        sums.add(TallyKey("x", unit), (0, 0, 0, size))
    assert exact(memory_time(sums, V5E)) == pytest.approx(819_000 / 819e9)
    assert exact(memory_time(sums, H100)) == pytest.approx(919_000 / 3352e9)


def test_a_figure_of_which_a_part_is_not_known() -> None:
    sums = tally(vector_f32=669)
    sums.miss(TallyKey("y"), (*WORK, "bytes"), CostGap(4, "no shape"))
    time = compute_time(sums, H100)
    assert least(time) == pytest.approx(1e-11)
    assert (exact(time), reason(time)) == (None, "line 4: no shape")
    assert memory_time(sums, H100) == unknown("line 4: no shape")


@pytest.mark.parametrize(
    ("compute", "memory", "longer"),
    [(2.0, 1.0, "compute"), (1.0, 2.0, "memory"), (None, 1.0, None), (1.0, None, None), (0.0, 0.0, None)],
)
def test_bound(compute: float | None, memory: float | None, longer: str | None) -> None:
    assert bound(compute, memory) == longer
