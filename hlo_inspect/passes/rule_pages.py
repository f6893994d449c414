"""The findings that exist as reports: all of them in a table, or the documentation of one."""

from __future__ import annotations

from hlo_inspect.report.model import Column, Input, Passage, Report, Table, Value
from hlo_inspect.rules import find_rule, rule_pages

_INPUT = Input("hlo_inspect/rules", first_line=1, lines=0, bytes=0)  # no input is read
_COLUMNS = (
    Column("code", get=lambda page: page.code),
    Column("name", get=lambda page: page.name),
    Column("severity", get=lambda page: page.severity),
    Column("summary", get=lambda page: page.summary),
)


def rules_report() -> Report:
    """Every finding that exists: table `rules`, a row for each, by code."""
    pages = sorted(rule_pages(), key=lambda page: page.code)
    table = Table.of("rules", "Findings", _COLUMNS, pages, page_rows=0)
    return Report("rules", _INPUT, facts={}, tables=(table,))


def rule_report(name: str) -> Report:
    """The documentation of the rule of that code or name, as facts and as text."""
    page = find_rule(name)
    facts: dict[str, Value] = {"rule.code": page.code, "rule.name": page.name, "rule.severity": page.severity}
    facts["rule.summary"] = page.summary
    facts |= {f"rule.{heading.lower().replace(' ', '_')}": text for heading, text in page.texts.items()}
    passages = [Passage(heading, text, verbatim=heading == "Example") for heading, text in page.texts.items()]
    return Report(
        "rule",
        _INPUT,
        facts=facts,
        title=f"{page.code} {page.name} ({page.severity})",
        passages=(Passage("", page.summary), *passages),
    )
