"""Bytes in, text out: line ends, encodings, compression, and inputs that cannot be read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import zstandard

from hlo_inspect.errors import InputError, MissingExtraError
from hlo_inspect.hlo.input import source
from hlo_inspect.hlo.input.source import Openable, open_source

TEXT = "HloModule m\n\nENTRY e {\n  ROOT c = f32[] constant(1)\n}\n"
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}
SIZES = [1, 2, 3, 7, 100, 1 << 20]


def read(given: Openable) -> str:
    return "".join(open_source(given).pieces())


def error_of(given: Openable) -> str:
    with pytest.raises(InputError) as caught:
        read(given)
    return str(caught.value)


@pytest.fixture(params=SIZES)
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(source, "PIECE_BYTES", request.param)
    return int(request.param)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"a", "a\n"),
        (b"a\nb\n", "a\nb\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\rb\r", "a\nb\n"),
        (b"a\r\rb", "a\n\nb\n"),
        (b"a\n\rb\r\n\r\n", "a\n\nb\n\n"),
        (b"a\r", "a\n"),
        (b"\r\n", "\n"),
        (b"a\n\xef\xbb\xbfb\n", "a\n\ufeffb\n"),
        ("caf\u00e9 \u4e2d \U0001f600\r\n".encode(), "caf\u00e9 \u4e2d \U0001f600\n"),
        (b"a\xff\nb\xc3\n", "a\\xff\nb\\xc3\n"),
        (b"a\x0bb\x0cc\x1cd\xc2\x85e\n", "a\x0bb\x0cc\x1cd\x85e\n"),  # these characters end no line of HLO
    ],
)
@pytest.mark.usefixtures("piece_bytes")
def test_line_ends_and_encodings_are_normalized(raw: bytes, text: str) -> None:
    assert read(raw) == text


def test_a_byte_order_mark_is_removed() -> None:
    assert read(b"\xef\xbb\xbfHloModule m\n") == "HloModule m\n"


def test_pieces_end_at_line_ends(piece_bytes: int) -> None:
    lines = [f"line {number}" + "x" * (number % 17) for number in range(200)]
    pieces = list(open_source(("\r\n".join(lines) + "\r\n").encode()).pieces())
    assert "".join(pieces).splitlines() == lines
    assert all(piece.endswith("\n") for piece in pieces)
    assert len(pieces) == (200 if piece_bytes <= 7 else 1 if piece_bytes > 10_000 else len(pieces))


@pytest.mark.usefixtures("piece_bytes")
def test_lines_with_invalid_utf_8_are_counted() -> None:
    opened = open_source(b"a\nb\xff\xfe\nc\nd\xff e \xff\r\n\xc3\xa9\n")
    lines = [1]
    text = ""
    for piece in opened.pieces(lambda: lines[0]):
        text += piece
        lines[0] += piece.count("\n")
    assert text == "a\nb\\xff\\xfe\nc\nd\\xff e \\xff\n\u00e9\n"
    assert (opened.first_invalid_line, opened.invalid_lines) == (2, 2)


def test_clean_text_has_no_invalid_lines() -> None:
    opened = open_source(TEXT)
    assert "".join(opened.pieces()) == TEXT
    assert (opened.first_invalid_line, opened.invalid_lines) == (None, 0)


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.usefixtures("piece_bytes")
def test_compressed_files_are_read_under_any_name(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_bytes(COMPRESSORS[suffix](TEXT.encode()))
    assert read(path) == TEXT
    assert read(str(path)) == TEXT
    with path.open("rb") as stream:
        assert read(stream) == TEXT
    assert read(path.read_bytes()) == TEXT


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_concatenated_compressed_files_are_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"dump.{suffix}"
    path.write_bytes(COMPRESSORS[suffix](b"a\n") + COMPRESSORS[suffix](b"b\n"))
    assert read(path) == "a\nb\n"


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_truncated_compressed_file_is_an_error(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"dump.{suffix}"
    whole = COMPRESSORS[suffix]("".join(f"{n * n} {n * 7919 % 1009}\n" for n in range(5000)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    assert "cannot be read to its end" in error_of(path)


def test_a_damaged_compressed_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "dump.gz"
    whole = bytearray(gzip.compress(TEXT.encode() * 100))
    whole[20:30] = b"\0" * 10
    path.write_bytes(whole)
    message = error_of(path)
    assert message.startswith(str(path))
    assert "cannot be read to its end" in message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused(encoding: str) -> None:
    message = error_of(TEXT.encode(encoding))
    assert "UTF-16" in message or "binary" in message


@pytest.mark.parametrize("raw", [b"HloModule m\0\n", b"\x7fELF\x02\x01\x01\0\0", b"\n\x05jit_f\x12\0"])
def test_binary_files_are_refused(raw: bytes) -> None:
    assert "is a binary file" in error_of(raw)


def test_a_stream_that_its_owner_closes_while_reading_is_no_error() -> None:
    stream = io.BytesIO(TEXT.encode())
    pieces = open_source(stream).raw_pieces()
    assert isinstance(pieces, Generator) and next(pieces)
    stream.close()
    pieces.close()


def test_standard_input_may_be_compressed_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(gzip.compress(TEXT.encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    opened = open_source("-")
    assert opened.name == "<stdin>"
    assert "".join(opened.pieces()) == TEXT
    assert not stream.closed


@pytest.mark.parametrize(
    "given",
    [TEXT, TEXT.encode(), io.StringIO(TEXT), io.BytesIO(TEXT.encode())],
    ids=["text", "bytes", "open text", "open bytes"],
)
def test_text_bytes_and_open_files_are_read(given: Openable) -> None:
    assert read(given) == TEXT


def test_an_open_file_of_the_caller_stays_open() -> None:
    given = io.BytesIO(TEXT.encode()), io.StringIO(TEXT), io.BytesIO(gzip.compress(TEXT.encode()))
    assert [read(stream) for stream in given] == [TEXT] * 3
    assert not any(stream.closed for stream in given)


def test_the_start_of_the_text_is_kept() -> None:
    opened = open_source(b"a\r\n" + b"b" * 100_000 + b"\n")
    assert opened.start == ""
    assert list(opened.pieces())
    assert opened.start == "a\n" + "b" * (source.START_CHARS - 2)


def test_a_pipe_without_seek_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, TEXT.encode())
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as stream:
        assert read(stream) == TEXT


@pytest.mark.parametrize("text", ["HloModule m", "  HloModule m", "ENTRY e { }", "a\n", "\n"])
def test_a_string_that_is_hlo_or_has_lines_is_text_and_no_path(text: str) -> None:
    opened = open_source(text)
    assert opened.name == "<text>"
    assert "".join(opened.pieces()) == text.rstrip("\n") + "\n"


def test_text_with_lone_surrogates_is_read() -> None:
    """Such text comes from files that were read with another error handler."""
    assert read("HloModule m\n// \udcff \ud800\n").startswith("HloModule m\n// \\x")


def test_a_missing_file_or_a_directory_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "missing.txt"
    assert error_of(path) == f"{path}: cannot be read: No such file or directory"
    assert "cannot be read" in error_of(tmp_path)
    assert "cannot be read" in error_of("x" * 5000)
    assert "cannot be read" in error_of("a\0b")


def test_an_open_file_has_the_name_of_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    with path.open("rb") as binary, path.open(encoding="utf-8") as text:
        assert open_source(binary).name == open_source(text).name == str(path)
    assert open_source(io.BytesIO()).name == "<file>"


def test_a_source_reads_a_line_of_ten_megabytes() -> None:
    long = b"x" * 10_000_000
    pieces = list(open_source(b"a\n" + long + b"\nb\n").pieces())
    assert "".join(pieces) == "a\n" + long.decode() + "\nb\n"


def test_a_line_above_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 1 << 20)
    monkeypatch.setattr(source, "PIECE_BYTES", 1 << 16)
    assert read(b"x" * (1 << 20)) == "x" * (1 << 20) + "\n"
    assert "a line is longer than 1 MiB" in error_of(b"x" * (1 << 21))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="its own library reads zstd")
def test_zstd_without_its_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError) as caught:
        read(zstandard.compress(b"a"))
    assert str(caught.value) == "<text>: reading .zst needs the extra [zstd]: pip install zstandard"


@pytest.mark.usefixtures("piece_bytes")
def test_kept_text_is_taken_by_lines() -> None:
    opened = open_source(b"a\nbb\nccc\ndddd")
    opened.keep_text()
    assert "".join(opened.pieces()) == "a\nbb\nccc\ndddd\n"
    assert [opened.take_lines(count) for count in (1, 0, 2)] == ["a\n", "", "bb\nccc\n"]
    assert opened.take_lines() == "dddd\n"
    assert opened.take_lines() == opened.take_lines(1) == ""


def test_the_start_covers_several_pieces() -> None:
    """A piece ends at a line end, so the first may be too short to recognize a format."""
    source = open_source(b"\n\x05hello")
    assert list(source.pieces()) == ["\n", "\x05hello\n"]
    assert source.start == "\n\x05hello\n"


@pytest.mark.parametrize("form", COMPRESSORS)
@pytest.mark.parametrize("rubbish", [b"x", b"rubbish behind it", b"\0\0\0\0x", b"\x1f\x8b", TEXT.encode() * 2000])
def test_rubbish_after_a_compressed_stream_is_refused(form: str, rubbish: bytes) -> None:
    data = COMPRESSORS[form](TEXT.encode())
    assert "cannot be read to its end" in error_of(data + rubbish)


@pytest.mark.parametrize("form", COMPRESSORS)
@pytest.mark.parametrize("between", [b"", b"\0" * 8, b"\0" * 9000])
def test_joined_compressed_streams_may_have_zeros_between_them(form: str, between: bytes) -> None:
    data = COMPRESSORS[form](TEXT.encode()) + between
    assert read(data + data) == 2 * TEXT


@pytest.mark.parametrize("form", ["gz", "bz2", "xz"])
def test_a_highly_compressed_stream_is_read_in_parts(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 MB of repeated lines compress to a small fraction."""
    monkeypatch.setattr(source, "PIECE_BYTES", 1 << 14)
    monkeypatch.setattr(source, "PART_BYTES", 1 << 14)
    text = TEXT * 40_000
    longest = max(map(len, open_source(COMPRESSORS[form](text.encode())).pieces()))
    assert longest <= 1 << 15


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be", "utf-16", "utf-16-le", "utf-16-be"])
def test_the_error_names_utf_16_and_utf_32(encoding: str) -> None:
    assert f"is {encoding[:6].upper()} text; convert it to UTF-8 first" in error_of(TEXT.encode(encoding))


def test_several_byte_order_marks_are_removed() -> None:
    assert read(b"\xef\xbb\xbf" * 2 + TEXT.encode()) == TEXT
