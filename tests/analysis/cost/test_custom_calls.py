from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.custom_calls import ANNOTATIONS, CallCost, call_cost
from hlo_inspect.analysis.cost.figures import Work
from tests.analysis.cost.small import operation


def matmul(flops: int, size: int) -> CallCost:
    return CallCost(Work(flops, 0, flops), size)


def call(target: str, result: str, *shapes: str, attributes: str = "") -> CallCost | None:
    lines = [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]
    names = ", ".join(f"%p{i}" for i in range(len(shapes)))
    return call_cost(operation(*lines, f'%c = {result} custom-call({names}), custom_call_target="{target}"{attributes}'))


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
    found = call("__cublas$lt$matmul$f8", "(bf16[4,8], s8[4194304])", *shapes, attributes=config)
    assert found == matmul(2 * 32 * 16, 64 + 128 + 4 + 4 + 64)


def test_a_batched_product_contracts_what_the_config_says() -> None:
    config = ', backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["2"],"lhs_batch_dimensions":["0"]}}'
    assert call("__cublas$gemm", "f16[4,3,7]", "f16[4,3,5]", "f16[4,5,7]", attributes=config) == matmul(
        2 * 84 * 5, 2 * (60 + 140 + 84)
    )


WINDOW = ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
POSITIONS = 10 * 10
"""Of a window of 3 with a border of 1 over 4: ten pairs in each dimension."""
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


def test_a_tpu_kernel_that_brings_an_estimate() -> None:
    estimate = '{"flops":"2048","transcendentals":7,"bytes_accessed":96}'
    config = f', backend_config={{"custom_call_config":{{"body":"TUzv","cost_estimate":{estimate}}}}}'
    assert call("tpu_custom_call", "f32[8]", "f32[8]", attributes=config) == CallCost(Work(2048, 7), 96)


@pytest.mark.parametrize(
    "config",
    [
        "",
        ', backend_config={"custom_call_config":{"body":"TUzv"}}',
        ', backend_config={"custom_call_config":{"cost_estimate":{"flops":-1}}}',
        ', backend_config={"custom_call_config":{"cost_estimate":{"flops":"1e9"}}}',
        ", backend_config=" + "[" * 50 + "]" * 50,
    ],
)
def test_a_kernel_without_an_estimate_has_no_rule(config: str) -> None:
    assert call("tpu_custom_call", "f32[8]", "f32[8]", attributes=config) is None


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
    """What it moves is known all the same."""
    found = call("__cublas$gemm", "f32[3,7]", "f32[3,5]", "f32[5,7]", attributes=config)
    assert found is not None
    assert (found.work, found.bytes) == (None, 4 * (15 + 35 + 21))
    assert found.fault in {"its backend_config does not tell what it contracts", "dimension 7 of f32[3,5] is not known"}


@pytest.mark.parametrize("config", ['"not json"', "{broken", '"{\\"dot_dimension_numbers\\":"'])
def test_a_configuration_that_is_no_json(config: str) -> None:
    """Another target may have what it likes there."""
    fault = "its backend_config is no JSON"
    attributes = f", backend_config={config.replace('{broken', '{broken}')}"
    assert call("tpu_custom_call", "f32[8]", "f32[8]", attributes=attributes) == CallCost(None, None, fault)
    assert call("__cublas$gemm", "f32[8]", "f32[8]", "f32[8]", attributes=attributes) == CallCost(None, 3 * 32, fault)
    assert call("other", "f32[8]", "f32[8]", attributes=attributes) is None


@pytest.mark.parametrize("target", ["pipeline_marker", "__builtin$CrossMeshAllReduce", "lapack_spotrf_ffi", ""])
def test_other_targets_have_no_rule(target: str) -> None:
    assert call(target, "f32[8]", "f32[8]") is None


@pytest.mark.parametrize("target", sorted(ANNOTATIONS))
def test_annotations_cost_nothing(target: str) -> None:
    assert call(target, "f32[8]", "f32[8]") == CallCost(Work(), 0)
