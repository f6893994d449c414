"""Numbers as people write them: "180 MiB" as bytes, and a value in the unit that another was written in."""

from __future__ import annotations

import math
from fractions import Fraction

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Unit, Value
from hlo_inspect.report.units import PRINTED, as_printed, format_value

# What is read as well: decimal multiples of bytes; "us", and the Greek letter that looks like the micro sign.
_ALSO_READ: dict[Unit, dict[str, Fraction]] = {
    "bytes": {"kB": Fraction(1000)} | {f"{prefix}B": Fraction(1000**power) for power, prefix in enumerate("KMGTPE", 1)},
    "seconds": {name: Fraction(1, 10**6) for name in ("us", "\u03bcs")},
}
_READ: dict[Unit, dict[str, Fraction]] = {
    unit: {name: Fraction(*factor) for name, factor in scale.items()} | _ALSO_READ.get(unit, {})
    for unit, scale in PRINTED.items()
}
_READ["share"] = {"%": Fraction(1, 100)}
_QUANTITY = lazy_pattern(
    r"([+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)[ \t]*([A-Za-z%\u00b5\u03bc/]*)"
)
_MOST_DECIMALS = 10
_LONGEST_QUANTITY = 64  # characters: beyond any use, and it bounds the integers that come of them


def decimal_factors() -> dict[Unit, dict[str, tuple[int, int]]]:
    """What `parse_quantity` multiplies by, by unit and its name: an integer, and the power of ten that it is times."""
    return {unit: {name: _decimal(factor) for name, factor in scale.items()} for unit, scale in _READ.items()}


def _decimal(factor: Fraction) -> tuple[int, int]:
    """A denominator is a power of ten."""
    return factor.numerator, 1 - len(str(factor.denominator))


def format_like(value: Value, unit: Unit, written: str, raw_bytes: bool = False) -> str:
    """`value` in the multiple of its unit that the quantity in a text such as ">= 180 MiB" has, without one where that has
    none, and with as many decimals as it takes to differ from a number there that it is not. Without a quantity as
    `format_value` has it.
    """
    quantities = [match.groups() for match in _QUANTITY.finditer(written)]
    suffixes = {suffix for _, suffix in quantities if suffix in _READ.get(unit, {})}
    if not isinstance(value, int | float) or not math.isfinite(value) or len(suffixes) > 1 or not quantities:
        return format_value(value, unit, raw_bytes)
    if isinstance(value, bool) or raw_bytes or unit not in _READ:
        return format_value(value, unit, raw_bytes)
    suffix = suffixes.pop() if suffixes else ""
    amount = Fraction(value) / (_READ[unit][suffix] if suffix else 1)
    numbers = {Fraction(number.replace("_", "")) for number, _ in quantities}
    for decimals in range(0 if amount.denominator == 1 else as_printed(float(amount))[1], _MOST_DECIMALS):
        rounded = round(amount, decimals)
        if rounded == amount or (rounded not in numbers and (rounded or not amount)):
            break
    return f"{float(rounded):,.{decimals}f} {suffix}".rstrip()


def parse_quantity(text: str, unit: Unit) -> int | float:
    """The number that `text` states in `unit`: "180 MiB" (binary), "1GB" (decimal), "2.5 GFLOP", "3 ms", "1_000", "1e-8".
    Exact: an int where it is whole. A number without a unit is in bytes, FLOP or seconds. `ValueError` says what does not fit.
    """
    if unit in ("text", "bool"):
        raise ValueError(f"{text!r} is read as a quantity, but the value is of unit {unit}")
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST_QUANTITY else None
    if match is None:
        raise ValueError(
            f"{text[:_LONGEST_QUANTITY]!r} is not a number, or a number and a unit ('1_000', '2.5', '180 MiB', '3 ms')"
        )
    number, suffix = match.groups()
    amount = Fraction(number.replace("_", "")) * (_factor(text, suffix, unit) if suffix else 1)
    return amount.numerator if amount.denominator == 1 else float(amount)


def _factor(text: str, suffix: str, unit: Unit) -> Fraction:
    scale = _READ.get(unit, {})
    if suffix in scale:
        return scale[suffix]
    owner = next((other for other, names in _READ.items() if suffix in names), None)
    fault = f"{suffix} is a unit of {owner}" if owner else f"unknown unit {suffix!r}"
    expected = f"a value in {unit} has one of {', '.join(scale)}" if scale else f"a {unit} has no unit"
    raise ValueError(f"{text!r}: {fault}; {expected}")
