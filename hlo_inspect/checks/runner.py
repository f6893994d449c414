"""Run of a policy over reports: one outcome per report, which is a report itself.

Every assertion is a row of the table `checks`. With `fail-on`, every finding that reaches it is a failed row too; if none
does, one row says so. Failed rows come first, and `rows_3` is the table with the rows that broke the third of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.checks.expectations import Condition
from hlo_inspect.checks.failed_rows import cut_to_few, rows_that_broke
from hlo_inspect.checks.ignores import ignored_findings, notes_on_ignored, stale_entry, without_ignored
from hlo_inspect.checks.policy import Assertion, Policy, bind_at, remark, resolve, value_of
from hlo_inspect.checks.row_assertions import RowFigure
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.findings.reading_problems import FAILED_CHECK, UNKNOWN_VALUE, truncation
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.passes.partitioning import BEFORE_PARTITIONING, lacks_collectives
from hlo_inspect.report.facts import exact_name
from hlo_inspect.report.faults import Failed, answers, with_last
from hlo_inspect.report.model import SEVERITIES, FactSpec, Finding, Report, Severity, Verdict, most_severe_first, reaching
from hlo_inspect.report.table import Column, Table, Unit, Value, number_of, plain
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.report.units import format_like

CHECK_SPECS = (
    FactSpec("checks.count", "count", "checks: assertions, and findings that reach `fail-on`"),
    FactSpec("checks.passed_count", "count", "checks that hold"),
    FactSpec("checks.failed_count", "count", "checks that do not hold"),
)
CHECK_COMPILED = f"{BEFORE_PARTITIONING}; check that of .compile(), or the file after_optimizations"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check.

    `check` is the fact, the figure of rows, or the rule of a finding. `actual` is the raw value in `unit`. `reason` says why
    the value is unknown, or is the message of the finding. `broke` has the rows that broke a failed check. `is_finding` tells
    that the result is a finding that reaches `fail-on`. A failed check `is_unknown` if its value is, and no bound decides it.
    """

    check: str
    actual: Value
    unit: Unit
    expected: str
    passed: bool
    reason: str = ""
    broke: Table | None = None
    is_finding: bool = False
    is_unknown: bool = False

    @property
    def message(self) -> str:
        """The value, or its bounds, and the expectation, in one unit."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.check} is {format_like(self.actual, self.unit, self.expected)}, expected {self.expected}{reason}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Checks of one report; `report` shows them as facts and tables."""

    results: tuple[CheckResult, ...]
    report: Report

    @property
    def ok(self) -> bool:
        """True if all checks hold."""
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

    def outcomes(self, reports: Iterable[Report], failed: Failed[Report] | None = None) -> Iterator[Outcome]:
        """Yield one outcome per report, in order. Raise UsageError if a check cannot be made.

        `failed` receives a report that an internal error loses; without it the exception is raised.

        Its findings are those of the report that are not ignored, and the reasons of checks that failed on an unknown value. An
        `ignore` entry that matches no finding of any report is a finding of the last outcome.
        """
        return with_last(answers(reports, self._outcome, failed), self._with_unused)

    def _with_unused(self, last: Outcome) -> Outcome:
        findings = most_severe_first([*last.report.findings, *map(stale_entry, self._unused)])
        return replace(last, report=replace(last.report, findings=tuple(findings)))

    def _outcome(self, report: Report) -> Outcome:
        self._unused = [ignore for ignore in self._unused if not any(map(ignore.covers, report.findings))]
        policy = self._policy
        results = [_result(assertion, report) for assertion in policy.assertions]
        results += self._more(report) if self._more is not None else ()
        unknown = [_unknown(result) for result in results if result.is_unknown]
        findings = without_ignored(report.findings, policy.ignores)
        if policy.fail_on is not None:
            whole = [finding for finding in findings if finding is not truncation(report)]
            results.extend(_finding_results(whole, policy.fail_on))
        results.sort(key=lambda result: result.passed)
        # assertions that do not hold, whichever number an unknown value is
        decided = [result for result in results if not (result.passed or result.is_finding or result.is_unknown)]
        checked = replace(
            _report(report, results),
            findings=tuple(most_severe_first([*unknown, *findings])),
            notes=(*_notes_on(results, report), *notes_on_ignored(report.findings, policy.ignores)),
            failed_checks=tuple(_failure(result, report) for result in decided),
            ignored=tuple(ignored_findings(report.findings, policy.ignores)),
        )
        outcome = Outcome(tuple(results), checked)
        self._modules += 1
        self.failed += not outcome.ok
        self._checks.update(result.passed for result in results)
        return outcome

    def reports(self, reports: Iterable[Report], failed: Failed[Report] | None = None) -> Iterator[Report]:
        """Yield the report of each outcome; the last one has the verdict."""
        checked = (outcome.report for outcome in self.outcomes(reports, failed))
        return with_last(checked, lambda last: replace(last, verdict=self.verdict))

    @property
    def verdict(self) -> Verdict:
        """Result of all checks in one line."""
        failed = self.failed + self.refused
        modules, made = number_of(self._modules + self.refused, "module"), number_of(self._checks.total(), "check")
        if not failed:
            return Verdict(f"PASSED {modules}, {made}", passed=True)
        unchecked = f" ({self.refused:,} not checked)" if self.refused else ""
        return Verdict(f"FAILED {failed:,} of {modules}{unchecked}, {self._checks[False]:,} of {made}", passed=False)


