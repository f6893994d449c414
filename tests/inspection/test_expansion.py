"""Compressed texts that are mostly blank: they are read in linear time, and a message has their expansion."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read import reader
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from tests.calling import call_text
from tests.linear_time import assert_linear

MODULE = "HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n"
BLANK = b"\n" * (4 << 20)


def test_a_ratio_above_1000_is_told(tmp_path: Path) -> None:
    blank, module = tmp_path / "blank.gz", tmp_path / "module.gz"
    blank.write_bytes(gzip.compress(BLANK))
    module.write_bytes(gzip.compress(BLANK + MODULE.encode()))
    done = call_text("params", blank)
    ratio = len(BLANK) // blank.stat().st_size
    assert ratio > 1000
    assert f"decompression makes {len(BLANK):,} bytes of {blank.stat().st_size:,}, {ratio:,} times its input" in done.stderr
    assert done.returncode == 3
    done = call_text("params", module, "-v")
    assert "times its input" in done.stdout


def test_blank_pieces_are_passed_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that begins at a line end would be tried at each of them."""
    searched = []

    class Search:
        def search(self, text: str, position: int) -> object:
            searched.append(len(text) - position)
            return pattern.search(text, position)

    pattern = reader._START
    monkeypatch.setattr(reader, "_START", Search())
    (module,) = read_modules(open_source(BLANK + MODULE.encode()), Wants(graph=True))
    assert module.first_line == len(BLANK) + 1
    assert sum(searched) < 1 << 20


@pytest.mark.parametrize(
    "start", ["HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0),\n", 'HloModule m\n\nFileNames\n1 "a"\n']
)
def test_blank_text_inside_of_a_module_takes_linear_time(start: str) -> None:
    def read(count: int) -> None:
        text = start.encode() + b"\n" * count + b"  ROOT n = f32[4] negate(p)\n}\n"
        list(read_modules(open_source(text), Wants(graph=True)))

    assert_linear(read, 1 << 20)


def test_all_modules_of_a_damaged_compressed_file_are_parts(tmp_path: Path) -> None:
    """The check sum at the end shows the damage, after the first modules are read."""
    others = "".join(f"// {number:x}\n" for number in range(200_000))  # of several pieces
    packed = bytearray(gzip.compress((MODULE + others).encode() * 3, 1))
    packed[-8] ^= 1
    file = tmp_path / "damaged.gz"
    file.write_bytes(packed)
    done = call_text("params", file)
    assert done.stdout.startswith("TRUNCATED")
    assert done.stdout.count("TRUNCATED") == done.stdout.count("? devices") > 1
    assert "CRC check failed" in done.stderr
    assert done.returncode == 3
