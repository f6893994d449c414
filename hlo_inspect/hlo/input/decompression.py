"""Compressed inputs: their formats, told by their first bytes, and the readers of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Protocol, cast

PART_BYTES = 1 << 16
"""So much is decompressed at a time."""


class _Decompressor(Protocol):
    """A decompressor of one stream: `needs_input` is false while there is more of what it was given."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _FramesFile:
    """Reads compressed streams, one after the other, with zeros between them at most. The readers of the libraries do not all
    notice what is no stream behind the last one, or that this is cut off.
    """

    STEP = 1 << 12  # compressed bytes at a time: they may hold 32,000 times as much

    def __init__(self, stream: IO[bytes], new_frame: Callable[[], _Decompressor]) -> None:
        self._chunks = self._decompress(stream, new_frame)

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            size -= len(chunk)
        return b"".join(parts)

    def _decompress(self, stream: IO[bytes], new_frame: Callable[[], _Decompressor]) -> Iterator[bytes]:
        frame = None
        while compressed := stream.read(self.STEP):
            while compressed or (frame is not None and not frame.needs_input):
                if frame is None:
                    compressed = compressed.lstrip(b"\0")
                    if not compressed:
                        break
                    frame = new_frame()
                if chunk := frame.decompress(compressed, PART_BYTES):
                    yield chunk
                compressed = frame.unused_data
                frame = None if frame.eof else frame
        if frame is not None:
            raise EOFError("Compressed file ended before the end-of-stream marker was reached")


class _ZstdFrame:
    """A frame of the package zstandard, which gives all that it was given at once."""

    needs_input = True

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)

    def decompress(self, data: bytes, _max_length: int, /) -> bytes:
        return bytes(self._frame.decompress(data))


def _frames(stream: IO[bytes], new_frame: Callable[[], _Decompressor]) -> IO[bytes]:
    return cast("IO[bytes]", _FramesFile(stream, new_frame))


def _open_zstd(stream: IO[bytes]) -> IO[bytes]:
    _ZstdFrame()  # an import that fails has to do so here
    return _frames(stream, _ZstdFrame)


def _open_gzip(stream: IO[bytes]) -> IO[bytes]:
    import gzip

    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))


def _open_bzip2(stream: IO[bytes]) -> IO[bytes]:
    import bz2

    return _frames(stream, bz2.BZ2Decompressor)


def _open_xz(stream: IO[bytes]) -> IO[bytes]:
    import lzma

    return _frames(stream, lzma.LZMADecompressor)


DECOMPRESSORS: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", _open_gzip),
    (b"BZh", _open_bzip2),
    (b"\xfd7zXZ\x00", _open_xz),
    (b"\x28\xb5\x2f\xfd", _open_zstd),
)
"""How a stream begins that is compressed, and what opens it: `ImportError` for one that needs a package that is not there."""
