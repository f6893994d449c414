"""Kernels of Pallas, Triton and Mosaic, linear algebra and sorting."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost
from hlo_inspect.analysis.cost.figures import Work
from tests.analysis.cost.custom_calls.small_calls import call


def estimated(estimate: str, name: str = "c") -> CallCost:
    config = f', backend_config={{"custom_call_config":{{"body":"TUzv","cost_estimate":{estimate}}}}}'
    return call("tpu_custom_call", "f32[8]", "f32[8]", attributes=config, name=name)


def test_a_kernel_that_brings_an_estimate() -> None:
    """It does not say how much of it is matrix multiplications."""
    cost = estimated('{"flops":"2048","transcendentals":7,"bytes_accessed":96}')
    assert cost == CallCost(Work(2048, 7), 96, "estimate", has_matmuls_known=False)


def test_an_estimate_of_0_bytes_is_ignored() -> None:
    assert estimated('{"flops":2048,"transcendentals":0,"bytes_accessed":0}').bytes == 64


def test_an_estimate_over_several_lines() -> None:
    assert estimated('{\n"flops": 2048,\n"bytes_accessed": 96\n}').work == Work(2048)


@pytest.mark.parametrize("flops", ["-1", '"1e9"', "1e30", '"10000000000000000000000"', "[]", "true"])
def test_an_estimate_that_makes_no_sense(flops: str) -> None:
    cost = estimated(f'{{"flops":{flops}}}')
    assert cost.work is None
    assert "flops in its cost_estimate" in cost.fault


@pytest.mark.parametrize("config", ["", ', backend_config={"custom_call_config":{"body":"TUzv"}}'])
def test_a_kernel_without_estimate_and_known_name_has_only_bytes(config: str) -> None:
    assert call("tpu_custom_call", "f32[8]", "f32[8]", attributes=config) == CallCost(None, 64)


@pytest.mark.parametrize("quote", [r"\"", r"\22"])
def test_an_estimate_of_a_gpu_kernel(quote: str) -> None:
    """MLIR prints a quote in a string in hexadecimal; the next character may be another such digit."""
    estimate = r'{"flops": 123456, "bytes_accessed": 10}'.replace('"', quote)
    config = f', backend_config={{cost_estimate_json = "{estimate}", name = "k"}}'
    cost = call("__gpu$xla.gpu.triton", "f32[8]", "f32[8]", attributes=config)
    assert (cost.work, cost.bytes) == (Work(123_456), 10)


RAGGED = ("s32[1]", "s32[9]", "s32[8]", "s32[8]", "s32[1]", "bf16[1024,512]", "bf16[8,512,256]")
"""The operands of `ragged-dot` as a kernel for TPUs, behind tables of 8 groups."""


@pytest.mark.parametrize("estimate", [268_435_456, None])
def test_a_product_of_groups_of_rows(estimate: int | None) -> None:
    """2 · 1024 · 512 · 256 FLOPs in whichever groups the rows are, as XLA's estimate has it."""
    figures = (
        f'"cost_estimate":{{"flops":"{estimate}","bytes_accessed":"3670048"}}' if estimate is not None else '"body":"TUzv"'
    )
    config = f', backend_config={{"custom_call_config":{{{figures}}}}}'
    cost = call("tpu_custom_call", "bf16[1024,256]", *RAGGED, attributes=config, name="ragged-dot-none.2")
    assert cost.work == Work(268_435_456, 0, 268_435_456)
    assert (cost.has_matmuls_known, cost.at_full_lengths) == (True, True)
    assert cost.known_by == ("name" if estimate is None else "estimate")


@pytest.mark.parametrize("operands", [RAGGED, ("f32[8]",)])
def test_an_estimate_that_is_less_than_the_product_of_groups(operands: tuple[str, ...]) -> None:
    """Another kernel of the same name: only its estimate is known."""
    config = ', backend_config={"custom_call_config":{"cost_estimate":{"flops":"7","bytes_accessed":"1"}}}'
    cost = call("tpu_custom_call", "bf16[1024,256]", *operands, attributes=config, name="ragged-dot-none")
    assert (cost.work, cost.has_matmuls_known) == (Work(7), False)


def test_the_tables_of_groups_are_no_work() -> None:
    tables = "(s32[9], s32[8], s32[8], s32[1])"
    assert call("tpu_custom_call", tables, "s32[8]", name="ragged-dot-metadata") == CallCost(Work(), 136, "name", 0)


HEADS, STATISTICS = "bf16[2,4,512,128]", "f32[2,4,512,128]"
X = 2 * 4 * 512 * 512 * 128


