"""Convolutions and normalizations of cuDNN and oneDNN."""

from __future__ import annotations

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost, Rule, config_of, matmul_cost, plain_cost
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, elements
from hlo_inspect.analysis.cost.work import convolution_flops

_NORM_FORWARD = 7
"""FLOPs an element: its share of mean and variance (4), times the reciprocal deviation, times the scale, plus the bias."""
_NORM_BACKWARD = 13
"""FLOPs an element: the normalized value (2), two means of the scaled gradient (4), the gradient of the input (4), its share in
those of scale and bias (3).
"""


def _forward(op: Operation) -> CallCost:
    return matmul_cost(op, convolution_flops(op, op.operand_array(0), op.operand_array(1), op.array))


def _input_gradient(op: Operation) -> CallCost:
    """Its operands are the output's gradient and the kernel; `dim_labels` are those of the forward convolution."""
    return matmul_cost(op, convolution_flops(op, op.array, op.operand_array(1), op.operand_array(0)))


def _kernel_gradient(op: Operation) -> CallCost:
    """Its operands are the input and the output's gradient; `dim_labels` are those of the forward convolution."""
    return matmul_cost(op, convolution_flops(op, op.operand_array(0), op.array, op.operand_array(1)))


def _norm(op: Operation) -> CallCost:
    """`CudnnNormBackendConfig`: `kind` is LAYER_FWD_INFER (0), LAYER_FWD_TRAIN (1) or LAYER_BWD (2). Elementwise work and
    reductions over the first operand.
    """
    kind = str(config_of(op).member("cudnn_norm_backend_config").get("kind", "LAYER_FWD_INFER"))
    each = {"LAYER_BWD": _NORM_BACKWARD, "2": _NORM_BACKWARD}.get(kind, _NORM_FORWARD)
    if kind not in {"LAYER_FWD_INFER", "LAYER_FWD_TRAIN", "LAYER_BWD", "0", "1", "2"}:
        raise UnknownCostError(f"kind in its backend_config is {kind[:40]}, which has no meaning here")
    return plain_cost(op, each * elements(op.operand_array(0)), "leading term")


def _copy(op: Operation) -> CallCost:
    return plain_cost(op, 0)


RULES: dict[str, Rule] = {
    "__cudnn$convForward": _forward,
    "__cudnn$convForwardGraph": _forward,
    "__cudnn$convBiasActivationForward": _forward,
    "__cudnn$convBackwardInput": _input_gradient,
    "__cudnn$convBackwardFilter": _kernel_gradient,
    "__cudnn$convReorderFilter": _copy,
    "__cudnn$convReorderFilterAndBias": _copy,
    "__cudnn$norm": _norm,
    "__onednn$convolution": _forward,
}
