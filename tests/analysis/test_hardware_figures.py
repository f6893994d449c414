"""Figures of a profile file, and the place of each fault in it."""

from pathlib import Path

import pytest

from hlo_inspect import configs
from hlo_inspect.analysis.hardware import load_profile
from hlo_inspect.analysis.hardware_figures import ProfileContents, parse_contents
from hlo_inspect.errors import UsageError

PROFILE = """\
title: Test chip
maker: Test
matmul:
  bf16: {value: 100 TFLOP/s, source: sheet}
vector: {}
memory:
  capacity: {value: 16 GiB, source: sheet}
  bandwidth: {value: 1 TB/s, source: sheet}
links:
  ring:
    topology: torus
    bandwidth: {value: 50 GB/s, per: link, directions: one, source: sheet}
    count: {value: 4, per: device, source: sheet}
    devices: {value: 4x4, source: sheet}
sources:
  - {id: sheet, title: Data sheet, publisher: Test, version: "1", url: "https://example.org", page: p. 1}
"""


def contents(text: str) -> ProfileContents:
    return parse_contents(configs.parse(text, "chip.yaml"), None)


def edited(old: str, new: str) -> str:
    assert PROFILE.count(old) == 1
    return PROFILE.replace(old, new)


def test_a_small_profile() -> None:
    figures = {key: figure for key, figure in contents(PROFILE).figures.items() if figure}
    assert {key: figure.value for key, figure in figures.items()} == {
        "matmul.bf16": 100 * 10**12,
        "memory.capacity": 16 * 2**30,
        "memory.bandwidth": 10**12,
        "links.ring.bandwidth": 50 * 10**9,
        "links.ring.count": 4,
        "links.ring.devices": 16,
    }
    assert figures["links.ring.devices"].axes == (4, 4)
    assert (figures["links.ring.bandwidth"].per, figures["links.ring.bandwidth"].directions) == ("link", "one")
    assert figures["matmul.bf16"].stated == "100 TFLOP/s"


RATES = [
    ("989.4 TFLOP/s", 989_400_000_000_000),
    ("989.4TFLOP/s", 989_400_000_000_000),
    ("1.5 PFLOP/s", 1_500_000_000_000_000),
    ("624 TOP/s", 624_000_000_000_000),
    ("9894e11", 989_400_000_000_000),
    ("2.75e14", 275_000_000_000_000),
    ("312000000000000", 312_000_000_000_000),
    ("7 FLOP/s", 7),
]
BANDWIDTHS = [
    ("3.35 TB/s", 3_350_000_000_000),
    ("2575 GiB/s", 2_764_885_196_800),
    ("400 Gbit/s", 50_000_000_000),
    ("8 bit/s", 1),
    ("819.2 GB/s", 819_200_000_000),
]
SIZES = [("80 GB", 80_000_000_000), ("80 GiB", 85_899_345_920), ("40960 KiB", 41_943_040), ("1 kB", 1000), ("12 B", 12)]


@pytest.mark.parametrize(
    ("key", "old", "written", "value"),
    [("matmul.bf16", "100 TFLOP/s", *case) for case in RATES]
    + [("memory.bandwidth", "1 TB/s", *case) for case in BANDWIDTHS]
    + [("memory.capacity", "16 GiB", *case) for case in SIZES],
)
def test_units(key: str, old: str, written: str, value: int) -> None:
    figure = contents(edited(old, written)).figures[key]
    assert figure is not None
    assert (figure.value, figure.stated) == (value, written)


