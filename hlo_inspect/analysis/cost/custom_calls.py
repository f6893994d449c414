"""Custom calls whose cost is known: library matrix multiplications and convolutions, kernels that bring an estimate, and
annotations, which do no work. XLA's own HloCostAnalysis counts no custom call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hlo_inspect.analysis.cost.contraction import convolution_flops, dot_flops, matmul
from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, Traffic, elements, shape_size
from hlo_inspect.hlo.shapes import array_leaves
from hlo_inspect.hlo.values import BackendConfig

_ANNOTATIONS = """
    Sharding SPMDFullToShardShape SPMDShardToFullShape xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape
    xla.sdy.LocalToGlobalShape xla.sdy.PropagationBarrier xla.sdy.ShardingGroup LayoutConstraint annotate_device_placement
    AllocateBuffer ConcatBitcast AssumeGatherIndicesInBound AsyncCollectiveStart AsyncCollectiveDone
"""
ANNOTATIONS = frozenset(_ANNOTATIONS.split())
"""Targets that compute and move nothing themselves: they say how something is laid out, or where it starts and ends."""


TPU_KERNEL = "tpu_custom_call"


class CallCost(NamedTuple):
    """The cost of a custom call that has a rule. Where its `backend_config` cannot be used, `fault` says why, and what depends
    on it is `None`.
    """

    work: Work | None
    bytes: int | None
    fault: str = ""


def call_cost(op: Operation) -> CallCost | None:
    """The cost of a custom call; `None` where there is no rule for it. `UnknownCostError` where a shape is missing."""
    target = op.custom_call_target
    if target in ANNOTATIONS:
        return CallCost(Work(), 0)
    rule = _RULES.get(target)
    if rule is None:
        return _estimate(op)
    size = _operands_and_result(op)
    try:
        return CallCost(matmul(rule(op)), size)
    except UnknownCostError as error:
        return CallCost(None, size, error.reason)


def _operands_and_result(op: Operation) -> int:
    """`GpuHloCostAnalysis::HandleCustomCall`: what follows the first result is scratch memory."""
    return sum(map(shape_size, op.operand_shapes())) + shape_size(op.array)


def bytes_by_space(op: Operation) -> dict[int, int]:
    """The bytes of the operands and results that lie outside of the default memory, by memory space."""
    traffic = Traffic()
    try:
        for shape in (*op.operand_shapes(), op.shape):
            for _, leaf in array_leaves(shape):
                traffic.add(shape_size(leaf), leaf)
    except UnknownCostError:
        return {}
    return traffic.spaces


def _gemm(op: Operation) -> int:
    """`GpuHloCostAnalysis::HandleCustomCall`: the dot that `GemmBackendConfig` describes; alpha and beta are not counted."""
    config = _config(op)
    gemm = config.member("gemm_backend_config") or config.fields
    contracting = _object(gemm.get("dot_dimension_numbers")).get("lhs_contracting_dimensions")
    if not isinstance(contracting, list) or not all(_is_small(i) for i in contracting):
        raise UnknownCostError("its backend_config does not tell what it contracts")
    return dot_flops(op.operand_array(0), elements(op.array), tuple(map(int, contracting)))


def _onednn_matmul(op: Operation) -> int:
    """The matmul of oneDNN contracts the last dimension of its first operand, the one before when that is transposed."""
    transposed = _config(op).member("onednn_matmul_config").get("transpose_a") is True
    lhs = op.operand_array(0)
    contracting = len(lhs.dimensions) - 1 - transposed
    if contracting < 0:
        raise UnknownCostError("its first operand is no matrix")
    return dot_flops(lhs, elements(op.array), (contracting,))


def _forward_convolution(op: Operation) -> int:
    return convolution_flops(op, op.operand_array(0), op.operand_array(1), op.array)


def _input_gradient(op: Operation) -> int:
    """Its operands are the output's gradient and the kernel; `dim_labels` are those of the forward convolution."""
    return convolution_flops(op, op.array, op.operand_array(1), op.operand_array(0))


def _kernel_gradient(op: Operation) -> int:
    """Its operands are the input and the output's gradient; `dim_labels` are those of the forward convolution."""
    return convolution_flops(op, op.operand_array(0), op.array, op.operand_array(1))


def _estimate(op: Operation) -> CallCost | None:
    """What a TPU kernel (`tpu_custom_call`) says of itself in the `cost_estimate` of its `custom_call_config`."""
    try:
        config = _config(op)
    except UnknownCostError as error:
        return CallCost(None, None, error.reason) if op.custom_call_target == TPU_KERNEL else None
    estimate = config.member("custom_call_config").get("cost_estimate")
    if not isinstance(estimate, dict):
        return None
    figures = [str(estimate.get(name, 0)) for name in ("flops", "transcendentals", "bytes_accessed")]
    if not all(figure.isdecimal() and len(figure) < 20 for figure in figures):
        return None
    flops, transcendentals, size = map(int, figures)
    return CallCost(Work(flops, transcendentals), size)


def _is_small(number: object) -> bool:
    """Whether JSON holds the number of a dimension, as a number or as a string."""
    return str(number).isdecimal() and len(str(number)) < 4


def _config(op: Operation) -> BackendConfig:
    """The `backend_config`; `UnknownCostError` where it is no JSON."""
    config = op.instruction.attr("backend_config") or BackendConfig("", {})
    if config.fault:
        raise UnknownCostError("its backend_config is no JSON")
    return config


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_RULES: dict[str, Callable[[Operation], int]] = {
    "__cublas$gemm": _gemm,
    "__cublas$lt$matmul": _gemm,
    "__cublas$lt$matmul$f8": _gemm,
    "__cublas$lt$matmul$mx": _gemm,
    "__cudnn$convForward": _forward_convolution,
    "__cudnn$convForwardGraph": _forward_convolution,
    "__cudnn$convBiasActivationForward": _forward_convolution,
    "__cudnn$convBackwardInput": _input_gradient,
    "__cudnn$convBackwardFilter": _kernel_gradient,
    "__onednn$matmul": _onednn_matmul,
    "__onednn$convolution": _forward_convolution,
}
