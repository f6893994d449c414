"""What a rule says of one custom call, and what the rules read: configurations, matrices and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, Traffic, shape_size
from hlo_inspect.hlo.values.attributes import BackendConfig
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, array_leaves

KnownBy = Literal["config", "shapes", "estimate", "name", "leading term", "marker", "user", ""]
"""How a cost is known: from the `backend_config`; from target and shapes; from the kernel's own estimate; from the name of the
kernel; as the leading term of a count that depends on the algorithm; as that of a marker, which does nothing; from a file of
the user's. Empty where it is not known.
"""

MAX_FIGURE = 10**19
"""More FLOPs or bytes than one custom call has: such a figure of a configuration makes no sense."""
MAX_DIMENSION = 10**12

_SCRATCH = frozenset({"u8", "s8"})


class CallCost(NamedTuple):
    """The cost of one run of a custom call.

    `work` is `None` where it is not known, `bytes` are those of operands and results without the workspace, or what an estimate
    says. `least_flops` count only what a static mask lets through, `None` where the text does not say; `at_full_lengths`: the
    sequences or groups can be shorter than the arrays that hold them, so that all figures are upper bounds. `has_matmuls_known`
    is unset where it is not known how much of the work is matrix multiplications. `recomputed_flops` are those of scores
    that the forward had already. `fault` says why the `backend_config` or an operand of a known target cannot be used.
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
        """FLOPs that a static mask leaves out, as far as the text says: a kernel may skip them."""
        return self.work.flops - self.least_flops if self.work is not None and self.least_flops is not None else 0

    @property
    def is_marker(self) -> bool:
        return self.known_by == "marker"


Rule = Callable[[Operation], CallCost]

MARKER = CallCost(Work(), 0, "marker", 0)


def unknown(op: Operation, fault: str = "") -> CallCost:
    """A call of which only the bytes are known."""
    try:
        return CallCost(None, call_bytes(op), fault=fault)
    except UnknownCostError as error:
        return CallCost(None, None, fault=fault or error.reason)


def matmul_cost(op: Operation, flops: int, known_by: KnownBy = "config", *, at_full_lengths: bool = False) -> CallCost:
    """A call that is one matrix multiplication."""
    return CallCost(Work(flops, 0, flops), call_bytes(op), known_by, flops, at_full_lengths=at_full_lengths)


def plain_cost(op: Operation, flops: int, known_by: KnownBy = "shapes") -> CallCost:
    """A call without matrix multiplications."""
    return CallCost(Work(flops), call_bytes(op), known_by, flops)


# -- sizes --------------------------------------------------------------------------------------------------------------------


def call_bytes(op: Operation) -> int:
    """Operands read once and results written once. The last of several results is left out where it is a workspace of bytes,
    as `GpuHloCostAnalysis::HandleCustomCall` leaves it out.
    """
    return _traffic(op).bytes


def bytes_by_space(op: Operation) -> dict[int, int]:
    """The part of these bytes outside of the default memory, by memory space."""
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
    """Whether a shape is an array of floating-point or complex numbers with two dimensions at least."""
    return isinstance(shape, ArrayShape) and shape.dtype[:1] in {"f", "b", "c"} and len(shape.dimensions) > 1


def matrices(op: Operation, count: int) -> list[ArrayShape]:
    """The first so many operands that are matrices; `UnknownCostError` where there are fewer."""
    found = [shape for shape in op.operand_shapes() if isinstance(shape, ArrayShape) and is_matrix(shape)]
    if len(found) < count:
        raise UnknownCostError(f"it has {len(found)} matrices among its operands where {count} are needed")
    return found[:count]


# -- configurations -----------------------------------------------------------------------------------------------------------


def config_of(op: Operation) -> BackendConfig:
    """The `backend_config`; `UnknownCostError` where it cannot be read."""
    config = op.instruction.attr("backend_config") or BackendConfig("")
    if config.fault:
        raise UnknownCostError("its backend_config is no JSON")
    return config


def whole(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number of a configuration, as a number or a string; `UnknownCostError` that names the field where it is none."""
    value = fields.get(name, default)
    text = str(value)
    if value is None:
        raise UnknownCostError(f"its backend_config has no {name}")
    if isinstance(value, bool) or not text.removeprefix("-").isdecimal() or abs(number := int(text[:21])) > MAX_DIMENSION:
        raise UnknownCostError(f"{name} in its backend_config is {text[:40]}, which makes no sense")
    return number


def size(fields: Mapping[str, Any], name: str) -> int:
    """A whole number that is not negative."""
    number = whole(fields, name)
    if number < 0:
        raise UnknownCostError(f"{name} in its backend_config is {number}, which makes no sense")
    return number
