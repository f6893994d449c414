"""What the first lines of a page say of its findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hlo_inspect.hlo.problems import CUT_OFF
from hlo_inspect.report.model import SEVERITIES, Amount, Finding, HeadlineRow
from hlo_inspect.rules import rule_pages


def truncation_rows(findings: Iterable[Finding]) -> Iterator[HeadlineRow]:
    """The line that says first of all, on the page of any command, that the text does not hold the whole module."""
    for finding in findings:
        if finding.rule == CUT_OFF:
            line = finding.location.line if finding.location is not None else None
            place = f", inside {finding.subject}" if finding.subject is not None else ""
            yield HeadlineRow("", (f"TRUNCATED after line {line}{place}: all counts are lower bounds",), severity="error")


def findings_row(findings: Sequence[Finding]) -> HeadlineRow:
    """How many findings there are of each severity, and of which rules."""
    names = {page.code: page.name for page in rule_pages()}
    severities = [finding.severity for finding in findings]
    parts: list[str | Amount] = []
    for severity in SEVERITIES:
        parts += [", "] if parts else []
        parts.append(Amount(severities.count(severity), "count", severity))
    kinds = [f"{code} {names[code]}" for code in dict.fromkeys(finding.rule for finding in findings)]
    return HeadlineRow("findings", (*parts, f": {', '.join(kinds)}") if kinds else tuple(parts))
