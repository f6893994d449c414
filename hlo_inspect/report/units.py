"""Values as people read them: the only place that rounds.

A quantity has three or four significant digits: two decimals below 10, one below 1000, none above. It moves to the next unit
when it would round to it ("1.00 MiB", not "1024 KiB"). Whole numbers of B, FLOP and s are exact. Bytes go by 1024, all else by
1000. Below a hundredth of the smallest unit a quantity is "< 0.01 ns".
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, get_args

from hlo_inspect.errors import printable
from hlo_inspect.figure import Figure
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.table import Unit, Value

if TYPE_CHECKING:
    from fractions import Fraction

UNKNOWN = "?"

# Printed units in ascending order, as factors of the unit of raw values (factor 1).
PRINTED: dict[Unit, dict[str, tuple[int, int]]] = {
    "bytes": {name: (1024**power, 1) for power, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))},
    "flops": {f"{prefix}FLOP": (1000**power, 1) for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    "seconds": {name: (1000**power, 10**9) for power, name in enumerate(("ns", "\u00b5s", "ms", "s"))},
    "flops_per_s": {f"{prefix}FLOP/s": (1000**power, 1) for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    "bytes_per_s": {"B/s": (1, 1), "kB/s": (10**3, 1), "MB/s": (10**6, 1), "GB/s": (10**9, 1)},
}
_STEPS = {unit: [(name, top / bottom) for name, (top, bottom) in scale.items()] for unit, scale in PRINTED.items()}
_SHORT = 10**6  # smaller numbers without a unit print all their digits, six at most
_LEAST = 0.01  # of the smallest unit
_LARGEST_QUANTITY = 10**24  # above it no unit helps, and an int may not fit in a float


def format_value(value: Value, unit: Unit, raw_bytes: bool = False) -> str:
    """Format `value` for people.

    None is "?", a bool yes or no. A figure has its bounds: ">= 4", "<= 80.0 µs", "1.2 to 4.0 ms". Text, also a label in a
    column of numbers, has its control characters escaped. A count has thousands separators; a `number` (a line, an identifier,
    a hyper-parameter) has none. `raw_bytes` prints sizes as integers of bytes.
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    return _bounds(value, unit, raw_bytes) if isinstance(value, Figure) else _number(value, unit, raw_bytes)


def _number(value: int | float, unit: Unit, raw_bytes: bool) -> str:
    if unit in _STEPS and abs(value) < _LARGEST_QUANTITY and not (unit == "bytes" and raw_bytes):
        return _quantity(value, _STEPS[unit])
    if unit == "share":
        return _share(value)
    separator = "" if unit == "number" else ","
    digits = "" if isinstance(value, int) else ".2f" if _SHORT <= abs(value) < _LARGEST_QUANTITY else ".6g"
    return f"{value:{separator}{digits}}"


def _bounds(figure: Figure, unit: Unit, raw_bytes: bool) -> str:
    """Format a figure by its bounds; a lower bound of 0 says nothing."""
    low, high = figure.least, figure.greatest
    least = format_value(low, unit, raw_bytes) if low and low != -math.inf else ""
    if high is None:
        return (f">= {least}" if not least.startswith("<") else "> 0") if least else UNKNOWN
    greatest = format_value(high, unit, raw_bytes)
    if not least:
        return greatest if greatest.startswith("<") else f"<= {greatest}"
    number, _, suffix = least.partition(" ")
    return f"{number if suffix and greatest.endswith(f' {suffix}') else least} to {greatest}"


def format_rounded(value: float) -> str:
    """Format a number without a unit with the digits of a quantity."""
    rounded, decimals = as_printed(value)
    return f"{rounded:,.{decimals}f}" if abs(rounded) >= 1 else f"{value:.3g}"


def as_unit(name: Value) -> Unit:
    """Return the unit of that name; "text" if there is none."""
    return next((unit for unit in get_args(Unit) if unit == name), "text")


def _share(value: int | float) -> str:
    """Format a share of 1 in percent; only exact values give 0 % or 100 %."""
    percent = value * 100
    if percent in (0, 100) or not -100 < percent < 100:
        return f"{percent:,.0f} %"
    if -0.01 < percent < 0:
        return "> -0.01 %"
    if 0 < percent < 0.01 or percent > 99.99:
        return "< 0.01 %" if percent < 1 else "> 99.99 %"
    size = abs(percent)
    decimals = 2 if size < 1 or size > 99 else 1 if size < 10 else 0
    return f"{percent:.{decimals}f} %"


def _quantity(value: int | float, steps: list[tuple[str, float]]) -> str:
    if value == 0:
        return f"0 {next(name for name, factor in steps if factor == 1)}"
    name, factor = steps[0]
    for larger in steps[1:]:
        if abs(as_printed(value / factor)[0]) * factor < larger[1]:
            break
        name, factor = larger
    if factor == 1 and value == int(value):
        return f"{int(value)} {name}"
    rounded, decimals = as_printed(value / factor)
    if abs(rounded) >= 1:
        return f"{rounded:.{decimals}f} {name}"
    if abs(value / factor) < _LEAST:
        return f"< {_LEAST} {name}" if value > 0 else f"> -{_LEAST} {name}"
    return f"{value / factor:.3g} {name}"


