"""Serialized protocol buffers: their wire format, and the HLO module inside of what XLA writes.

The numbers of fields are those of XLA's hlo.proto. An `HloModuleProto` is a file of its own, or field 1 of an `HloProto`
(XLA's dumps) or of an `HloUnoptimizedSnapshot`; the `HloProto` is field 1 of an `HloSnapshot`.
https://protobuf.dev/programming-guides/encoding describes the wire format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern

MAX_BYTES = (1 << 31) - 1
"""No protocol buffer is larger."""

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_OPCODE = lazy_pattern(rb"[a-z][a-z0-9\-]*+")


class WireError(ValueError):
    """Bytes that are no protocol buffer."""


class CutOffError(WireError):
    """The bytes end inside a field."""


class SerializedModule(NamedTuple):
    """An `HloModuleProto`; `fault` says why it cannot be read to its end."""

    data: memoryview
    fault: str = ""


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field of a message: an integer, or bytes as far as they are there. Numbers of 4 and 8 bytes are
    skipped. `WireError` for what is no message, `CutOffError` after the last field of one that ends too early.
    """
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, value
        elif kind == _BYTES:
            size, position = _varint(data, position)
            yield number, data[position : position + size]
            position += size
        elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
            position += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise WireError
    if position > len(data):
        raise CutOffError


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """The integer at `position`, and the index after it."""
    value = 0
    for count, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, position + count + 1
    raise CutOffError if len(data) < position + 10 else WireError


def messages(data: memoryview, number: int) -> Iterator[memoryview]:
    """The values of one field that are bytes, as far as `data` can be read."""
    try:
        for found, value in fields(data):
            if found == number and isinstance(value, memoryview):
                yield value
    except WireError:
        return


def find_module(data: memoryview, depth: int = 2) -> SerializedModule | None:
    """The `HloModuleProto` that `data` is, or holds in its field 1; the start of a file is enough to tell."""
    first: memoryview | None = None
    is_module, fault = False, ""
    try:
        for number, value in fields(data):
            if isinstance(value, memoryview):
                first = value if number == 1 else first
                is_module = is_module or (number == 3 and _is_computation(value))
    except CutOffError:
        fault = "is cut off"
    except WireError:
        fault = "is damaged"
    if is_module:
        return SerializedModule(data, fault)
    inner = find_module(first, depth - 1) if first is not None and depth else None
    return SerializedModule(inner.data, inner.fault or fault) if inner is not None else None


def _is_computation(data: memoryview) -> bool:
    """Whether this is an `HloComputationProto`: field 2 is an instruction, whose field 2 is an opcode."""
    for instruction in messages(data, 2):
        return any(_OPCODE.fullmatch(opcode) for opcode in messages(instruction, 2))
    return False
