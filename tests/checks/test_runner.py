from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.checks.policy import Policy, parse_assertion
from hlo_inspect.checks.runner import CheckRun, Outcome
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.report.model import Finding, Input, Report, Verdict
from tests.checks.sample import FACTS, FINDINGS, NOTES, parse_policy, sample_report


def outcomes(reports: Iterable[Report], policy: Policy) -> list[Outcome]:
    return list(CheckRun(policy).outcomes(reports))


def verdict(reports: Iterable[Report], policy: Policy, refused: int = 0) -> Verdict:
    run = CheckRun(policy)
    run.refused = refused
    list(run.outcomes(reports))
    return run.verdict


def run(*assertions: str) -> Outcome:
    policy = Policy(tuple(map(parse_assertion, assertions)))
    return outcomes([sample_report()], policy)[0]


def with_policy(text: str, **changes: Any) -> Outcome:
    return outcomes([sample_report(**changes)], parse_policy(text, "p.yaml"))[0]


def lines(outcome: Outcome) -> list[tuple[str, object, str, bool]]:
    return [(result.check, result.actual, result.expected, result.passed) for result in outcome.results]


def test_all_checks_hold() -> None:
    outcome = run("collectives.count <= 4", "params.aliased_bytes >= 180 MiB", "optimizer.name adamw", "opcode.add == 0")
    assert outcome.ok
    assert lines(outcome) == [
        ("collectives.count", 4, "<= 4", True),
        ("params.aliased_bytes", 188_743_680, ">= 180 MiB", True),
        ("optimizer.name", "adamw", "== adamw", True),
        ("opcode.add", 0, "== 0", True),
    ]
    report = outcome.report
    assert report.command == "check"
    assert report.facts == {"module.name": "jit_step", "checks.count": 4, "checks.passed_count": 4, "checks.failed_count": 0}
    assert [table.name for table in report.tables] == ["checks"]
    assert {spec.name for spec in report.specs} == set(report.facts)


def test_failed_checks_come_first_with_the_rows_behind_them() -> None:
    outcome = run("mesh.shape known", "mesh.shape 4x4", "collectives.all-to-all.count == 0", "opcode.dot > 2")
    assert not outcome.ok
    assert outcome.report.facts["checks.failed_count"] == 2
    assert outcome.report.facts["checks.passed_count"] == 2
    assert outcome.report.table("checks").rows == (
        ("mesh.shape", "failed", "2x8", "text", "== 4x4", ""),
        ("collectives.all-to-all.count", "failed", 1, "count", "== 0", ""),
        ("mesh.shape", "passed", "2x8", "text", "known", ""),
        ("opcode.dot", "passed", 3, "count", "> 2", ""),
    )
    names = [column.name for column in outcome.report.table("checks").columns]
    assert names == ["check", "status", "actual", "unit", "expected", "reason"]
    assert [table.name for table in outcome.report.tables] == ["checks", "rows_2"]
    assert outcome.report.table("rows_2").rows == (("all-to-all.1", "all-to-all", 2_048, 8, True, "forward"),)


def test_an_unknown_value_fails_with_its_reason() -> None:
    outcome = run("collectives.executed_count >= 0", "collectives.executed_count null")
    failed, passed = outcome.results
    assert (failed.actual, failed.passed, failed.reason) == (None, False, NOTES[0].partition(": ")[2])
    assert (passed.expected, passed.passed) == ("null", True)
    unknown = [finding for finding in outcome.report.findings if finding.rule == "HI090"]
    message = f"collectives.executed_count is unknown: {failed.reason}"
    assert unknown == [Finding("HI090", "error", message, subject="collectives.executed_count", name="unknown-value")]


def test_a_misspelt_fact_stops_all() -> None:
    with pytest.raises(UsageError, match=r"there is no fact 'colectives.count'; did you mean 'collectives.count'"):
        run("mesh.shape known", "colectives.count == 0")


def test_nothing_to_check_is_no_pass() -> None:
    with pytest.raises(UsageError, match="nothing to check"):
        with_policy("checks: {}\n")
    with pytest.raises(UsageError, match="nothing to check"):
        with_policy("ignore:\n  - {rule: HI102, reason: x}\n")


@pytest.mark.parametrize(
    ("severity", "failed", "expected"),
    [
        ("error", ["HI001"], "no error"),
        ("warning", ["HI101", "HI001"], "no error or warning"),
        ("info", ["HI101", "HI102", "HI001"], "no error or warning or info"),
    ],
)
def test_findings_that_reach_fail_on_fail(severity: str, failed: list[str], expected: str) -> None:
    outcome = with_policy(f"fail-on: {severity}\n")
    assert [result.check for result in outcome.results] == failed
    assert {(result.expected, result.passed) for result in outcome.results} == {(expected, False)}
    assert outcome.report.findings == (FINDINGS[2], *FINDINGS[:2])  # most severe first


def test_a_finding_is_told_with_place_and_subject() -> None:
    first, second = with_policy("fail-on: warning\n").results
    assert (first.actual, first.reason) == ("warning", "step.txt:7:3: embed.2: no instruction reads it")
    assert (second.actual, second.reason) == ("error", "step.txt:20: a line that cannot be read")
    bare = with_policy("fail-on: error\n", findings=(Finding("HI001", "error", "unreadable"),))
    assert bare.results[0].reason == "unreadable"


def test_no_finding_that_reaches_fail_on_is_one_check_that_holds() -> None:
    outcome = with_policy("fail-on: warning\n", findings=FINDINGS[1:2])
    assert outcome.ok
    assert lines(outcome) == [("findings", 0, "no error or warning", True)]


