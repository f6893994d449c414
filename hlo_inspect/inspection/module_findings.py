"""The findings of one report: of all rules, or of the question that it answers; and which rules are left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.collectives import WANTS as COLLECTIVE_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings import LARGE_MODULE, RULE_TABLE, RULES, rules_of
from hlo_inspect.findings.reading_problems import reading_findings
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.report.model import Finding, most_severe_first

_LINES = COLLECTIVE_WANTS | Wants(entry=True, unused=True, checked=True)
_GRAPH = _LINES | KERNEL_WANTS


class RuleChoice(NamedTuple):
    """The rules that run on a module, and those that are left out, by name, with the reason.

    `questions` are the passes whose rules these are; empty if all rules are meant.
    """

    rules: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    reason: str = ""
    questions: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """What is said behind the numbers of findings: of which question they are, and what is left out."""
        asked = f" of {' and '.join(self.questions)}" if self.questions else ""
        count = len(self.left_out)
        rules = f"{count} {'rule' if count == 1 else 'rules'}"
        return asked + (f" ({rules} left out {self.reason})" if count else "")


class FindingOptions(NamedTuple):
    """Which findings reports have: those of all rules, if `counts_all`, or of the rules of some `questions`.

    `asked` are the passes that a user named. `every_rule` runs costly rules on large modules too.
    """

    counts_all: bool
    questions: tuple[str, ...]
    asked: tuple[str, ...]
    quick: bool
    every_rule: bool

    @property
    def wants(self) -> Wants:
        """What the rules need of a module beside what their questions want."""
        if not self.counts_all:
            return Wants()
        return _LINES if self.quick else _GRAPH

    @property
    def followed(self) -> frozenset[str]:
        """The analyses whose missing attributes are findings: those of the questions, or all that do not take long."""
        asked = {"collectives", "cost"} if self.counts_all else {"collectives", "cost"}.intersection(self.questions)
        return frozenset(asked - {"cost"} if self.quick else asked)

    def choose(self, module: Module, about: tuple[int, str] | None) -> RuleChoice:
        """Choose the rules for a module; all of them for an answer about one instruction."""
        if about is not None:
            return RuleChoice(tuple(RULE_TABLE))
        names = tuple(RULE_TABLE) if self.counts_all else tuple(rules_of(self.questions))
        asked = () if self.counts_all else self.asked
        if self.quick:
            return _choice(names, {"graph", "memory"}, "by --quick", asked)
        if self.counts_all and not self.every_rule and module.opcode_counts.total() > LARGE_MODULE:
            reason = f"above {LARGE_MODULE:,} instructions, `check --fail-on` runs all"
            return _choice(names, {"memory"}, reason, asked)
        return RuleChoice(names, questions=asked)


def _choice(names: Sequence[str], costly: Collection[str], reason: str, questions: tuple[str, ...]) -> RuleChoice:
    left_out = tuple(name for name in names if RULE_TABLE[name].reads in costly)
    return RuleChoice(tuple(name for name in names if name not in left_out), left_out, reason, questions)


def find_findings(
    context: Context, choice: RuleChoice, followed: Collection[str], about: tuple[int, str] | None
) -> tuple[Finding, ...]:
    """Run the rules, the most severe findings first. Of an answer about one instruction, its line and name, keep those that
    name it. `followed` are the analyses whose missing attributes are findings too.
    """
    findings = [finding for name in choice.rules for finding in RULES.of(name).check(context)]
    if about is not None:
        findings = [finding for finding in findings if _names(finding, *about)]
    return tuple(most_severe_first([*findings, *reading_findings(context, followed)]))


def _names(finding: Finding, line: int, name: str) -> bool:
    return finding.subject == name or (finding.location is not None and finding.location.line == line)
