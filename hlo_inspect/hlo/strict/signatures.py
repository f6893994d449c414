"""What each opcode takes in XLA's text: how many operands, and which attributes of which kind.

From `HloParserImpl::CreateInstruction` in xla/hlo/parser/hlo_parser.cc. One line an opcode: operands (a number; `*` for any,
`>2` for at least 2, `even`, `odd`), then `attribute:kind`, with `!` behind an attribute that has to be there. The kinds are
those of `kinds.KINDS`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

_COLLECTIVE = "channel_id:integer replica_groups:groups"
_DOT = (
    "lhs_batch_dims:integers lhs_contracting_dims:integers operand_precision:precisions rhs_batch_dims:integers "
    "rhs_contracting_dims:integers"
)
_ASYNC = "async_execution_thread:string"

_ACCURATE = (
    "acos acosh asin asinh atanh cbrt cosh cosine erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine "
    "sinh sqrt tan tanh"
)
_UNARY = (
    "abs all-gather-done all-reduce-done bitcast bitcast-convert ceil collective-permute-done convert copy copy-done "
    "count-leading-zeros floor imag is-finite negate not opt-barrier popcnt real round-nearest-afz round-nearest-even sign"
)
_BINARY = (
    "add add-dependency and atan2 complex divide maximum minimum mulhi multiply or power remainder shift-left "
    "shift-right-arithmetic shift-right-logical stochastic-convert subtract xor"
)

_TABLE = f"""
after-all *
all-gather * {_COLLECTIVE} constrain_layout:boolean dimensions!:integers use_global_device_ids:boolean
all-reduce * {_COLLECTIVE} constrain_layout:boolean mode:mode to_apply!:computation use_global_device_ids:boolean
all-to-all * {_COLLECTIVE} constrain_layout:boolean dimensions:integers
async-start * {_ASYNC} calls!:computation output_to_operand_aliasing:aliasing
async-update >1 {_ASYNC} calls:computation
async-done 1 {_ASYNC} calls:computation
batch-norm-grad 5 epsilon!:float feature_index!:integer
batch-norm-inference 5 epsilon!:float feature_index!:integer
batch-norm-training 3 epsilon!:float feature_index!:integer
broadcast 1 dimensions:integers
call * is_composite:boolean to_apply!:computation
cholesky 1 lower:boolean
clamp 3
collective-broadcast * {_COLLECTIVE}
collective-permute * channel_id:integer slice_sizes:integer_lists source_target_pairs!:integer_lists
compare 2 direction!:direction type:comparison
concatenate * dimensions!:integers
conditional >1 branch_computations:computations false_computation:computation true_computation:computation
constant 0
convolution 2 batch_group_count:integer convolution_kind:convolution dim_labels!:dim_labels feature_group_count:integer \
operand_precision:precisions sparsity_config:sparsity window:window
copy-start 1 cross_program_prefetch_index:int32
custom-call * api_version:api_version batch_group_count:integer called_computations:computations \
custom_call_has_side_effect:boolean custom_call_target!:string dim_labels:dim_labels feature_group_count:integer \
literal:literal operand_layout_constraints:shapes operand_precision:precisions output_to_operand_aliasing:aliasing \
padding_type:padding_type schedule:schedule to_apply:computation window:window
domain 1 domain!:domain
dot * algorithm:dot_algorithm {_DOT}
dynamic-reshape >1
dynamic-slice >1 dynamic_slice_sizes!:integers
dynamic-update-slice *
fft 1 fft_length!:integers fft_type!:fft
fusion * calls!:computation kind!:fusion output_to_operand_aliasing:aliasing
gather 2 collapsed_slice_dims!:integers index_vector_dim!:integer indices_are_sorted:boolean offset_dims!:integers \
operand_batching_dims:integers slice_sizes!:integers start_index_map!:integers start_indices_batching_dims:integers
get-dimension-size 1 dimensions!:integers
get-tuple-element 1 index!:integer
infeed 1 infeed_config:string
iota 0 iota_dimension!:integer
map * dimensions:integers to_apply!:computation
outfeed 2 outfeed_config:string outfeed_shape:shape
pad 2 padding!:padding
parameter 0
partition-id 0
ragged-all-to-all * {_COLLECTIVE} dimensions:integers
ragged-dot 3 lhs_ragged_dims:integers rhs_group_dims:integers {_DOT}
recv 1 channel_id:integer is_host_transfer:boolean
recv-done 1 channel_id:integer is_host_transfer:boolean
reduce even dimensions!:integers to_apply!:computation
reduce-precision 1 exponent_bits!:integer mantissa_bits!:integer
reduce-window even to_apply!:computation window:window
replica-id 0
reshape 1 inferred_dimension:integer
reverse 1 dimensions!:integers
rng * distribution!:distribution
rng-bit-generator >1 algorithm!:random_algorithm
rng-get-and-update-state 0 delta!:integer
scaled-dot 4 algorithm:dot_algorithm {_DOT}
scan * dimensions!:integers is_associative:boolean is_reverse:boolean num_carries!:integer to_apply!:computation
scatter odd index_vector_dim!:integer indices_are_sorted:boolean input_batching_dims:integers inserted_window_dims!:integers \
scatter_dims_to_operand_dims!:integers scatter_indices_batching_dims:integers to_apply!:computation unique_indices:boolean \
update_window_dims!:integers
select 3
select-and-scatter 3 scatter!:computation select!:computation window:window
send 2 channel_id:integer is_host_transfer:boolean
send-done 1 channel_id:integer is_host_transfer:boolean
set-dimension-size 2 dimensions!:integers
slice 1 slice!:slice
sort * dimensions!:integers is_stable:boolean to_apply!:computation
topk 1 k!:integer largest:boolean
transpose 1 dimensions!:integers
triangular-solve 2 left_side:boolean lower:boolean transpose_a:transpose unit_diagonal:boolean
tuple *
while 1 body!:computation condition!:computation
"""
_SAME = {
    "all-gather-start": "all-gather",
    "all-reduce-start": "all-reduce",
    "collective-permute-start": "collective-permute",
}

COMMON = {
    "backend_config": "string_or_dict",
    "control-predecessors": "instructions",
    "frontend_attributes": "frontend_attributes",
    "metadata": "metadata",
    "origin": "origin",
    "parameter_replication": "booleans",
    "sharding": "sharding",
    "statistics": "statistics",
}
"""Attributes of every instruction."""

_NEED_SHAPE = """
all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start all-to-all async-done async-start
async-update bitcast bitcast-convert collective-broadcast collective-permute collective-permute-done
collective-permute-start constant convert copy-done copy-start custom-call dynamic-reshape dynamic-slice
dynamic-update-slice fusion infeed iota mulhi outfeed parameter ragged-all-to-all recv recv-done reduce-precision
reduce-scatter reshape rng rng-bit-generator rng-get-and-update-state send send-done slice stochastic-convert
"""
NEEDS_SHAPE = frozenset(_NEED_SHAPE.split())
"""Opcodes whose result XLA does not work out from the operands."""


class Signature(NamedTuple):
    """`operands` as in the table; `attributes` by name with their kind."""

    operands: str
    attributes: dict[str, str]
    required: frozenset[str]


@cache
def signatures() -> dict[str, Signature]:
    """The signature of each opcode that XLA's parser has today."""
    rows = [line.split() for line in _TABLE.strip().splitlines()]
    rows += [[opcode, "1", "result_accuracy:accuracy"] for opcode in _ACCURATE.split()]
    rows += [[opcode, "1"] for opcode in _UNARY.split()] + [[opcode, "2"] for opcode in _BINARY.split()]
    table = {opcode: _signature(operands, attributes) for opcode, operands, *attributes in rows}
    reduce = table["all-reduce"]
    scattered = {**reduce.attributes, "dimensions": "integers"}
    table["reduce-scatter"] = Signature("*", scattered, reduce.required | {"dimensions"})
    return table | {opcode: table[like] for opcode, like in _SAME.items()}


def _signature(operands: str, attributes: list[str]) -> Signature:
    pairs = [attribute.split(":") for attribute in attributes]
    required = frozenset(name[:-1] for name, _ in pairs if name.endswith("!"))
    return Signature(operands, {**COMMON, **{name.rstrip("!"): kind for name, kind in pairs}}, required)


@cache
def sugar_signature(wrapped: str) -> Signature:
    """The signature of `wrapped-start`, which wraps an operation in an asynchronous one: its attributes, and those of the
    wrapper.
    """
    inner = signatures()[wrapped]
    wrapper = {"async_execution_thread": "string", "output_to_operand_aliasing": "aliasing"}
    least = f">{inner.operands}" if inner.operands.isdigit() else "*"
    return Signature(least, inner.attributes | wrapper, inner.required)


@cache
def end_signature(operands: str) -> Signature:
    """The signature of `wrapped-update` and `wrapped-done`, which name no computation."""
    return Signature(operands, {**COMMON, "async_execution_thread": "string"}, frozenset())
