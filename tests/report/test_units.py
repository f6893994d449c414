from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.figure import Figure
from hlo_inspect.report.cells import cell
from hlo_inspect.report.table import Column, Unit, Value
from hlo_inspect.report.units import format_like, format_value, parse_quantity

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (None, "bytes", "?"),
        (None, "text", "?"),
        (0, "bytes", "0 B"),
        (512, "bytes", "512 B"),
        (1023, "bytes", "1023 B"),
        (1024, "bytes", "1.00 KiB"),
        (1536, "bytes", "1.50 KiB"),
        (9 * 1024 + 1023, "bytes", "10.0 KiB"),  # 9.999 would be 10.00
        (64 * MIB, "bytes", "64.0 MiB"),
        (194_152_460, "bytes", "185.2 MiB"),  # 185.158
        (1000 * 1024, "bytes", "1000 KiB"),
        (MIB - 1, "bytes", "1.00 MiB"),  # never "1024 KiB"
        (-2048, "bytes", "-2.00 KiB"),
        (3 * 1024**6, "bytes", "3.00 EiB"),
        (0, "flops", "0 FLOP"),
        (999, "flops", "999 FLOP"),
        (1000.0, "flops", "1.00 kFLOP"),
        (631_400_000_000, "flops", "631.4 GFLOP"),
        (999_960_000_000, "flops", "1.00 TFLOP"),
        (364_581, "bytes_per_s", "364.6 kB/s"),
        (0.0, "seconds", "0 s"),
        (0.00123, "seconds", "1.23 ms"),
        (45.6e-6, "seconds", "45.6 µs"),
        (1.5e-11, "seconds", "0.015 ns"),
        (5e-13, "seconds", "< 0.01 ns"),
        (-5e-13, "seconds", "> -0.01 ns"),
        (3.0, "seconds", "3 s"),
        (90.25, "seconds", "90.2 s"),
        (1234567, "count", "1,234,567"),
        (2.5, "count", "2.5"),
        (1234567, "number", "1234567"),
        (1e-08, "number", "1e-08"),
        (0.999, "number", "0.999"),
        (math.inf, "bytes", "inf"),
        (math.nan, "seconds", "nan"),
        (True, "bool", "yes"),
        (False, "count", "no"),
        ("[bold]x", "text", "[bold]x"),
        ("a\x1b[31m\nb", "text", "a\\x1b[31m\\nb"),
        ("[20 more]", "count", "[20 more]"),
    ],
)
def test_format_value(value: Value, unit: Unit, expected: str) -> None:
    assert format_value(value, unit) == expected


def test_raw_bytes_are_integers_and_nothing_else_changes() -> None:
    assert format_value(194_152_460, "bytes", raw_bytes=True) == "194,152,460"
    assert format_value(0.00123, "seconds", raw_bytes=True) == "1.23 ms"


def test_a_number_too_large_for_any_unit_is_printed_as_it_is() -> None:
    assert format_value(10**400, "bytes") == "10" + ",000" * 133


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("180 MiB", "bytes", 188_743_680),
        ("512MiB", "bytes", 536_870_912),
        ("1GB", "bytes", 10**9),
        ("2 kB", "bytes", 2000),
        ("2 KB", "bytes", 2000),
        ("1.5 KiB", "bytes", 1536),
        ("1EiB", "bytes", 1024**6),  # the E is no exponent
        ("64 B", "bytes", 64),
        ("4096", "bytes", 4096),
        ("1_000", "count", 1000),
        (" -3 ", "count", -3),
        ("2.5 GFLOP", "flops", 2_500_000_000),
        ("1.1 ms", "seconds", 0.0011),
        ("3 us", "seconds", 3e-6),
        ("3 µs", "seconds", 3e-6),
        ("3 μs", "seconds", 3e-6),
        ("2 s", "seconds", 2),
        ("1e-8", "number", 1e-8),
        (".5", "number", 0.5),
        ("9007199254740993", "bytes", 2**53 + 1),  # no float holds it
    ],
)
def test_parse_quantity(text: str, unit: Unit, expected: float) -> None:
    value = parse_quantity(text, unit)
    assert value == expected
    assert isinstance(value, type(expected))


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("180 MiB", "count", "'180 MiB': MiB is a unit of bytes; a count has no unit"),
        ("3 ms", "bytes", "ms is a unit of seconds; a value in bytes has one of B, KiB, MiB"),
        ("3 parsec", "seconds", "unknown unit 'parsec'; a value in seconds has one of ns, µs, ms, s, us"),
        ("3 mib", "bytes", "unknown unit 'mib'"),
        ("50%", "number", "% is a unit of share; a number has no unit"),
        ("MiB", "bytes", "is not a number"),
        ("", "count", "is not a number"),
        ("1__0", "count", "is not a number"),
        ("1,000", "count", "is not a number"),
        ("0x10", "count", "is not a number"),
        ("1e9999", "count", "is not a number"),
        ("9" * 65, "count", "is not a number"),
        ("nan", "number", "is not a number"),
        ("\u0661\u0662", "count", "is not a number"),  # Arabic digits
        ("\uff11", "bytes", "is not a number"),  # a full-width digit
        ("3", "text", "has unit text"),
        ("1", "bool", "has unit bool"),
    ],
)
def test_parse_quantity_names_the_misfit(text: str, unit: Unit, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_quantity(text, unit)
    assert message in str(caught.value)


@given(st.integers(-(10**20), 10**20), st.sampled_from(["bytes", "flops"]))
def test_printed_values_read_back_within_half_a_percent(value: int, unit: Unit) -> None:
    assert math.isclose(parse_quantity(format_value(value, unit), unit), value, rel_tol=0.005)


@given(st.floats(1.001e-11, 1e9))  # a shorter time is "< 0.01 ns"
def test_a_time_reads_back_within_half_a_percent(value: float) -> None:
    assert math.isclose(parse_quantity(format_value(value, "seconds"), "seconds"), value, rel_tol=0.0051)


@given(st.integers(-(10**20), 10**20))
def test_a_raw_integer_reads_back_exactly(value: int) -> None:
    assert parse_quantity(f"{value:_}", "count") == value
    assert parse_quantity(str(value), "bytes") == value


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.9996, "99.96 %"),
        (0.99999, "> 99.99 %"),
        (0.0009, "0.09 %"),
        (1e-6, "< 0.01 %"),
        (0.38, "38 %"),
        (0.0312, "3.1 %"),
        (1.5, "150 %"),
        (None, "?"),
    ],
)
def test_a_share_is_in_percent(share: float | None, expected: str) -> None:
    assert format_value(share, "share") == expected


