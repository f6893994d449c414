from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost
from hlo_inspect.analysis.cost.figures import Work
from hlo_inspect.hlo.opcodes import MARKER_TARGETS
from tests.analysis.cost.custom_calls.small_calls import call


def matmul(flops: int, size: int) -> CallCost:
    return CallCost(Work(flops, 0, flops), size, "config", flops)


DIMENSIONS = (
    '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[]}'
)


@pytest.mark.parametrize(
    "config",
    [
        f', backend_config={{"gemm_backend_config":{{"beta":0,{DIMENSIONS}}}}}',  # since 2024
        f', backend_config={{"alpha_real":1,{DIMENSIONS}}}',
        ', backend_config="{' + DIMENSIONS.replace('"', '\\"') + '}"',  # until 2023
    ],
)
@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul"])
def test_cublas(target: str, config: str) -> None:
    """2 · 3 · 7 · 5 FLOPs; operands and result once."""
    assert call(target, "f32[3,7]", "f32[3,5]", "f32[5,7]", attributes=config) == matmul(210, 4 * (15 + 35 + 21))


def test_the_workspace_is_not_accessed() -> None:
    config = f', backend_config={{"gemm_backend_config":{{{DIMENSIONS}}}}}'
    shapes = ("f8e4m3fn[4,16]", "f8e4m3fn[16,8]", "f32[]", "f32[]")
    cost = call("__cublas$lt$matmul$f8", "(bf16[4,8], s8[4194304])", *shapes, attributes=config)
    assert cost == matmul(2 * 32 * 16, 64 + 128 + 4 + 4 + 64)


def test_a_batched_product_contracts_what_the_config_says() -> None:
    config = ', backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"lhs_batch_dimensions":["0"]}}'
    assert call("__cublas$gemm", "f16[4,3,7]", "f16[4,3,5]", "f16[4,5,7]", attributes=config) == matmul(
        2 * 84 * 5, 2 * (60 + 140 + 84)
    )


WINDOW = ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
POSITIONS = 10 * 10
"""Positions of a window of 3 with a border of 1 over 4: ten pairs in each dimension."""
IMAGE, KERNEL, RESULT = "f32[2,4,4,5]", "f32[3,3,5,6]", "f32[2,4,4,6]"
SIZE = 4 * (160 + 270 + 192)


@pytest.mark.parametrize(
    ("target", "result", "operands"),
    [
        ("__cudnn$convForward", f"({RESULT}, u8[1024])", (IMAGE, KERNEL)),
        ("__cudnn$convBiasActivationForward", f"({RESULT}, u8[0])", (IMAGE, KERNEL)),
        ("__cudnn$convForwardGraph", RESULT, (IMAGE, KERNEL)),
        ("__cudnn$convBackwardInput", f"({IMAGE}, u8[1024])", (RESULT, KERNEL)),
        ("__cudnn$convBackwardFilter", f"({KERNEL}, u8[1024])", (IMAGE, RESULT)),
        ("__onednn$convolution", RESULT, (IMAGE, KERNEL)),
    ],
)
def test_convolutions_and_their_gradients_cost_the_same(target: str, result: str, operands: tuple[str, ...]) -> None:
    assert call(target, result, *operands, attributes=WINDOW) == matmul(2 * 2 * 5 * 6 * POSITIONS, SIZE)


def test_onednn() -> None:
    plain = ', backend_config={"onednn_matmul_config":{}}'
    turned = ', backend_config={"onednn_matmul_config":{"transpose_a":true}}'
    assert call("__onednn$matmul", "f32[3,7]", "f32[3,5]", "f32[5,7]", attributes=plain) == matmul(210, 4 * 71)
    assert call("__onednn$matmul", "f32[3,7]", "f32[5,3]", "f32[5,7]", attributes=turned) == matmul(210, 4 * 71)


