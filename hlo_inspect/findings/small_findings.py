"""Findings below the thresholds of their rules: `lint` counts them and does not list them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Finding
from hlo_inspect.report.table import number_of

_NOTE = "{} below the thresholds of the rules ({}); --threshold RULE=0 lists them"
_COUNTS = lazy_pattern(r"[0-9,]++ findings? below the thresholds of the rules \(([^)]*+)\)")
_COUNT = lazy_pattern(r"(\S++) ([0-9,]*[0-9])")


class SmallFindings:
    """The number of findings below the threshold of each rule, by name of the rule."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def check(self, context: Context, rule: Rule) -> list[Finding]:
        """Return the findings of a rule that reach its threshold, and count the others."""
        if not rule.threshold:
            return list(rule.check(context))
        least, stated = rule.least(context), context.thresholds
        context.thresholds = {**stated, rule.name: min(least, 1)}
        try:
            findings = list(rule.check(context))
        finally:
            context.thresholds = stated
        kept = [finding for finding in findings if finding.stake is None or finding.stake >= least]
        self.counts[rule.name] += len(findings) - len(kept)
        return kept

    def notes(self) -> Iterator[str]:
        """Yield the note that says how many there are."""
        counts = +self.counts
        if counts:
            rules = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            findings = number_of(counts.total(), "finding")
            yield _NOTE.format(findings, rules)

    def take(self, note: str) -> bool:
        """Add the numbers of such a note of another module. Return False for other notes."""
        match = _COUNTS.match(note)
        for name, count in _COUNT.findall(match[1]) if match else ():
            self.counts[name] += int(count.replace(",", ""))
        return match is not None
