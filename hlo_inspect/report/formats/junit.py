"""JUnit XML: a test case for each assertion of `check`, or each rule of `lint`, and for each module.

A failed case names the rows that broke it, or the findings of the rule. An assertion that cannot be decided is an error.
Findings that fail nothing are the output of their case. Readers take the first of two cases with one name, so no two have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO
from xml.sax.saxutils import escape, quoteattr

from hlo_inspect.errors import printable
from hlo_inspect.report.formats.terminal import table_text
from hlo_inspect.report.model import Finding, Report
from hlo_inspect.report.render_options import RenderOptions, rendered
from hlo_inspect.report.table import Plain, Table
from hlo_inspect.report.units import as_unit, format_like


class TestCase(NamedTuple):
    """A case with its `outcome`: empty if it passed, else `failure`, `error` or `skipped`."""

    name: str
    outcome: str = ""
    message: str = ""
    text: str = ""


def render_junit(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    suites = list(rendered(reports, lambda report: (report, _unique(_cases(report))), options))
    has_several = len({report.input.path for report, _ in suites}) > 1
    taken: Counter[str] = Counter()
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="hlo-inspect">\n')
    for report, cases in suites:
        label = f"{report.module_name} ({Path(report.input.path).name})" if has_several else report.module_name
        taken[label] += 1
        stream.write("".join(_suite(label if taken[label] == 1 else f"{label} #{taken[label]}", report.command, cases)))
    if options.left_out:
        stream.write(_skipped("left out", options.left_out))
    stream.write("</testsuites>\n")


def _skipped(name: str, message: str) -> str:
    """Return a suite with one skipped test, which readers of JUnit show with its message."""
    case = f"<testcase classname={_attribute(name)} name={_attribute(name)}><skipped message={_attribute(message)}/></testcase>"
    counts = 'tests="1" failures="0" errors="0" skipped="1"'
    return f"  <testsuite name={_attribute(name)} {counts}>{case}</testsuite>"


def _suite(label: str, command: str, cases: Sequence[TestCase]) -> Iterator[str]:
    counts = Counter(case.outcome for case in cases)
    yield (
        f'  <testsuite name={_attribute(f"{command} {label}")} tests="{len(cases)}" failures="{counts["failure"]}" '
        f'errors="{counts["error"]}" skipped="{counts["skipped"]}">\n'
    )
    for case in cases:
        head = f"    <testcase classname={_attribute(label)} name={_attribute(case.name)}"
        if case.outcome:
            yield f"{head}>\n      <{case.outcome} message={_attribute(case.message)}>{_text(case.text)}</{case.outcome}>\n"
        elif case.text:
            yield f"{head}>\n      <system-out>{_text(case.text)}</system-out>\n"
        else:
            yield f"{head}/>\n"
            continue
        yield "    </testcase>\n"
    yield "  </testsuite>\n"


def _cases(report: Report) -> Iterator[TestCase]:
    tables = {table.name: table for table in report.tables}
    if "checks" in tables:
        for number, row in enumerate(tables["checks"].records(), 1):
            yield _check(row, tables.get(f"rows_{number}"))
    elif "rule_results" in tables:
        for row in tables["rule_results"].records():
            findings = [finding for finding in report.findings if finding.rule == row["code"]]
            yield _rule(f"{row['code']} {row['rule']}", row, findings)


def _check(row: dict[str, Plain], broke: Table | None) -> TestCase:
    name, reason = f"{row['check']} {row['expected']}", str(row["reason"] or "")
    if row["status"] == "passed":
        return TestCase(name)
    if row["actual"] is None:
        return TestCase(name, "error", reason or "the value is unknown", reason)
    actual = format_like(row["actual"], as_unit(str(row["unit"])), str(row["expected"]))
    message = f"{actual}, expected {row['expected']}"
    rows = table_text(broke, RenderOptions()) if broke is not None else ""
    return TestCase(name, "failure", message, "\n".join(part for part in (reason, rows) if part))


def _rule(name: str, row: dict[str, Plain], findings: Sequence[Finding]) -> TestCase:
    """Return the case of a rule. A limit of the output can leave out findings, but not their number."""
    lines = [_line(finding) for finding in findings]
    if row["status"] == "not decided":
        return TestCase(name, "skipped", "not decided: the module does not tell enough", "\n".join(lines))
    if row["status"] != "failed":
        return TestCase(name, text="\n".join(lines))
    message = lines[0] if row["findings"] == 1 and lines else f"{row['findings']} x {findings[0].message if findings else name}"
    return TestCase(name, "failure", message, "\n".join(lines))


def _line(finding: Finding) -> str:
    place = finding.source or (f"line {finding.location.line}" if finding.location and finding.location.line else "")
    return ": ".join(part for part in (place, finding.subject, finding.message) if part)


def _unique(cases: Iterable[TestCase]) -> list[TestCase]:
    """Return the cases; further ones of a name get a number."""
    taken: Counter[str] = Counter()
    unique = []
    for case in cases:
        taken[case.name] += 1
        unique.append(case if taken[case.name] == 1 else case._replace(name=f"{case.name} #{taken[case.name]}"))
    return unique


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def _text(text: str) -> str:
    """Escape a text of several lines: XML 1.0 has no control characters."""
    return escape("\n".join(map(printable, text.split("\n"))))