@pytest.mark.parametrize(
    ("name", "result", "multiplications"),
    [
        ("flash_attention.1", HEADS, 2),
        ("flash_mha_bwd_dkv_block_q_major_128.1", f"({HEADS}, {HEADS})", 4),
        ("flash_mha_bwd_dq_block_q_major_128.1", HEADS, 3),
    ],
)
def test_flash_attention_by_name(name: str, result: str, multiplications: int) -> None:
    cost = call("tpu_custom_call", result, HEADS, HEADS, HEADS, STATISTICS, name=name)
    assert cost.work == Work(2 * multiplications * X, X // 128, 2 * multiplications * X)
    assert (cost.known_by, cost.least_flops) == ("name", None)


def test_the_kernels_of_splash_attention_follow_their_tables() -> None:
    tables, q, kv = ("s8[1,8,8]", "s8[1,8,8]"), "bf16[4,1024,128]", "bf16[2,1024,128]"
    x = 4 * 1024 * 1024 * 128
    forward = call("tpu_custom_call", f"({q}, f32[4,1024,128])", *tables, q, kv, kv, name="splash_mha_fwd_residuals.1")
    separate = call("tpu_custom_call", f"({kv}, {kv})", *tables, q, kv, kv, name="splash_mha_dkv_no_residuals.1")
    fused = call("tpu_custom_call", f"({q}, {kv}, {kv})", *tables, q, kv, kv, name="splash_mha_dkv_no_residuals.1")
    of_one_head = call("tpu_custom_call", q, *tables, q, "bf16[1024,128]", "bf16[1024,128]", name="splash_mqa_fwd.1")
    works = [cost.work and cost.work.flops for cost in (forward, separate, fused, of_one_head)]
    assert works == [4 * x, 8 * x, 10 * x, 4 * x]


def test_paged_attention_reads_all_pages_at_most() -> None:
    """4 sequences of 8 pages of 16 tokens, 8 heads: 4 · 4 · 8 · 128 · 128 FLOPs.

    4 · 8 · 128 exponentials.
    """
    shapes = ("s32[4]", "s32[32]", "s32[1]", "s32[1]", "f32[4,8,1,128]", "bf16[8,64,16,128]", "bf16[8,64,16,128]")
    cost = call("tpu_custom_call", "f32[4,8,1,128]", *shapes, name="paged_attention.1")
    assert cost.work == Work(2_097_152, 4096, 2_097_152)
    assert (cost.least_flops, cost.at_full_lengths) == (0, True)
    assert call("tpu_custom_call", "f32[4,8,1,128]", *shapes, name="ragged_paged_attention.1").work is None


def test_attention_of_pallas_on_gpus() -> None:
    """Queries [batch, length, heads, size]: x = 2 · 4 · 256 · 256 · 64; the backward makes the scores twice."""
    operand, x = "f16[2,256,4,64]", 2 * 4 * 256 * 256 * 64
    forward = call(
        "__gpu$xla.gpu.triton", operand, *[operand] * 3, attributes=', metadata={op_name="jit(f)/mha_forward/pallas_call"}'
    )
    backward = call("__gpu$xla.gpu.triton", operand, *[operand] * 3, attributes=', backend_config={name = "mha_backward"}')
    assert forward.work == Work(4 * x, x // 64, 4 * x)
    assert backward.work == Work(14 * x, 2 * x // 64, 14 * x)


def test_a_named_kernel_of_other_operands() -> None:
    cost = call("tpu_custom_call", "f32[8]", "s32[8]", name="flash_attention.1")
    assert cost.work is None
    assert cost.fault


MATRIX = "f32[2,128,128]"


@pytest.mark.parametrize(
    ("target", "result", "operands", "flops"),
    [
        ("lapack_spotrf_ffi", f"({MATRIX}, s32[2])", (MATRIX,), 32768 * 128 // 3),  # n³/3 of each
        ("cusolver_potrf_ffi", f"({MATRIX}, s32[2])", (MATRIX,), 32768 * 128 // 3),
        ("lapack_spotrf", f"({MATRIX}, s32[2])", ("s32[]", "s32[]", "s32[]", MATRIX), 32768 * 128 // 3),
        ("lapack_cpotrf_ffi", "(c64[3,3], s32[])", ("c64[3,3]",), 36),
        ("cusolver_getrf_ffi", "(f32[6,3], s32[3], s32[])", ("f32[6,3]",), 54 - 9),  # m·n² - n³/3
        ("cublas_getrf_batched", "(f32[3,6], s32[3], s32[])", ("f32[3,6]",), 45),
        ("lapack_sgeqrf_ffi", "(f32[6,3], f32[3])", ("f32[6,3]",), 108 - 18),  # 2·m·n² - 2/3·n³
        ("hipsolver_orgqr_ffi", "f32[6,3]", ("f32[6,3]", "f32[3]"), 90),
        ("lapack_dormqr_ffi", "f64[6,4]", ("f64[6,3]", "f64[3]", "f64[6,4]"), 2 * 4 * 3 * 9),
        ("lapack_strsm_ffi", "f32[2,128,32]", (MATRIX, "f32[2,128,32]"), 2_097_152),
        ("blas_strsm", "f32[2,128,32]", ("s32[]", "f32[]", MATRIX, "f32[2,128,32]"), 2_097_152),
        ("__cublas$triangularSolve", "(f32[2,128,32], s8[0])", (MATRIX, "f32[2,128,32]"), 2_097_152),
        ("lapack_sgehrd_ffi", "(f32[3,3], f32[2])", ("f32[3,3]",), 90),
        ("lapack_ssytrd_ffi", "(f32[3,3], f32[3])", ("f32[3,3]",), 36),
        ("TopK", "(f32[16,8], s32[16,8])", ("f32[16,4096]",), 0),
        ("xla.gpu.ext.cub_sort_keys", "(f32[1000], u8[64])", ("f32[1000]",), 10_000),
    ],
)
def test_linear_algebra_and_sorting(target: str, result: str, operands: tuple[str, ...], flops: int) -> None:
    assert call(target, result, *operands).work == Work(flops)


def test_factorizations_of_tpus_work_in_blocks() -> None:
    cost = call("Cholesky", MATRIX, MATRIX)
    assert (cost.work, cost.has_matmuls_known) == (Work(32768 * 128 // 3), False)
