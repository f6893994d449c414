"""The result of a rule for a custom call, and the inputs of rules: configurations, matrices and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, Traffic, shape_size
from hlo_inspect.hlo.values.attributes import BackendConfig
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, array_leaves
from hlo_inspect.lazy_pattern import lazy_pattern

KnownBy = Literal["config", "shapes", "estimate", "name", "leading term", "marker", "user", ""]
"""The source of a cost, empty if the cost is unknown.

It is the `backend_config`, target and shapes, the kernel's own estimate, the name of the kernel, or a file of the user's. Or it
is the leading term of a count that depends on the algorithm, or a marker, which does nothing.
"""

MAX_FIGURE = 10**19
"""Larger than the FLOPs or bytes of any custom call: such a figure of a configuration is invalid."""
MAX_DIMENSION = 10**12

_SCRATCH = frozenset({"u8", "s8"})


class CallCost(NamedTuple):
    """The cost of one run of a custom call.

    `work` is None if unknown. `bytes` are the bytes of operands and results without the workspace, or of an estimate.
    `least_flops` count only the pairs that a static mask lets through; None if unknown. `at_full_lengths`: sequences or groups
    can be shorter than their arrays, so that all figures are upper bounds. `has_matmuls_known` is False if the share of matrix
    multiplications is unknown. `recomputed_flops` are the FLOPs of scores that the forward computed already. `fault` says why
    the `backend_config` or an operand of a known target is unusable.
    """

    work: Work | None
    bytes: int | None
    known_by: KnownBy = ""
    least_flops: int | None = None
    is_attention: bool = False
    at_full_lengths: bool = False
    has_matmuls_known: bool = True
    recomputed_flops: int = 0
    fault: str = ""

    @property
    def masked_flops(self) -> int:
        """FLOPs that a static mask leaves out, as far as the text states it: a kernel may skip them."""
        return self.work.flops - self.least_flops if self.work is not None and self.least_flops is not None else 0

    def unknown_reason(self, target: str) -> str:
        """Return why the work of a call of this target is unknown; empty if it is known."""
        return self.fault or (f"there is no rule for {target}" if self.work is None else "")


Rule = Callable[[Operation], CallCost]

MARKER = CallCost(Work(), 0, "marker", 0)


def unknown(op: Operation, fault: str = "") -> CallCost:
    """Make the cost of a call with known bytes and unknown work."""
    try:
        return CallCost(None, call_bytes(op), fault=fault)
    except UnknownCostError as error:
        return CallCost(None, None, fault=fault or error.reason)


def multiplies_no_matrices(target: str) -> bool:
    """Return True if a target is named as a collective or as a call of Python on the host."""
    return bool(_NO_MATMULS.search(target))


_NO_MATMULS = lazy_pattern("(?i)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|python_[a-z_]*callback")


def matmul_cost(op: Operation, flops: int, known_by: KnownBy = "config", *, at_full_lengths: bool = False) -> CallCost:
    """Make the cost of a call that is one matrix multiplication."""
    return CallCost(Work(flops, 0, flops), call_bytes(op), known_by, flops, at_full_lengths=at_full_lengths)


def plain_cost(op: Operation, flops: int, known_by: KnownBy = "shapes") -> CallCost:
    """Make the cost of a call without matrix multiplications."""
    return CallCost(Work(flops), call_bytes(op), known_by, flops)


# -- sizes --------------------------------------------------------------------------------------------------------------------


def call_bytes(op: Operation) -> int:
    """Return the bytes of operands read once and results written once.

    The last of several results is left out if it is a workspace of bytes, as in `GpuHloCostAnalysis::HandleCustomCall`. Raise
    UnknownCostError if a size is unknown.
    """
    return _traffic(op).bytes


def bytes_by_space(op: Operation) -> dict[int, int]:
    """Return the part of these bytes outside the default memory, by memory space."""
    try:
        return _traffic(op).spaces
    except UnknownCostError:
        return {}


def _traffic(op: Operation) -> Traffic:
    results = [leaf for _, leaf in array_leaves(op.shape)]
    if len(results) > 1 and results[-1].dtype in _SCRATCH and len(results[-1].dimensions) == 1:
        results = results[:-1]
    traffic = Traffic()
    for shape in (*op.operand_shapes(), *results):
        for _, leaf in array_leaves(shape):
            traffic.add(shape_size(leaf), leaf)
    return traffic


def is_matrix(shape: Shape) -> bool:
    """Return True for an array of floating-point or complex numbers with at least two dimensions."""
    return isinstance(shape, ArrayShape) and shape.dtype[:1] in {"f", "b", "c"} and len(shape.dimensions) > 1


def matrices(op: Operation, count: int) -> list[ArrayShape]:
    """Return the first `count` operands that are matrices. Raise UnknownCostError if there are fewer."""
    operands = [shape for shape in op.operand_shapes() if isinstance(shape, ArrayShape) and is_matrix(shape)]
    if len(operands) < count:
        raise UnknownCostError(f"it has {len(operands)} matrices among its operands, but {count} are needed")
    return operands[:count]


# -- configurations -----------------------------------------------------------------------------------------------------------


def config_of(op: Operation) -> BackendConfig:
    """Return the `backend_config`. Raise UnknownCostError if it is not JSON."""
    config = op.instruction.attr("backend_config") or BackendConfig("")
    if config.fault:
        raise UnknownCostError("its backend_config is not JSON")
    return config


def whole(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return a whole number of a configuration, written as a number or a string. Raise UnknownCostError for any other value."""
    value = fields.get(name, default)
    text = str(value)
    if value is None:
        raise UnknownCostError(f"its backend_config has no {name}")
    if isinstance(value, bool) or not text.removeprefix("-").isdecimal() or abs(number := int(text[:21])) > MAX_DIMENSION:
        raise UnknownCostError(f"{name} in its backend_config is {text[:40]}, which makes no sense")
    return number


def size(fields: Mapping[str, Any], name: str) -> int:
    """Return a whole number that is not negative. Raise UnknownCostError for any other value."""
    number = whole(fields, name)
    if number < 0:
        raise UnknownCostError(f"{name} in its backend_config is {number}, which makes no sense")
    return number
