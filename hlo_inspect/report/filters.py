"""Conditions on the rows of a table: `kind = all-gather phase = backward operand_bytes >= 1MiB`.

A filter is comparisons `COLUMN OP VALUE` with blanks between them, and all have to hold. OP is one of = != < <= > >= ~. Values
may have a unit; in quotes a value is read as it stands. `~` is for text: it contains the value, or a match of it as a regular
expression. `?` is the value that is not known. Where a value is unknown but has a lower bound, > and >= hold if they hold for
the bound.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlo_inspect.errors import UsageError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.cells import find_column
from hlo_inspect.report.model import Column, Row, Table, Value
from hlo_inspect.report.quantities import parse_quantity
from hlo_inspect.report.units import UNKNOWN

_HEAD = lazy_pattern(r"([A-Za-z_][\w.-]*)\s*(==|!=|<=|>=|=|<|>|~)\s*", re.ASCII)
_QUOTED = lazy_pattern(r"\"[^\"]*\"|'[^']*'")

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BOOLS = {"yes": True, "true": True, "no": False, "false": False}

Test = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison as it is written."""

    column: str
    operator: str
    value: str
    quoted: bool


def parse_filter(text: str) -> list[Comparison]:
    """The comparisons of a filter; `UsageError` where there is none, or something between them."""
    comparisons: list[Comparison] = []
    rest = text.strip()
    while rest or not comparisons:
        head = _HEAD.match(rest)
        if head is None:
            raise UsageError(f"{rest!r} is no comparison; a filter is `COLUMN OP VALUE`, OP one of = != < <= > >= ~")
        value, rest = _take_value(rest[head.end() :])
        if not value:
            raise UsageError(f"the comparison {head[0].strip()!r} has no value")
        quoted = value[0] in "\"'"
        plain = value[1:-1] if quoted else value
        comparisons.append(Comparison(head[1], "=" if head[2] == "==" else head[2], plain, quoted))
    return comparisons


def _take_value(text: str) -> tuple[str, str]:
    """The value that `text` starts with, and what follows: a next comparison, or nothing."""
    quoted = _QUOTED.match(text)
    if quoted is not None:
        return quoted[0], text[quoted.end() :].strip()
    for blank in re.finditer(r"\s+", text):
        if _HEAD.match(text, blank.end()):
            return text[: blank.start()], text[blank.end() :]
    return text.strip(), ""


def row_test(comparison: Comparison, table: Table) -> Test:
    """Whether a row of the table meets the comparison; `UsageError` where its column does not exist or has no such values."""
    at = find_column(comparison.column, table)
    column, bound = table.columns[at], table.bound_columns.get(at)
    if comparison.operator in {"=", "!="}:
        equal = _equality(comparison, column)
        return (lambda row: equal(row[at])) if comparison.operator == "=" else (lambda row: not equal(row[at]))
    if comparison.operator == "~":
        contains = _containment(comparison, column)
        return lambda row: contains(row[at])
    holds, wanted = _ORDER[comparison.operator], _quantity(comparison, column)
    if bound is not None and comparison.operator in {">", ">="}:
        return lambda row: _compared(holds, row[bound] if row[at] is None else row[at], wanted)
    return lambda row: _compared(holds, row[at], wanted)


def _compared(holds: Callable[[Any, Any], bool], value: Value, wanted: float) -> bool:
    return value is not None and holds(value, wanted)


def _equality(comparison: Comparison, column: Column) -> Callable[[Value], bool]:
    if comparison.value == UNKNOWN and not comparison.quoted:
        return lambda value: value is None
    if column.unit == "text":
        absent = not comparison.value and column.optional
        return lambda value: value == comparison.value or (absent and value is None)
    if column.unit == "bool":
        if comparison.value not in _BOOLS:
            raise UsageError(f"column {column.name!r} is yes or no, not {comparison.value!r}")
        wanted = _BOOLS[comparison.value]
        return lambda value: value is wanted
    quantity = _quantity(comparison, column)
    return lambda value: value == quantity


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
        pattern = re.compile(wanted)
    except re.error:  # `transpose(jvp`, which is text and no expression
        return lambda value: isinstance(value, str) and wanted in value
    return lambda value: isinstance(value, str) and (wanted in value or pattern.search(value) is not None)
