"""Kernels that Pallas, Triton and Mosaic compile: the text holds their code only as encoded bytecode.

The kernel's own estimate comes first. Then names give the work of kernels of JAX's library, and of kernels that the TPU
compiler makes of `ragged-dot`. Else only operands and results are known. Sources: `jax/_src/tpu_custom_call.py`
(`CustomCallBackendConfig`), `jax/_src/pallas/cost_estimate.py`, `jax/experimental/pallas/ops/{tpu,gpu}`,
`GpuHloCostAnalysis::ExtractCustomCallCostEstimate`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hlo_inspect.analysis.cost.custom_calls.attention import Attention, by_shapes
from hlo_inspect.analysis.cost.custom_calls.call_cost import (
    MAX_FIGURE,
    CallCost,
    Rule,
    call_bytes,
    config_of,
    is_matrix,
    matmul_cost,
    matrices,
    plain_cost,
    unknown,
)
from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.lazy_pattern import lazy_pattern

TPU_KERNEL = "tpu_custom_call"
GPU_KERNELS = frozenset({"__gpu$xla.gpu.triton", "triton_kernel_call", "triton_kernel_call_ffi", "mosaic_gpu_v2", "mosaic_gpu"})
KERNEL_TARGETS = GPU_KERNELS | {TPU_KERNEL}
"""Targets that stand for kernels of many names."""

_PALLAS_CALL = "pallas_call"
_PALLAS_SCOPE = lazy_pattern(rf"([\w.\-]+)\)*/{_PALLAS_CALL}$", re.ASCII)

_FIGURES = ("flops", "transcendentals", "bytes_accessed")


def kernel_name(instruction: Instruction) -> str:
    """Return the name of a kernel: from its configuration, else the instruction's name without its number.

    If this is only `pallas_call`, return the scope around it.
    """
    config = instruction.attr("backend_config") if instruction.attr("custom_call_target") in GPU_KERNELS else None
    named = config.fields.get("name") if config is not None else None
    if isinstance(named, str) and named:
        return named
    name, metadata = instruction.name.rstrip("0123456789").rstrip("."), instruction.attr("metadata")
    scope = _PALLAS_SCOPE.search(metadata.op_name) if metadata is not None and name.endswith(_PALLAS_CALL) else None
    return scope[1] if scope is not None else name


def _kernel(op: Operation) -> CallCost:
    """Return the cost of a kernel by its estimate, else by its name: of instruction, op_name, or `name` of a Triton kernel."""
    estimate, metadata = _estimate(op), op.instruction.attr("metadata")
    in_config = config_of(op).fields.get("name", "") if op.custom_call_target in GPU_KERNELS else ""
    names = f"/{op.instruction.name}/{metadata.op_name if metadata is not None else ''}/{in_config}"
    named = next((rule for pattern, rule in _NAMED if pattern.search(names)), None)
    if estimate is None:
        return unknown(op) if named is None else named(op)
    if named is not None and (named is _ragged_product or len(array_leaves(op.shape)) > 1):
        # With the statistics for a backward as results, it is this kernel and no other kernel of the name.
        return _with_matmuls_of(named, op, estimate)
    return estimate


def _with_matmuls_of(rule: Rule, op: Operation, estimate: CallCost) -> CallCost:
    """Add to an estimate the matrix multiplications that the rule of the kernel's name counts."""
    try:
        named = rule(op)
    except UnknownCostError:
        return estimate
    if named.work is None or estimate.work is None or named.work.matmul_flops > estimate.work.flops:
        return estimate
    work = estimate.work._replace(matmul_flops=named.work.matmul_flops)
    return estimate._replace(
        work=work, is_attention=named.is_attention, at_full_lengths=named.at_full_lengths, has_matmuls_known=True
    )


# -- estimates ----------------------------------------------------------------------------------------------------------------


def _estimate(op: Operation) -> CallCost | None:
    """Return the kernel's own estimate, None if there is none.

    It does not state the share of matrix multiplications. 0 bytes are no estimate.
    """
    config = config_of(op)
    estimate = config.member("custom_call_config").get("cost_estimate")
    if not isinstance(estimate, dict):
        text = config.fields.get("cost_estimate_json")
        estimate = _json_object(text) if isinstance(text, str) else None
    if estimate is None:
        return None
    flops, transcendentals, moved = (_figure(estimate, name) for name in _FIGURES)
    return CallCost(
        Work(flops, transcendentals), moved or call_bytes(op), "estimate", None if flops else 0, has_matmuls_known=flops == 0
    )


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UnknownCostError("cost_estimate_json in its backend_config is not a JSON object")
    return value


