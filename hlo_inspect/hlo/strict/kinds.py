"""The kinds of attribute values, each as a function that passes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.strict.devices import take_groups, take_integers, take_sharding
from hlo_inspect.hlo.strict.dimensions import take_dim_labels, take_padding, take_slice, take_window
from hlo_inspect.hlo.strict.literals import take_literal, take_number
from hlo_inspect.hlo.strict.scope import Scope
from hlo_inspect.hlo.strict.shapes import take_shape
from hlo_inspect.hlo.strict.tokens import ATTRIBUTE, WORD, Tokens

Kind = Callable[[Tokens, Scope], object]

_MAX_INT32 = 2**31
_METADATA = re.compile(
    r'\{(?: ?(?:op_type|op_name|source_file|deduplicated_name|scheduling_name)="[^"\\\n]*+"| ?(?:stack_frame_id|source_line|'
    r"source_end_line|source_column|source_end_column)=\d{1,9})*+\}",
    re.ASCII,
)
"""Metadata as printers write it, whose names are looked at all the same."""
_METADATA_NAME = re.compile(r'(\w+)=(?:"[^"]*+"|\d++)', re.ASCII)
_MAX_PROFILE_TYPE = 4


def _word_of(*words: str) -> Kind:
    allowed = frozenset(words)

    def take(tokens: Tokens, scope: Scope) -> None:
        start = tokens.position
        word = tokens.match(WORD)
        if word is None or word[0] not in allowed:
            tokens.refuse(ATTRIBUTE, f"expected {', '.join(words[:4])}{', …' if len(words) > 4 else ''}", start)

    return take


_boolean = _word_of("true", "false")


def _integer(tokens: Tokens, scope: Scope) -> None:
    tokens.integer(ATTRIBUTE)


def _int32(tokens: Tokens, scope: Scope) -> None:
    start = tokens.position
    if not -_MAX_INT32 <= tokens.integer(ATTRIBUTE) < _MAX_INT32:
        tokens.refuse(ATTRIBUTE, "expected an integer of 32 bits", start)


def _float(tokens: Tokens, scope: Scope) -> None:
    take_number(tokens, "f32", ATTRIBUTE)


def _string(tokens: Tokens, scope: Scope) -> None:
    tokens.string(ATTRIBUTE)


def _string_or_dict(tokens: Tokens, scope: Scope) -> None:
    if tokens.at("{"):
        tokens.move(scan.value_end(tokens.text, tokens.position, name="backend_config", single=True))
    else:
        tokens.string(ATTRIBUTE)


def _integers(tokens: Tokens, scope: Scope) -> None:
    take_integers(tokens, ATTRIBUTE)


def _integer_lists(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        take_integers(tokens, ATTRIBUTE)


def _computation(tokens: Tokens, scope: Scope) -> None:
    """A name, or a computation in place, which is read later."""
    if tokens.at("{"):
        end = scan.balanced_end(tokens.text, tokens.position, holds_lines=True)
        scope.bodies.append((tokens.position + 1, end - 1))
        tokens.move(end)
        return
    start = tokens.position
    name = tokens.name(ATTRIBUTE, "a computation")
    if name not in scope.computations:
        tokens.refuse("HI009", f"computation {name} is not defined before its call", start)


def _computations(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        _computation(tokens, scope)


def _instructions(tokens: Tokens, scope: Scope) -> None:
    tokens.expect("{", ATTRIBUTE)
    while True:
        start = tokens.position
        name = tokens.name(ATTRIBUTE, "an instruction")
        if name not in scope.instructions:
            tokens.refuse("HI008", f"instruction {name} is not defined before its use", start)
        if not tokens.take(","):
            break
    tokens.expect("}", ATTRIBUTE)


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
    if any(not 0 <= number <= _MAX_PROFILE_TYPE for number in take_integers(tokens, ATTRIBUTE)):
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


def _frontend_attributes(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        tokens.attribute_name(ATTRIBUTE)
        _string_or_dict(tokens, scope)


def _statistics(tokens: Tokens, scope: Scope) -> None:
    for number in tokens.list("{", "}", ATTRIBUTE):
        tokens.attribute_name(ATTRIBUTE)
        if number:
            take_number(tokens, "f64", ATTRIBUTE)
        else:
            tokens.integer(ATTRIBUTE)


def _booleans(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        _boolean(tokens, scope)


def _booleans_or_one(tokens: Tokens, scope: Scope) -> None:
    (_booleans if tokens.at("{") else _boolean)(tokens, scope)


def take_shape_index(tokens: Tokens) -> tuple[int, ...]:
    """`{0,1}`; its last comma may stand alone."""
    found = []
    tokens.expect("{", ATTRIBUTE)
    while not tokens.at("}"):
        found.append(tokens.integer(ATTRIBUTE))
        if not tokens.take(","):
            break
    tokens.expect("}", ATTRIBUTE)
    return tuple(found)


def take_original_array(tokens: Tokens) -> None:
    tokens.expect("{", ATTRIBUTE)
    if not tokens.at("}"):
        tokens.string(ATTRIBUTE)
        if tokens.at("{"):
            take_shape_index(tokens)
    tokens.expect("}", ATTRIBUTE)


def _origin(tokens: Tokens, scope: Scope) -> None:
    """`{{"a"}}`, for a tuple `{({"a" {0}}, {"b"})}`, or `{[synthetic_call]}`."""
    tokens.expect("{", ATTRIBUTE)
    if tokens.take("["):
        if tokens.word(ATTRIBUTE, "synthetic_call") != "synthetic_call":
            tokens.refuse(ATTRIBUTE, "expected synthetic_call")
        tokens.expect("]", ATTRIBUTE)
        tokens.expect("}", ATTRIBUTE)
        return
    depth = 0
    while not tokens.take("}"):
        start = tokens.position
        if tokens.at("{"):
            take_original_array(tokens)
        elif tokens.take("("):
            depth += 1
        elif tokens.take(")"):
            depth -= 1
        elif not tokens.take(",") or depth < 1:
            tokens.refuse(ATTRIBUTE, "expected the original values", start)


def _aliasing(tokens: Tokens, scope: Scope) -> None:
    """`{{0}: (1, {})}`: which part of the result takes the buffer of which operand."""
    tokens.expect("{", ATTRIBUTE)
    while not tokens.at("}"):
        take_shape_index(tokens)
        tokens.expect(":", ATTRIBUTE)
        tokens.expect("(", ATTRIBUTE)
        tokens.integer(ATTRIBUTE)
        tokens.expect(",", ATTRIBUTE)
        take_shape_index(tokens)
        tokens.expect(")", ATTRIBUTE)
        if not tokens.take(","):
            break
    tokens.expect("}", ATTRIBUTE)


def _anything(tokens: Tokens, scope: Scope) -> None:
    tokens.move(scan.value_end(tokens.text, tokens.position, single=True))


def _shapes(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        take_shape(tokens)


def _precisions(tokens: Tokens, scope: Scope) -> None:
    for _ in tokens.list("{", "}", ATTRIBUTE):
        _precision(tokens, scope)


_precision = _word_of("default", "high", "highest")


def _accuracy(tokens: Tokens, scope: Scope) -> None:
    tokens.expect("{", ATTRIBUTE)
    place = tokens.position
    name = tokens.attribute_name(ATTRIBUTE)
    if name == "mode":
        _word_of("default", "highest")(tokens, scope)
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
    "aliasing": _aliasing,
    "anything": _anything,
    "api_version": _word_of(
        "API_VERSION_ORIGINAL",
        "API_VERSION_STATUS_RETURNING",
        "API_VERSION_STATUS_RETURNING_UNIFIED",
        "API_VERSION_TYPED_FFI",
    ),
    "boolean": _boolean,
    "booleans": _booleans,
    "booleans_or_one": _booleans_or_one,
    "comparison": _word_of("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "computation": _computation,
    "computations": _computations,
    "convolution": _word_of("fprop", "wgrad", "dgrad", "unset"),
    "dim_labels": lambda tokens, scope: take_dim_labels(tokens),
    "direction": _word_of("EQ", "NE", "GE", "GT", "LE", "LT"),
    "distribution": _word_of("rng_uniform", "rng_normal", "rng_invalid"),
    "domain": _domain,
    "dot_algorithm": _word_of(*_DOT_ALGORITHMS.split()),
    "fft": _word_of("FFT", "IFFT", "RFFT", "IRFFT"),
    "float": _float,
    "frontend_attributes": _frontend_attributes,
    "fusion": _word_of("kLoop", "kInput", "kOutput", "kCustom"),
    "groups": lambda tokens, scope: take_groups(tokens),
    "instructions": _instructions,
    "int32": _int32,
    "integer": _integer,
    "integer_lists": _integer_lists,
    "integers": _integers,
    "literal": lambda tokens, scope: take_literal(tokens, None),
    "metadata": take_metadata,
    "mode": _word_of("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id"),
    "origin": _origin,
    "padding": lambda tokens, scope: take_padding(tokens),
    "padding_type": _word_of("PADDING_VALID", "PADDING_SAME", "PADDING_INVALID"),
    "precisions": _precisions,
    "profile_types": _profile_types,
    "random_algorithm": _word_of("rng_default", "rng_three_fry", "rng_philox"),
    "schedule": _word_of("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
    "shape": lambda tokens, scope: take_shape(tokens),
    "shapes": _shapes,
    "sharding": _sharding,
    "slice": lambda tokens, scope: take_slice(tokens),
    "sparsity": _fields(lhs="tensor_sparsity", rhs="tensor_sparsity"),
    "sparsity_size": _sparsity_size,
    "statistics": _statistics,
    "string": _string,
    "string_or_dict": _string_or_dict,
    "tensor_sparsity": _fields(sparsity="sparsity_size", dimension="integer", stride="integer"),
    "transpose": _word_of("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID"),
    "window": lambda tokens, scope: take_window(tokens),
}