def test_without_fail_on_findings_do_not_fail() -> None:
    outcome = run("mesh.shape known")
    assert outcome.ok
    assert outcome.report.findings == (FINDINGS[2], *FINDINGS[:2])  # most severe first


def test_ignored_findings_do_not_fail_and_are_noted() -> None:
    outcome = with_policy(
        """\
fail-on: info
ignore:
  - {rule: HI101, subject: "embed.*", reason: kept for a later stage}
  - {rule: HI001, reason: a comment of ours}
"""
    )
    assert [result.check for result in outcome.results] == ["HI102"]
    assert outcome.report.findings == FINDINGS[1:2]
    assert outcome.report.notes == (
        NOTES[1],  # the other note is about a fact without an assertion
        "HI101 (embed.*): 1 ignored because kept for a later stage",
        "HI001: 1 ignored because a comment of ours",
    )


def test_an_ignore_that_covers_nothing_is_a_finding_and_does_not_fail() -> None:
    text = "fail-on: info\nignore:\n  - {rule: HI102, reason: x}\n  - {rule: HI101, subject: 'x*', reason: y}\n"
    outcome = with_policy(text, findings=FINDINGS[1:2])
    assert outcome.ok
    message = "the ignore entry for HI101 (x*) matches no finding"
    stale = Finding("HI091", "info", message, Location("p.yaml", 4, 5), subject="HI101", name="stale-ignore")
    assert outcome.report.findings == (stale,)


def test_several_reports_have_an_outcome_each() -> None:
    clean = sample_report(findings=(), facts=FACTS | {"module.name": "jit_other"})
    policy = parse_policy(
        "checks: {mesh.shape: known}\nfail-on: error\nignore:\n  - {rule: HI102, reason: x}\n  - {rule: HI205, reason: y}\n",
        "p.yaml",
    )
    first, second = outcomes([sample_report(), clean], policy)
    assert (first.ok, second.ok) == (False, True)
    assert (first.report.facts["module.name"], second.report.facts["module.name"]) == ("jit_step", "jit_other")
    assert "HI091" not in [finding.rule for finding in first.report.findings]
    assert [(finding.rule, finding.subject) for finding in second.report.findings] == [("HI091", "HI205")]
    assert not any("HI102" in note for note in second.report.notes)


def test_policy_and_command_line_checks_run_together() -> None:
    policy = parse_policy("checks:\n  mesh.shape: known\n", "p.yaml")
    both = replace(policy, assertions=(*policy.assertions, parse_assertion("mesh.shape == 2x4")))
    outcome = outcomes([sample_report()], both)[0]
    assert [(result.expected, result.passed) for result in outcome.results] == [("== 2x4", False), ("known", True)]


def test_input_and_profile_are_those_of_the_report() -> None:
    report = sample_report(profile="h100", input=Input("-", 4, 5, 6))
    outcome = outcomes([report], Policy((parse_assertion("mesh.shape known"),)))[0]
    assert (outcome.report.input, outcome.report.profile) == (report.input, "h100")


def test_the_verdict_counts_modules_and_checks() -> None:
    policy = parse_policy("checks: {collectives.count: 4, opcode.dot: 3}\n", "p.yaml")
    reports = [sample_report(), sample_report(facts=FACTS | {"opcode.dot": 9}), sample_report()]
    assert verdict(reports, policy) == Verdict("FAILED 1 of 3 modules, 1 of 6 checks", passed=False)
    assert verdict(reports[:1], policy) == Verdict("PASSED 1 module, 2 checks", passed=True)
    refused = verdict(reports[:1], policy, refused=1)
    assert refused == Verdict("FAILED 1 of 2 modules (1 not checked), 0 of 2 checks", passed=False)


def test_only_the_last_report_has_the_verdict() -> None:
    reports = list(CheckRun(parse_policy("checks: {collectives.count: 4}\n", "p.yaml")).reports([sample_report()] * 3))
    assert [report.verdict is None for report in reports] == [True, True, False]


def test_a_truncated_module_fails_no_finding_check() -> None:
    cut = Finding("HI002", "error", "the text ends inside computation main", Location("step.txt", 99), subject="main")
    outcome = with_policy("fail-on: error\n", findings=(cut,))
    assert outcome.ok
    assert outcome.report.findings == (cut,)


def test_equal_rows_are_shown_once() -> None:
    report = run("params.unused_count == 0", "params.unused_count < 1", "collectives.count == 0").report
    tables = [(table.name, table.on_page, table.title) for table in report.tables[1:]]
    assert tables == [
        ("rows_1", True, "Parameters: rows that fail params.unused_count"),
        ("rows_2", False, "Parameters"),
        ("rows_3", True, "Collectives: rows that fail collectives.count"),
    ]


def test_a_failed_count_of_custom_calls_names_those_that_only_mark() -> None:
    text = """HloModule m

ENTRY e {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} custom-call(p), custom_call_target="Sharding"
  ROOT b = f32[8]{0} custom-call(a), custom_call_target="mine"
}
"""
    report = hlo_inspect.inspect(text, "fusions")
    policy = Policy(tuple(map(parse_assertion, ("custom_calls.count == 0", "custom_calls.marker_count == 1"))))
    failed, passed = outcomes([report], policy)[0].results
    assert (failed.actual, failed.reason) == (
        2,
        "1 of them only mark and compute nothing: custom_calls.marker_count counts these",
    )
    assert (passed.passed, passed.reason) == (True, "")
