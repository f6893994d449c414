"""The few parts of protobuf's wire format that execution traces need. Source: https://protobuf.dev/programming-guides/encoding."""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _BYTES = 0, 2


def varint(number: int) -> bytes:
    """Encode an unsigned integer in base 128, least significant digits first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def integer(field: int, number: int) -> bytes:
    """Encode an unsigned integer, or one of two's complement if it is not negative."""
    return varint(field << 3 | _VARINT) + varint(number)


def text(field: int, content: str | bytes) -> bytes:
    """Encode a string or a message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | _BYTES) + varint(len(data)) + data


def integers(field: int, numbers: Iterable[int]) -> bytes:
    """Encode a packed list of unsigned integers; an empty one is not on the wire."""
    data = b"".join(map(varint, numbers))
    return text(field, data) if data else b""


def delimited(message: bytes) -> bytes:
    """Return a message behind its length, as in a chain of messages."""
    return varint(len(message)) + message
