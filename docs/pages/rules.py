"""Pages of the rules: what `hlo-inspect rule CODE` prints, one page each, and their table."""

from __future__ import annotations

from docs.pages.markdown import NOTE, make_table
from docs.pages.reports import markdown_of
from hlo_inspect.findings import rule_pages
from hlo_inspect.passes.rule_pages import rule_report

_GROUPS = {
    "0": "Reading",
    "1": "Donation and parameters",
    "2": "Collectives",
    "3": "Memory and layout",
    "4": "Numerics",
    "5": "Loops and program",
    "6": "Workload files",
    "7": "Recorded profiles",
}
"""Headings by the first digit of a code."""

_INTRODUCTION = """\
A rule finds one kind of problem in a dump. [`lint`](../commands/lint.md) lists the findings of all rules, the largest saving
first, and [`rule CODE`](../commands/rule.md) prints the page of one. A finding is an error, a warning or an info.
"""


def rule_texts() -> dict[str, str]:
    """Return the pages by their paths below `docs`."""
    pages = sorted(rule_pages(), key=lambda page: page.code)
    texts = {f"rules/{page.code}.md": _page(page.code) for page in pages}
    index = [NOTE, "", "# Rules", "", _INTRODUCTION]
    for digit, heading in _GROUPS.items():
        rows = [
            (f"[{page.code}]({page.code}.md)", page.name, page.severity, page.summary, page.threshold)
            for page in pages
            if page.code[2] == digit
        ]
        index += [f"## {heading}", "", make_table(("code", "name", "severity", "finding", "threshold"), rows)]
    texts["rules/index.md"] = "\n".join(index)
    return texts


def _page(code: str) -> str:
    text = markdown_of(rule_report(code)).removeprefix("###")
    return f"{NOTE}\n\n#{text}\n[All rules](index.md)\n"