def as_printed(amount: float) -> tuple[float, int]:
    """Return `amount` as it is printed, and its decimals."""
    for decimals, limit in ((2, 10), (1, 1000)):
        rounded = round(amount, decimals)
        if abs(rounded) < limit:
            return rounded, decimals
    return round(amount, 0), 0


# -- numbers as people write them ("180 MiB"), and a value in the unit that another was written in -----------------------------


@cache
def _read() -> dict[Unit, dict[str, Fraction]]:
    """Return the factors that are read: printed ones, decimal multiples of bytes, "us", and the Greek letter mu.

    Fractions are exact, and imported here, since most commands read none.
    """
    from fractions import Fraction

    read = {unit: {name: Fraction(*factor) for name, factor in scale.items()} for unit, scale in PRINTED.items()}
    read["bytes"] |= {"kB": Fraction(1000)} | {f"{prefix}B": Fraction(1000**power) for power, prefix in enumerate("KMGTPE", 1)}
    read["seconds"] |= {name: Fraction(1, 10**6) for name in ("us", "\u03bcs")}
    return read | {"share": {"%": Fraction(1, 100)}}


_QUANTITY = lazy_pattern(
    r"([+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)[ \t]*([A-Za-z%\u00b5\u03bc/]*)"
)
_MOST_DECIMALS = 10
_LONGEST_QUANTITY = 64  # characters: longer than any useful quantity, and a limit on the integers that are parsed


def decimal_factors() -> dict[Unit, dict[str, tuple[int, int]]]:
    """Return the factors of `parse_quantity` by unit and its name: an integer, and the power of ten to multiply it by.

    Every denominator is a power of ten.
    """
    return {
        unit: {name: (factor.numerator, 1 - len(str(factor.denominator))) for name, factor in scale.items()}
        for unit, scale in _read().items()
    }


def format_like(value: Value, unit: Unit, written: str, raw_bytes: bool = False) -> str:
    """Format `value` in the multiple of its unit that a text such as ">= 180 MiB" uses, or in none.

    It has enough decimals to differ from each number in the text that it does not equal. Without a quantity in the text the
    result is that of `format_value`.
    """
    quantities = [match.groups() for match in _QUANTITY.finditer(written)]
    suffixes = {suffix for _, suffix in quantities if suffix in _read().get(unit, {})}
    if (
        isinstance(value, Figure)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or len(suffixes) > 1
        or not quantities
    ):
        return format_value(value, unit, raw_bytes)
    if isinstance(value, bool) or raw_bytes or unit not in _read():
        return format_value(value, unit, raw_bytes)
    suffix = suffixes.pop() if suffixes else ""
    from fractions import Fraction

    amount = Fraction(value) / (_read()[unit][suffix] if suffix else 1)
    numbers = {Fraction(number.replace("_", "")) for number, _ in quantities}
    for decimals in range(0 if amount.denominator == 1 else as_printed(float(amount))[1], _MOST_DECIMALS):
        rounded = round(amount, decimals)
        if rounded == amount or (rounded not in numbers and (rounded or not amount)):
            break
    return f"{float(rounded):,.{decimals}f} {suffix}".rstrip()


def parse_quantity(text: str, unit: Unit) -> int | float:
    """Parse the number that `text` states in `unit`: "180 MiB" (binary), "1GB" (decimal), "2.5 GFLOP", "3 ms", "1_000", "1e-8".

    The result is exact: an int if it is whole. A number without a unit is in bytes, FLOP or seconds. Raise ValueError with the
    part that does not fit.
    """
    if unit in ("text", "bool"):
        raise ValueError(f"{text!r} is a quantity, but the value has unit {unit}")
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST_QUANTITY else None
    if match is None:
        raise ValueError(
            f"{text[:_LONGEST_QUANTITY]!r} is not a number, or a number and a unit ('1_000', '2.5', '180 MiB', '3 ms')"
        )
    from fractions import Fraction

    number, suffix = match.groups()
    amount = Fraction(number.replace("_", "")) * (_factor(text, suffix, unit) if suffix else 1)
    return amount.numerator if amount.denominator == 1 else float(amount)


def _factor(text: str, suffix: str, unit: Unit) -> Fraction:
    scale = _read().get(unit, {})
    if suffix in scale:
        return scale[suffix]
    owner = next((other for other, names in _read().items() if suffix in names), None)
    fault = f"{suffix} is a unit of {owner}" if owner else f"unknown unit {suffix!r}"
    expected = f"a value in {unit} has one of {', '.join(scale)}" if scale else f"a {unit} has no unit"
    raise ValueError(f"{text!r}: {fault}; {expected}")
