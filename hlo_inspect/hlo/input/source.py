r"""Inputs (a path, `-`, an open file or HLO text, compressed or not), read in pieces that end with a line.

A piece is about 0.1 MB, so that memory never holds the whole file. CRLF and bare CR become LF. Bytes that are not UTF-8 are
kept as `\\xNN` escapes and counted. Serialized HLO and StableHLO are read whole, then converted.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol, cast

from hlo_inspect.errors import InputError, Location, MissingExtraError, reading
from hlo_inspect.hlo.input.foreign_text import MAX_BYTES, Format, convertible_format, describe_non_text
from hlo_inspect.hlo.pasted.mending import Mender
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_files import is_address, open_remote

PART_BYTES = 1 << 16
"""Bytes that are decompressed at a time."""


class _Decompressor(Protocol):
    """A decompressor of one stream. `needs_input` is False while it has input left to decompress."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _FramesFile:
    """A file of consecutive compressed streams, with nothing but zeros between them.

    Some readers of the libraries overlook other data after the last stream, or its truncation.
    """

    STEP = 1 << 12  # compressed bytes at a time: they may expand 32,000-fold

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
    """A frame of the package zstandard, for Python before 3.14; it decompresses all of its input at once."""

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
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor

        return _frames(stream, ZstdDecompressor)
    _ZstdFrame()  # raise ImportError now, not at the first read
    return _frames(stream, _ZstdFrame)


def _open_gzip(stream: IO[bytes]) -> IO[bytes]:
    import gzip

    return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))


def _open_frames(module: str, name: str, stream: IO[bytes]) -> IO[bytes]:
    return _frames(stream, getattr(import_module(module), name))


DECOMPRESSORS: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", _open_gzip),
    (b"BZh", partial(_open_frames, "bz2", "BZ2Decompressor")),
    (b"\xfd7zXZ\x00", partial(_open_frames, "lzma", "LZMADecompressor")),
    (b"\x28\xb5\x2f\xfd", _open_zstd),
)
"""First bytes of compressed streams, with their openers. An opener raises ImportError if a package is missing."""


PIECE_BYTES = 7 << 14  # from 128 KiB on C libraries ask the system for memory, which costs more than reading it
MAX_LINE_BYTES = 1 << 28
MOST_EXPANDED = 1000  # times its compressed size: text of a program shrinks to a twentieth
LEAST_EXPANDED_BYTES = 1 << 20
START_CHARS = 1 << 16

Openable = str | bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes] | IO[str]

