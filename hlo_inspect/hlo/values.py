"""The values of attributes: which kind of value each attribute has, and how that is read from its text.

The grammar is that of `HloParserImpl::ParseAttributeHelper` (xla/hlo/parser/hlo_parser.cc), and of older printers where these
wrote otherwise. A reader raises `ValueError` where a text is no such value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES
from hlo_inspect.hlo.shape_text import ShapeTable
from hlo_inspect.hlo.shapes import Shape
from hlo_inspect.hlo.sharding import DeviceGroups, DevicePairs, Sharding, parse_groups, parse_pairs, parse_sharding

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
"""Attributes that no analysis looks into: their text is their value."""

_INTEGER = re.compile(r"-?\d{1,19}", re.ASCII)
_INTEGERS = re.compile(r"\{\s*+((?:-?\d{1,19}(?:\s*+,\s*+-?\d{1,19})*+)?+)\s*+\}", re.ASCII)
_FLOAT = re.compile(r"-?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?|-?inf|-?nan", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.\-]*+", re.ASCII)
_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_NAMES = re.compile(rf"{_NAME.pattern}(?:\s*+,\s*+{_NAME.pattern})*+", re.ASCII)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError("expected an integer")
    return int(text)


def _float(text: str) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise ValueError("expected a number")
    return float(text)


def _integers(text: str) -> tuple[int, ...]:
    found = _INTEGERS.fullmatch(text)
    if found is None and _INTEGER.fullmatch(text):  # texts of 2018 wrote one without braces
        return (int(text),)
    if found is None:
        raise ValueError("expected integers in braces")
    return tuple(map(int, found[1].split(","))) if found[1] else ()


def _integers_or_lists(text: str) -> tuple[int, ...]:
    """`slice_sizes` of a gather is a list; that of a permute in place is a list for each slice, of which the first counts."""
    inside = text[1:-1].strip()
    if not inside.startswith("{"):
        return _integers(text)
    return tuple(number for start, end in tokens.split_items(inside) for number in _integers(inside[start:end].strip()))


def _items(text: str) -> list[str]:
    """The items between the commas of a list in braces."""
    if len(text) < 2 or text[0] != "{" or text[-1] != "}":
        raise ValueError("expected a list in braces")
    inside = text[1:-1]
    return [inside[start:end].strip() for start, end in tokens.split_items(inside)]


def _word(text: str) -> str:
    if _WORD.fullmatch(text) is None:
        raise ValueError("expected a word")
    return text


def _string(text: str) -> str:
    if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
        raise ValueError("expected a string")
    return tokens.unquote(text)


def _names(text: str) -> tuple[str, ...]:
    """Names of computations or instructions: one, or several in braces or between commas. A computation that is written in
    place has no name here.
    """
    single = _NAME.fullmatch(text)
    if single is not None:
        return (single[1],)
    inside = text[1:-1].strip() if text.startswith("{") else text
    if "=" in inside or not inside:
        return ()
    if _NAMES.fullmatch(inside) is None:
        raise ValueError("expected names")
    return tuple(_NAME.findall(inside))


# -- dimensions -------------------------------------------------------------------------------------------------------------

_WINDOW = re.compile(r"\{\s*+(?:\w++=[\dx_\-]++\s*+)*+\}", re.ASCII)
_WINDOW_FIELD = re.compile(r"(\w++)=([\dx_\-]++)", re.ASCII)
_PAD = re.compile(r"(-?\d{1,18})_(-?\d{1,18})(?:_(-?\d{1,18}))?", re.ASCII)
_SLICE = re.compile(r"\[\s*+(-?\d{1,18})\s*+:\s*+(-?\d{1,18})\s*+(?::\s*+(-?\d{1,18})\s*+)?\]", re.ASCII)
_LABELS = re.compile(r"([0-9bf?]+)_([0-9io?]+)->([0-9bf?]+)", re.ASCII)


class WindowDimension(NamedTuple):
    """One dimension of a `window={…}`, with the values that a printer leaves out. `lhs_dilate` is the base dilation,
    `rhs_dilate` the window's.
    """

    size: int = 1
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    is_reversed: bool = False


def _window(text: str) -> tuple[WindowDimension, ...]:
    """The dimensions of `{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`."""
    if _WINDOW.fullmatch(text) is None:
        raise ValueError("expected a window such as {size=3x3 pad=0_1x0_1}")
    fields = {name: value.split("x") for name, value in _WINDOW_FIELD.findall(text)}
    sizes = fields.get("size", [])
    found = []
    for i, size in enumerate(sizes):
        if any(len(values) != len(sizes) for values in fields.values()):
            raise ValueError("the parts of the window differ in dimensions")
        pad = _PAD.fullmatch(fields["pad"][i]) if "pad" in fields else None
        if "pad" in fields and (pad is None or pad[3] is not None):
            raise ValueError("expected low and high padding such as 0_1")
        stride, rhs, lhs, is_reversed = (
            _integer(fields[field][i]) if field in fields else default
            for field, default in (("stride", 1), ("rhs_dilate", 1), ("lhs_dilate", 1), ("rhs_reversal", 0))
        )
        low, high = (int(pad[1]), int(pad[2])) if pad is not None else (0, 0)
        found.append(WindowDimension(_integer(size), stride, low, high, rhs, lhs, bool(is_reversed)))
    return tuple(found)


class PaddingDimension(NamedTuple):
    """Elements added before, after and between those of one dimension."""

    low: int
    high: int
    interior: int


def _padding(text: str) -> tuple[PaddingDimension, ...]:
    """`0_0_0x1_1`."""
    found = [_PAD.fullmatch(part) for part in text.split("x")]
    pads = [PaddingDimension(int(pad[1]), int(pad[2]), int(pad[3] or 0)) for pad in found if pad is not None]
    if len(pads) != len(found):
        raise ValueError("expected padding such as 0_0_0x1_1")
    return tuple(pads)


class SliceDimension(NamedTuple):
    """`[start:limit:stride]` of one dimension."""

    start: int
    limit: int
    stride: int


def _slice(text: str) -> tuple[SliceDimension, ...]:
    """`{[0:8:2], [1:3]}`."""
    items = _items(text)
    found = [_SLICE.fullmatch(item) for item in items]
    parts = [SliceDimension(int(part[1]), int(part[2]), int(part[3] or 1)) for part in found if part is not None]
    if len(parts) != len(items):
        raise ValueError("expected slices such as {[0:8:2], [1:3]}")
    return tuple(parts)


class ConvolutionLabels(NamedTuple):
    """What each dimension is: `b` batch, `f` feature, `i` and `o` input and output feature, or the number of a spatial one."""

    input: str
    kernel: str
    output: str


def _labels(text: str) -> ConvolutionLabels:
    """`b01f_01io->b01f`."""
    labels = _LABELS.fullmatch(text)
    if labels is None:
        raise ValueError("expected labels such as b01f_01io->b01f")
    return ConvolutionLabels(*labels.groups())


# -- text about the instruction ---------------------------------------------------------------------------------------------

# One field of the metadata. A string is matched as a whole: it may hold text that looks like a field.
_FIELD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]++|\\.)*+)"|([^\s,"{}]++)|\{[^{}]*\})', re.ASCII | re.DOTALL)
_SMALL_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_PRINTED_METADATA = re.compile(
    r'\{(?:op_type="([^"\\]*+)")?+(?: ?op_name="([^"\\]*+)")?+(?: source_file="([^"\\]*+)")?+(?: source_line=(\d{1,9}))?+'
    r"(?: source_end_line=\d++ source_column=\d++ source_end_column=\d++)?+(?: stack_frame_id=(\d{1,9}))?+\}",
    re.ASCII,
)
"""The fields that most have, in the order in which they are printed."""


class Metadata(NamedTuple):
    """What the front end says of an instruction; empty and `None` where it does not."""

    op_name: str = ""
    op_type: str = ""
    source_file: str = ""
    source_line: int | None = None
    stack_frame_id: int | None = None
    scheduling_name: str = ""


def parse_metadata(text: str) -> Metadata:
    """`{op_name="…" source_file="…" source_line=1}`; fields of other names are passed over, as `preserve_layout` of 2023."""
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
        strings.get("scheduling_name", ""),
    )


class BackendConfig(NamedTuple):
    """What a backend notes of an instruction: the `text` without quotes and escapes, and where that is a JSON object its
    `fields`, else none. `fault` is set for text that is neither empty nor JSON.
    """

    text: str
    fields: Mapping[str, Any]
    fault: str = ""

    def member(self, *names: str) -> Mapping[str, Any]:
        """The object that the first of these fields holds, which may be JSON in a string; empty where there is none."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, str) and value.lstrip().startswith("{"):
                value = _json_object(value)
            if isinstance(value, dict):
                return value
        return {}

    def objects(self) -> Iterator[Mapping[str, Any]]:
        """The configuration and every object in it, at any depth; JSON in a string is parsed too."""
        waiting: list[object] = [self.fields]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                one = _json_object(one) if one.startswith("{") else None
            if isinstance(one, dict):
                yield one
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one


def _backend_config(text: str) -> BackendConfig:
    """`{…}`, or the same in quotes with escapes."""
    spelled = tokens.unquote(text).strip()
    if not spelled:
        return BackendConfig("", {})
    try:
        value = json.loads(spelled)
    except (ValueError, RecursionError):
        return BackendConfig(spelled, {}, "it is no JSON")
    return BackendConfig(spelled, value if isinstance(value, dict) else {})


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _frontend_attributes(text: str) -> Mapping[str, str]:
    """`{key="value",other={…}}`: the values without quotes, dictionaries as they are."""
    found: dict[str, str] = {}
    for item in _items(text):
        name, equals, value = item.partition("=")
        if not equals or _WORD.fullmatch(name.strip()) is None:
            raise ValueError('expected attributes such as {key="value"}')
        found[name.strip()] = tokens.unquote(value.strip())
    return found


# -- the table --------------------------------------------------------------------------------------------------------------

Value = bool | int | float | str | tuple[Any, ...] | DeviceGroups | DevicePairs | Sharding | Mapping[str, str] | Shape

_READERS: dict[str, Callable[[str], Value]] = {
    **dict.fromkeys(get_args(BooleanAttribute), _boolean),
    **dict.fromkeys(get_args(IntegerAttribute), _integer),
    **dict.fromkeys(get_args(IntegersAttribute), _integers),
    **dict.fromkeys(get_args(WordAttribute), _word),
    **dict.fromkeys(get_args(StringAttribute), _string),
    **dict.fromkeys(CALLEE_ATTRIBUTES, _names),
    **dict.fromkeys(get_args(TextAttribute), str),
    "backend_config": _backend_config,
    "control-predecessors": _names,
    "dim_labels": _labels,
    "epsilon": _float,
    "frontend_attributes": _frontend_attributes,
    "metadata": parse_metadata,
    "padding": _padding,
    "replica_groups": parse_groups,
    "sharding": parse_sharding,
    "slice": _slice,
    "slice_sizes": _integers_or_lists,
    "source_target_pairs": parse_pairs,
    "window": _window,
}
_VERBATIM = frozenset(
    {"backend_config", "frontend_attributes", "metadata", *get_args(StringAttribute), *get_args(TextAttribute)}
)
"""Attributes whose text may hold what looks like a comment."""

_REPEATED = frozenset({"backend_config", "metadata", "replica_groups", "sharding", "source_target_pairs", "window"})
"""Attributes of which many instructions of a module have the same."""

_MAX_KEPT = 1 << 22


class MalformedValue(NamedTuple):
    """An attribute whose text makes no sense, and why."""

    text: str
    reason: str


@dataclass(slots=True)
class ValueTable:
    """The values of the attributes of one module. A text that many instructions share is parsed once. `shapes` are those of the
    module.
    """

    shapes: ShapeTable = field(default_factory=ShapeTable)
    _known: dict[tuple[str, str], Value | MalformedValue] = field(default_factory=dict)
    _kept: int = 0

    def read(self, name: str, text: str) -> Value | MalformedValue:
        """The value that the text of an attribute has."""
        value = self._known.get((name, text)) if name in _REPEATED else None
        if value is not None:
            return value
        spelled = tokens.without_comments(text).strip() if "/" in text and name not in _VERBATIM else text
        try:
            value = _READERS.get(name, str)(spelled)
        except ValueError as error:
            value = MalformedValue(text, str(error))
        if name in _REPEATED:
            words = len(text) + (sum(map(len, value.groups)) if isinstance(value, DeviceGroups) else 0)
            if self._kept + words > _MAX_KEPT:
                self._known.clear()
                self._kept = 0
            self._kept += words
            self._known[name, text] = value
        return value