def _figure(estimate: Mapping[str, Any], name: str) -> int:
    text = str(estimate.get(name, 0))
    if not text.isdecimal() or len(text) > 20 or int(text) > MAX_FIGURE:
        raise UnknownCostError(f"{name} in its cost_estimate is {text[:40]}, which makes no sense")
    return int(text)


# -- names --------------------------------------------------------------------------------------------------------------------


def _splash_key_gradient(op: Operation) -> CallCost:
    """Return the cost of the key gradient. Fused with the gradient of the queries it has a third result of whole heads."""
    sizes = by_shapes(op, "key_gradient", length_first=False)
    heads = [leaf for _, leaf in array_leaves(op.shape) if len(leaf.dimensions) > 2 and is_matrix(leaf)]
    return by_shapes(op, "backward", length_first=False) if len(heads) > 2 else sizes


def _paged(op: Operation) -> CallCost:
    """Return the cost of queries `[batch, heads, …, size]` over pages `[key heads, pages, tokens, size]`.

    The figures count all pages of a sequence, an equal share of the second table. The number of tokens is known at run time
    only.
    """
    arrays = [shape for shape in op.operand_shapes() if isinstance(shape, ArrayShape)]
    tables = [shape for shape in arrays if shape.dtype == "s32"]
    floats = [shape for shape in arrays if is_matrix(shape)]
    if len(tables) < 2 or len(floats) < 3 or len(floats[1].dimensions) != 4:
        raise UnknownCostError("its operands do not match JAX's paged attention")
    queries, pages = floats[0], floats[1]
    batch, size = dimension(queries, 0), dimension(queries, len(queries.dimensions) - 1)
    if not batch or not size:
        raise UnknownCostError("its queries have no elements")
    keys = elements(tables[1]) // batch * dimension(pages, 2)
    work = Attention(batch, elements(queries) // (batch * size), 1, keys, size, size).work("forward")
    return CallCost(work, call_bytes(op), "name", 0, is_attention=True, at_full_lengths=True)


def _row_sums(op: Operation) -> CallCost:
    """Return the cost of the sum over each head of the output times its gradient: two FLOPs an element."""
    return plain_cost(op, 2 * elements(op.operand_array(0)), "leading term")


def _ragged_product(op: Operation) -> CallCost:
    """Return the cost of `[rows, k]` and a matrix `[groups, k, columns]`, after the tables of groups.

    Each row is in one group at most.
    """
    rows, matrix = matrices(op, 2)
    if len(rows.dimensions) != 2 or len(matrix.dimensions) != 3:
        raise UnknownCostError("its operands do not match a grouped matrix multiplication")
    return matmul_cost(op, 2 * elements(rows) * dimension(matrix, 2), "name", at_full_lengths=True)


_NAMED: tuple[tuple[re.Pattern[str], Callable[[Operation], CallCost]], ...] = tuple(
    (lazy_pattern(rf"(?<![A-Za-z0-9])(?<!ragged_){pattern}", re.ASCII), rule)
    for pattern, rule in (
        ("flash_mha_bwd_dkv", partial(by_shapes, kernel="key_gradient", length_first=False)),
        ("flash_mha_bwd_dq", partial(by_shapes, kernel="query_gradient", length_first=False)),
        ("splash_m[hq]a_fwd", partial(by_shapes, kernel="forward", length_first=False)),
        ("splash_m[hq]a_dkv", _splash_key_gradient),
        ("splash_m[hq]a_dq", partial(by_shapes, kernel="query_gradient", length_first=False)),
        (r"mha_forward\b", partial(by_shapes, kernel="forward", length_first=True)),
        (r"mha_preprocess_backward\b", _row_sums),
        (r"mha_backward\b", partial(by_shapes, kernel="split_backward", length_first=True)),
        (r"paged_attention\b", _paged),
        (r"flash_attention\b", partial(by_shapes, kernel="forward", length_first=False)),
        (r"ragged-dot-metadata\b", partial(plain_cost, flops=0, known_by="name")),  # where groups start and end
        (r"ragged-dot-none\b", _ragged_product),
    )
)

RULES: dict[str, Rule] = dict.fromkeys(sorted(KERNEL_TARGETS), _kernel)
