"""Conditions on the facts of one report, which fail it: `--fail-if 'recompiles.avoidable > 0'`.

The grammar is that of `expressions.py`. If the fact is unknown, the condition counts as met and gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.checks.differences import conditions_verdict
from hlo_inspect.checks.policy import Check, parse_condition, remark, resolve, value_of
from hlo_inspect.report.model import FactSpec, Report
from hlo_inspect.report.table import Column, Table, Value


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
    return [FactCondition(text.strip(), resolve(parse_condition(text), specs)) for text in texts]


def with_conditions(report: Report, conditions: Sequence[FactCondition]) -> Report:
    """Return the report with the results of the conditions and their verdict; the report itself without conditions."""
    if not conditions:
        return report
    results = [_examined(condition, report) for condition in conditions]
    met = sum(result.is_met for result in results)
    verdict = conditions_verdict(met, len(results))
    return replace(report, tables=(*report.tables, _table(results)), verdict=verdict)


def _examined(condition: FactCondition, report: Report) -> FactConditionResult:
    check = condition.check
    actual = value_of(check, report)
    is_met = check.condition.decide(actual) is not False
    return FactConditionResult(condition, is_met, actual, remark(check, report))


_COLUMNS = (
    Column("condition", width=36, get=lambda result: result.condition.text),
    Column("status", get=lambda result: "met" if result.is_met else "not met"),
    Column("actual", unit_of="unit", get=lambda result: result.actual),
    Column("unit", detail=9, get=lambda result: result.condition.check.spec.unit),
    Column("reason", detail=2, get=lambda result: result.reason),
)


def _table(results: Iterable[FactConditionResult]) -> Table:
    """Return the table of the conditions, those that are met first."""
    return Table.of("conditions", "Conditions", _COLUMNS, sorted(results, key=lambda result: not result.is_met), page_rows=0)
