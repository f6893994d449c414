"""Expressions: the expectation that a check has of a fact.

`parse_expression` knows the grammar, `bind` the unit of the fact: text and bools are equal or not and have no order. A value in
quotes is text whatever it looks like. Both raise `ValueError`. Conditions on the difference of two modules have the same
grammar (`differences.py`).

Examples:
    == 0    != 0    < 3 ms    <= 1GB    > 2.5 GFLOP    >= 180 MiB      compare
    in [0.01, 0.1]    in (0, 1]                                         a range: [ ] with its bound, ( ) without it
    one of {adamw, lion}                                                any of several values
    known    null                                                       the value is known, or is not
    different                                                           two modules have different values
    0    adamw    true                                                  a value alone means ==
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hlo_inspect.figure import Figure, decide, may_equal
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.table import Unit, Value, plain
from hlo_inspect.report.units import parse_quantity

Form = Literal["==", "!=", "<", "<=", ">", ">=", "in", "one of", "known", "null", "different"]
Known = int | float | bool | str

_COMPARISON = lazy_pattern(r"(==|!=|<=|>=|<|>)\s*(.*)", re.DOTALL)
_RANGE = lazy_pattern(r"in\s*([\[(])(.*)([\])])", re.DOTALL)
_CHOICE = lazy_pattern(r"one\s+of\s*\{(.*)\}", re.DOTALL)
_BEGUN = lazy_pattern(r"in\s*[\[({]|one\s+of\b")
_ITEM = lazy_pattern(r"""\s*("[^"]*"|'[^']*'|[^,"'\s](?:[^,"']*[^,"'\s])?)\s*(,|\Z)""")
_QUOTED = lazy_pattern(r""""[^"]*"|'[^']*'""")

