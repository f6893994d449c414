"""Run of a policy over reports: one outcome per report, which is a report itself.

Every assertion is a row of the table `checks`. With `fail-on`, every finding that reaches it is a failed row too; if none
does, one row says so. Failed rows come first, and `rows_3` is the table with the rows that broke the third of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.checks.ignores import Ignore
from hlo_inspect.checks.policy import Check, Policy, remark, resolve, value_of
from hlo_inspect.checks.rows import rows_that_broke
from hlo_inspect.errors import UsageError
from hlo_inspect.findings.reading_problems import STALE_IGNORE, UNKNOWN_VALUE, truncation
from hlo_inspect.report.facts import exact_name
from hlo_inspect.report.model import (
    SEVERITIES,
    Column,
    FactSpec,
    Finding,
    Report,
    Severity,
    Table,
    Unit,
    Value,
    Verdict,
    most_severe_first,
    number_of,
    reaching,
)

CHECK_SPECS = (
    FactSpec("checks.count", "count", "checks: assertions, and findings that reach `fail-on`"),
    FactSpec("checks.passed_count", "count", "checks that hold"),
    FactSpec("checks.failed_count", "count", "checks that do not hold"),
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check.

    `check` is the fact, or the rule of a finding. `actual` is the raw value in `unit`. `reason` says why the value is
    unknown, or is the message of the finding. `about` is None for a finding.
    """

    check: str
    about: Check | None
    actual: Value
    unit: Unit
    expected: str
    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Checks of one report; `report` shows them as facts and tables."""

    results: tuple[CheckResult, ...]
    report: Report

    @property
    def ok(self) -> bool:
        return all(result.passed for result in self.results)


class CheckRun:
    """Checks of a policy over reports that come one after the other.

    `refused` counts modules that the caller did not check, `failed` those in which a check failed. `more` returns further
    checks of a report, such as those against a baseline. The caller decides if a truncated module may be checked: the finding
    HI002 does not fail. Raise UsageError if there is nothing to check.
    """

    def __init__(self, policy: Policy, more: Callable[[Report], Sequence[CheckResult]] | None = None) -> None:
        if not policy.assertions and policy.fail_on is None and more is None:
            raise UsageError("nothing to check: give --assert, --policy, --fail-on or --baseline with --fail-if")
        self._more = more
        self.refused = 0
        self.failed = 0
        self._policy = policy
        self._modules = 0
        self._checks: Counter[bool] = Counter()
        self._unused = list(policy.ignores)

    def outcomes(self, reports: Iterable[Report]) -> Iterator[Outcome]:
        """Yield one outcome per report, in order. Raise UsageError if a check cannot be made.

        Its findings are those of the report that are not ignored, and the reasons of checks that failed on an unknown value. An
        `ignore` entry that matches no finding of any report is a finding of the last outcome.
        """
        previous: Outcome | None = None
        for report in reports:
            if previous is not None:
                yield previous
            self._unused = [ignore for ignore in self._unused if not any(map(ignore.covers, report.findings))]
            previous = _outcome(report, self._policy, self._more(report) if self._more is not None else ())
            self._modules += 1
            self.failed += not previous.ok
            self._checks.update(result.passed for result in previous.results)
        if previous is not None:
            findings = most_severe_first([*previous.report.findings, *map(_stale, self._unused)])
            yield replace(previous, report=replace(previous.report, findings=tuple(findings)))

    def reports(self, reports: Iterable[Report]) -> Iterator[Report]:
        """Yield the report of each outcome; the last one has the verdict."""
        previous: Report | None = None
        for outcome in self.outcomes(reports):
            if previous is not None:
                yield previous
            previous = outcome.report
        if previous is not None:
            yield replace(previous, verdict=self.verdict)

    @property
    def verdict(self) -> Verdict:
        """Result of all checks in one line."""
        failed = self.failed + self.refused
        modules, made = number_of(self._modules + self.refused, "module"), number_of(self._checks.total(), "check")
        if not failed:
            return Verdict(f"PASSED {modules}, {made}", passed=True)
        unchecked = f" ({self.refused:,} not checked)" if self.refused else ""
        return Verdict(f"FAILED {failed:,} of {modules}{unchecked}, {self._checks[False]:,} of {made}", passed=False)


def _outcome(report: Report, policy: Policy, more: Sequence[CheckResult]) -> Outcome:
    results = [_result(resolve(assertion, (*report.specs, *report.unanswered)), report) for assertion in policy.assertions]
    results += more
    unknown = [_unknown(result) for result in results if result.actual is None and not result.passed]
    findings = [finding for finding in report.findings if not any(entry.covers(finding) for entry in policy.ignores)]
    if policy.fail_on is not None:
        results.extend(_finding_results([finding for finding in findings if finding is not truncation(report)], policy.fail_on))
    results.sort(key=lambda result: result.passed)
    checked = replace(
        _report(report, results),
        findings=tuple(most_severe_first([*unknown, *findings])),
        notes=(*_notes_on(results, report), *_ignored_notes(report.findings, policy.ignores)),
    )
    return Outcome(tuple(results), checked)


def _result(check: Check, report: Report) -> CheckResult:
    expected = str(check.assertion.expression)
    if check.spec in report.unanswered and check.spec not in report.specs:
        reason = "inputs of this kind do not have this fact"
        return CheckResult(check.name, check, None, check.spec.unit, expected, check.condition.holds(None), reason)
    actual = value_of(check, report)
    return CheckResult(
        check.name, check, actual, check.spec.unit, expected, check.condition.holds(actual), remark(check, report)
    )


def _finding_results(findings: Iterable[Finding], fail_on: Severity) -> list[CheckResult]:
    """Return a failed result for each finding of severity `fail_on` or above, or one that passed."""
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    expected = f"no {' or '.join(failing)}"
    reached = reaching(findings, fail_on)
    if not reached:
        return [CheckResult("findings", None, 0, "count", expected, passed=True)]
    return [
        CheckResult(finding.rule, None, finding.severity, "text", expected, passed=False, reason=_describe(finding))
        for finding in reached
    ]


def _describe(finding: Finding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    subject = f"{finding.subject}: " if finding.subject else ""
    return f"{place}{subject}{finding.message}"


def _unknown(result: CheckResult) -> Finding:
    return UNKNOWN_VALUE.finding(f"{result.check} is unknown: {result.reason}", subject=result.check)


def _stale(ignore: Ignore) -> Finding:
    return STALE_IGNORE.finding(f"the ignore entry for {ignore} matches no finding", ignore.place.location, ignore.rule)


def _notes_on(results: Iterable[CheckResult], report: Report) -> Iterator[str]:
    """Yield the notes of a report without the reasons of unknown facts that no check is about."""
    asked = {exact_name(result.check) for result in results}
    for note in report.notes:
        fact = note.partition(":")[0]
        if fact not in report.facts or fact in asked:
            yield note


def _ignored_notes(findings: Sequence[Finding], ignores: Iterable[Ignore]) -> Iterator[str]:
    """Yield a note on the ignored findings of each entry, with its reason."""
    for ignore in ignores:
        count = sum(map(ignore.covers, findings))
        if count:
            yield f"{ignore}: {count} ignored because {ignore.reason}"


def _report(report: Report, results: Sequence[CheckResult]) -> Report:
    """Return the outcome as facts and tables."""
    passed = sum(result.passed for result in results)
    counts = {"checks.count": len(results), "checks.passed_count": passed, "checks.failed_count": len(results) - passed}
    return Report(
        command="check",
        input=report.input,
        facts=report.module_facts | counts,
        tables=(Table.of("checks", "Checks", _COLUMNS, results), *_tables_that_broke(results, report)),
        profile=report.profile,
        findings_scope=report.findings_scope,
        specs=(*report.module_specs, *CHECK_SPECS),
        title=report.title,
    )


def _tables_that_broke(results: Sequence[CheckResult], report: Report) -> list[Table]:
    """Return the tables `rows_1` and so on. Pages show equal tables once, with a title that names all facts."""
    tables: dict[Table, list[str]] = {}
    others = []
    for number, result in enumerate(results, 1):
        if result.about is None or result.passed:
            continue
        table = rows_that_broke(result.about, result.actual, report, f"rows_{number}")
        if table is None:
            continue
        same = next((other for other in tables if other.rows == table.rows and other.columns == table.columns), None)
        if same is None:
            tables[table] = [result.check]
        else:
            tables[same].append(result.check)
            others.append(replace(table, on_page=False))
    shown = [
        replace(table, title=f"{table.title}: rows that fail {', '.join(dict.fromkeys(facts))}")
        for table, facts in tables.items()
    ]
    return sorted([*shown, *others], key=lambda table: int(table.name.removeprefix("rows_")))


_COLUMNS = (
    Column("check", get=lambda result: result.check),
    Column("status", get=lambda result: "passed" if result.passed else "failed"),
    Column("actual", unit_of="unit", like="expected", get=lambda result: result.actual),
    Column("unit", detail=9, get=lambda result: result.unit),
    Column("expected", get=lambda result: result.expected),
    Column("reason", detail=2, get=lambda result: result.reason),
)
