"""The rules that a user selects, by codes, names and globs."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.findings import find_rule, rule_pages

if TYPE_CHECKING:
    from hlo_inspect.report.model import Finding
    from hlo_inspect.report.rule_page import RulePage


class RuleSelection(NamedTuple):
    """The rules that count: those that fit a glob of `select`, all if there is none, and no glob of `ignore`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UsageError for a code or name without a rule, with the nearest ones."""
        for pattern in (*self.select, *self.ignore):
            if not any(_fits(page, pattern) for page in rule_pages()):
                find_rule(pattern)

    def has(self, page: RulePage) -> bool:
        """Return True if findings of this rule count."""
        chosen = not self.select or any(_fits(page, pattern) for pattern in self.select)
        return chosen and not any(_fits(page, pattern) for pattern in self.ignore)

    def of_findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings of the rules that count."""
        codes = {page.code for page in rule_pages() if self.has(page)}
        return [finding for finding in findings if finding.rule in codes]


def _fits(page: RulePage, pattern: str) -> bool:
    return fnmatchcase(page.code, pattern) or fnmatchcase(page.name, pattern)
