"""The values of attributes: the kind of each attribute's value, and its parser.

The grammar follows `HloParserImpl::ParseAttributeHelper` (xla/hlo/parser/hlo_parser.cc) and older printers. A text that does
not fit becomes a `MalformedValue`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES
from hlo_inspect.hlo.values.attribute_forms import FormTable
from hlo_inspect.hlo.values.device_groups import DeviceGroups, parse_groups, parse_pairs
from hlo_inspect.hlo.values.shape_text import ShapeTable
from hlo_inspect.hlo.values.shapes import Shape
from hlo_inspect.hlo.values.sharding import parse_sharding
from hlo_inspect.lazy_pattern import lazy_pattern

BooleanAttribute = Literal[
    "constrain_layout", "custom_call_has_side_effect", "indices_are_sorted", "is_associative", "is_composite",
    "is_cross_program_prefetch", "is_host_transfer", "is_reverse", "is_stable", "largest", "left_side", "lower",
    "unique_indices", "unit_diagonal", "use_global_device_ids",
]  # fmt: skip
IntegerAttribute = Literal[
    "all_reduce_id", "async_group_id", "batch_group_count", "channel_id", "cross_program_prefetch_index", "delta",
    "exponent_bits", "feature_group_count", "feature_index", "index", "index_vector_dim", "inferred_dimension",
    "iota_dimension", "k", "mantissa_bits", "num_carries",
]  # fmt: skip
IntegersAttribute = Literal[
    "collapsed_slice_dims", "dimensions", "dynamic_slice_sizes", "fft_length", "input_batching_dims",
    "inserted_window_dims", "lhs_batch_dims", "lhs_contracting_dims", "lhs_ragged_dims", "offset_dims",
    "operand_batching_dims", "outer_dimension_partitions", "rhs_batch_dims", "rhs_contracting_dims", "rhs_group_dims",
    "scatter_dims_to_operand_dims", "scatter_indices_batching_dims", "slice_sizes", "start_index_map",
    "start_indices_batching_dims", "update_window_dims",
]  # fmt: skip
WordAttribute = Literal[
    "algorithm", "api_version", "convolution_kind", "direction", "distribution", "fft_type", "kind", "mode",
    "padding_type", "schedule", "transpose_a", "type",
]  # fmt: skip
StringAttribute = Literal[
    "async_execution_thread", "barrier", "custom_call_target", "infeed_config", "outfeed_config",
]  # fmt: skip
TextAttribute = Literal[
    "domain", "literal", "operand_layout_constraints", "operand_precision", "origin", "original_value",
    "outfeed_shape", "output_to_operand_aliasing", "parameter_replication", "result_accuracy", "sparsity",
    "sparsity_config", "statistics",
]  # fmt: skip
"""Attributes that no analysis reads: their text is their value."""


class WindowDimension(NamedTuple):
    """A dimension of a `window={…}`, with the defaults that printers leave out.

    `base_dilation` is printed as `lhs_dilate`, `window_dilation` as `rhs_dilate`.
    """

    size: int = 1
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    is_reversed: bool = False


class PaddingDimension(NamedTuple):
    """Numbers of elements that are added before, after and between the elements of a dimension."""

    low: int
    high: int
    interior: int = 0


class SliceDimension(NamedTuple):
    """`[start:limit:stride]` of a dimension."""

    start: int
    limit: int
    stride: int = 1


class ConvolutionLabels(NamedTuple):
    """Labels of dimensions: `b` batch, `f` feature, `i` input feature, `o` output feature, a digit for a spatial dimension."""

    input: str
    kernel: str
    output: str


_INTEGER = lazy_pattern(r"-?\d{1,19}", re.ASCII)
_WORD = lazy_pattern(r"[A-Za-z_][\w.\-]*+", re.ASCII)
_NAME = lazy_pattern(rf"%?({_WORD.pattern})", re.ASCII)
_WINDOW_FIELD = lazy_pattern(r"(\w++)=([\dx_\-]++)", re.ASCII)
_LABELS_BREAK = lazy_pattern("_|->")
_SLICE = lazy_pattern(r"\[([^\]]*+)\]")


def _integers(text: str) -> tuple[int, ...]:
    return tuple(map(int, _INTEGER.findall(text)))


def _names(text: str) -> tuple[str, ...]:
    """Return names of computations or instructions; none for a computation written in place."""
    return tuple(_NAME.findall(text)) if "=" not in text else ()


def _window(text: str) -> tuple[WindowDimension, ...]:
    fields = {name: value.split("x") for name, value in _WINDOW_FIELD.findall(text)}
    sizes = fields.get("size", [])
    if sizes and any(len(values) != len(sizes) for values in fields.values()):
        raise ValueError("the fields of the window differ in their number of dimensions")
    dimensions = []
    for i, size in enumerate(sizes):
        low, high = fields["pad"][i].split("_") if "pad" in fields else ("0", "0")
        stride, rhs, lhs, is_reversed = (
            int(fields[field][i]) if field in fields else default
            for field, default in (("stride", 1), ("rhs_dilate", 1), ("lhs_dilate", 1), ("rhs_reversal", 0))
        )
        dimensions.append(WindowDimension(int(size), stride, int(low), int(high), rhs, lhs, bool(is_reversed)))
    return tuple(dimensions)


def _padding(text: str) -> tuple[PaddingDimension, ...]:
    return tuple(PaddingDimension(*map(int, part.split("_"))) for part in text.split("x"))


def _slice(text: str) -> tuple[SliceDimension, ...]:
    return tuple(SliceDimension(*map(int, part.split(":"))) for part in _SLICE.findall(text))


def _labels(text: str) -> ConvolutionLabels:
    return ConvolutionLabels(*_LABELS_BREAK.split(text))


# -- metadata and configurations --------------------------------------------------------------------------------------------

# A field of the metadata. A string is matched whole: it may hold text that looks like a field.
_FIELD = lazy_pattern(r'(\w+)\s*=\s*(?:"((?:[^"\\]++|\\.)*+)"|([^\s,"{}]++)|\{[^{}]*\})', re.ASCII | re.DOTALL)
_SMALL_NUMBER = lazy_pattern(r"\d{1,9}", re.ASCII)
_FFI_NAME = lazy_pattern(r"[\w.$\-]++", re.ASCII)
_BOOLS = {"true": True, "false": False}

MAX_ATTRIBUTE_DEPTH = 8
"""Deepest nesting of dictionaries that is read in a typed FFI call."""

_PRINTED_METADATA = lazy_pattern(
    r'\{(?:op_type="([^"\\]*+)")?+(?: ?op_name="([^"\\]*+)")?+(?: source_file="([^"\\]*+)")?+(?: source_line=(\d{1,9}))?+'
    r"(?: source_end_line=\d++ source_column=\d++ source_end_column=\d++)?+(?: stack_frame_id=(\d{1,9}))?+\}",
    re.ASCII,
)
"""Pattern of metadata with the most common fields, in their printed order."""


class Metadata(NamedTuple):
    """The front end's description of an instruction; absent fields are empty or None."""

    op_name: str = ""
    op_type: str = ""
    source_file: str = ""
    source_line: int | None = None
    stack_frame_id: int | None = None


