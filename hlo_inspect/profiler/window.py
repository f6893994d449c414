"""Random access to the bytes of a protobuf file that may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from hlo_inspect.hlo.input.foreign_text import WireError

PIECE_BYTES = 1 << 20
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 10


class FieldSpan(NamedTuple):
    """Position of the content of a field in the file."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class PromisedBytesError(WireError):
    """A field that ends after the message that holds it: the file is truncated."""

    def __init__(self, promised: int) -> None:
        super().__init__()
        self.promised = promised


class ByteWindow:
    """A seekable file, of which one piece is in memory. `on_bytes` receives the position of each new piece."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self.size = size
        self.on_bytes: Callable[[int], None] = lambda _: None
        self._start = 0
        self._piece = b""

    def read(self, span: FieldSpan) -> bytes:
        """Return the bytes of a span."""
        first = span.start - self._start
        if first >= 0 and span.end - self._start <= len(self._piece):
            return self._piece[first : first + span.size]
        self._stream.seek(span.start)
        return self._stream.read(span.size)

    def fields(self, span: FieldSpan) -> Iterator[tuple[int, int | FieldSpan]]:
        """Yield number and value of each field of the message in a span: an integer, or the span of bytes.

        Numbers of 4 and 8 bytes are skipped. Raise WireError if it is no message, PromisedBytesError if a field ends after it.
        """
        position, end = span
        while position < end:
            tag, position = self._varint(position, end)
            number, kind = tag >> 3, tag & 7
            if not number:
                raise WireError
            if kind == _VARINT:
                value, position = self._varint(position, end)
                yield number, value
            elif kind == _BYTES:
                size, position = self._varint(position, end)
                if position + size > end:
                    raise PromisedBytesError(position + size)
                yield number, FieldSpan(position, position + size)
                position += size
            elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
                position += 8 if kind == _EIGHT_BYTES else 4
            else:
                raise WireError
        if position > end:
            raise PromisedBytesError(position)

    def messages(self, span: FieldSpan, number: int) -> Iterator[tuple[bytes, list[int], list[int]]]:
        """Yield bytes with the begins and ends of the content of fields `number` of a message in them.

        The other fields of the message are few: an event has bytes only.
        """
        tag = number << 3 | _BYTES
        position, end = span
        while position < end:
            self._hold(position, end)
            piece, base = self._piece, self._start
            index, last = position - base, min(len(piece), end - base)
            safe = last if base + last == end else last - 2 * _LONGEST_VARINT
            firsts: list[int] = []
            stops: list[int] = []
            while index < safe:
                if piece[index] == tag and index + 1 < last and piece[index + 1] < 0x80:  # nearly always
                    first = index + 2
                    stop = first + piece[index + 1]
                else:
                    first, stop, is_wanted = self._field_at(base + index, end, tag)
                    first, stop = first - base, stop - base
                    if not is_wanted:
                        index = stop
                        continue
                if stop > last:
                    break
                firsts.append(first)
                stops.append(stop)
                index = stop
            if firsts:
                yield piece, firsts, stops
            if base + index == position:  # a field that is larger than a piece
                first, stop, is_wanted = self._field_at(position, end, tag)
                if is_wanted:
                    yield self.read(FieldSpan(first, stop)), [0], [stop - first]
                index = stop - base
            position = base + index

    def _field_at(self, position: int, end: int, tag: int) -> tuple[int, int, bool]:
        """Return start and end of the content of the field at a position, and True if it has the tag."""
        own_tag, first = self._varint(position, end)
        kind = own_tag & 7
        if kind == _VARINT:
            stop = self._varint(first, end)[1]
        elif kind == _BYTES:
            size, first = self._varint(first, end)
            stop = first + size
        elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
            stop = first + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise WireError
        if stop > end:
            raise PromisedBytesError(stop)
        return first, stop, own_tag == tag

    def _hold(self, position: int, end: int) -> None:
        """Read the piece at a position, unless the current one has enough of it."""
        index = position - self._start
        room = min(_LONGEST_VARINT * 2, end - position)
        if not (index >= 0 and index + room <= len(self._piece)):
            self._stream.seek(position)
            self._piece, self._start = self._stream.read(PIECE_BYTES), position
            self.on_bytes(position)

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        """Return the integer at a position and the position after it."""
        self._hold(position, end)
        index, value = position - self._start, 0
        for count, byte in enumerate(self._piece[index : index + _LONGEST_VARINT]):
            value |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                return value, position + count + 1
        if position + _LONGEST_VARINT > end:
            raise PromisedBytesError(end + 1)
        raise WireError
