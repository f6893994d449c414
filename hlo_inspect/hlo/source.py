r"""Inputs: a path, `-`, an open file or HLO text itself, compressed or not, as pieces of text cut at line ends.

A piece is about a megabyte, so that the file is never held in memory. CRLF and bare CR become LF; bytes that are not UTF-8
are kept as `\\xNN` escapes and counted.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from hlo_inspect.errors import InputError, Location

PIECE_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 28

Openable = str | bytes | os.PathLike[str] | IO[bytes] | IO[str]

_INVALID_LINE = re.compile("[\udc80-\udcff][^\n]*")  # one match a line


class Source:
    """One input that is read once.

    `name` is what messages call it; `invalid_bytes` says, once pieces were read, the line of the first byte that is not
    UTF-8 and how many lines hold such bytes.
    """

    def __init__(self, name: str, opener: Callable[[], IO[bytes]]) -> None:
        self.name = name
        self._opener = opener
        self.first_invalid_line: int | None = None
        self.invalid_lines = 0

    def pieces(self) -> Iterator[str]:
        """The text in order, each piece ending in a line end. `InputError` for what cannot be opened, decompressed or is
        binary.
        """
        line = 1
        with self._open() as stream:
            for raw in self._cut(stream):
                text = self._decoded(raw, line)
                line += text.count("\n")
                yield text

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            stream = self._opener()
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror or error}") from error
        try:
            yield self._decompressed(stream)
        finally:
            if stream is not sys.stdin.buffer:
                stream.close()

    def _decompressed(self, stream: IO[bytes]) -> IO[bytes]:
        buffered = io.BufferedReader(cast("io.RawIOBase", stream)) if not hasattr(stream, "peek") else stream
        try:
            magic = cast("io.BufferedReader", buffered).peek(6)[:6]
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror or error}") from error
        for prefix, opener in _DECOMPRESSORS:
            if magic.startswith(prefix):
                return opener(buffered)
        return buffered

    def _cut(self, stream: IO[bytes]) -> Iterator[bytes]:
        pending: list[bytes] = []
        size = 0
        first = True
        while chunk := self._read(stream):
            if first:
                self._refuse_binary(chunk)
                chunk = chunk.removeprefix(b"\xef\xbb\xbf")
                first = False
            cut = _last_line_end(chunk)
            pending.append(chunk[:cut])
            size += cut or len(chunk)
            if cut:
                yield b"".join(pending)
                pending, size = [], 0
            pending.append(chunk[cut:])
            if size > MAX_LINE_BYTES:
                raise self._error(f"a line is longer than {MAX_LINE_BYTES >> 20} MiB")
        if rest := b"".join(pending):
            yield rest + b"\n"

    def _read(self, stream: IO[bytes]) -> bytes:
        try:
            return stream.read(PIECE_BYTES)
        except Exception as error:  # every decompressor has errors of its own for damaged data
            raise self._error(f"cannot be read to its end: {error}") from error

    def _refuse_binary(self, chunk: bytes) -> None:
        if chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise self._error("is UTF-16 text; convert it to UTF-8 first")
        if b"\0" in chunk[:4096]:
            raise self._error("is a binary file, not HLO text (a serialized HloModuleProto has to be printed as text first)")

    def _decoded(self, raw: bytes, first_line: int) -> str:
        if b"\r" in raw:
            raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            if self.first_invalid_line is None:
                self.first_invalid_line = first_line + raw.count(b"\n", 0, error.start)
            self.invalid_lines += len(_INVALID_LINE.findall(raw.decode(errors="surrogateescape")))
            return raw.decode(errors="backslashreplace")

    def _error(self, message: str) -> InputError:
        return InputError(message, Location(self.name))


def _last_line_end(chunk: bytes) -> int:
    """The index after the last line end; a final CR is left, since its LF may follow."""
    cut = chunk.rfind(b"\n") + 1
    return cut or chunk.rfind(b"\r", 0, len(chunk) - 1) + 1


def open_source(source: Openable) -> Source:
    """What `source` means: HLO text (a string with a line end in it, or bytes), an open file, `-` or a path."""
    if isinstance(source, bytes):
        return Source("<text>", lambda: io.BytesIO(source))
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("HloModule ", "ENTRY "))):
        text = source.encode(errors="surrogateescape")
        return Source("<text>", lambda: io.BytesIO(text))
    if source == "-":
        return Source("<stdin>", lambda: sys.stdin.buffer)
    if isinstance(source, str | os.PathLike):
        return _from_path(Path(source))
    name = str(getattr(source, "name", "<file>"))
    if isinstance(source, io.TextIOBase):
        return Source(name, lambda: io.BytesIO(source.read().encode(errors="surrogateescape")))
    return Source(name, lambda: cast("IO[bytes]", source))


def _from_path(path: Path) -> Source:
    return Source(str(path), lambda: path.open("rb"))


def _open_zstd(stream: IO[bytes]) -> IO[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise InputError("reading .zst needs the package zstandard: pip install 'hlo-inspect[zstd]'") from error
    return cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))


_DECOMPRESSORS: tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", lambda stream: cast("IO[bytes]", gzip.GzipFile(fileobj=stream))),
    (b"BZh", lambda stream: cast("IO[bytes]", bz2.BZ2File(stream))),
    (b"\xfd7zXZ\x00", lambda stream: cast("IO[bytes]", lzma.LZMAFile(stream))),  # noqa: SIM115 - the reader closes it
    (b"\x28\xb5\x2f\xfd", _open_zstd),
)
