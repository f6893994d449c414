"""Rows that broke a check: the rows of a table that a fact counts, and those that a failed check shows.

`_ROWS_OF_FACTS` has a line for each group of facts. Other facts count all rows of the table named like their first segment.
A figure that is too large shows the rows that it counts, the largest first. A figure that is too small shows rows that it could
have counted but did not. An unknown figure shows the rows with an unknown value. A fact that each row has for itself, such as a
learning rate, shows the rows that do not meet the condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.checks.expressions import Condition
from hlo_inspect.checks.policy import Check
from hlo_inspect.figure import Figure
from hlo_inspect.report.facts import exact_name
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Row, Table, Value, plain

MAX_ROWS = 10

Wanted = Callable[[Value, str], bool]
"""Takes the value in the column and the match of the pattern's group. Returns True if the row belongs to the fact."""
Tests = tuple[tuple[str, Wanted], ...]  # columns, each with its condition


def _is_member(value: Value, member: str) -> bool:
    return str(value) == member


def _is_set(value: Value, _: str) -> bool:
    return bool(value)


def _is_there(value: Value, _: str) -> bool:
    return value not in (None, "")


def _is_absent(value: Value, _: str) -> bool:
    return value in (None, "")


def _is_several(value: Value, _: str) -> bool:
    return isinstance(value, int) and value > 1


def _is_type(value: Value, member: str) -> bool:
    return value == member or (member == "mixed" and "," in str(value))


def _is_collective(value: Value, _: str) -> bool:
    return value not in ("send", "recv")  # rows of the table that its totals leave out


@dataclass(frozen=True, slots=True)
class RowsOfFact:
    """Rows that the facts of the pattern `fact` count: those of `table` whose columns pass the tests `wanted`.

    `could_be`: other rows that pass `among` could have been counted too; a figure that is too small shows them. `value` is the
    column of a row's amount, if its name is neither the fact's last segment nor the group of the pattern. `is_sum` is false
    for a fact that each row has for itself.
    """

    fact: str
    table: str
    wanted: Tests = ()
    among: Tests = ()
    could_be: bool = False
    value: str = ""
    is_sum: bool = True


_COLLECTIVE = (("kind", _is_collective),)
_ROWS_OF_FACTS = (
    RowsOfFact(r"collectives\.async_count", "collectives", (("is_async", _is_set),), among=_COLLECTIVE, could_be=True),
    RowsOfFact(r"collectives\.executed_count", "collectives", _COLLECTIVE, value="runs"),
    RowsOfFact(r"collectives\.\w+", "collectives", _COLLECTIVE),
    RowsOfFact(r"collectives\.group_size\.(.+)\.\w+", "collectives", (("group_size", _is_member),)),
    RowsOfFact(r"collectives\.phase\.(.+)\.executed_count", "collectives", (("phase", _is_member),), value="runs"),
    RowsOfFact(r"collectives\.phase\.(.+)\.\w+", "collectives", (("phase", _is_member),)),
    RowsOfFact(r"collectives\.axis\.(.+)\.executed_count", "collectives", (("axis", _is_member),), value="runs"),
    RowsOfFact(r"collectives\.axis\.(.+)\.\w+", "collectives", (("axis", _is_member),)),
    RowsOfFact(r"collectives\.(.+)\.executed_count", "collectives", (("kind", _is_member),), value="runs"),
    RowsOfFact(r"collectives\.(.+)\.\w+", "collectives", (("kind", _is_member),)),
    RowsOfFact(r"params\.aliased_\w+", "params", (("aliased_output", _is_there),), could_be=True, value="bytes"),
    RowsOfFact(
        r"params\.donor_\w+", "params", (("donated", _is_set), ("aliased_output", _is_absent)), could_be=True, value="bytes"
    ),
    RowsOfFact(r"params\.donated_\w+", "params", (("donated", _is_set),), could_be=True, value="bytes"),
    RowsOfFact(r"params\.unused_\w+", "params", (("unused", _is_set),), value="bytes"),
    RowsOfFact(r"outputs\.aliased_\w+", "outputs", (("aliased_parameter", _is_there),), could_be=True, value="bytes"),
    RowsOfFact(r"fusions\.kind\.(.+)", "fusions", (("kind", _is_member),)),
    RowsOfFact(r"fusions\.multi_output_count", "fusions", (("outputs", _is_several),)),
    RowsOfFact(r"custom_calls\.count", "custom_calls_by_target"),
    RowsOfFact(r"custom_calls\.target\.(.+)", "custom_calls_by_target", (("target", _is_member),)),
    RowsOfFact(r"cost\.executed_(\w+)", "cost"),
    RowsOfFact(r"cost\.matmul_flops\.(.+)", "matmuls_by_type", (("type", _is_type),), value="flops"),
    RowsOfFact(r"optimizer\.decayed_count", "optimizer", (("weight_decay", _is_set),), could_be=True),
    RowsOfFact(r"optimizer\.name", "optimizer_groups", value="rule", is_sum=False),
    RowsOfFact(r"optimizer\.(\w+)", "optimizer_groups", is_sum=False),
)


def rows_that_broke(check: Check, actual: Value, report: Report) -> Table | None:
    """Return the table of the fact with the rows that broke the failed `check`; None if there are none.

    It has at most `MAX_ROWS` rows; the last one sums those left out.
    """
    fact = exact_name(check.name)
    rule, member = _rule_of(fact)
    table = next((table for table in report.tables if table.name == rule.table), None)
    if table is None:
        return None
    names = [column.name for column in table.columns]
    if any(column not in names for column, _ in (*rule.wanted, *rule.among)):
        return None

    def fits(row: Row, tests: Tests) -> bool:
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


def _rule_of(fact: str) -> tuple[RowsOfFact, str]:
    for rule in _ROWS_OF_FACTS:
        if match := re.fullmatch(rule.fact, fact):
            return rule, match[1] if match.re.groups else ""
    return RowsOfFact(fact, fact.partition(".")[0]), ""


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
