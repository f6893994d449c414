"""HI090 and HI091: findings of `hlo-inspect check` on its policy."""

from __future__ import annotations

from hlo_inspect.errors import Location
from hlo_inspect.findings.base import RulePage
from hlo_inspect.report.model import Finding

UNKNOWN_VALUE = RulePage(
    "HI090",
    "unknown-value",
    "error",
    "The value of an asserted fact cannot be known.",
    "Assertions on a fact that is null in this module, other than the assertion that it is null.",
    "The assertion fails: a value that is not known meets no expectation. The message gives the reason.",
    "Mend what the reason names, often a missing trip count or an unreadable line, or assert another fact. `null` asserts that "
    "a value is not known, `known` that it is.",
    "hlo-inspect check dump.txt --assert 'collectives.executed_count <= 12'      # a trip count depends on a parameter",
)
STALE_IGNORE = RulePage(
    "HI091",
    "stale-ignore",
    "info",
    "An entry under `ignore` in a policy covers no finding.",
    "Entries of which neither rule nor subject fits a finding of any report.",
    "What was once ignored does not occur any more, or the entry never matched: it would hide a later finding unseen.",
    "Delete the entry, or correct its subject.",
    "ignore:\n  - rule: HI101\n    subject: no_parameter_of_this_name\n    reason: donated by the caller",
)
CHECK_PROBLEMS = (UNKNOWN_VALUE, STALE_IGNORE)


def check_finding(page: RulePage, message: str, subject: str, location: Location | None = None) -> Finding:
    """A finding of one of `CHECK_PROBLEMS`."""
    return Finding(page.code, page.severity, message, location, subject)