_ALONE: tuple[Form, ...] = ("known", "null", "different")
COMPARE: dict[Form, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARISONS: dict[str, Form] = {form: form for form in COMPARE}
_UNORDERED: tuple[Form, ...] = ("==", "!=", "one of")


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """Value as it was written; `quoted` values are text."""

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        if not self.quoted:
            return self.text
        quote = "'" if '"' in self.text else '"'
        return f"{quote}{self.text}{quote}"


@dataclass(frozen=True, slots=True)
class Expression:
    """Expectation whose values have no unit yet; `brackets` are those of a range."""

    form: Form
    values: tuple[WrittenValue, ...] = ()
    brackets: str = "[]"

    def __str__(self) -> str:
        values = ", ".join(map(str, self.values))
        if self.form == "in":
            return f"in {self.brackets[0]}{values}{self.brackets[1]}"
        if self.form == "one of":
            return f"one of {{{values}}}"
        return f"{self.form} {values}".rstrip()


@dataclass(frozen=True, slots=True)
class Condition:
    """Expectation in the unit of its fact."""

    form: Form
    values: tuple[Known, ...] = ()
    brackets: str = "[]"

    def holds(self, actual: Value) -> bool:
        """Return True if the value of the fact meets the condition, whichever number it is between its bounds."""
        return self.decide(actual) is True

    def decide(self, actual: Value) -> bool | None:
        """Return True if the value of the fact meets the condition; None if it is unknown and its bounds leave that open."""
        if self.form in ("known", "null"):
            return (plain(actual) is None) == (self.form == "null")
        if actual is None:
            return None
        if self.form == "one of":
            answers = {compare("==", actual, value) for value in self.values}
            return True if True in answers else None if None in answers else False
        if self.form == "in":
            low, high = self.values
            return is_within(actual, low, actual, high, self.brackets)
        return compare(self.form, actual, self.values[0])


def compare(form: Form, actual: Known | Figure, value: Known) -> bool | None:
    """Return True if a comparison holds; None if the bounds of a figure leave it open."""
    if not isinstance(actual, Figure) or not isinstance(value, int | float):
        return COMPARE[form](actual, value)
    if form in ("==", "!="):
        return None if may_equal(actual, value) else form == "!="
    return decide(COMPARE[form], actual, value)


def is_within(above: Known | Figure, low: Known, below: Known | Figure, high: Known, brackets: str) -> bool | None:
    """Return True if `above` is above the low end of a range and `below`, a form of the same value, below the high end.

    Return None if the bounds of figures leave it open.
    """
    ends = {
        compare(">=" if brackets[0] == "[" else ">", above, low),
        compare("<=" if brackets[1] == "]" else "<", below, high),
    }
    return False if False in ends else None if None in ends else True


def is_empty(low: Known, high: Known, brackets: str) -> bool:
    """Return True if no value is in the range."""
    return COMPARE[">"](low, high) or (low == high and brackets != "[]")


def parse_expression(text: str) -> Expression:
    """Parse the value of a policy, or the text behind the fact in `--assert`. Raise ValueError."""
    text = text.strip()
    for form in _ALONE:
        if text == form:
            return Expression(form)
    if match := _COMPARISON.fullmatch(text):
        return Expression(_COMPARISONS[match[1]], (parse_value(match[2]),))
    if match := _RANGE.fullmatch(text):
        bounds = _items(match[2])
        if len(bounds) != 2:
            raise ValueError("a range has two bounds: `in [0.01, 0.1]`")
        return Expression("in", bounds, match[1] + match[3])
    if match := _CHOICE.fullmatch(text):
        return Expression("one of", _items(match[1]))
    if _BEGUN.match(text):
        raise ValueError("write a range as `in [a, b]`, alternatives as `one of {a, b}`")
    return Expression("==", (parse_value(text),))


def _items(text: str) -> tuple[WrittenValue, ...]:
    """Parse the values between brackets; a comma belongs to a value only in quotes."""
    values, position, more = [], 0, True
    while more:
        match = _ITEM.match(text, position)
        if match is None:
            raise ValueError(f"expected values separated by commas, found {text!r}")
        values.append(parse_value(match[1]))
        position, more = match.end(), match[2] == ","
    return tuple(values)


def parse_value(text: str) -> WrittenValue:
    """Parse a value in quotes, or bare."""
    text = text.strip()
    if not text:
        raise ValueError("a value is missing")
    if text[0] in "\"'":
        if not _QUOTED.fullmatch(text):
            raise ValueError(f"the quotes of {text} do not match")
        return WrittenValue(text[1:-1], quoted=True)
    if text in _ALONE:
        raise ValueError(f"`{text}` stands alone, without operator or list; quote it if it is text")
    if text[0] in "=!<>":
        raise ValueError(f"{text!r} is not a value; the operators are {' '.join(COMPARE)}")
    if text[0] in "[({":
        raise ValueError("write a range as `in [a, b]`, alternatives as `one of {a, b}`")
    return WrittenValue(text)


def bind(expression: Expression, unit: Unit) -> Condition:
    """Read the values of an expression in the unit of the fact. Raise ValueError if they are of another kind."""
    form = expression.form
    if form == "different":
        raise ValueError("`different` compares two modules: use it with `diff --fail-if` or `check --baseline`")
    if unit in ("text", "bool") and expression.values and form not in _UNORDERED:
        raise ValueError(f"`{form}` needs an order, which a fact of kind {unit} does not have; use {', '.join(_UNORDERED)}")
    values = tuple(_value(written, unit) for written in expression.values)
    if form == "in":
        low, high = values
        if is_empty(low, high, expression.brackets):
            raise ValueError(f"the range `{expression}` is empty")
    return Condition(form, values, expression.brackets)


def _value(written: WrittenValue, unit: Unit) -> Known:
    looks_bool = written.text in ("true", "false") and not written.quoted
    if unit == "text":
        if looks_bool:
            raise ValueError(f"`{written}` is a bool, but the fact is text; quote it if it is text")
        return written.text
    if written.quoted:
        raise ValueError(f"{written} is text, the fact is of kind {unit}")
    if unit == "bool":
        if not looks_bool:
            raise ValueError(f"`{written}` is not a bool: write true or false")
        return written.text == "true"
    return parse_quantity(written.text, unit)
