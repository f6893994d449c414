"""The `HloModule` line and the tables behind it, as XLA's parser takes them."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from hlo_inspect.hlo.header import TABLE_NAMES, ShapeIndex
from hlo_inspect.hlo.shapes import Shape
from hlo_inspect.hlo.strict.kinds import KINDS, take_fields
from hlo_inspect.hlo.strict.scope import Scope
from hlo_inspect.hlo.strict.shapes import take_shape
from hlo_inspect.hlo.strict.tokens import INTEGER, NAME, RefusedError, Tokens
from hlo_inspect.hlo.strict.values import take_original_array, take_shape_index

HEADER = "HI003"

_KINDS = {
    "alias_passthrough_params": "boolean",
    "allow_spmd_sharding_propagation_to_output": "booleans_or_one",
    "allow_spmd_sharding_propagation_to_parameters": "booleans_or_one",
    "debug_attributes": "anything",
    "frontend_attributes": "frontend_attributes",
    "is_scheduled": "boolean",
    "num_partitions": "integer",
    "replica_count": "integer",
}
_NOWHERE = Scope({}, set(), [])  # what a header's attributes can refer to

_LOCATION = dict.fromkeys(("file_name_id", "function_name_id", "line", "end_line", "column", "end_column"), "int32")
_FRAME = dict.fromkeys(("file_location_id", "parent_frame_id"), "int32")


class HeaderFacts(NamedTuple):
    """The output indices that the header aliases, with their places, the shape of the result, if it is printed, and the texts
    of modules in quotes with their places.
    """

    aliased: list[tuple[ShapeIndex, int]]
    result: Shape | None
    quoted: list[tuple[str, int]]


def take_header(tokens: Tokens) -> HeaderFacts:
    """Passes `HloModule name, attribute=value`."""
    tokens.move(tokens.position + len("HloModule"))
    start = tokens.position
    name = tokens.match(NAME)
    if name is None or name[0] == "ENTRY":
        tokens.refuse(HEADER, "expected the module's name", start)
    if tokens.text.startswith(":", name.end()):
        tokens.expect(":")
    aliased: list[tuple[ShapeIndex, int]] = []
    result: Shape | None = None
    quoted: list[tuple[str, int]] = []
    seen: set[str] = set()
    while tokens.take(","):
        start = tokens.position
        attribute = tokens.attribute_name(HEADER)
        if attribute in seen:
            tokens.refuse(HEADER, f"{attribute} stands twice", start)
        seen.add(attribute)
        if attribute in _KINDS:
            KINDS[_KINDS[attribute]](tokens, _NOWHERE)
        elif attribute == "input_output_alias":
            aliased = _take_aliases(tokens)
        elif attribute == "buffer_donor":
            _take_donors(tokens)
        elif attribute == "entry_computation_layout":
            result = _take_layout(tokens)
        elif attribute == "origin_recovery_table":
            quoted = _take_recovery_table(tokens)
        else:
            tokens.refuse(HEADER, f"a module has no attribute {attribute!r}", start)
    return HeaderFacts(aliased, result, quoted)


def _take_aliases(tokens: Tokens) -> list[tuple[ShapeIndex, int]]:
    """`{ {0}: (0, {}, may-alias) }`."""
    found = []
    tokens.expect("{", HEADER)
    while not tokens.at("}"):
        start = tokens.position
        found.append((take_shape_index(tokens), start))
        tokens.expect(":", HEADER)
        tokens.expect("(", HEADER)
        _take_parameter(tokens)
        if tokens.take(",") and tokens.word(HEADER, "may-alias or must-alias") not in {"may-alias", "must-alias"}:
            tokens.refuse(HEADER, "expected may-alias or must-alias", start)
        tokens.expect(")", HEADER)
        if not tokens.take(","):
            break
    tokens.expect("}", HEADER)
    return found


def _take_donors(tokens: Tokens) -> None:
    tokens.expect("{", HEADER)
    while not tokens.at("}"):
        tokens.expect("(", HEADER)
        _take_parameter(tokens)
        tokens.expect(")", HEADER)
        if not tokens.take(","):
            break
    tokens.expect("}", HEADER)


def _take_parameter(tokens: Tokens) -> None:
    """`0, {1}`: a parameter and a part of it."""
    start = tokens.position
    if tokens.integer(HEADER) < 0:
        tokens.refuse(HEADER, "expected the number of a parameter", start)
    tokens.expect(",", HEADER)
    take_shape_index(tokens)


def _take_layout(tokens: Tokens) -> Shape:
    """`{(f32[2]{0})->f32[2]{0}}`."""
    tokens.expect("{", HEADER)
    tokens.expect("(", HEADER)
    while not tokens.at(")"):
        take_shape(tokens)
        if not tokens.take(","):
            break
    tokens.expect(")", HEADER)
    tokens.expect("->", HEADER)
    result = take_shape(tokens)
    tokens.expect("}", HEADER)
    return result


def _take_recovery_table(tokens: Tokens) -> list[tuple[str, int]]:
    """`{"a"}: {"b"}, "HloModule …"`: the modules in quotes and where they stand."""
    quoted = []
    tokens.expect("{", HEADER)
    while not tokens.take("}"):
        take_original_array(tokens)
        tokens.expect(":", HEADER)
        take_original_array(tokens)
        if tokens.take(","):
            start = tokens.position
            quoted.append((tokens.string(HEADER), start))
    return quoted


def take_table(tokens: Tokens, number: int) -> None:
    """Passes the table of this number: names of files and functions, locations, frames. Its rows end where no integer follows;
    a name may be missing, since `ParseStackFrameIndex` does not ask whether there was one.
    """
    start = tokens.position
    if tokens.word(HEADER, "a table") != TABLE_NAMES[number]:
        tokens.refuse(HEADER, f"expected the table {TABLE_NAMES[number]}", start)
    while tokens.match(INTEGER) is not None:
        if number < 2:
            with suppress(RefusedError):
                tokens.string(HEADER)
        else:
            fields = _LOCATION if number == 2 else _FRAME
            take_fields(tokens, _NOWHERE, fields, frozenset(fields))
