"""Attention of TransformerEngine and of cuDNN.

With `x` = batch * query heads * queries * keys, one matrix multiplication of scores has 2x FLOPs for each element of a head.
The forward has two: the scores, and their product with the values. A backward that keeps no scores has five: the scores again,
and the gradients of values, probabilities, queries and keys. That is the count of Dao-AILab/flash-attention,
`benchmarks/benchmark_flash_attention.py`. Each score takes one exponential, in the backward once more. Heads that share keys
change bytes and no FLOPs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost, Rule, call_bytes, config_of, size, whole
from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.lazy_pattern import lazy_pattern

Kernel = Literal["forward", "backward", "kept_backward", "key_gradient", "query_gradient", "split_backward"]
"""The kinds of attention kernels.

`kept_backward` reads the scores that the forward kept. `split_backward` is two kernels: one for the gradients of keys and
values, one for the gradient of the queries. Each computes the scores again.
"""

_MULTIPLICATIONS: dict[Kernel, tuple[int, int]] = {
    "forward": (1, 1),
    "backward": (3, 2),
    "kept_backward": (2, 2),
    "key_gradient": (2, 2),
    "query_gradient": (2, 1),
    "split_backward": (4, 3),
}
"""Matrix multiplications over the elements of a head of queries and keys, and over the elements of a head of values."""

_SCORES: dict[Kernel, int] = {"split_backward": 2, "kept_backward": 0}
"""The number of times that a kernel computes the scores, if more or less than once."""


class Mask(NamedTuple):
    """The keys that a query sees: from `left` before it to `right` after it, None without a limit.

    The last query is at the last key if `is_bottom_right`, else the first at the first.
    """

    left: int | None = None
    right: int | None = None
    is_bottom_right: bool = False

    def pairs(self, queries: int, keys: int) -> int:
        """Count the pairs of a query and a visible key."""
        shift = keys - queries if self.is_bottom_right else 0
        below = queries * keys if self.right is None else _pairs_up_to(queries, keys, shift + self.right)
        before = 0 if self.left is None else _pairs_up_to(queries, keys, shift - self.left - 1)
        return max(0, below - before)


def _pairs_up_to(queries: int, keys: int, diagonal: int) -> int:
    """Count the pairs (i, j) with `j <= i + diagonal`: the sum over i of `i + diagonal + 1`, between 0 and `keys`."""
    first = min(max(0, -diagonal), queries)  # the first query that sees a key
    full = min(max(first, keys - diagonal - 1), queries)  # the first query that sees all keys
    return (full - first) * (first + full - 1 + 2 * (diagonal + 1)) // 2 + (queries - full) * keys


CAUSAL = Mask(right=0)


class Attention(NamedTuple):
    """The sizes of an attention: `heads` counts query heads; `key_size` and `value_size` are the elements of a head."""

    batch: int
    heads: int
    queries: int
    keys: int
    key_size: int
    value_size: int

    def work(self, kernel: Kernel, pairs: int | None = None) -> Work:
        """Return the work of a kernel, for `pairs` of queries and keys or for all."""
        scores = self.batch * self.heads * (self.queries * self.keys if pairs is None else pairs)
        over_keys, over_values = _MULTIPLICATIONS[kernel]
        flops = 2 * scores * (over_keys * self.key_size + over_values * self.value_size)
        return Work(flops, scores * _SCORES.get(kernel, 1), flops)

    def recomputed(self, kernel: Kernel) -> int:
        """Return the FLOPs of scores that the forward computed already."""
        times = 0 if kernel == "forward" else _SCORES.get(kernel, 1)
        return 2 * times * self.batch * self.heads * self.queries * self.keys * self.key_size

    def cost(self, op: Operation, kernel: Kernel, mask: Mask, *, at_full_lengths: bool = False) -> CallCost:
        """Return the cost of a call whose configuration states the sizes and the mask.

        Raise UnknownCostError if its first operand, the queries alone or with keys and values, has another number of elements.
        """
        queries = self.batch * self.queries * self.heads * self.key_size
        count = elements(op.operand_array(0))
        if count not in (queries, queries + 2 * self.batch * self.keys * self.heads * self.key_size):
            raise UnknownCostError(f"its queries have {count:,} elements, but its backend_config states {queries:,}")
        least = self.work(kernel, mask.pairs(self.queries, self.keys)).flops
        return CallCost(
            self.work(kernel),
            call_bytes(op),
            "config",
            least,
            is_attention=True,
            at_full_lengths=at_full_lengths,
            recomputed_flops=self.recomputed(kernel),
        )


# -- TransformerEngine --------------------------------------------------------------------------------------------------------

_TE_MASKS: dict[int, tuple[Mask, bool]] = {
    0: (Mask(), False),
    1: (Mask(), True),
    2: (CAUSAL, False),
    3: (CAUSAL, True),
    4: (CAUSAL._replace(is_bottom_right=True), False),
    5: (CAUSAL._replace(is_bottom_right=True), True),
}
"""`NVTE_Mask_Type` of `transformer_engine/common/include/transformer_engine/fused_attn.h`, and True for padded sequences."""

_TE_PACKED_LAYOUTS = frozenset({10, 11, 12, 13, 14, 17, 18})
"""Numbers of `NVTE_QKV_Layout` in which a row holds several sequences (THD)."""


def _te(op: Operation, kernel: Kernel) -> CallCost:
    """Return the cost by the call's attributes (`FusedAttnFwdPrimitive`, `FusedAttnBwdPrimitive`).

    Lengths of padded and packed sequences are operands, known at run time only.
    """
    fields = config_of(op).fields
    number = whole(fields, "mask_type")
    if number not in _TE_MASKS:
        raise UnknownCostError(f"mask_type in its backend_config is {number}, an unknown value")
    mask, is_padded = _TE_MASKS[number]
    if fields.get("bottom_right_diagonal") is True:
        mask = mask._replace(is_bottom_right=True)
    is_packed = whole(fields, "qkv_layout", 9) in _TE_PACKED_LAYOUTS or whole(fields, "max_segments_per_seq", 1) > 1
    return _te_sizes(fields).cost(op, kernel, _te_window(mask, fields), at_full_lengths=is_padded or is_packed)


def _te_sizes(fields: Mapping[str, Any]) -> Attention:
    """Return the sizes by the attributes. Before version 2.5 there was one `head_dim`."""
    key_size = size(fields, "qk_head_dim" if "qk_head_dim" in fields else "head_dim")
    value_size = size(fields, "v_head_dim") if "v_head_dim" in fields else key_size
    batch, heads = size(fields, "input_batch"), size(fields, "attn_heads")
    return Attention(batch, heads, size(fields, "q_max_seqlen"), size(fields, "kv_max_seqlen"), key_size, value_size)


def _te_window(mask: Mask, fields: Mapping[str, Any]) -> Mask:
    """Add the window of the attributes to a mask; -1 is no limit."""
    left, right = whole(fields, "window_size_left", -1), whole(fields, "window_size_right", -1)
    if min(left, right) < -1:
        raise UnknownCostError("the window in its backend_config makes no sense (window_size_left, window_size_right)")
    if mask.right is None and right >= 0:
        mask = mask._replace(right=right)
    return mask if left < 0 else mask._replace(left=left)


# -- cuDNN --------------------------------------------------------------------------------------------------------------------

_CUDNN_MASKS: dict[str, tuple[Mask, bool]] = {
    "NO_MASK": (Mask(), False),
    "PADDING": (Mask(), True),
    "CAUSAL": (CAUSAL, False),
    "PADDING_CAUSAL": (CAUSAL, True),
    "ALIBI": (CAUSAL, False),
}
"""`CudnnfMHAMaskKind` of `xla/service/gpu/backend_configs.proto`, and True for padded sequences."""
_CUDNN_NUMBERS = dict(zip("01234", _CUDNN_MASKS.values(), strict=True))

_CUDNN = lazy_pattern(r"__cudnn\$fmha\w*?(Backward)?(?:F8)?", re.ASCII)


def _cudnn(op: Operation) -> CallCost:
    """Return the cost by `CudnnfMHABackendConfig`: `intermediate_tensor_shape` is batch, query heads, queries and keys."""
    config = config_of(op).member("cudnn_fmha_backend_config")
    is_backward = op.custom_call_target.removesuffix("F8").endswith("Backward")
    shape = config.get("intermediate_tensor_shape")
    sizes = shape.get("dimensions") if isinstance(shape, dict) else None
    if not isinstance(sizes, list) or len(sizes) != 4:
        raise UnknownCostError("its backend_config does not state the shape of the scores (intermediate_tensor_shape)")
    batch, heads, queries, keys = (size({"intermediate_tensor_shape": number}, "intermediate_tensor_shape") for number in sizes)
    key_size, value_size = _last_dimension(op, 0), _last_dimension(op, 2)
    kernel: Kernel = "forward"
    if is_backward:
        kernel = "kept_backward" if config.get("is_flash_attention") is False else "backward"
    mask, is_padded = _cudnn_mask(config)
    is_packed = whole(config, "max_seg_per_batch", 1) > 1 or config.get("is_paged_attention") is True
    attention = Attention(batch, heads, queries, keys, key_size, value_size)
    return attention.cost(op, kernel, mask, at_full_lengths=is_padded or is_packed)


def _cudnn_mask(config: Mapping[str, Any]) -> tuple[Mask, bool]:
    """Return the mask, and True if sequences are padded.

    Early in 2024 `is_causal_mask` stood in the place of `mask_type`. The length of a sliding window includes the query's own
    key.
    """
    named = str(config.get("mask_type", "CAUSAL" if config.get("is_causal_mask") is True else "NO_MASK"))
    entry = _CUDNN_MASKS.get(named) or _CUDNN_NUMBERS.get(named)
    if entry is None:
        raise UnknownCostError(f"mask_type in its backend_config is {named[:40]}, an unknown value")
    window = whole(config, "sliding_window_length", 0)
    return (entry[0]._replace(left=window - 1), entry[1]) if window > 0 else entry


def _last_dimension(op: Operation, number: int) -> int:
    shape = op.operand_array(number)
    return dimension(shape, len(shape.dimensions) - 1)


def by_shapes(op: Operation, kernel: Kernel, *, length_first: bool) -> CallCost:
    """Return the cost of an attention by queries, keys and values, its first three operands of floating-point numbers.

    They are `[batch, length, heads, size]` if `length_first`, else `[…, heads, length, size]`; keys may lack heads. Raise
    UnknownCostError if they have other shapes.
    """
    arrays = [shape for shape in op.operand_shapes() if isinstance(shape, ArrayShape)]
    shapes = [shape for shape in arrays if shape.dtype.startswith(("f", "bf"))][:3]
    if len(shapes) < 3 or min(len(shape.dimensions) for shape in shapes) < 2:
        raise UnknownCostError("queries, keys and values are not its first operands of floating-point numbers")
    queries, keys, values = ([dimension(shape, i) for i in range(len(shape.dimensions))] for shape in shapes)
    if length_first:
        if {len(queries), len(keys), len(values)} != {4}:
            raise UnknownCostError("queries, keys and values do not have four dimensions each")
        batch, heads, lengths = queries[0], queries[2], (queries[1], keys[1])
    else:
        batch, heads, lengths = 1, math.prod(queries[:-2]), (queries[-2], keys[-2])
    attention = Attention(batch, heads, *lengths, queries[-1], values[-1])
    recomputed = attention.recomputed(kernel)
    return CallCost(attention.work(kernel), call_bytes(op), "name", is_attention=True, recomputed_flops=recomputed)


def cudnn_rule(target: str) -> Rule | None:
    """Return the rule of cuDNN's attention, whose targets name the operations fused into it; None for other targets."""
    return _cudnn if _CUDNN.fullmatch(target) else None


def _rule_pair(prefix: str, suffix: str, rule: Callable[[Operation, Kernel], CallCost]) -> dict[str, Rule]:
    """Return the rules of a forward and its backward, by target."""
    return {
        f"{prefix}_forward{suffix}": lambda op: rule(op, "forward"),
        f"{prefix}_backward{suffix}": lambda op: rule(op, "backward"),
    }


_te_opaque = partial(by_shapes, length_first=True)
"""The cost until version 2.0, in which the attributes are a packed C struct, so that the mask is unknown."""

RULES: dict[str, Rule] = (
    _rule_pair("te_fused_attn", "_ffi", _te)
    | _rule_pair("te_fused_attn", "", _te_opaque)
    | _rule_pair("te_cross_fused_attn", "", _te_opaque)
    | _rule_pair("te_self_fused_attn", "", _te_opaque)
    | _rule_pair("te_fused_attn_score_mod", "_ffi", _te_opaque)
)
