"""What each opcode of HLO text is: its operands, the computations that it calls, and how it communicates.

The opcodes are those of `HLO_OPCODE_LIST` (xla/hlo/ir/hlo_opcode.h) and of its older versions. The kinds of the attributes'
values are in `values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, cast, get_args

Role = Literal["run", "body", "condition", "branch", "fused", "applied", "custom"]
"""What a computation is to its caller: it runs once, as the body or the condition of a loop, or as a branch; it is fused
into one kernel, applied to elements (or to the values that a collective reduces), or run by a custom call as that likes.
"""

CalleeAttribute = Literal[
    "body", "branch_computations", "called_computations", "calls", "condition", "false_computation", "scatter",
    "select", "to_apply", "true_computation",
]  # fmt: skip
"""Attributes that name computations."""

AsyncHalf = Literal["", "start", "update", "done"]


class Opcode(NamedTuple):
    """One opcode, or the short spelling of an asynchronous one (`reduce-scatter-start`).

    `operands`: how many it has, `None` where that varies. A `parameter` and a `constant` have none: their parentheses hold a
    literal.
    `callees`: the attributes that name computations, each with its role.
    `is_elementwise`: as `HloInstruction::IsOpElementwise` has it.
    `collective`: the kind of collective that it is, starts or ends: `all-reduce`, also for `all-reduce-done`; empty for
    others, and for `async-start`, which wraps an instruction that says what it is.
    `base`: the opcode without its asynchronous suffix `half`. `is_wrapper`: a short spelling, which means an
    `async-start`, `-update` or `-done` of a computation that holds only a `base`.
    """

    name: str
    operands: int | None
    callees: Mapping[CalleeAttribute, Role]
    is_elementwise: bool
    collective: str
    base: str
    half: AsyncHalf
    is_wrapper: bool


COLLECTIVE_KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
)
POINT_TO_POINT = ("send", "recv")

_HALVES: tuple[AsyncHalf, ...] = ("start", "update", "done")
_SUFFIXES = tuple(f"-{half}" for half in _HALVES)
_OLD_NAMES = {"cross-replica-sum": "all-reduce", "all-reduce-scatter": "reduce-scatter"}  # until 2018-12; in 2021

_UNARY = """
    abs acos acosh asin asinh atanh bitcast-convert cbrt ceil convert copy cosh cosine count-leading-zeros erf exponential
    exponential-minus-one floor imag is-finite log log-plus-one logistic negate not popcnt real round-nearest-afz
    round-nearest-even rsqrt sign sine sinh sqrt tan tanh
"""
_BINARY = """
    add and atan2 complex divide maximum minimum mulhi multiply or power remainder shift-left shift-right-arithmetic
    shift-right-logical stochastic-convert subtract xor
