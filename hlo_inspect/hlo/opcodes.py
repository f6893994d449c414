"""What each opcode of HLO text is: its operands, its attributes, the computations that it calls, and how it communicates.

The opcodes are those of `HLO_OPCODE_LIST` (xla/hlo/ir/hlo_opcode.h) and of its older versions, the attributes those of
`HloParserImpl::CreateInstruction` (xla/hlo/parser/hlo_parser.cc). The kinds of the attributes' values are in `values`.
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
    literal (`has_literal`).
    `attributes`: those that only some opcodes have; `COMMON_ATTRIBUTES` come on top.
    `callees`: the attributes that name computations, each with its role.
    `is_elementwise`: as `HloInstruction::IsOpElementwise` has it.
    `collective`: the kind of collective that it is, starts or ends: `all-reduce`, also for `all-reduce-done`; empty for
    others, and for `async-start`, which wraps an instruction that says what it is.
    `base`: the opcode without its asynchronous suffix `half`. `is_wrapper`: a short spelling, which means an
    `async-start`, `-update` or `-done` of a computation that holds only a `base`.
    """

    name: str
    operands: int | None
    attributes: tuple[str, ...]
    callees: Mapping[CalleeAttribute, Role]
    is_elementwise: bool
    has_literal: bool
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

COMMON_ATTRIBUTES = (
    "backend_config",
    "control-predecessors",
    "frontend_attributes",
    "metadata",
    "origin",
    "parameter_replication",
    "sharding",
    "statistics",
)
"""Attributes of every instruction."""

_HALVES: tuple[AsyncHalf, ...] = ("start", "update", "done")
_SUFFIXES = tuple(f"-{half}" for half in _HALVES)
_OLD_NAMES = {"cross-replica-sum": "all-reduce", "all-reduce-scatter": "reduce-scatter"}  # until 2018-12; in 2021
_ASYNC_THREAD = "async_execution_thread"
_OF_START = (_ASYNC_THREAD, "calls", "output_to_operand_aliasing")  # texts of 2022 name the computation of a short spelling
_OF_END = (_ASYNC_THREAD, "calls")

_UNARY = """
    abs bitcast-convert ceil convert copy count-leading-zeros floor imag is-finite negate not popcnt real round-nearest-afz
    round-nearest-even sign
"""
_ACCURATE_UNARY = """
    acos acosh asin asinh atanh cbrt cosh cosine erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine
    sinh sqrt tan tanh
"""
_BINARY = """
    add and atan2 complex divide maximum minimum mulhi multiply or power remainder shift-left shift-right-arithmetic
    shift-right-logical stochastic-convert subtract xor
"""
_GROUPS = "channel_id replica_groups"
_DOT = "lhs_batch_dims lhs_contracting_dims operand_precision rhs_batch_dims rhs_contracting_dims"
_ALL_REDUCE = f"{_GROUPS} all_reduce_id constrain_layout mode to_apply use_global_device_ids"
_ALL_GATHER = f"{_GROUPS} constrain_layout dimensions use_global_device_ids"
_PERMUTE = "channel_id slice_sizes source_target_pairs"
_TRANSFER = "channel_id is_host_transfer"

