"""What kind of work an operation is to the phases of a step: a product, or a move of values."""

from __future__ import annotations

import re

from hlo_inspect.analysis.cost.custom_calls.markers import is_marker
from hlo_inspect.analysis.phases.value_graph import COLLECTIVE, MOVES, PRODUCT, REDUCES, SUMS
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

PRODUCTS = frozenset({"dot", "convolution", "ragged-dot", "scaled-dot"})
"""Products of arrays: layers of a network, and what their gradients are made of."""

MOVING = frozenset(
    {
        "bitcast-convert", "broadcast", "concatenate", "convert", "copy", "copy-start", "dynamic-slice", "dynamic-update-slice",
        "pad", "reshape", "reverse", "slice", "transpose",
    }
)  # fmt: skip
"""The result holds values of the operands."""

SUMMING = frozenset({"all-reduce", "reduce-scatter"})

KINDS = {
    **dict.fromkeys(PRODUCTS, PRODUCT),
    **dict.fromkeys(MOVING, MOVES),
    **dict.fromkeys(("gather", "reduce-window", "sort"), REDUCES),
    "reduce": REDUCES | MOVES,
    **{
        name: COLLECTIVE | MOVES | (SUMS if one.collective in SUMMING else 0)
        for name, one in TABLE.items()
        if one.collective and one.half in {"", "start"}
    },
}
"""What the node of an opcode is."""

_PRODUCT = lazy_pattern(r"fmha|attn|attention|conv|gemm|matmul|dot", re.IGNORECASE | re.ASCII)
_NO_PRODUCT = lazy_pattern(
    r"topk|partialreduce|sort|threefry|rng|random|callback|norm|softmax|quantize|transpose|cast|act_lu|dropout|barrier|padtostatic"
    r"|slicetodynamic|dynamicslice|memcpy|print|debug|sharding|cumsum|prefix|permut|rope|host_execute|resize|nccl|nvshmem|allocate",
    re.IGNORECASE | re.ASCII,
)


def is_computing(target: str) -> bool:
    """Whether custom calls of a target are products: not those that mark, move, sort, normalise or draw numbers."""
    return not is_marker(target) and (_PRODUCT.search(target) is not None or not _NO_PRODUCT.search(target))