def test_a_lower_bound_is_marked() -> None:
    assert format_value(Figure(4, None, ""), "count") == ">= 4"
    assert format_value(Figure(1e-12, None, ""), "seconds") == "> 0"
    assert format_value(Figure(0, None, ""), "count") == "?"  # a count is never negative
    assert format_value(Figure(0, 80e-6, ""), "seconds") == "<= 80.0 \u00b5s"
    assert format_value(Figure(0, 1e-12, ""), "seconds") == "< 0.01 ns"
    assert format_value(Figure(1.2e-3, 4e-3, ""), "seconds") == "1.20 to 4.00 ms"
    assert format_value(Figure(900e-6, 4e-3, ""), "seconds") == "900.0 \u00b5s to 4.00 ms"
    assert format_value(Figure(1000, 4000, ""), "count") == "1,000 to 4,000"
    assert format_value(Figure(-math.inf, 4, ""), "count") == "<= 4"
    assert format_value(Figure(-math.inf, None, ""), "count") == "?"


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("12.5 %", 0.125), ("0.2", 0.2), ("100%", 1)])
def test_a_share_is_read_in_percent_or_as_a_part_of_1(text: str, share: float) -> None:
    assert parse_quantity(text, "share") == share


@pytest.mark.parametrize(
    ("value", "unit", "written", "shown"),
    [
        (364_305_412, "bytes", "<= 64 MiB", "347.4 MiB"),
        (364_305_412, "bytes", "<= 0.3 GiB", "0.34 GiB"),
        (364_305_412, "bytes", "== 364305413", "364,305,412"),
        (188_743_679, "bytes", ">= 180 MiB", "179.999999 MiB"),  # one byte less is not 180.0
        (188_743_680, "bytes", ">= 180 MiB", "180 MiB"),
        (10, "bytes", ">= 180 MiB", "0.00001 MiB"),
        (0, "bytes", ">= 180 MiB", "0 MiB"),
        (2_500_000_000, "flops", "in [1 GFLOP, 2 GFLOP]", "2.50 GFLOP"),
        (2_500_000_000, "flops", "in [1 GFLOP, 2 MFLOP]", "2.50 GFLOP"),  # two units: none of them
        (0.0055, "seconds", "< 5 ms", "5.50 ms"),
        (43, "count", "<= 40", "43"),
        (4_300, "count", "<= 40", "4,300"),
        (43, "bytes", "known", "43 B"),
        (None, "bytes", ">= 180 MiB", "?"),
        ("adamw", "text", "== lion", "adamw"),
        (True, "bool", "== false", "yes"),
    ],
)
def test_a_value_in_the_unit_of_what_is_written(value: Value, unit: Unit, written: str, shown: str) -> None:
    assert format_like(value, unit, written) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [(23.9994, "24.0"), (341.25, "341.2"), (9.999, "10.0"), (0.44444, "0.444"), (12345.6, "12,346"), (0.0, "0")],
)
def test_a_rounded_number_has_the_digits_of_a_quantity(value: float, text: str) -> None:
    assert cell(value, Column("flop_per_byte", "number", rounded=True), raw_bytes=False, of_sums=False) == text
