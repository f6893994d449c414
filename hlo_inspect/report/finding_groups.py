"""Equal findings as one: those of one rule and one line of Python, such as those of all layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlo_inspect.report.model import Finding, urgency


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Equal findings of one rule and one line of Python, with the name of their module and its input."""

    findings: tuple[Finding, ...]
    module: str = ""
    path: str = ""

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def stake(self) -> int | float | None:
        """The stake of all; None if nothing is counted."""
        stakes = [finding.stake for finding in self.findings if finding.stake is not None]
        return sum(stakes) if stakes else None

    @property
    def share(self) -> float | None:
        """The share of all, 1 at most; None if nothing is counted."""
        shares = [finding.share for finding in self.findings if finding.share is not None]
        return min(sum(shares), 1.0) if shares else None

    @property
    def merged(self) -> Finding:
        """The first finding with the saving of all; its message has their number."""
        count = len(self.findings)
        message = self.first.message if count == 1 else f"{count:,} × {self.first.message}"
        return self.first._replace(message=message, stake=self.stake, share=self.share)


def group_findings(findings: Iterable[Finding], module: str = "", path: str = "") -> list[FindingGroup]:
    """Return the groups: errors, faults of the text, then the largest saving."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.severity, finding.fingerprint, finding.source), []).append(finding)
    return worst_first(FindingGroup(tuple(members), module, path) for members in groups.values())


def worst_first(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """Sort groups as `urgency` sorts findings."""
    return sorted(groups, key=lambda group: urgency(group.merged))
