r"""Inputs: a path, `-`, an open file or HLO text itself, compressed or not, as pieces of text cut at line ends.

A piece is a tenth of a megabyte, so that the file is never held in memory. CRLF and bare CR become LF; bytes that are not
UTF-8 are kept as `\\xNN` escapes and counted. Serialized HLO and StableHLO are read whole and handed to a converter.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Protocol, cast

from hlo_inspect.errors import InputError, Location, MissingExtraError
from hlo_inspect.hlo.input.foreign_text import MAX_BYTES, Format, convertible_format, what_is_no_text
from hlo_inspect.hlo.pasted.mending import Mender
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.lazy_pattern import lazy_pattern

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


PIECE_BYTES = 7 << 14  # from 128 KiB on C libraries ask the system for memory, which costs more than reading it
MAX_LINE_BYTES = 1 << 28
START_CHARS = 1 << 16

Openable = str | bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes] | IO[str]

Converter = Callable[["Source", bytes], bytes]
"""HLO text for the bytes of a source of a convertible format."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HLO_HEADER = lazy_pattern(rb"^[ \t]*+HloModule[ ,\n]", re.MULTILINE)
_INVALID_LINE = lazy_pattern("[\udc80-\udcff][^\n]*")  # one match a line


class Source(TextSource):
    """One input that is read once.

    Once `pieces` were read, `start` is the first text of the input; if `converter` made HLO text of it, `format` is what it was
    and `note` what a report has to say about that. `bytes_read` are those of the pieces, and `ends_with_line` says whether the
    last of them ends in a line end. `measured` are the keys of the measurements in the text behind the last module. `mender`
    says where the text of pieces stands in the input. `on_bytes` is called with how many bytes of the file have been read,
    compressed ones where it is compressed. A file that somebody else opened is not closed. What `reopens` can be opened once
    more, and gives the same then.
    """

    def __init__(self, name: str, opener: Callable[[], IO[bytes]], *, closes: bool = False, reopens: bool = False) -> None:
        super().__init__(name, iter(()))
        self.reopens = reopens
        self.start = ""
        self.note: str | None = None
        self.converter: Converter | None = None
        self.on_bytes: Callable[[int], None] | None = None
        self._position: Callable[[], int] = lambda: 0
        self._opener = opener
        self._closes = closes
        self.bytes_read = 0
        self.ends_with_line = True
        self._unread: Generator[bytes, None, None] | None = None
        self._first = b""
        self.mender = Mender()
        self.measured: tuple[str, ...] = ()

    def peek(self) -> bytes:
        """The first piece as the file has it, which `raw_pieces` and `pieces` give too; empty where the input is."""
        if self._unread is None:
            self._unread = self._cut()
            self._first = next(self._unread, b"")
        return self._first

    def peek_text(self) -> str:
        """The first characters of what `peek` gives, with single line ends."""
        return self.peek()[:START_CHARS].decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")

    def raw_pieces(self) -> Iterator[bytes]:
        """The bytes in order, decompressed, cut at line ends; errors as `pieces` has them."""
        raw = self.peek()
        with closing(self._unread or self._cut()) as rest:
            while raw:
                if self.on_bytes is not None:
                    self.on_bytes(self._position())
                self.bytes_read += len(raw)
                self.ends_with_line = raw.endswith((b"\n", b"\r"))
                yield raw
                raw = next(rest, b"")

    def reopened(self) -> Source:
        """The same source, to read it once more."""
        return Source(self.name, self._opener, closes=self._closes, reopens=True)

    def _mended(self, next_line: Callable[[], int]) -> Iterator[str]:
        """Return the text, mended. `InputError` for what cannot be opened, decompressed or is binary."""
        return self.mender.pieces(self._texts(next_line), next_line)

    def _texts(self, next_line: Callable[[], int]) -> Generator[str, None, None]:
        """The pieces as the input has them."""
        for raw in self.raw_pieces():
            data = raw if self.ends_with_line else raw + b"\n"
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                if self.first_invalid_line is None:
                    self.first_invalid_line = next_line() + data.count(b"\n", 0, error.start)
                self.invalid_lines += len(_INVALID_LINE.findall(data.decode(errors="surrogateescape")))
                text = data.decode(errors="backslashreplace")
            if len(self.start) < START_CHARS:
                self.start += text[: START_CHARS - len(self.start)]
            yield text

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            stream = self._opener()
        except (OSError, ValueError) as error:  # a path may hold a NUL
            raise self._error(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
        buffered = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
        self._position = buffered.tell if buffered.seekable() else lambda: 0
        try:
            try:
                magic = cast("io.BufferedReader", buffered).peek(6)[:6]
            except OSError as error:
                raise self._error(f"cannot be read: {error.strerror or error}") from error
            decompressor = next((opener for prefix, opener in DECOMPRESSORS if magic.startswith(prefix)), None)
            yield buffered if decompressor is None else decompressor(buffered)
        except ImportError as error:
            message = "reading .zst needs the extra [zstd]: pip install zstandard"
            raise MissingExtraError(message, Location(self.name)) from error
        finally:
            if self._closes:
                stream.close()
            elif isinstance(buffered, io.BufferedReader) and buffered is not stream and not buffered.closed:
                buffered.detach()  # else it would close the stream

    def _as_text(self, stream: IO[bytes]) -> tuple[bytes, IO[bytes]]:
        """The first chunk of text and the stream after it; what can be converted to HLO text is converted."""
        chunk = self._read(stream)
        self.format = convertible_format(chunk)
        if self.format is None:
            other = what_is_no_text(chunk)
            if other:
                raise self._error(other)
            while chunk.startswith(_BYTE_ORDER_MARK):  # files that were joined have several
                chunk = chunk.removeprefix(_BYTE_ORDER_MARK)
            return chunk, stream
        whole = self._read_whole(chunk, stream)
        if self.format is Format.MLIR and _HLO_HEADER.search(whole):  # a log that prints StableHLO and then HLO
            self.format = None
        elif self.converter is None:
            raise self._error(f"is {self.format}, not HLO text")
        else:
            whole = self.converter(self, whole)
        text = io.BytesIO(whole)
        return self._read(text), text

    def _read_whole(self, chunk: bytes, stream: IO[bytes]) -> bytes:
        chunks, size = [chunk], len(chunk)
        while chunk := self._read(stream):
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise self._error(f"is {self.format} of more than {(MAX_BYTES + 1) >> 30} GiB, which XLA does not read")
        return b"".join(chunks)

    def _cut(self) -> Generator[bytes, None, None]:
        """The bytes of the input, cut at line ends."""
        pending: list[memoryview] = []
        size = 0
        with self._open() as opened:
            chunk, stream = self._as_text(opened)
            while chunk:
                cut = chunk.rfind(b"\n") + 1
                if not cut:
                    cut = chunk.rfind(b"\r", 0, len(chunk) - 1) + 1  # a final CR is left, since its LF may follow
                read = memoryview(chunk)
                pending.append(read[:cut])
                size += cut or len(chunk)
                if cut:
                    yield b"".join(pending)
                    pending, size = [], 0
                pending.append(read[cut:])
                if size > MAX_LINE_BYTES:
                    raise self._error(f"a line is longer than {MAX_LINE_BYTES >> 20} MiB")
                chunk = self._read(stream)
            if rest := b"".join(pending):
                yield rest

    def _read(self, stream: IO[bytes]) -> bytes:
        try:
            return stream.read(PIECE_BYTES)
        except Exception as error:  # every decompressor has errors of its own for damaged data
            raise self._error(f"cannot be read to its end: {error}") from error

    def _error(self, message: str) -> InputError:
        return InputError(message, Location(self.name))


def open_source(source: Openable) -> Source:
    """What `source` means: HLO text (a string with a line end in it, or bytes), an open file, `-` or a path."""
    if isinstance(source, bytes | bytearray | memoryview):
        return Source("<text>", lambda: io.BytesIO(source), reopens=True)
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("HloModule ", "ENTRY "))):
        text = source.encode(errors="surrogatepass")
        return Source("<text>", lambda: io.BytesIO(text), reopens=True)
    if source == "-":
        return Source("<stdin>", _standard_input)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        again = os.path.isfile(path)  # noqa: PTH113 - a name that no file can have is none
        return Source(str(path), lambda: path.open("rb"), closes=True, reopens=again) if source else Source("''", _nothing)
    name = str(getattr(source, "name", "<file>"))
    if isinstance(source, io.TextIOBase):
        return Source(name, lambda: io.BytesIO(source.read().encode(errors="surrogatepass")))
    return Source(name, lambda: cast("IO[bytes]", source))


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


def _nothing() -> IO[bytes]:
    raise OSError(errno.ENOENT, "the name of the input is empty")
