"""What each opcode does to the values that go through it, as far as data flow is concerned."""

from __future__ import annotations

ELEMENTWISE = frozenset(
    {
        "abs",
        "add",
        "and",
        "atan2",
        "cbrt",
        "ceil",
        "clamp",
        "compare",
        "cosine",
        "divide",
        "exponential",
        "exponential-minus-one",
        "floor",
        "is-finite",
        "log",
        "log-plus-one",
        "logistic",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "power",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "rsqrt",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "sine",
        "sqrt",
        "subtract",
        "tan",
        "tanh",
        "xor",
    }
)
"""Each element of the result follows from the same element of each operand."""

_BINARY = frozenset(
    """
    add and atan2 compare divide maximum minimum multiply or power remainder shift-left shift-right-arithmetic
    shift-right-logical subtract xor
    """.split()  # noqa: SIM905 - a list of words
)
OPERANDS = {op: 3 if op in {"clamp", "select"} else 2 if op in _BINARY else 1 for op in ELEMENTWISE}
"""How many operands each of these has."""

SAME = frozenset(
    {
        "all-gather",
        "bitcast",
        "convert",
        "copy",
        "copy-done",
        "copy-start",
        "opt-barrier",
        "reduce-precision",
        "reshape",
        "transpose",
    }
)
"""The result holds the values of the operand: another type, order, shape or place, or more copies of them."""

MOVES = frozenset(
    {
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "dynamic-slice",
        "gather",
        "pad",
        "reverse",
        "slice",
    }
)
"""The result holds some of the values of the first operand, elsewhere."""

SAME_TARGETS = frozenset(
    {
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
        "pipeline_marker",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GSPMDFullToShardShape",
        "xla.sdy.GSPMDShardToFullShape",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.Sharding",
    }
)
"""Custom calls that hand their operands on, element by element of the tuple."""

JOINS = frozenset({"ConcatBitcast"})
"""Custom calls that put their operands one behind the other."""

GEMMS = ("__cublas$gemm", "__cublas$lt$matmul", "__triton$gemm")
"""Custom calls that compute alpha * A * B + beta * C."""

WIDE = frozenset({"f32", "f64", "f16", "s32", "s64", "u32", "u64", "pred", "s16", "u16", "s8", "u8"})
"""Types whose constants are close to the number that was meant; those of other types (bf16, float8) are not."""

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
"""Types of weights and moments."""