def _result(assertion: Assertion, report: Report) -> CheckResult:
    """Check an assertion. One on collectives fails before partitioning, when it says nothing of the program that runs."""
    result = _of_fact(assertion, report) if assertion.rows is None else _of_rows(assertion, assertion.rows, report)
    if counts_collectives(result.check) and lacks_collectives(report):
        return replace(result, actual=None, passed=False, reason=CHECK_COMPILED, broke=None, is_unknown=True)
    return result


def counts_collectives(figure: str) -> bool:
    """Return True if a fact or a figure of rows depends on the collectives of the module."""
    opcode = TABLE.get(figure.removeprefix("opcode.")) if figure.startswith("opcode.") else None
    return "collective" in figure.partition("[")[0] or (opcode is not None and bool(opcode.collective))


def _of_fact(assertion: Assertion, report: Report) -> CheckResult:
    check = resolve(assertion, (*report.specs, *report.unanswered))
    expected = str(assertion.expression)
    if check.spec in report.unanswered and check.spec not in report.specs:
        reason = "inputs of this kind do not have this fact"
        passed = check.condition.holds(None)
        return CheckResult(check.name, None, check.spec.unit, expected, passed, reason, is_unknown=not passed)
    actual = value_of(check, report)
    passed = check.condition.holds(actual)
    broke = rows_that_broke(check, actual, report) if not passed else None
    reason = remark(check, report) or ("" if passed else _about_markers(check.name, report))
    is_unknown = _is_unknown(check.condition, actual)
    return CheckResult(check.name, actual, check.spec.unit, expected, passed, reason, broke, is_unknown=is_unknown)


def _about_markers(fact: str, report: Report) -> str:
    """Return how many of the custom calls only mark, for a check of their count."""
    markers = report.facts.get("custom_calls.marker_count") if fact == "custom_calls.count" else None
    return f"{markers:,} of them only mark and compute nothing: custom_calls.marker_count counts these" if markers else ""


def _of_rows(assertion: Assertion, figure: RowFigure, report: Report) -> CheckResult:
    measured = figure.measure(report)
    condition = bind_at(assertion, measured.unit)
    passed = condition.holds(measured.value)
    broke = measured.rows_that_broke(condition) if not passed else None
    name, expected = assertion.fact.scalar, str(assertion.expression)
    shown = cut_to_few(broke) if broke is not None else None
    is_unknown = _is_unknown(condition, measured.value)
    return CheckResult(name, measured.value, measured.unit, expected, passed, measured.reason, shown, is_unknown=is_unknown)


def _is_unknown(condition: Condition, actual: Value) -> bool:
    """Return True if a check fails for want of a value: the value is unknown, and its bounds do not decide the condition."""
    return condition.decide(actual) is None or (condition.form == "known" and plain(actual) is None)


