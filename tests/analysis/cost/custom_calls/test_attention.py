from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.custom_calls.attention import CAUSAL, Mask
from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost
from hlo_inspect.analysis.cost.figures import Work
from tests.analysis.cost.custom_calls.small_calls import call


def pairs_one_by_one(mask: Mask, queries: int, keys: int) -> int:
    shift = keys - queries if mask.is_bottom_right else 0
    return sum(
        (mask.right is None or key <= query + shift + mask.right) and (mask.left is None or key >= query + shift - mask.left)
        for query in range(queries)
        for key in range(keys)
    )


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize("right", [None, 0, 2, 9])
@pytest.mark.parametrize("left", [None, 0, 1, 9])
def test_pairs_of_a_mask(left: int | None, right: int | None, bottom_right: bool) -> None:
    mask = Mask(left, right, bottom_right)
    for queries in range(9):
        for keys in range(9):
            assert mask.pairs(queries, keys) == pairs_one_by_one(mask, queries, keys), (queries, keys)


def test_pairs_of_long_sequences() -> None:
    """n·(n + 1)/2, and of a window of W keys W·(W + 1)/2 + (n - W)·W."""
    assert CAUSAL.pairs(8192, 8192) == 33_558_528
    assert CAUSAL._replace(left=255).pairs(1024, 1024) == 256 * 257 // 2 + 768 * 256


def te_attributes(**changed: object) -> str:
    """Return the attributes of the attention of Llama 405B on each of 128 devices, forward."""
    attributes: dict[str, object] = {
        "attn_heads": 128,
        "input_batch": 1,
        "is_training": "true",
        "kv_max_seqlen": 8192,
        "mask_type": 3,
        "max_segments_per_seq": 1,
        "num_gqa_groups": 8,
        "q_max_seqlen": 8192,
        "qk_head_dim": 128,
        "qkv_layout": 9,
        "v_head_dim": 128,
        "window_size_left": -1,
        "window_size_right": -1,
    } | changed
    fields = (f"{name} = {value}{'' if value == 'true' else ' : i64'}" for name, value in attributes.items())
    return f", api_version=API_VERSION_TYPED_FFI, backend_config={{{', '.join(fields)}}}"


Q, KV, STATISTICS, EMPTY = "bf16[1,8192,128,128]", "bf16[1,8192,8,128]", "f32[1,128,8192,1]", "f32[0]"
ENDS = ("s32[2]", "s32[2]", *[EMPTY] * 6)


def te(kernel: str, **changed: object) -> CallCost:
    """Return the cost for Llama 405B: x = 128 · 8192 · 8192 · 128 = 1,099,511,627,776."""
    if kernel == "forward":
        result, operands = f"({Q}, {STATISTICS}, u32[2,4], u8[48])", (Q, KV, KV, "bf16[0]", "u32[2]", *ENDS)
    else:
        result = f"({Q}, {KV}, {KV}, bf16[0], u8[1077936176])"
        operands = (Q, KV, KV, "bf16[0]", STATISTICS, "u32[2,4]", Q, Q, *ENDS)
    return call(f"te_fused_attn_{kernel}_ffi", result, *operands, attributes=te_attributes(**changed))


def test_llama_405b_forward() -> None:
    """4 x; 2 · 128 heads · 33,558,528 pairs · 256; one exponential a score."""
    cost = te("forward")
    assert cost.work == Work(4_398_046_511_104, 8_589_934_592, 4_398_046_511_104)
    assert cost.least_flops == 2 * 128 * 33_558_528 * 256 == 2_199_291_691_008
    assert cost.bytes == 2 * 268_435_456 + 2 * 16_777_216 + 4_194_304 + 32 + 8 + 16
    assert (cost.known_by, cost.is_attention, cost.at_full_lengths) == ("config", True, True)


def test_llama_405b_backward() -> None:
    """10 x."""
    cost = te("backward")
    assert cost.work == Work(10_995_116_277_760, 8_589_934_592, 10_995_116_277_760)
    assert cost.least_flops == 5_498_229_227_520
    assert cost.bytes == 1_145_045_040


