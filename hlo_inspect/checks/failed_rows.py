"""Rows that broke a check: the rows of a table that a fact counts, and those that a failed check shows.

Tables say which facts count their rows (`TableSpec.counts`). Other facts count all rows of the table named like their first
segment.
A figure that is too large shows the rows that it counts, the largest first. A figure that is too small shows rows that it could
have counted but did not. An unknown figure shows the rows with an unknown value. A fact that each row has for itself, such as a
learning rate, shows the rows that do not meet the condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hlo_inspect.checks.expectations import Condition
from hlo_inspect.checks.policy import Check
from hlo_inspect.figure import Figure
from hlo_inspect.passes import pass_tables
from hlo_inspect.report.facts import exact_name
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Row, Table, Value, plain
from hlo_inspect.report.table_spec import CountedRows, RowTests

MAX_ROWS = 10


def rows_that_broke(check: Check, actual: Value, report: Report) -> Table | None:
    """Return the table of the fact with the rows that broke the failed `check`; None if there are none.

    It has at most `MAX_ROWS` rows; the last one sums those left out.
    """
    fact = exact_name(check.name)
    table_name, rule, member = _rule_of(fact)
    table = next((table for table in report.tables if table.name == table_name), None)
    if table is None:
        return None
    names = [column.name for column in table.columns]
    if any(column not in names for column, _ in (*rule.wanted, *rule.among)):
        return None

    def fits(row: Row, tests: RowTests) -> bool:
        return all(wanted(row[names.index(column)], member) for column, wanted in tests)

    domain = [row for row in table.rows if fits(row, rule.among)]
    counted = [row for row in domain if fits(row, rule.wanted)]
    value = next((names.index(column) for column in (rule.value, fact.rpartition(".")[2], member) if column in names), None)
    if not rule.is_sum:
        rows = [row for row in counted if value is not None and not check.condition.holds(row[value])]
    elif _is_too_small(actual, check.condition):
        rows = _largest_first([row for row in domain if not fits(row, rule.wanted)], value) if rule.could_be else []
    else:
        rows = (plain(actual) is None and _unknown_rows(counted, value)) or _largest_first(counted, value)
    if not rows:
        return None
    return cut_to_few(replace(table, rows=tuple(rows), page_as=""))


def cut_to_few(table: Table) -> Table:
    """Return the table with at most `MAX_ROWS` rows; the last one sums those left out."""
    return table if len(table.rows) <= MAX_ROWS else replace(table, page_rows=MAX_ROWS).top(MAX_ROWS - 1)


def _rule_of(fact: str) -> tuple[str, CountedRows, str]:
    """Return the table whose rows a fact counts, which rows of it, and the member in the name of the fact."""
    for name, table in pass_tables().items():
        for counted in table.spec.counts:
            if match := re.fullmatch(counted.fact, fact):
                return name, counted, match[1] if match.re.groups else ""
    return fact.partition(".")[0], CountedRows(fact), ""


def _is_too_small(actual: Value, condition: Condition) -> bool:
    """Return True if a figure that fails the condition is too small, not too large."""
    if not isinstance(actual, int | float | Figure) or isinstance(actual, bool) or not condition.values:
        return False
    if isinstance(actual, Figure):
        return condition.form in (">", ">=")
    bound = condition.values[0]
    return condition.form in (">", ">=") or (
        condition.form in ("==", "in") and not isinstance(bound, str) and actual <= bound and not condition.holds(actual)
    )


def _unknown_rows(rows: Sequence[Row], column: int | None) -> list[Row]:
    """Return the rows whose value is unknown; none without a column of values."""
    return [row for row in rows if column is not None and plain(row[column]) is None]


def _largest_first(rows: Sequence[Row], column: int | None) -> list[Row]:
    """Sort the rows by their amounts, the largest first; keep their order without a column of amounts."""
    if column is None:
        return list(rows)
    amounts = [(row, value) for row in rows if isinstance(value := row[column], int | float)]
    return [row for row, _ in sorted(amounts, key=lambda pair: -pair[1])] + _unknown_rows(rows, column)
