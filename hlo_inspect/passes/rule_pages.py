"""The reports of findings: their documentation, all of them in a table, and the first lines of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hlo_inspect.findings import find_rule, rule_pages
from hlo_inspect.hlo.module import TRUNCATED
from hlo_inspect.report.model import SEVERITIES, Amount, Finding, HeadlineRow, Input, Passage, Report
from hlo_inspect.report.table import Column, Plain
from hlo_inspect.report.table_spec import TableSpec

_INPUT = Input("hlo_inspect/rules", first_line=1, lines=0, bytes=0)  # no input is read
_RULES = TableSpec("rules", "Findings", page_rows=0).with_columns(
    Column("code", meaning="code of the rule"),
    Column("name", meaning="name of the rule"),
    Column("severity", meaning="error, warning or info"),
    Column("summary", meaning="the rule in one sentence"),
    Column(
        "threshold", detail=1, optional=True, meaning="least stake that is a finding", get=lambda page: page.threshold or None
    ),
)
TABLES = (_RULES,)


def rules_report() -> Report:
    """Return the report of every finding that exists: table `rules`, a row for each, by code."""
    pages = sorted(rule_pages(), key=lambda page: page.code)
    return Report("rules", _INPUT, facts={}, tables=(_RULES.of(pages),))


def rule_report(name: str) -> Report:
    """Return the documentation of the rule of that code or name, as facts and as text."""
    page = find_rule(name)
    facts: dict[str, Plain] = {"rule.code": page.code, "rule.name": page.name, "rule.severity": page.severity}
    facts["rule.summary"] = page.summary
    facts |= {f"rule.{heading.lower().replace(' ', '_')}": text for heading, text in page.texts.items()}
    facts["rule.threshold"] = page.threshold or None
    least = f"{page.threshold} in one step on one device; --threshold {page.name}=SIZE sets another"
    passages = [Passage(heading, text, verbatim=heading == "Example") for heading, text in page.texts.items()]
    return Report(
        "rule",
        _INPUT,
        facts=facts,
        title=f"{page.code} {page.name} ({page.severity})",
        passages=(
            Passage("", page.summary),
            *passages[:1],
            *([Passage("Threshold", least)] if page.threshold else []),
            *passages[1:],
        ),
    )


# -- first lines ------------------------------------------------------------------------------------------------------------


def truncation_rows(findings: Iterable[Finding]) -> Iterator[HeadlineRow]:
    """Yield the line that says first of all, on the page of any command, that the text does not hold the whole module."""
    for finding in findings:
        if finding.rule == TRUNCATED:
            line = finding.location.line if finding.location is not None else None
            place = f", inside {finding.subject}" if finding.subject is not None else ""
            yield HeadlineRow("", (f"TRUNCATED after line {line}{place}: all counts are lower bounds",), severity="error")


def findings_row(findings: Sequence[Finding], scope: str = "") -> HeadlineRow:
    """Count the findings by severity, and name their rules. `scope` names their subject, and says what is left out."""
    names = {page.code: page.name for page in rule_pages()} if findings else {}
    severities = [finding.severity for finding in findings]
    parts: list[str | Amount] = []
    for severity in SEVERITIES:
        parts += [", "] if parts else []
        parts.append(Amount(severities.count(severity), "count", severity))
    kinds = [f"{code} {names[code]}" for code in dict.fromkeys(finding.rule for finding in findings)]
    return HeadlineRow("findings", (*parts, f"{scope}: {', '.join(kinds)}" if kinds else scope))