Converter = Callable[["Source", bytes], bytes]
"""Callback that converts the bytes of a source in a convertible format into HLO text."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HLO_HEADER = lazy_pattern(rb"^[ \t]*+HloModule[ ,\n]", re.MULTILINE)
_INVALID_LINE = lazy_pattern("[\udc80-\udcff][^\n]*")  # one match a line


class Source(TextSource):
    """An input that is read once.

    After `pieces` were read, `start` is the first text of the input. If `converter` converted it to HLO text, `format` is its
    original format and `note` a note for the report; a redirect to another host has one too.
    `bytes_read` is the size of the pieces; `ends_with_line` is True if the last piece ends with a line. `measured`: keys of the
    measurements after the last module. `mender` maps the text to the input. `on_bytes` receives the number of bytes read from
    the file, before decompression.
    A source does not close a file that the caller opened. If it `reopens`, the input can be opened again and has the same text.
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
        self._is_compressed = False
        self._file_bytes = 0  # read from the file, before decompression
        self.bytes_read = 0
        self.ends_with_line = True
        self._unread: Generator[bytes, None, None] | None = None
        self._first = b""
        self.mender = Mender()
        self.measured: tuple[str, ...] = ()

    @cached_property
    def damage(self) -> str | None:
        """The fault of a damaged compressed file, whose end is checked before a module of it is answered.

        A remote one is not downloaded a second time for it.
        """
        if not self._is_compressed or not self.reopens or is_address(self.name):
            return None
        again = self.reopened()
        try:
            with again._open() as stream:
                while again._read(stream):
                    pass
        except InputError as error:
            return error.message
        return None

    @property
    def expansion(self) -> str | None:
        """The note that the input so far is `MOST_EXPANDED` times its compressed size or larger; None otherwise."""
        size, compressed = self.bytes_read, self._file_bytes
        is_large = self._is_compressed and size >= LEAST_EXPANDED_BYTES
        if not is_large or not compressed or size < MOST_EXPANDED * compressed:
            return None
        return f"decompression makes {size:,} bytes of {compressed:,}, {size // compressed:,} times its input"

    @property
    def plain_bytes(self) -> int | None:
        """The size of a file on this machine that is not compressed; None for other inputs."""
        if not self.peek() or self._is_compressed or not self.reopens:
            return None
        try:
            return os.stat(self.name).st_size  # noqa: PTH116 - not worth pathlib
        except (OSError, ValueError):
            return None

    def peek(self) -> bytes:
        """Return the first piece, which `raw_pieces` and `pieces` yield too; empty for an empty input."""
        if self._unread is None:
            self._unread = self._cut()
            self._first = next(self._unread, b"")
        return self._first

    def peek_text(self) -> str:
        """Return the first characters of `peek` with single line ends."""
        return self.peek()[:START_CHARS].decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")

    def raw_pieces(self) -> Iterator[bytes]:
        """Yield the bytes in order, decompressed and cut at line ends. Raise the errors of `pieces`."""
        raw = self.peek()
        with closing(self._unread or self._cut()) as rest:
            while raw:
                self._file_bytes = self._position()
                if self.on_bytes is not None:
                    self.on_bytes(self._file_bytes)
                self.bytes_read += len(raw)
                self.ends_with_line = raw.endswith((b"\n", b"\r"))
                yield raw
                raw = next(rest, b"")

    def decompressed(self) -> Iterator[bytes]:
        """Yield the bytes as they are after decompression, in pieces of any length. Raise InputError if they cannot be read."""
        with self._open() as stream:
            yield from iter(partial(self._read, stream), b"")

    @contextmanager
    def seekable(self) -> Iterator[IO[bytes]]:
        """Open the decompressed bytes as a file that can be read in any order, a temporary one unless the input is such a file.

        Raise InputError if they cannot be read.
        """
        if self.reopens:
            again = self.reopened()
            with again._open() as stream:
                if isinstance(stream, io.BufferedReader) and stream.seekable():
                    yield stream
                    return
                pieces = iter(partial(again._read, stream), b"")
                with _spooled(pieces) as copy:
                    yield copy
        else:
            with _spooled(self.raw_pieces()) as copy:
                yield copy

    def reopened(self) -> Source:
        """Return the same source, unread."""
        return Source(self.name, self._opener, closes=self._closes, reopens=True)

    @contextmanager
    def reopening(self) -> Iterator[Source]:
        """Return an unread source with these bytes that reopens: the same input, or a temporary copy of one that does not."""
        if self.reopens:
            yield self.reopened()
            return
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "input"
            with copy.open("wb") as stream:
                stream.writelines(self.raw_pieces())
            yield Source(self.name, lambda: copy.open("rb"), closes=True, reopens=True)

    def _mended(self, next_line: Callable[[], int]) -> Iterator[str]:
        """Return the mended text. Raise InputError if the input is binary or cannot be opened or decompressed."""
        return self.mender.pieces(self._texts(next_line), next_line)

    def _texts(self, next_line: Callable[[], int]) -> Generator[str, None, None]:
        """Yield the pieces as the input has them."""
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
        with reading(self.name):
            stream = self._opener()
        self.note = self.note or getattr(getattr(stream, "raw", None), "note", None)
        buffered = stream if hasattr(stream, "peek") else io.BufferedReader(cast("io.RawIOBase", stream))
        self._position = buffered.tell if buffered.seekable() or is_address(self.name) else lambda: 0
        try:
            with reading(self.name):
                magic = cast("io.BufferedReader", buffered).peek(6)[:6]
            decompressor = next((opener for prefix, opener in DECOMPRESSORS if magic.startswith(prefix)), None)
            self._is_compressed = decompressor is not None
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
        """Return the first chunk of text and the stream after it, converted into HLO text if necessary."""
        chunk = self._read(stream)
        self.format = convertible_format(chunk)
        if self.format is Format.PROFILE:  # its bytes are no text; `seekable` gives them
            return chunk, stream
        if self.format is None:
            other = describe_non_text(chunk)
            if other:
                raise self._error(other)
            while chunk.startswith(_BYTE_ORDER_MARK):  # joined files have several
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
                raise self._error(f"is {self.format} of more than {(MAX_BYTES + 1) >> 30} GiB, the limit of XLA")
        return b"".join(chunks)

    def _cut(self) -> Generator[bytes, None, None]:
        """Yield the bytes of the input, cut at line ends."""
        pending: list[memoryview] = []
        size = 0
        with self._open() as opened:
            chunk, stream = self._as_text(opened)
            while chunk:
                cut = chunk.rfind(b"\n") + 1
                if not cut:
                    cut = chunk.rfind(b"\r", 0, len(chunk) - 1) + 1  # a final CR waits, because its LF may follow
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
        except Exception as error:  # each decompressor raises its own errors for damaged data
            raise self._error(f"cannot be read to its end: {getattr(error, 'strerror', None) or error}") from error

    def _error(self, message: str) -> InputError:
        return InputError(message, Location(self.name))


@contextmanager
def _spooled(pieces: Iterable[bytes]) -> Iterator[IO[bytes]]:
    """Write pieces to a temporary file."""
    import tempfile  # few inputs need it

    with tempfile.TemporaryFile() as stream:
        stream.writelines(pieces)
        yield stream


def open_source(source: Openable) -> Source:
    """Open HLO text (a string with a line end, or bytes), an open file, `-` or a path."""
    if isinstance(source, bytes | bytearray | memoryview):
        return Source("<text>", lambda: io.BytesIO(source), reopens=True)
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("HloModule ", "ENTRY "))):
        text = source.encode(errors="surrogatepass")
        return Source("<text>", lambda: io.BytesIO(text), reopens=True)
    if source == "-":
        return Source("<stdin>", _standard_input)
    if isinstance(source, str | os.PathLike):
        return _open_path(source)
    name = str(getattr(source, "name", "<file>"))
    if isinstance(source, io.TextIOBase):
        return Source(name, lambda: io.BytesIO(source.read().encode(errors="surrogatepass")))
    return Source(name, lambda: cast("IO[bytes]", source))


def _open_path(source: str | os.PathLike[str]) -> Source:
    if isinstance(source, str) and is_address(source) and not os.path.lexists(source):
        return Source(source, partial(open_remote, source), closes=True, reopens=True)
    path = Path(source)
    again = os.path.isfile(path)  # noqa: PTH113 - False for an impossible name
    return Source(str(path), lambda: path.open("rb"), closes=True, reopens=again) if source else Source("''", _nothing)


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


def _nothing() -> IO[bytes]:
    raise OSError(errno.ENOENT, "the name of the input is empty")