def test_block_scaled_dots_contract_the_last_dimension() -> None:
    """2 · 3 · 7 · 32 FLOPs; scales are read too."""
    shapes = ("f8e4m3fn[3,32]", "f8e4m3fn[7,32]", "f8e8m0fnu[3,1]", "f8e8m0fnu[7,1]")
    cost = call("__op$block_scaled_dot", "f32[3,7]", *shapes)
    assert (cost.work, cost.bytes) == (Work(1344, 0, 1344), 96 + 224 + 3 + 7 + 84)


def test_grouped_multiplications_are_an_upper_bound() -> None:
    """Each of 8 rows times one of 4 matrices [5,7]: 2 · 8 · 5 · 7."""
    dot = '{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}'
    config = f', backend_config={{"grouped_gemm_backend_config":{{"gemm_backend_config":{dot}}}}}'
    cost = call("__cublas$lt$groupedMatmul", "(f32[8,7], s8[64])", "f32[8,5]", "f32[4,5,7]", "s32[4]", attributes=config)
    assert (cost.work, cost.at_full_lengths) == (Work(560, 0, 560), True)


@pytest.mark.parametrize(
    ("boundary", "transposed", "lhs"),
    [(2, "false", "bf16[2,3,5]"), (1, "true", "bf16[5,2,3]")],
)
def test_transformer_engine_splits_the_dimensions_at_a_boundary(boundary: int, transposed: str, lhs: str) -> None:
    """2 · 6 rows · 7 columns · 5 contracted."""
    config = f"{{lhs_axis_boundary = {boundary} : i64, lhs_transposed = {transposed}}}"
    shapes = (lhs, "f32[0]", "bf16[5,7]", "f32[0]", "bf16[0]", "f32[1]", "f32[1]")
    cost = call("te_gemm_v2_ffi", "(bf16[2,3,7], u8[99])", *shapes, attributes=f", backend_config={{config={config}}}")
    assert (cost.work, cost.bytes) == (Work(420, 0, 420), 60 + 70 + 8 + 84)


@pytest.mark.parametrize(
    "config",
    [
        "",
        ', backend_config={"dot_dimension_numbers":{}}',
        ', backend_config={"dot_dimension_numbers":[]}',
        ', backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["x"]}}',
        ', backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":[7]}}',
    ],
)
def test_a_library_call_that_does_not_tell_its_dimensions(config: str) -> None:
    """Its bytes are known all the same."""
    cost = call("__cublas$gemm", "f32[3,7]", "f32[3,5]", "f32[5,7]", attributes=config)
    assert (cost.work, cost.bytes) == (None, 4 * (15 + 35 + 21))
    assert "lhs_contracting_dimensions" in cost.fault or cost.fault == "dimension 7 of f32[3,5] is unknown"


@pytest.mark.parametrize("config", ['"not json"', "{broken}", '"{\\"dot_dimension_numbers\\":"'])
def test_a_configuration_that_is_no_json(config: str) -> None:
    """Other targets may have any text there."""
    fault = "its backend_config is not JSON"
    attributes = f", backend_config={config}"
    assert call("tpu_custom_call", "f32[8]", "f32[8]", attributes=attributes) == CallCost(None, 64, fault=fault)
    assert call("__cublas$gemm", "f32[8]", "f32[8]", "f32[8]", attributes=attributes) == CallCost(None, 96, fault=fault)
    assert call("other", "f32[8]", "f32[8]", attributes=attributes) == CallCost(None, 64)


@pytest.mark.parametrize("target", ["__builtin$CrossMeshAllReduce", "lapack_ssyevd_ffi", "cusolver_gesvd_ffi", "lapack_", ""])
def test_other_targets_have_only_bytes(target: str) -> None:
    assert call(target, "f32[8]", "f32[8,8]") == CallCost(None, 32 + 256)


@pytest.mark.parametrize("target", [*sorted(MARKER_TARGETS), "_SPMDInternalOp_RotateRight"])
def test_markers_cost_nothing(target: str) -> None:
    cost = call(target, "f32[8]", "f32[8]")
    assert (cost.work, cost.bytes, cost.known_by) == (Work(), 0, "marker")