SOURCE = "  - {id: sheet, title: A, publisher: B, version: C, url: D, page: E}"
ERRORS = {
    "unknown key": ("maker: Test", "makre: Test", "unknown key 'makre'", (2, 1)),
    "closest key": ("maker: Test", "makre: Test", "did you mean 'maker'", (2, 1)),
    "unknown section key": ("  capacity:", "  capcity:", "did you mean 'capacity'", (7, 3)),
    "unknown dtype": ("  bf16:", "  bfloat16:", "did you mean 'bf16'", (4, 3)),
    "unknown figure key": ("TFLOP/s, source:", "TFLOP/s, sorce:", "did you mean 'source'", (4, 30)),
    "missing section": ("maker: Test\n", "", "missing key: maker", (1, 1)),
    "missing figure": ("  bandwidth: {value: 1 TB/s, source: sheet}\n", "", "missing key: bandwidth", (7, 3)),
    "missing source": ("100 TFLOP/s, source: sheet", "100 TFLOP/s", "missing key: source", (4, 9)),
    "missing per": ("4, per: device,", "4,", "missing key: per", (13, 12)),
    "missing source key": (", page: p. 1", "", "missing key: page", (16, 5)),
    "unknown source": ("TFLOP/s, source: sheet", "TFLOP/s, source: shet", "the id 'shet'; did you mean 'sheet'?", (4, 38)),
    "title is a number": ("Test chip", "5", "expected a value of kind text, found number", (1, 8)),
    "figure without source": ("{value: 1 TB/s, source: sheet}", "1 TB/s", "expected a value of kind mapping", (8, 14)),
    "section is a list": ("vector: {}", "vector: []", "expected a value of kind mapping, found list", (5, 9)),
    "sources is a mapping": ("  - {id", "  sheet: {id", "expected a value of kind list", (16, 3)),
    "value is a bool": ("100 TFLOP/s", "true", "'true' is not a rate such as", (4, 17)),
    "value is a list": ("100 TFLOP/s", "[1]", "a list is not a rate such as", (4, 17)),
    "value is null": ("100 TFLOP/s", "null", "'null' is not a rate such as", (4, 17)),
    "value is a word": ("100 TFLOP/s", "fast", "'fast' is not a rate such as '312 TFLOP/s'", (4, 17)),
    "infinite": ("100 TFLOP/s", ".inf", "'.inf' is not a rate", (4, 17)),
    "not a number": ("100 TFLOP/s", ".nan", "'.nan' is not a rate", (4, 17)),
    "negative": ("100 TFLOP/s", "-100 TFLOP/s", "out of range", (4, 17)),
    "zero": ("16 GiB", "0", "out of range", (7, 21)),
    "too large": ("100 TFLOP/s", "1e25", "out of range", (4, 17)),
    "huge exponent": ("100 TFLOP/s", "1e999999999", "is not a rate", (4, 17)),
    "not whole": ("16 GiB", "0.3 B", "not a whole number", (7, 21)),
    "bandwidth as a rate": ("100 TFLOP/s", "100 TB/s", "'TB/s' is not a unit of a rate", (4, 17)),
    "size as a bandwidth": ("1 TB/s", "1 TB", "'TB' is not a unit of a bandwidth such as '3.35 TB/s'", (8, 22)),
    "closest unit": ("1 TB/s", "1 TBs", "did you mean 'TB/s'", (8, 22)),
    "unit of a count": ("value: 4,", "value: 4 B,", "'B' is not a unit of a count", (13, 20)),
    "wrong per": ("per: link", "per: lane", "the value is not one of link, device, node", (12, 38)),
    "wrong directions": ("directions: one", "directions: two", "the value is not one of one, both", (12, 56)),
    "wrong topology": ("torus", "tours", "did you mean 'torus'", (11, 15)),
    "torus without axes": ("4x4", "16", "written by axis", (14, 14)),
    "axes without torus": ("torus", "switch", "written by axis", (14, 14)),
    "name of a level": ("  ring:", "  Ring 1:", "'Ring 1' is not a name", (10, 3)),
    "duplicate source": ("sources:\n", f"sources:\n{SOURCE}\n", "a second source with the id 'sheet'", (17, 10)),
    "duplicate key": ("maker: Test\n", "maker: Test\nmaker: Other\n", "duplicate key 'maker'", (3, 1)),
    "alias": ("vector: {}", "vector: *m", "an alias (*name) is not allowed", (5, 9)),
    "syntax": ("title: Test chip", "title: Test: chip", "mapping values are not allowed", (1, 12)),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "place"), ERRORS.values(), ids=ERRORS)
def test_errors(tmp_path: Path, old: str, new: str, message: str, place: tuple[int, int]) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(edited(old, new))
    with pytest.raises(UsageError) as caught:
        load_profile(path)
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(path), *place)


SENT = {
    "per link": (PROFILE, 4 * 50e9),
    "both directions": (edited("directions: one", "directions: both"), 2 * 50e9),
    "per device": (edited("per: link", "per: device"), 50e9),
    "unknown count": (edited("{value: 4, per: device, source: sheet}", "null"), None),
    "unknown node": (edited("per: link", "per: node"), None),
    "per node": (
        edited("per: link", "per: node").replace("links:", "devices_per_node: {value: 2, source: sheet}\nlinks:"),
        25e9,
    ),
    "unknown bandwidth": (edited("{value: 50 GB/s, per: link, directions: one, source: sheet}", "null"), None),
}


@pytest.mark.parametrize(("text", "expected"), SENT.values(), ids=SENT)
def test_bandwidth_sent_by_a_device(tmp_path: Path, text: str, expected: float | None) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(text)
    assert load_profile(path).links["ring"].send_bandwidth == expected
