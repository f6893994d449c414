"""Conditions on the facts of one report, which fail it: `--fail-if 'recompiles.avoidable > 0'`.

The grammar is that of `expressions.py`. If the fact is unknown, the condition counts as met and gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from hlo_inspect.checks.differences import CONDITION, REASON, STATUS, conditions_verdict
from hlo_inspect.checks.policy import Check, assertion_in, given, remark, resolve, value_of
from hlo_inspect.report.model import FactSpec, Report
from hlo_inspect.report.table import Column, Value
from hlo_inspect.report.table_spec import TableSpec


@dataclass(frozen=True, slots=True)
class FactCondition:
    """A condition as it was written, and the check of its fact."""

    text: str
    check: Check


@dataclass(frozen=True, slots=True)
class FactConditionResult:
    """Result of a condition for a report."""

    condition: FactCondition
    is_met: bool
    actual: Value
    reason: str


def parse_conditions(texts: Iterable[str], specs: Sequence[FactSpec]) -> list[FactCondition]:
    """Parse the conditions of `--fail-if`. Raise UsageError if a fact is unknown or does not fit its expression."""
    return [FactCondition(text.strip(), resolve(assertion_in(given("--fail-if", text)), specs)) for text in texts]


def with_conditions(report: Report, conditions: Sequence[FactCondition]) -> Report:
    """Return the report with the results of the conditions and their verdict; the report itself without conditions."""
    if not conditions:
        return report
    results = [_examined(condition, report) for condition in conditions]
    met = sum(result.is_met for result in results)
    table = _CONDITIONS.of(sorted(results, key=lambda result: not result.is_met))  # those that are met first
    return replace(report, tables=(*report.tables, table), verdict=conditions_verdict(met, len(results)))


def _examined(condition: FactCondition, report: Report) -> FactConditionResult:
    check = condition.check
    actual = value_of(check, report)
    is_met = check.condition.decide(actual) is not False
    return FactConditionResult(condition, is_met, actual, remark(check, report))


_CONDITIONS = TableSpec("conditions", "Conditions", page_rows=0).with_columns(
    CONDITION,
    STATUS,
    Column("actual", unit_of="unit"),
    Column("unit", detail=9, get=attrgetter("condition.check.spec.unit")),
    REASON,
)
TABLES = (_CONDITIONS,)