# Opcodes, how many operands ("*": any number), and attributes.
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("add-dependency", "2", ""),
    ("after-all", "*", ""),
    ("all-gather all-gather-start", "*", _ALL_GATHER),
    ("all-gather-done all-reduce-done collective-permute-done", "1", ""),
    ("all-reduce all-reduce-start cross-replica-sum", "*", _ALL_REDUCE),
    ("all-to-all", "*", f"{_GROUPS} constrain_layout dimensions"),
    ("async-start", "*", f"{_ASYNC_THREAD} calls output_to_operand_aliasing"),
    ("async-update", "*", f"{_ASYNC_THREAD} calls"),
    ("async-done", "1", f"{_ASYNC_THREAD} calls"),
    ("batch-norm-grad batch-norm-inference", "5", "epsilon feature_index"),
    ("batch-norm-training", "3", "epsilon feature_index"),
    ("bitcast opt-barrier", "1", ""),
    ("bitcast-move trace", "1", ""),  # older than 2019, like tuple-select
    ("broadcast", "1", "dimensions"),
    ("call", "*", "is_composite to_apply"),
    ("cholesky", "1", "lower"),
    ("clamp select", "3", ""),
    ("collective-broadcast", "*", _GROUPS),
    ("collective-permute collective-permute-start", "*", _PERMUTE),
    ("compare", "2", "direction type"),
    ("concatenate", "*", "dimensions"),
    ("conditional", "*", "branch_computations false_computation true_computation"),
    ("constant", "0", ""),
    (
        "convolution",
        "2",
        "batch_group_count convolution_kind dim_labels feature_group_count operand_precision sparsity_config window",
    ),
    ("copy-start", "1", "cross_program_prefetch_index"),
    ("copy-done", "1", ""),
    (
        "custom-call",
        "*",
        "api_version batch_group_count called_computations calls custom_call_has_side_effect custom_call_target dim_labels "
        "feature_group_count literal operand_layout_constraints operand_precision output_to_operand_aliasing padding_type "
        "schedule to_apply window",
    ),
    ("domain", "1", "domain"),
    ("dot", "*", f"algorithm {_DOT}"),
    ("dynamic-reshape", "*", ""),
    ("dynamic-slice", "*", "dynamic_slice_sizes"),
    ("dynamic-update-slice", "*", ""),
    ("fft", "1", "fft_length fft_type"),
    ("fusion", "*", "calls kind output_to_operand_aliasing"),
    (
        "gather",
        "2",
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims slice_sizes "
        "start_index_map start_indices_batching_dims",
    ),
    ("get-dimension-size", "1", "dimensions"),
    ("get-tuple-element", "1", "index"),
    ("infeed", "1", "infeed_config"),
    ("iota", "0", "iota_dimension"),
    ("map", "*", "dimensions to_apply"),
    ("outfeed", "2", "outfeed_config outfeed_shape"),
    ("pad", "2", "padding"),
    ("parameter", "0", ""),
    ("partition-id replica-id", "0", ""),
    ("ragged-all-to-all", "*", f"{_GROUPS} dimensions"),
    ("ragged-dot", "3", f"lhs_ragged_dims rhs_group_dims {_DOT}"),
    ("recv recv-done", "1", _TRANSFER),
    ("reduce", "*", "dimensions to_apply"),
    ("reduce-precision", "1", "exponent_bits mantissa_bits"),
    ("reduce-scatter all-reduce-scatter", "*", f"{_ALL_REDUCE} dimensions"),
    ("reduce-window", "*", "to_apply window"),
    ("reshape", "1", "inferred_dimension"),
    ("reverse", "1", "dimensions"),
    ("rng", "*", "distribution"),
    ("rng-bit-generator", "*", "algorithm"),
    ("rng-get-and-update-state", "0", "delta"),
    ("scaled-dot", "4", f"algorithm {_DOT}"),
    ("scan", "*", "dimensions is_associative is_reverse num_carries to_apply"),
    (
        "scatter",
        "*",
        "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims scatter_dims_to_operand_dims "
        "scatter_indices_batching_dims to_apply unique_indices update_window_dims",
    ),
    ("select-and-scatter", "3", "scatter select window"),
    ("send", "2", _TRANSFER),
    ("send-done", "1", _TRANSFER),
    ("set-dimension-size", "2", "dimensions"),
    ("slice", "1", "slice"),
    ("sort", "*", "dimensions is_stable to_apply"),
    ("topk", "1", "k largest"),
    ("transpose", "1", "dimensions"),
    ("triangular-solve", "2", "left_side lower transpose_a unit_diagonal"),
    ("tuple", "*", ""),
    ("tuple-select", "3", ""),
    ("while", "1", "body condition"),
    (_UNARY, "1", ""),
    (_ACCURATE_UNARY, "1", "result_accuracy"),
    (_BINARY, "2", ""),
)
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
_ELEMENTWISE = frozenset(f"{_UNARY} {_ACCURATE_UNARY} {_BINARY} clamp compare reduce-precision select".split())
_LITERAL = frozenset({"constant", "parameter"})


def _records() -> Iterator[Opcode]:
    for names, operands, attributes in _TABLE:
        for name in names.split():
            base = base_opcode(name)
            half = cast("AsyncHalf", name[len(base) + 1 :])
            today = _OLD_NAMES.get(base, base)
            yield Opcode(
                name,
                operands=None if operands == "*" else int(operands),
                attributes=tuple(attributes.split()),
                callees=_CALLEES.get(name) or _CALLEES.get(today, {}) if half in ("", "start") else {},
                is_elementwise=name in _ELEMENTWISE,
                has_literal=name in _LITERAL,
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
            is_start = half == "start"
            yield wrapped._replace(
                name=f"{wrapped.name}-{half}",
                operands=wrapped.operands if is_start else 1 if half == "done" else None,
                attributes=(*wrapped.attributes, *_OF_START) if is_start else _OF_END,
                callees=wrapped.callees if is_start else {},
                is_elementwise=False,
                has_literal=False,
                half=half,
                is_wrapper=True,
            )


_BY_NAME = {opcode.name: opcode for opcode in _records()}

OPCODES = frozenset(_BY_NAME)
"""The opcodes of all versions, without the short spellings of asynchronous ones."""

TABLE: Mapping[str, Opcode] = _BY_NAME | {opcode.name: opcode for opcode in _short_spellings(_BY_NAME)}
"""Every opcode that XLA has, or had; the short spellings of asynchronous ones included."""

PRINTED_OPCODES = frozenset(TABLE)

LITERAL_OPCODES = _LITERAL
"""Opcodes whose parentheses hold no operands."""

ELEMENTWISE = frozenset(opcode.name for opcode in TABLE.values() if opcode.is_elementwise)
"""Each element of the result follows from the same element of each operand."""

COMMUTATIVE = frozenset({"add", "and", "maximum", "minimum", "mulhi", "multiply", "or", "xor"})
"""Opcodes of two operands whose order does not matter, as `HloOpcodeIsBinaryCommutative` has them (xla/hlo/ir/hlo_opcode.h)."""

CALLEE_ATTRIBUTES: tuple[CalleeAttribute, ...] = get_args(CalleeAttribute)

CALLING_OPCODES = frozenset(opcode.name for opcode in TABLE.values() if "calls" in opcode.attributes or opcode.callees)
"""Opcodes that can name a computation."""


def callee_roles(opcode: str) -> Mapping[CalleeAttribute, Role]:
    """The attributes by which an opcode calls computations, with the role of each; empty for an unknown opcode."""
    known = TABLE.get(opcode)
    return known.callees if known is not None else {}


def opcodes_that_call(*roles: Role) -> frozenset[str]:
    """The opcodes that call a computation in one of these roles."""
    return frozenset(opcode.name for opcode in TABLE.values() if not set(roles).isdisjoint(opcode.callees.values()))
