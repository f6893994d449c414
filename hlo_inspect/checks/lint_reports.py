"""Run of `lint` over reports: the findings that are selected, not ignored and not in the baseline, in groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.checks.baseline import Baseline, Entry
from hlo_inspect.checks.ignores import Ignore, ignored_findings, notes_on_ignored, stale_entry, without_ignored
from hlo_inspect.checks.lint_config import RuleSelection
from hlo_inspect.findings import find_rule, module_pages, rule_pages
from hlo_inspect.report.faults import Failed, answers, with_last
from hlo_inspect.report.finding_groups import FindingGroup, group_findings
from hlo_inspect.report.model import (
    SEVERITIES,
    Amount,
    FactSpec,
    Finding,
    HeadlineRow,
    Passage,
    Report,
    Severity,
    Verdict,
    reaching,
)
from hlo_inspect.report.rule_page import RulePage
from hlo_inspect.report.table import Column, Plain, Table, number_of
from hlo_inspect.report.table_spec import TableSpec

LINT = "lint"
LINT_SPECS = (
    FactSpec("lint.count", "count", "findings that count: selected, not ignored, not in the baseline"),
    *(FactSpec(f"lint.{severity}_count", "count", f"those of severity {severity}") for severity in SEVERITIES),
    FactSpec("lint.ignored_count", "count", "findings that an entry ignores"),
    FactSpec("lint.baseline_count", "count", "findings that the baseline accepts"),
    FactSpec("lint.undecided_count", "count", "selected rules that the module does not tell enough for"),
)


class _RuleResult(NamedTuple):
    """A rule with the number of its findings, and if it passed, failed or was not decided."""

    page: RulePage
    status: str
    findings: int


def _unit(group: FindingGroup) -> str:
    unit = group.first.stake_unit
    return "seconds" if unit == "s" else unit


def _first_step(page: RulePage) -> str:
    """Return the first sentence of how to fix it."""
    return " ".join(page.fix.split()).partition(". ")[0].removesuffix(".") + "."


_FINDINGS = TableSpec("findings", "Findings").with_columns(
    Column("severity", width=8, meaning="error, warning or info", get=attrgetter("first.severity")),
    Column("code", meaning="code of the rule", width=5, get=attrgetter("first.rule")),
    Column("rule", width=22, detail=3, meaning="name of the rule", get=attrgetter("first.name")),
    Column("path", width=15, meaning="input of the module, below the folder of all, if the table has findings of several"),
    Column("times", "count", detail=3, meaning="equal findings that share the row", get=lambda group: len(group.findings)),
    Column("stake", unit_of="stake_unit", width=9, optional=True, meaning="saving in one step on one device"),
    Column("stake_unit", detail=9, meaning="seconds, bytes or FLOPs", get=_unit),
    Column("share", "share", optional=True, detail=2, meaning="saving as a share of `share_of`"),
    Column(
        "share_of",
        page_name="of",
        width=9,
        optional=True,
        detail=2,
        meaning="step time, memory, or bytes, sent bytes or FLOPs of a step",
        get=lambda group: group.first.share_of or None,
    ),
    Column(
        "instruction",
        width=10,
        optional=True,
        detail=1,
        meaning="instruction or parameter that it is about",
        get=attrgetter("first.subject"),
    ),
    Column("source", width=12, optional=True, get=attrgetter("first.source")),
    Column("message", width=40, below=True, meaning="the finding in one sentence", get=attrgetter("first.message")),
    Column("line", "number", optional=True, detail=9, get=lambda group: group.first.location and group.first.location.line),
    Column("fingerprint", detail=9, meaning="hash that baselines keep", get=attrgetter("first.fingerprint")),
    Column("module", detail=9, meaning="name of the module, if the table has findings of several"),
)
_OF_SEVERAL = frozenset({"module", "path"})
_FIRST_STEPS = TableSpec("rules", "First steps").with_columns(
    Column("code", meaning="code of the rule"),
    Column("rule", width=22, meaning="name of the rule", get=attrgetter("name")),
    Column("first_step", width=70, page_name="first step", meaning="the first thing to do", get=_first_step),
)
_RULE_RESULTS = TableSpec("rule_results", "Rules", on_page=False).with_columns(
    Column("code", meaning="code of the rule", get=attrgetter("page.code")),
    Column("rule", meaning="name of the rule", get=attrgetter("page.name")),
    Column("status", meaning="passed, failed or not decided"),
    Column("findings", "count", meaning="number of findings"),
)
TABLES = (_FINDINGS, _FIRST_STEPS, _RULE_RESULTS)


def headline(facts: Mapping[str, Plain]) -> HeadlineRow:
    """Return the line that counts the findings of a page, by the facts of `lint`."""
    parts: list[str | Amount] = []
    for severity in SEVERITIES:
        parts += [", "] if parts else []
        parts.append(Amount(facts[f"lint.{severity}_count"], "count", severity))
    for fact, words in (("lint.ignored_count", "ignored"), ("lint.baseline_count", "in the baseline")):
        parts += [f"; {facts[fact]:,} {words}"] if facts[fact] else []
    undecided = facts["lint.undecided_count"]
    parts += [f"; {number_of(undecided, 'rule')} not decided"] if isinstance(undecided, int) and undecided else []
    return HeadlineRow("findings", tuple(parts))


class LintRun:
    """Findings of reports that come one after the other.

    `failed` counts reports with a finding that reaches `fail_on`; without it and with a baseline an error or warning fails.
    `counted` are the findings of all reports before the baseline, for a new one. `last_notes` are those about all modules,
    which the last report has. `refused` counts modules that the caller did
    not lint.
    """

    def __init__(
        self,
        selection: RuleSelection,
        ignores: Sequence[Ignore] = (),
        *,
        baseline: Baseline | None = None,
        fail_on: Severity | None = None,
        explains: bool = False,
    ) -> None:
        selection.check()
        self._selection = selection
        self._ignores = ignores
        self._unused = list(ignores)
        self._baseline = baseline
        self._fail_on: Severity | None = fail_on or ("warning" if baseline is not None else None)
        self._explains = explains
        self._pages = {page.code: page for page in rule_pages()}
        self._modules = 0
        self._undecided = 0
        self._counts: Counter[str] = Counter()
        self.counted: list[Finding] = []
        self.last_notes: tuple[str, ...] = ()
        self.failed = 0
        self.refused = 0

    def reports(self, reports: Iterable[Report], failed: Failed[Report] | None = None) -> Iterator[Report]:
        """Yield a report of `lint` for each; the last one has the verdict, and names entries that match nothing.

        `failed` receives a report that an internal error loses; without it the exception is raised.
        """
        return with_last(answers(reports, self._linted, failed), self._with_verdict)

    def _with_verdict(self, last: Report) -> Report:
        stale = tuple(map(stale_entry, self._unused))
        notes = [finding.message for finding in stale]
        for entry, count in self._stale_entries():
            notes.append(f"the baseline accepts {count} of {entry} that did not occur; --update-baseline takes them out")
        self.last_notes = tuple(notes)
        return replace(last, findings=(*last.findings, *stale), notes=(*last.notes, *notes), verdict=self.verdict)

    @property
    def has_stale_entries(self) -> bool:
        """True if the baseline accepts findings that did not occur."""
        return bool(self._stale_entries())

    @property
    def verdict(self) -> Verdict:
        """The result over all modules in one line."""
        counts = ", ".join(number_of(self._counts[severity], severity) for severity in SEVERITIES)
        count = self._modules + self.refused
        counts = "0 findings" if count > 1 and not self._counts.total() else counts
        modules = number_of(count, "module")
        unchecked = f" ({self.refused:,} not linted)" if self.refused else ""
        new = "new: " if self._baseline is not None else ""
        undecided = f", {number_of(self._undecided, 'rule')} not decided" if self._undecided else ""
        return Verdict(f"{modules}{unchecked}, {new}{counts}{undecided}", passed=not self.failed and not self.refused)

    def _stale_entries(self) -> list[tuple[Entry, int]]:
        """Return the entries of selected rules with findings that did not occur, and their number."""
        if self._baseline is None:
            return []
        return [(entry, count) for entry, count in self._baseline.stale if self._selection.has(find_rule(entry.rule))]

    def _linted(self, report: Report) -> Report:
        selected = self._selection.of_findings(report.findings)
        self._unused = [entry for entry in self._unused if not any(map(entry.covers, selected))]
        kept = without_ignored(selected, self._ignores)
        self.counted += kept
        findings = [finding for finding in kept if self._baseline is None or not self._baseline.accepts(finding)]
        severities = Counter(finding.severity for finding in findings)
        facts: dict[str, Plain] = {"lint.count": len(findings)}
        facts |= {f"lint.{severity}_count": severities[severity] for severity in SEVERITIES}
        facts |= {"lint.ignored_count": len(selected) - len(kept), "lint.baseline_count": len(kept) - len(findings)}
        undecided = [code for code in report.undecided_rules if self._selection.has(self._pages[code])]
        facts["lint.undecided_count"] = len(undecided)
        groups = group_findings(findings)
        linted = Report(
            LINT,
            report.input,
            report.module_facts | facts,
            (*self.tables(groups, undecided), self.results(findings, undecided)),
            tuple(findings),
            (*report.notes, *notes_on_ignored(selected, self._ignores)),
            report.profile,
            (*report.module_specs, *LINT_SPECS),
            report.title,
            tuple(self._explanations(groups)) if self._explains else (),
            (headline(facts),),
            findings_scope=report.findings_scope,
            undecided_rules=tuple(undecided),
            ignored=tuple(ignored_findings(selected, self._ignores)),
        )
        self._modules += 1
        self._undecided += len(undecided)
        self._counts.update(severities)
        self.failed += self._fail_on is not None and bool(reaching(findings, self._fail_on))
        return linted

    def tables(
        self, groups: Sequence[FindingGroup], undecided: Sequence[str], without: Container[str] = _OF_SEVERAL
    ) -> Iterator[Table]:
        """Yield the findings without the columns `without`, and the first step of each rule."""
        nothing = f"none; not decided: {', '.join(undecided)}" if undecided else "none"
        steps = (self._pages[code] for code in dict.fromkeys(group.first.rule for group in groups))
        columns = _FINDINGS.columns
        if all(len(group.findings) == 1 for group in groups):  # pages have no column of ones
            columns = tuple(column._replace(detail=9) if column.name == "times" else column for column in columns)
        findings = _FINDINGS.of(groups, without=without, columns=columns)
        yield from (replace(table, nothing=nothing) for table in (findings, _FIRST_STEPS.of(steps)))

    def results(self, findings: Sequence[Finding], undecided: Sequence[str]) -> Table:
        """Return one row a selected rule: its findings, and if one fails the run. Formats for CI show it, pages do not."""
        counts = Counter(finding.rule for finding in findings)
        failed = {finding.rule for finding in reaching(findings, self._fail_on)} if self._fail_on is not None else set()
        pages = filter(self._selection.has, module_pages())
        statuses = dict.fromkeys(undecided, "not decided") | dict.fromkeys(failed, "failed")
        return _RULE_RESULTS.of(_RuleResult(page, statuses.get(page.code, "passed"), counts[page.code]) for page in pages)

    def _explanations(self, groups: Iterable[FindingGroup]) -> Iterator[Passage]:
        for code in dict.fromkeys(group.first.rule for group in groups):
            page = self._pages[code]
            text = "\n\n".join((page.summary, page.what, page.why, page.fix))
            yield Passage(f"{code} {page.name}", text)
