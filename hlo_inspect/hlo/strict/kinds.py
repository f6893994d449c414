"""The kinds of attribute values by name, each as a function that passes one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo_inspect.hlo.strict import values
from hlo_inspect.hlo.strict.devices import braced_integers, take_groups, take_sharding
from hlo_inspect.hlo.strict.dimensions import take_dim_labels, take_padding, take_slice, take_window
from hlo_inspect.hlo.strict.literals import take_literal, take_number
from hlo_inspect.hlo.strict.scope import Scope
from hlo_inspect.hlo.strict.shapes import take_shape
from hlo_inspect.hlo.strict.tokens import ATTRIBUTE, Tokens
from hlo_inspect.hlo.strict.values import Kind, word_of

_METADATA = re.compile(
    r'\{(?: ?(?:op_type|op_name|source_file|deduplicated_name|scheduling_name)="[^"\\\n]*+"| ?(?:stack_frame_id|source_line|'
    r"source_end_line|source_column|source_end_column)=\d{1,9})*+\}",
    re.ASCII,
)
"""Metadata as printers write it, whose names are looked at all the same."""
_METADATA_NAME = re.compile(r'(\w+)=(?:"[^"]*+"|\d++)', re.ASCII)
_MAX_PROFILE_TYPE = 4


def take_fields(tokens: Tokens, scope: Scope, fields: Mapping[str, str], required: frozenset[str] = frozenset()) -> None:
    """`{name=value, name=value}`, the commas left out or not."""
    start = tokens.position
    tokens.expect("{", ATTRIBUTE)
    seen: set[str] = set()
    while not tokens.take("}"):
        tokens.take(",")
        place = tokens.position
        name = tokens.attribute_name(ATTRIBUTE)
        if name in seen or name not in fields:
            tokens.refuse(ATTRIBUTE, f"{name} {'stands twice' if name in seen else 'is not known'} here", place)
        seen.add(name)
        KINDS[fields[name]](tokens, scope)
    for name in sorted(required - seen):
        tokens.refuse(ATTRIBUTE, f"expected {name}=", start)


_METADATA_FIELDS = dict.fromkeys(
    ("op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name", "metadata_payload"), "string"
) | dict.fromkeys(("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"), "int32")


def take_metadata(tokens: Tokens, scope: Scope) -> None:
    common = _METADATA.match(tokens.text, tokens.position, tokens.end)
    if common is not None:
        names = _METADATA_NAME.findall(common[0])
        if len(set(names)) == len(names):
            tokens.move(common.end())
            return
    take_fields(tokens, scope, _METADATA_FIELDS | {"profile_type": "profile_types"})


def _profile_types(tokens: Tokens, scope: Scope) -> None:
    start = tokens.position
    if any(not 0 <= number <= _MAX_PROFILE_TYPE for number in braced_integers(tokens, ATTRIBUTE)):
        tokens.refuse(ATTRIBUTE, "there is no profile type of this number", start)


def take_metadata_list(tokens: Tokens, scope: Scope) -> None:
    """One, or a list of them in braces."""
    start = tokens.position
    tokens.expect("{", ATTRIBUTE)
    nested = tokens.at("{")
    tokens.move(start)
    if not nested:
        take_metadata(tokens, scope)
        return
    for _ in tokens.list("{", "}", ATTRIBUTE):
        take_metadata(tokens, scope)


def _sharding(tokens: Tokens, scope: Scope) -> None:
    take_sharding(tokens, lambda inside: take_metadata_list(inside, scope))


def _precisions(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        _precision(tokens, scope)


_precision = word_of("default", "high", "highest")


def _accuracy(tokens: Tokens, scope: Scope) -> None:
    tokens.expect("{", ATTRIBUTE)
    place = tokens.position
    name = tokens.attribute_name(ATTRIBUTE)
    if name == "mode":
        word_of("default", "highest")(tokens, scope)
    elif name == "tolerance":
        for _ in tokens.list("{", "}", ATTRIBUTE):
            place = tokens.position
            if tokens.attribute_name(ATTRIBUTE) not in {"ulps", "rtol", "atol"}:
                tokens.refuse(ATTRIBUTE, "expected ulps, rtol or atol", place)
            take_number(tokens, "f64", ATTRIBUTE)
    else:
        tokens.refuse(ATTRIBUTE, "expected mode or tolerance", place)
    tokens.expect("}", ATTRIBUTE)


def _fields(required: str = "", **fields: str) -> Kind:
    return lambda tokens, scope: take_fields(tokens, scope, fields, frozenset(required.split()))


def _domain(tokens: Tokens, scope: Scope) -> None:
    start = tokens.position
    _fields("kind entry exit", kind="string", entry="sharding", exit="sharding")(tokens, scope)
    if not re.search(r"kind=\s*[\"']sharding[\"']", tokens.text[start : tokens.position]):
        tokens.refuse(ATTRIBUTE, "the only kind of domain is sharding", start)


def _sparsity_size(tokens: Tokens, scope: Scope) -> None:
    if tokens.match(re.compile(r"\d+x\d+(?![\w.])")) is None:
        tokens.refuse(ATTRIBUTE, "expected sparsity like 2x4")


_DOT_ALGORITHMS = """
unset dot_any_f8_any_f8_f32 dot_any_f8_any_f8_f32_fast_accum dot_f16_f16_f16 dot_f16_f16_f32
dot_bf16_bf16_bf16 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6
dot_bf16_bf16_f32_x9 dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 dot_f32_f32_f32 dot_f64_f64_f64
"""

KINDS: dict[str, Kind] = {
    "accuracy": _accuracy,
    "aliasing": values.take_aliasing,
    "anything": values.take_anything,
    "api_version": word_of(
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    ),
    "boolean": values.take_boolean,
    "booleans": values.take_booleans,
    "booleans_or_one": values.take_booleans_or_one,
    "comparison": word_of("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "computation": values.take_computation,
    "computations": values.take_computations,
    "convolution": word_of("fprop", "wgrad", "dgrad", "unset"),
    "dim_labels": lambda tokens, scope: take_dim_labels(tokens),
    "direction": word_of("EQ", "NE", "GE", "GT", "LE", "LT"),
    "distribution": word_of("rng_uniform", "rng_normal", "rng_invalid"),
    "domain": _domain,
    "dot_algorithm": word_of(*_DOT_ALGORITHMS.split()),
    "fft": word_of("FFT", "IFFT", "RFFT", "IRFFT"),
    "float": values.take_float,
    "frontend_attributes": values.take_frontend_attributes,
    "fusion": word_of("kLoop", "kInput", "kOutput", "kCustom"),
    "groups": lambda tokens, scope: take_groups(tokens),
    "instructions": values.take_instructions,
    "int32": values.take_int32,
    "integer": values.take_integer,
    "integer_lists": values.take_integer_lists,
    "integers": values.take_integers,
    "literal": lambda tokens, scope: take_literal(tokens, None),
    "metadata": take_metadata,
    "mode": word_of("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id"),
    "origin": values.take_origin,
    "padding": lambda tokens, scope: take_padding(tokens),
    "padding_type": word_of("PADDING_VALID", "PADDING_SAME", "PADDING_INVALID"),
    "precisions": _precisions,
    "profile_types": _profile_types,
    "random_algorithm": word_of("rng_default", "rng_three_fry", "rng_philox"),
    "schedule": word_of("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
    "shape": lambda tokens, scope: take_shape(tokens),
    "shapes": values.take_shapes,
    "sharding": _sharding,
    "slice": lambda tokens, scope: take_slice(tokens),
    "sparsity": _fields(lhs="tensor_sparsity", rhs="tensor_sparsity"),
    "sparsity_size": _sparsity_size,
    "statistics": values.take_statistics,
    "string": values.take_string,
    "string_or_dict": values.take_string_or_dict,
    "tensor_sparsity": _fields(sparsity="sparsity_size", dimension="integer", stride="integer"),
    "transpose": word_of("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID"),
    "window": lambda tokens, scope: take_window(tokens),
}