def test_masks_of_transformer_engine() -> None:
    full, causal = 4_398_046_511_104, 2_199_291_691_008
    assert te("forward", mask_type=0).least_flops == full
    assert te("forward", mask_type=2).least_flops == causal
    assert te("forward", mask_type=0, bottom_right_diagonal="true").least_flops == full
    windowed = te("forward", mask_type=2, window_size_left=255)
    assert windowed.least_flops == 2 * 128 * 256 * (256 * 257 // 2 + (8192 - 256) * 256)
    two_sided = te("forward", mask_type=0, window_size_left=1, window_size_right=1)
    assert two_sided.least_flops == 2 * 128 * 256 * (3 * 8192 - 2)
    assert not te("forward", mask_type=2).at_full_lengths
    assert te("forward", mask_type=2, max_segments_per_seq=4).at_full_lengths


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"mask_type": 17}, "mask_type"),
        ({"q_max_seqlen": -1}, "q_max_seqlen"),
        ({"attn_heads": 10**18}, "attn_heads"),
        ({"window_size_left": -7}, "window_size_left"),
        ({"input_batch": "true"}, "input_batch"),
    ],
)
def test_attributes_that_make_no_sense_leave_the_work_unknown(changed: dict[str, object], field: str) -> None:
    cost = te("forward", **changed)
    assert cost.work is None
    assert field in cost.fault


def test_values_of_a_smaller_head_than_keys() -> None:
    """2 · scores · (128 + 64)."""
    cost = te("forward", v_head_dim=64, mask_type=0)
    assert cost.work is not None
    assert cost.work.flops == 2 * 128 * 8192 * 8192 * 192


def test_shapes_that_contradict_the_configuration_leave_the_work_unknown() -> None:
    cost = te("forward", attn_heads=64)
    assert cost.work is None
    assert cost.fault == "its queries have 134,217,728 elements, but its backend_config states 67,108,864"


def test_queries_keys_and_values_in_one_operand() -> None:
    """Layout 5: [batch, length, 3, heads, size]."""
    packed = "bf16[2,512,3,8,64]"
    sizes = {"attn_heads": 8, "input_batch": 2, "q_max_seqlen": 512, "kv_max_seqlen": 512, "qk_head_dim": 64, "v_head_dim": 64}
    attributes = te_attributes(**sizes, qkv_layout=5, mask_type=0)
    cost = call("te_fused_attn_forward_ffi", "(bf16[2,512,8,64], u8[48])", packed, "bf16[0]", "bf16[0]", attributes=attributes)
    assert cost.work == Work(1_073_741_824, 4_194_304, 1_073_741_824)


def cudnn(target: str, config: str, *, dimensions: str = '["2","8","512","512"]') -> CallCost:
    shape = f'"intermediate_tensor_shape":{{"dimensions":{dimensions}}}'
    attributes = f', backend_config={{"cudnn_fmha_backend_config":{{{shape}{config}}}}}'
    operand = "bf16[2,512,8,64]"
    return call(target, "(bf16[2,8,512,64]{3,1,2,0}, u8[0]{0})", operand, operand, operand, attributes=attributes)


def test_cudnn() -> None:
    """4 · 2 · 8 · 512 · 512 · 64; four arrays of a mebibyte."""
    cost = cudnn("__cudnn$fmhaSoftmax", ',"mask_type":"NO_MASK"')
    assert cost.work == Work(1_073_741_824, 4_194_304, 1_073_741_824)
    assert (cost.least_flops, cost.bytes) == (1_073_741_824, 4 << 20)
    assert cudnn("__cudnn$fmhaSoftmax", ',"mask_type":"CAUSAL"').least_flops == 537_919_488
    assert cudnn("__cudnn$fmhaScaleBiasSoftmaxDropout", ',"is_causal_mask":true').least_flops == 537_919_488


def test_a_backward_that_reads_kept_scores_computes_none() -> None:
    """Five multiplications of 536,870,912, and four."""
    flash = cudnn("__cudnn$fmhaSoftmaxBackward", ',"is_flash_attention":true')
    kept = cudnn("__cudnn$fmhaSoftmaxBackward", ',"is_flash_attention":false')
    assert (flash.work, kept.work) == (Work(5 << 29, 4_194_304, 5 << 29), Work(4 << 29, 0, 4 << 29))
    assert cudnn("__cudnn$fmhaSoftmaxBackwardF8", "").work == flash.work


@pytest.mark.parametrize(
    ("config", "dimensions", "field"),
    [
        (',"mask_type":"SPIRAL"', '["2","8","512","512"]', "mask_type"),
        ("", '["2","8","512"]', "intermediate_tensor_shape"),
        ("", '["2","8","512","-512"]', "intermediate_tensor_shape"),
        ("", '["2","8","512",{}]', "intermediate_tensor_shape"),
    ],
)
def test_a_cudnn_configuration_that_makes_no_sense(config: str, dimensions: str, field: str) -> None:
    cost = cudnn("__cudnn$fmhaSoftmax", config, dimensions=dimensions)
    assert cost.work is None
    assert field in cost.fault