def parse_metadata(text: str) -> Metadata:
    """Parse `{op_name="…" source_file="…" source_line=1}`. Other fields are skipped, such as `preserve_layout` of 2023."""
    printed = _PRINTED_METADATA.fullmatch(text)
    if printed is not None:
        op_type, op_name, file, line, frame = printed.groups()
        return Metadata(op_name or "", op_type or "", file or "", int(line) if line else None, int(frame) if frame else None)
    strings: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for name, quoted, word in _FIELD.findall(text):
        if word:
            strings.pop(name, None)
            numbers.pop(name, None)
            if _SMALL_NUMBER.fullmatch(word):
                numbers[name] = int(word)
        else:
            numbers.pop(name, None)
            strings[name] = tokens.unquote(f'"{quoted}"') if "\\" in quoted else quoted
    return Metadata(
        strings.get("op_name", ""),
        strings.get("op_type", ""),
        strings.get("source_file", ""),
        numbers.get("source_line"),
        numbers.get("stack_frame_id"),
    )


class BackendConfig:
    """A backend's notes on an instruction. `text` is without quotes and escapes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"BackendConfig({self.text!r})"

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of a JSON object or the attributes of a typed FFI call; empty for other text."""
        return self._content or {}

    @property
    def fault(self) -> str:
        """The fault of a text that is neither empty, nor JSON, nor attributes of an FFI call; else empty."""
        return "it is not JSON" if self._content is None else ""

    @cached_property
    def _content(self) -> dict[str, Any] | None:
        if not self.text:
            return {}
        import json  # few commands need it

        try:
            value = json.loads(self.text, strict=False)  # before optimization, JSON in JSON has strings with line breaks
        except (ValueError, RecursionError):
            return _ffi_attributes(self.text)
        return value if isinstance(value, dict) else {}

    def member(self, *names: str) -> Mapping[str, Any]:
        """Return the first of these fields that is an object, possibly as JSON in a string; an empty object if none is."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, str) and value.lstrip().startswith("{"):
                value = _json_object(value)
            if isinstance(value, dict):
                return value
        return {}

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """Yield the configuration and each object in it, at any depth, also in JSON strings."""
        waiting: list[object] = [self.fields]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                node = _json_object(node) if node.startswith("{") else None
            if isinstance(node, dict):
                yield node
                waiting += node.values()
            elif isinstance(node, list):
                waiting += node


def _ffi_attributes(text: str, depth: int = 0) -> dict[str, Any] | None:
    """Parse attributes of a typed FFI call, `{mask_type = 2 : i64, causal = true, config = {…}}`; None for any other text."""
    if depth > MAX_ATTRIBUTE_DEPTH or len(text) < 2 or text[0] != "{" or text[-1] != "}":
        return None
    fields: dict[str, Any] = {}
    for start, end in tokens.split_items(text, 1, len(text) - 1):
        name, equals, value = text[start:end].partition("=")
        if not equals or _FFI_NAME.fullmatch(name.strip()) is None:
            return None
        fields[name.strip()] = _ffi_value(value.strip(), depth)
    return fields


def _ffi_value(text: str, depth: int) -> object:
    """Return a number, bool, string or dictionary; the text itself for any other value."""
    if text.startswith("{"):
        return _ffi_attributes(text, depth + 1)
    if text.startswith('"'):
        return tokens.unquote_mlir(text)
    number = text.partition(" :")[0].rstrip()
    if _INTEGER.fullmatch(number):
        return int(number)
    if number in _BOOLS:
        return _BOOLS[number]
    return float(number) if re.fullmatch(_FLOAT, number, re.ASCII) else text


def _json_object(text: str) -> dict[str, Any] | None:
    import json  # few commands need it

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _frontend_attributes(text: str) -> Mapping[str, str]:
    """Parse `{key="value",other={…}}`: values without quotes, dictionaries as text. Raise ValueError for any other text."""
    values: dict[str, str] = {}
    for start, end in tokens.split_items(text, 1, len(text) - 1):
        name, equals, value = text[start:end].partition("=")
        if not equals or _WORD.fullmatch(name.strip()) is None:
            raise ValueError('expected attributes such as {key="value"}')
        values[name.strip()] = tokens.unquote(value.strip())
    return values


# -- table of kinds ---------------------------------------------------------------------------------------------------------

Value = bool | int | float | str | tuple[Any, ...] | Mapping[str, str] | DeviceGroups | BackendConfig | Shape
"""Tuples are NamedTuples or hold NamedTuples: `Metadata`, `Sharding`, `DevicePairs`, the dimensions of a window."""


class AttributeKind(NamedTuple):
    """A kind of value: `read` parses texts that fit `pattern`; `expected` describes the pattern in messages."""

    read: Callable[[str], Value]
    pattern: re.Pattern[str] | None = None
    expected: str = ""


def _kind(read: Callable[[str], Value], pattern: str, expected: str) -> AttributeKind:
    return AttributeKind(read, lazy_pattern(pattern, re.ASCII | re.DOTALL), expected)


def _listed(item: str) -> str:
    """Return the pattern of a list of items in braces."""
    return rf"\{{\s*+(?:{item}(?:\s*+,\s*+{item})*+)?+\s*+\}}"


_N = _INTEGER.pattern
_PAD = f"{_N}_{_N}"
_FLOAT = r"-?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?|-?inf|-?nan"
_SLICED = rf"\[\s*+{_N}\s*+:\s*+{_N}\s*+(?::\s*+{_N}\s*+)?+\]"
_NAMED = _NAME.pattern

_INTEGERS = f"{_listed(_N)}|{_N}"  # printers of 2018 wrote a single integer without braces
_INTEGER_LISTS = f"{_INTEGERS}|{_listed(_listed(_N))}"  # a permute in place has a list for each slice
_NAMES = rf"{_listed(_NAMED)}|{_NAMED}(?:\s*+,\s*+{_NAMED})*+|[^=]*+=.*"
_WINDOW = rf"\{{\s*+(?:(?:pad={_PAD}(?:x{_PAD})*+|(?!pad=)\w++={_N}(?:x{_N})*+)\s*+)*+\}}"

_TEXT = AttributeKind(str)
_WORDS = _kind(str, _WORD.pattern, "a word")
_STRING = _kind(tokens.unquote, r"([\"']).*\1", "a string")
_CALLEES = _kind(_names, _NAMES, "names")
_KINDS: dict[str, AttributeKind] = {
    **dict.fromkeys(get_args(BooleanAttribute), _kind("true".__eq__, "true|false", "true or false")),
    **dict.fromkeys(get_args(IntegerAttribute), _kind(int, _N, "an integer")),
    **dict.fromkeys(get_args(IntegersAttribute), _kind(_integers, _INTEGERS, "integers in braces")),
    **dict.fromkeys(get_args(WordAttribute), _WORDS),
    **dict.fromkeys(get_args(StringAttribute), _STRING),
    **dict.fromkeys(CALLEE_ATTRIBUTES, _CALLEES),
    **dict.fromkeys(get_args(TextAttribute), _TEXT),
    "backend_config": AttributeKind(lambda text: BackendConfig(tokens.unquote(text).strip())),
    "control-predecessors": _CALLEES,
    "dim_labels": _kind(_labels, r"[0-9bf?]+_[0-9io?]+->[0-9bf?]+", "labels such as b01f_01io->b01f"),
    "epsilon": _kind(float, _FLOAT, "a number"),
    "frontend_attributes": _kind(_frontend_attributes, r"\{.*\}", "a list in braces"),
    "metadata": AttributeKind(parse_metadata),
    "padding": _kind(_padding, rf"{_PAD}(?:_{_N})?(?:x{_PAD}(?:_{_N})?)*+", "padding such as 0_0_0x1_1"),
    "replica_groups": AttributeKind(parse_groups),
    "sharding": AttributeKind(parse_sharding),
    "slice": _kind(_slice, _listed(_SLICED), "slices such as {[0:8:2], [1:3]}"),
    "slice_sizes": _kind(_integers, _INTEGER_LISTS, "integers in braces"),
    "source_target_pairs": AttributeKind(parse_pairs),
    "window": _kind(_window, _WINDOW, "a window such as {size=3x3 pad=0_1x0_1}"),
}
_VERBATIM = frozenset(
    {"backend_config", "frontend_attributes", "metadata", *get_args(StringAttribute), *get_args(TextAttribute)}
)
"""Attributes whose text may hold `/*` or `//` that starts no comment."""

_REPEATED = frozenset(
    {"backend_config", "index", "kind", "metadata", "replica_groups", "sharding", "source_target_pairs", "window"}
)
"""Attributes with equal values in many instructions of a module."""

_MAX_KEPT = 1 << 22


class MalformedValue(NamedTuple):
    """An attribute text that does not parse, and the reason."""

    text: str
    reason: str


class ValueTable:
    """The attribute values of a module, with its `shapes` and `forms`. A text that many instructions share is parsed once."""

    def __init__(self) -> None:
        self.shapes = ShapeTable()
        self.forms: FormTable[Value | MalformedValue] = FormTable()
        self._known: dict[tuple[str, str], Value | MalformedValue] = {}
        self._kept = 0

    def read(self, name: str, text: str) -> Value | MalformedValue:
        """Return the value of an attribute's text; a MalformedValue if it does not parse."""
        value = self._known.get((name, text)) if name in _REPEATED else None
        if value is not None:
            return value
        spelled = tokens.without_comments(text).strip() if "/" in text and name not in _VERBATIM else text
        kind = _KINDS.get(name, _TEXT)
        try:
            fits = kind.pattern is None or kind.pattern.fullmatch(spelled) is not None
            value = kind.read(spelled) if fits else MalformedValue(text, f"expected {kind.expected}")
        except ValueError as error:
            value = MalformedValue(text, str(error))
        if name in _REPEATED:
            words = len(text) + (value.count if isinstance(value, DeviceGroups) else 0)
            if self._kept + words > _MAX_KEPT:
                self._known.clear()
                self._kept = 0
            self._kept += words
            self._known[name, text] = value
        return value
