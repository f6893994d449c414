"""Filters of rows: comparisons of columns with values, as in `kind = all-gather bytes >= 1MiB`.

A blank or a comma separates two comparisons. `--filter` and assertions on rows (`checks/row_assertions.py`) have this grammar.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.figure import Figure, decide, may_equal
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.cells import find_column
from hlo_inspect.report.table import Column, Row, Table, Value, plain
from hlo_inspect.report.units import UNKNOWN, parse_quantity
from hlo_inspect.user_patterns import UserPattern

_HEAD = lazy_pattern(r"([A-Za-z_][\w.-]*)\s*(==|!=|<=|>=|=|<|>|~)\s*", re.ASCII)
_QUOTED = lazy_pattern(r"\"[^\"]*\"|'[^']*'")
_SEPARATOR = lazy_pattern(r"\s*,\s*|\s+")

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BOOLS = {"yes": True, "true": True, "no": False, "false": False}

Test = Callable[[Row], bool | None]
"""A test of a row: None if a value is unknown, and its bounds leave the answer open."""


class Comparison(NamedTuple):
    """A comparison as it is written."""

    column: str
    operator: str
    value: str
    quoted: bool

    @property
    def seeks_unknown(self) -> bool:
        """True if the comparison is with `?`, an unknown value."""
        return self.value == UNKNOWN and not self.quoted


def parse_filter(text: str) -> list[Comparison]:
    """Parse the comparisons of a filter. Raise UsageError if there are none, or if other text is between them."""
    comparisons: list[Comparison] = []
    rest = text.strip()
    while rest or not comparisons:
        head = _HEAD.match(rest)
        if head is None:
            raise UsageError(f"{rest!r} is not a comparison; a filter is `COLUMN OP VALUE`, OP one of = != < <= > >= ~")
        value, rest = _take_value(rest[head.end() :])
        if not value:
            raise UsageError(f"the comparison {head[0].strip()!r} has no value")
        quoted = value[0] in "\"'"
        plain = value[1:-1] if quoted else value
        comparisons.append(Comparison(head[1], "=" if head[2] == "==" else head[2], plain, quoted))
    return comparisons


def _take_value(text: str) -> tuple[str, str]:
    """Return the value at the start of `text`, and the rest: a next comparison, or nothing."""
    quoted = _QUOTED.match(text)
    if quoted is not None:
        return quoted[0], text[quoted.end() :].strip().removeprefix(",").lstrip()
    for separator in _SEPARATOR.finditer(text):
        if _HEAD.match(text, separator.end()):
            return text[: separator.start()], text[separator.end() :]
    return text.strip(), ""


def row_test(comparison: Comparison, table: Table) -> Test:
    """Return a test of rows by the comparison. Raise UsageError if its column does not exist or has no such values."""
    index = find_column(comparison.column, table)
    column = table.columns[index]
    if comparison.operator in {"=", "!="}:
        _require_value(comparison, column, [row[index] for row in table.rows] if column.members else ())
    decide_value = _decision(comparison, column)
    if comparison.seeks_unknown or column.optional:
        return lambda row: decide_value(row[index])
    return lambda row: None if row[index] is None else decide_value(row[index])


def _decision(comparison: Comparison, column: Column) -> Callable[[Value], bool | None]:
    """Return the answer of a comparison for a value. None meets no comparison but `!=`."""
    if comparison.operator in {"=", "!="}:
        equal, wanted_answer = _equality(comparison, column), comparison.operator == "="
        return lambda value: None if (answer := equal(value)) is None else answer is wanted_answer
    if comparison.operator == "~":
        return _containment(comparison, column)
    holds, wanted = _ORDER[comparison.operator], _quantity(comparison, column)

    def compared(value: Value) -> bool | None:
        return decide(holds, value, wanted) if isinstance(value, Figure) else value is not None and holds(value, wanted)

    return compared


def shows(comparison: Comparison, answer: bool | None) -> bool:
    """Return True if `--filter` shows a row: one whose value is unknown may differ from any other."""
    return comparison.operator == "!=" if answer is None else answer


def _require_value(comparison: Comparison, column: Column, values: Iterable[Value]) -> None:
    """Raise UsageError if a column with a list of members, whose rows hold `values`, never has the value."""
    value = comparison.value
    if not column.members or not value or comparison.seeks_unknown or value in column.members or value in values:
        return
    names = sorted(column.members)
    hint = did_you_mean(value, names) or f"; it is one of {', '.join(names)}"
    raise UsageError(f"column {column.name!r} is never {value!r}{hint}")


def _equality(comparison: Comparison, column: Column) -> Callable[[Value], bool | None]:
    if comparison.seeks_unknown:
        return lambda value: plain(value) is None
    if column.unit == "text":
        absent = not comparison.value and column.optional
        return lambda value: value == comparison.value or (absent and value is None)
    if column.unit == "bool":
        if comparison.value not in _BOOLS:
            raise UsageError(f"column {column.name!r} is yes or no, not {comparison.value!r}")
        wanted = _BOOLS[comparison.value]
        return lambda value: value is wanted
    quantity = _quantity(comparison, column)

    def equals(value: Value) -> bool | None:
        if isinstance(value, Figure):
            return None if may_equal(value, quantity) else False
        return value == quantity

    return equals


def _quantity(comparison: Comparison, column: Column) -> float:
    if column.unit in {"text", "bool"}:
        operators = "=, != or ~" if column.unit == "text" else "= or !="
        raise UsageError(f"{comparison.operator!r} needs an order, which column {column.name!r} does not have: use {operators}")
    try:
        return parse_quantity(comparison.value, column.unit)
    except ValueError as error:
        raise UsageError(f"column {column.name!r}: {error}") from error


def _containment(comparison: Comparison, column: Column) -> Callable[[Value], bool]:
    if column.unit != "text":
        raise UsageError(f"'~' is for text, which column {column.name!r} is not: use = != < <= > or >=")
    wanted = comparison.value
    try:
        pattern = UserPattern(wanted)
    except re.error:  # such as `transpose(jvp`: match it as plain text
        return lambda value: isinstance(value, str) and wanted in value
    return lambda value: isinstance(value, str) and (wanted in value or pattern.search(value) is not None)
