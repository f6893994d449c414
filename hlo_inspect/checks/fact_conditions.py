"""Conditions on the facts of one report: `--fail-if 'ranks.hangs > 0'`.

The grammar is that of `expressions.py`. If the fact is unknown, the condition counts as met and gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.checks.policy import Check, assertion_in, given, remark, resolve, value_of
from hlo_inspect.report.model import Column, FactSpec, Report, Table, Unit, Value, Verdict


@dataclass(frozen=True, slots=True)
class FactCondition:
    """Condition on a fact; `text` is as written."""

    text: str
    check: Check


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """Result of a condition. `reason` says why the value is unknown."""

    text: str
    is_met: bool
    actual: Value
    unit: Unit
    reason: str


def parse_conditions(texts: Iterable[str], specs: Sequence[FactSpec]) -> list[FactCondition]:
    """Parse conditions of `--fail-if`. Raise UsageError if a fact is unknown or does not fit the expression."""
    return [FactCondition(text.strip(), resolve(assertion_in(given("--fail-if", text)), specs)) for text in texts]


def judged(report: Report, conditions: Sequence[FactCondition]) -> Report:
    """Return the report with the results of the conditions. Its verdict fails if one is met; without conditions it has none."""
    if not conditions:
        return report
    results = [_result(condition, report) for condition in conditions]
    met = sum(result.is_met for result in results)
    verdict = Verdict(f"{'FAILED' if met else 'PASSED'} {met:,} of {len(results):,} conditions met", passed=not met)
    return replace(report, tables=(*report.tables, _table(results)), verdict=verdict)


def _result(condition: FactCondition, report: Report) -> ConditionResult:
    check = condition.check
    actual = value_of(check, report)
    is_met = check.condition.holds(actual) or (actual is None and check.condition.form != "known")
    return ConditionResult(condition.text, is_met, actual, check.spec.unit, remark(check, report))


def _table(results: Iterable[ConditionResult]) -> Table:
    """Return the table of the conditions, those that are met first."""
    columns = (
        Column("condition", width=36, get=lambda result: result.text),
        Column("status", get=lambda result: "met" if result.is_met else "not met"),
        Column("actual", unit_of="unit", get=lambda result: result.actual),
        Column("unit", detail=9, get=lambda result: result.unit),
        Column("reason", detail=2, get=lambda result: result.reason),
    )
    return Table.of("conditions", "Conditions", columns, sorted(results, key=lambda result: not result.is_met), page_rows=0)