"""
_OPERANDS: dict[int | None, str] = {
    0: "constant iota parameter partition-id replica-id rng-get-and-update-state",
    1: f"""
        {_UNARY} all-gather-done all-reduce-done async-done bitcast broadcast cholesky collective-permute-done copy-done
        copy-start domain fft get-dimension-size get-tuple-element infeed opt-barrier recv recv-done reduce-precision reshape
        reverse send-done slice topk transpose while
    """,
    2: f"{_BINARY} add-dependency compare convolution gather outfeed pad send set-dimension-size triangular-solve",
    3: "batch-norm-training clamp ragged-dot select select-and-scatter",
    4: "scaled-dot",
    5: "batch-norm-grad batch-norm-inference",
    None: """
        after-all all-gather all-gather-start all-reduce all-reduce-start all-to-all async-start async-update call
        collective-broadcast collective-permute collective-permute-start concatenate conditional custom-call dot
        dynamic-reshape dynamic-slice dynamic-update-slice fusion map ragged-all-to-all reduce reduce-scatter reduce-window
        rng rng-bit-generator scan scatter sort tuple
    """,
}
"""Opcodes by how many operands they have, `None` where that varies."""

_OLD_OPERANDS: dict[int | None, str] = {1: "bitcast-move trace", 3: "tuple-select", None: " ".join(_OLD_NAMES)}
"""The same for opcodes that XLA had: until 2019, and those of old names."""

_CALLEES: dict[str, dict[CalleeAttribute, Role]] = {
    "all-reduce": {"to_apply": "applied"},
    "async-start": {"calls": "run"},
    "call": {"to_apply": "run"},
    "conditional": {"true_computation": "branch", "false_computation": "branch", "branch_computations": "branch"},
    "custom-call": {"called_computations": "custom", "calls": "custom", "to_apply": "custom"},
    "fusion": {"calls": "fused"},
    "map": {"to_apply": "applied"},
    "reduce": {"to_apply": "applied"},
    "reduce-scatter": {"to_apply": "applied"},
    "reduce-window": {"to_apply": "applied"},
    "scan": {"to_apply": "applied"},
    "scatter": {"to_apply": "applied"},
    "select-and-scatter": {"select": "applied", "scatter": "applied"},
    "sort": {"to_apply": "applied"},
    "while": {"body": "body", "condition": "condition"},
}
_ELEMENTWISE = frozenset(f"{_UNARY} {_BINARY} clamp compare reduce-precision select".split())


def _records() -> Iterator[Opcode]:
    for operands, names in (*_OPERANDS.items(), *_OLD_OPERANDS.items()):
        for name in names.split():
            base = base_opcode(name)
            half = cast("AsyncHalf", name[len(base) + 1 :])
            today = _OLD_NAMES.get(base, base)
            yield Opcode(
                name,
                operands=operands,
                callees=_CALLEES.get(name) or _CALLEES.get(today, {}) if half in ("", "start") else {},
                is_elementwise=name in _ELEMENTWISE,
                collective=today if today in (*COLLECTIVE_KINDS, *POINT_TO_POINT) else "",
                base=base,
                half=half,
                is_wrapper=False,
            )


def base_opcode(opcode: str) -> str:
    """The opcode without an asynchronous suffix: `all-gather-start` is an `all-gather`."""
    return opcode.rpartition("-")[0] if opcode.endswith(_SUFFIXES) else opcode


def _short_spellings(opcodes: Mapping[str, Opcode]) -> Iterator[Opcode]:
    """What the printer writes for an asynchronous computation that holds one instruction. An opcode that has a start and a done
    of its own has no short spelling.
    """
    native = {opcode.base for opcode in opcodes.values() if opcode.half}
    for wrapped in opcodes.values():
        if wrapped.half or wrapped.name in native:
            continue
        for half in _HALVES:
            yield Opcode(
                f"{wrapped.name}-{half}",
                operands={"start": wrapped.operands, "done": 1}.get(half),
                callees=wrapped.callees if half == "start" else {},
                is_elementwise=False,
                collective=wrapped.collective,
                base=wrapped.base,
                half=half,
                is_wrapper=True,
            )


_BY_NAME = {opcode.name: opcode for opcode in _records()}

OPCODES = frozenset(_BY_NAME)
"""The opcodes of all versions, without the short spellings of asynchronous ones."""

TABLE: Mapping[str, Opcode] = _BY_NAME | {opcode.name: opcode for opcode in _short_spellings(_BY_NAME)}
"""Every opcode that XLA has, or had; the short spellings of asynchronous ones included."""

LITERAL_OPCODES = frozenset({"constant", "parameter"})
"""Opcodes whose parentheses hold no operands."""

ASYNC_ENDS = frozenset(opcode.name for opcode in TABLE.values() if opcode.half in {"update", "done"})
"""Opcodes that only wait for what another instruction started."""

STARTING_COLLECTIVES = frozenset(opcode.name for opcode in TABLE.values() if opcode.collective and opcode.half in {"", "start"})
"""Collectives, of an asynchronous pair the first instruction."""

ELEMENTWISE = frozenset(opcode.name for opcode in TABLE.values() if opcode.is_elementwise)
"""Each element of the result follows from the same element of each operand."""

COMMUTATIVE = frozenset({"add", "and", "maximum", "minimum", "mulhi", "multiply", "or", "xor"})
"""Opcodes of two operands whose order does not matter, as `HloOpcodeIsBinaryCommutative` has them (xla/hlo/ir/hlo_opcode.h)."""

CALLEE_ATTRIBUTES: tuple[CalleeAttribute, ...] = get_args(CalleeAttribute)

CALLING_OPCODES = frozenset(
    opcode.name for opcode in TABLE.values() if opcode.callees or opcode.is_wrapper or opcode.base == "async"
)
"""Opcodes that can name a computation, as all asynchronous halves of others can."""


def callee_roles(opcode: str) -> Mapping[CalleeAttribute, Role]:
    """The attributes by which an opcode calls computations, with the role of each; empty for an unknown opcode."""
    known = TABLE.get(opcode)
    return known.callees if known is not None else {}


def opcodes_that_call(*roles: Role) -> frozenset[str]:
    """The opcodes that call a computation in one of these roles."""
    return frozenset(opcode.name for opcode in TABLE.values() if not set(roles).isdisjoint(opcode.callees.values()))