def _finding_results(findings: Iterable[Finding], fail_on: Severity) -> list[CheckResult]:
    """Return a failed result for each finding of severity `fail_on` or above, or one that passed."""
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    expected = f"no {' or '.join(failing)}"
    reached = reaching(findings, fail_on)
    if not reached:
        return [CheckResult("findings", 0, "count", expected, passed=True)]
    return [
        CheckResult(finding.rule, finding.severity, "text", expected, passed=False, reason=_describe(finding), is_finding=True)
        for finding in reached
    ]


def _describe(finding: Finding) -> str:
    place = f"{finding.location}: " if finding.location else ""
    subject = f"{finding.subject}: " if finding.subject else ""
    return f"{place}{subject}{finding.message}"


def _failure(result: CheckResult, report: Report) -> Finding:
    """Return a failed check as a finding, at the first of the rows that broke it."""
    row = result.broke.records()[0] if result.broke is not None else {}
    line, source = row.get("line"), row.get("source")
    place = Location(report.input.path, line) if isinstance(line, int) else None
    finding = FAILED_CHECK.finding(result.message, place)
    return finding._replace(source=str(source) if source else None, label=f"{result.check} of {report.module_name}")


def _unknown(result: CheckResult) -> Finding:
    return UNKNOWN_VALUE.finding(f"{result.check} is unknown: {result.reason}", subject=result.check)


def _notes_on(results: Iterable[CheckResult], report: Report) -> Iterator[str]:
    """Yield the notes of a report without the reasons of unknown facts that no check is about."""
    asked = {exact_name(result.check) for result in results}
    for note in report.notes:
        fact = note.partition(":")[0]
        if fact not in report.facts or fact in asked:
            yield note


def _report(report: Report, results: Sequence[CheckResult]) -> Report:
    """Return the outcome as facts and tables."""
    passed = sum(result.passed for result in results)
    counts = {"checks.count": len(results), "checks.passed_count": passed, "checks.failed_count": len(results) - passed}
    return Report(
        command="check",
        input=report.input,
        facts=report.module_facts | counts,
        tables=(_CHECKS.of(results), *_tables_that_broke(results)),
        profile=report.profile,
        findings_scope=report.findings_scope,
        specs=(*report.module_specs, *CHECK_SPECS),
        title=report.title,
    )


def _tables_that_broke(results: Sequence[CheckResult]) -> list[Table]:
    """Return the tables `rows_1` and so on. Pages show equal tables once, with a title that names all facts."""
    tables: dict[Table, list[str]] = {}
    others = []
    for number, result in enumerate(results, 1):
        if result.broke is None:
            continue
        table = replace(result.broke, name=f"rows_{number}")
        same = next((other for other in tables if other.rows == table.rows and other.columns == table.columns), None)
        if same is None:
            tables[table] = [result.check]
        else:
            tables[same].append(result.check)
            others.append(replace(table, on_page=False))
    shown = [
        replace(table, title=f"{table.title.partition(', by ')[0]}: rows that fail {_few(dict.fromkeys(facts))}")
        for table, facts in tables.items()
    ]
    return sorted([*shown, *others], key=lambda table: int(table.name.removeprefix("rows_")))


def _few(checks: Iterable[str]) -> str:
    """Join names of checks, at most two: a title is a line of a page."""
    names = list(checks)
    return ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


_CHECKS = TableSpec("checks", "Checks").with_columns(
    Column("check", width=24, wraps=True, meaning="the condition's left side"),
    Column(
        "status",
        meaning="passed, failed, or an error if it cannot be decided",
        get=lambda result: "passed" if result.passed else "failed",
    ),
    Column("actual", unit_of="unit", like="expected", width=8, meaning="value in the dump"),
    Column("unit", detail=9, meaning="unit of the value"),
    Column("expected", width=12, meaning="comparison and value of the condition"),
    Column("reason", width=20, meaning="reason of an unknown value; place and message of a finding"),
)
TABLES = (_CHECKS,)
