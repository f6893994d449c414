"""Entries that ignore findings, of policies and of the configuration of `lint`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlo_inspect.configs import Node
from hlo_inspect.findings import find_rule
from hlo_inspect.findings.reading_problems import STALE_IGNORE
from hlo_inspect.report.model import Finding, IgnoredFinding

GLOBS = ("subject", "op_name", "source")
"""The fields of a finding that an entry can restrict by a glob."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings that do not fail: those of the code `rule` whose fields fit the globs, by name of the field in `GLOBS`."""

    rule: str
    reason: str
    globs: tuple[tuple[str, str], ...]
    place: Node

    def __str__(self) -> str:
        return f"{self.rule} ({', '.join(glob for _, glob in self.globs)})" if self.globs else self.rule

    def covers(self, finding: Finding) -> bool:
        """Return True if the entry covers the finding."""
        return finding.rule == self.rule and all(fnmatchcase(getattr(finding, name) or "", glob) for name, glob in self.globs)


def ignored_findings(findings: Iterable[Finding], ignores: Sequence[Ignore]) -> Iterator[IgnoredFinding]:
    """Yield the findings that an entry covers, with the reason of the first one."""
    for finding in findings:
        entry = next((entry for entry in ignores if entry.covers(finding)), None)
        if entry is not None:
            yield IgnoredFinding(finding, entry.reason)


def without_ignored(findings: Iterable[Finding], ignores: Sequence[Ignore]) -> list[Finding]:
    """Return the findings that no entry covers."""
    return [finding for finding in findings if not any(entry.covers(finding) for entry in ignores)]


def notes_on_ignored(findings: Sequence[Finding], ignores: Iterable[Ignore]) -> Iterator[str]:
    """Yield a note on the ignored findings of each entry, with its reason."""
    for entry in ignores:
        count = sum(map(entry.covers, findings))
        if count:
            yield f"{entry}: {count} ignored because {entry.reason}"


def stale_entry(entry: Ignore) -> Finding:
    """Return the finding about an entry that covers no finding."""
    return STALE_IGNORE.finding(f"the ignore entry for {entry} matches no finding", entry.place.location, entry.rule)


def parse_ignore(node: Node, globs: tuple[str, ...]) -> Ignore:
    """Parse an entry: its rule, the reason, and some of these globs. Raise UsageError with the place of what is wrong."""
    fields = node.fields(allowed=("rule", "reason", *globs), required=("rule", "reason"))
    with fields["rule"].located():
        rule = find_rule(fields["rule"].text()).code
    if not fields["reason"].text().strip():
        raise fields["reason"].error("the reason is empty")
    written = tuple((name, fields[name].text()) for name in globs if name in fields)
    return Ignore(rule, fields["reason"].text(), written, node)
