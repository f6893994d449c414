"""The report of one module: the facts of all passes that run, the tables of the chosen ones, and the findings of rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.collectives.logical_collectives import WANTS as COLLECTIVE_WANTS
from hlo_inspect.analysis.context import Context, parse_options
from hlo_inspect.errors import UsageError
from hlo_inspect.findings import LARGE_MODULE, RULE_TABLE, RULES
from hlo_inspect.findings.reading_problems import reading_findings
from hlo_inspect.findings.thresholds import parse_thresholds
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes import ALPA, FINDINGS, MEASURED, MODULE_FACTS, PASSES, TIME_EVENTS, WORKLOAD, find_pass
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.partial_modules import (
    partial_facts,
    partial_report,
    truncated_facts,
    truncated_tables,
    truncation_notes,
)
from hlo_inspect.passes.rule_pages import findings_row, truncation_rows
from hlo_inspect.passes.unread_lines import unread_facts, unread_notes, unread_tables
from hlo_inspect.profiler.wanted_samples import WantedSamples
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Finding, HeadlineRow, Input, Report, Section, most_severe_first
from hlo_inspect.report.table import Table, Value
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.findings.small_findings import SmallFindings
    from hlo_inspect.profiler.measurements import RecordedProgram

NeededTables = Callable[[Sequence[Table]], Sequence[Table]]
"""Cuts tables to the rows that the reader of a report needs; no others are made."""

ReportSink = Callable[[Report, Context], None]
"""Callback that receives each report and the analyses of its module."""


class ReportNeeds(NamedTuple):
    """Needs of the reader of reports: some `tables`, else all; `notes` on unknown facts; findings of every rule.

    `every_rule` includes the costly rules of a large module. If `measured`, the reports on a recorded profile have its times;
    modules that did not run have a report too.
    """

    tables: NeededTables | None = None
    notes: bool = True
    every_rule: bool = False
    measured: bool = False


NEEDS_ALL = ReportNeeds()


class ModuleReports:
    """Maker of module reports for one request.

    `recorded` is the recorded profile of the request; `wanted_samples` are its samples that reports show.
    The report has the tables of the passes `chosen`; `wants` is the union of their needs. If `asks_graph`, a module read
    without graph is read again when its names leave a phase unknown. `sink` receives each report and its module's analyses.
    """

    def __init__(self, request: Request, needs: ReportNeeds = NEEDS_ALL) -> None:
        alpa = (ALPA,) if request.cost_model is not None else ()
        self.chosen = list(dict.fromkeys(find_pass(name) for name in (*request.pass_names, *alpa) if name != WORKLOAD))
        also = [find_pass(name) for name in request.also]
        request.check([question.name for question in (*self.chosen, *also)])
        running = _with_included([*self.chosen, *also], quick=request.quick)
        self._answering = list(dict.fromkeys((*running, find_pass(MODULE_FACTS))))
        self.specs = tuple(spec for question in self._answering for spec in question.specs)
        self._findings = FindingOptions(
            any(question.findings_of == "all" for question in running),
            tuple(question.name for question in running),
            tuple(question.name for question in self.chosen),
            request.quick,
            needs.every_rule,
        )
        self._counts_small = needs.every_rule and tuple(request.pass_names) == (FINDINGS,)
        self.wants = _wants(running, self.chosen, request) | self._findings.wants
        self.measures = request.recorded is not None or any(question.name == MEASURED for question in running)
        self.asks_graph = request.uses_graph_for_phases and any(question.asks_phases for question in running)
        if len(request.profiles) > 1 and not any(question.compares_profiles for question in self.chosen):
            are_commands = all(name in PASSES.names for name in request.pass_names)
            names = ", ".join(request.pass_names) if are_commands else "this command"
            raise UsageError(f"{names} takes one profile; `time` compares several")
        self._uses_profile = any(question.uses_profile for question in running)
        self._request = request
        self._options = parse_options(request)
        if request.thresholds:
            self._options = replace(self._options, thresholds=parse_thresholds(request.thresholds))
        self.needs = needs
        self.recorded = request.recorded
        self.wanted_samples = WantedSamples(request.skip, any(question.name == TIME_EVENTS for question in running))
        self.sink: ReportSink | None = None

    def with_measured(self) -> ModuleReports:
        """Return the maker of the reports on a recorded profile: these with its times, if they are needed."""
        if self.measures or not self.needs.measured:
            return self
        reports = ModuleReports(replace(self._request, passes=(*self._request.pass_names, MEASURED)), self.needs)
        reports.sink = self.sink
        return reports

    def report(
        self,
        module: Module,
        notes: Sequence[str],
        read_graph: Callable[[], Module | None] | None,
        measured: RecordedProgram | None = None,
    ) -> Report:
        """Return the report of a module that was read with `wants`. `read_graph` reads it with its graph."""
        context = Context(module, self._request, self._options, read_graph)
        context.measured = measured
        sections = {question.name: question.run(context) for question in self._answering}
        chosen = [sections[question.name] for question in self.chosen]
        about = next((section.about for section in sections.values() if section.about is not None), None)
        choice = self._findings.choose(module, about)
        if about is None and not _UNDECIDABLE.isdisjoint(choice.rules):
            choice = _with_undecided(context, choice)
        small = self._small_findings()
        findings = find_findings(context, choice, self._findings.followed, about, small)
        others = [finding for section in chosen for finding in section.findings]
        if others:
            findings = tuple(most_severe_first([*findings, *others]))
        facts = {name: value for section in sections.values() for name, value in section.facts.items()}
        report = Report(
            command=self.chosen[0].name,
            input=Input(module.path, module.first_line, module.lines, module.bytes),
            facts=self._facts(module, facts),
            tables=tuple([table.made() for table in self._tables(module, chosen)]),
            findings=findings,
            notes=tuple(
                dict.fromkeys(
                    (
                        *notes,
                        *self._notes(module, facts, sections.values(), choice),
                        *(small.notes() if small is not None else ()),
                    )
                )
            ),
            profile=self._profile(context),
            specs=self.specs,
            passages=tuple(passage for section in chosen for passage in section.passages),
            headline=self._headline(chosen, findings, choice),
            findings_scope=choice.scope,
            left_out_rules=choice.left_out,
            undecided_rules=tuple(choice.undecided),
        )
        report = partial_report(report, module.quoted_lines) if module.quoted_lines else report
        if self.sink is not None:
            self.sink(report, context)
        return report

    def _facts(self, module: Module, facts: dict[str, Value]) -> Facts:
        """Return the facts as far as the text holds the module, those of the module first."""
        if module.quoted_lines:
            facts = partial_facts(facts)
        elif module.problems.is_truncated:
            facts = truncated_facts(facts)
        if module.unread:
            facts = unread_facts(facts, module)
        ordered = sorted(facts, key=lambda name: not name.startswith("module."))
        return Facts({name: facts[name] for name in ordered}, self.specs)

    def _notes(
        self, module: Module, facts: Mapping[str, Value], sections: Iterable[Section], choice: RuleChoice
    ) -> Iterator[str]:
        """Yield why facts are unknown, and which rules are left out."""
        if self.needs.notes:
            for section in sections:
                yield from section.notes
            if module.problems.is_truncated and not module.quoted_lines:
                yield from truncation_notes(facts)
            if module.unread:
                yield from unread_notes(facts, module)
        yield from choice.undecided.values()
        if choice.left_out:
            yield f"findings: left out {choice.reason}: {', '.join(choice.left_out)}"

    def _tables(self, module: Module, chosen: Sequence[Section]) -> Sequence[Table]:
        """Return the needed tables of the chosen passes and of the text around the module."""
        tables: Iterable[Table] = chain.from_iterable(section.tables for section in chosen)
        if module.problems.is_truncated and not module.quoted_lines:
            tables = truncated_tables(tables)
        elif module.unread:
            tables = unread_tables(tables, module)
        tables = list(tables)
        if module.log:
            from hlo_inspect.passes.module_facts import log_tables

            tables += log_tables(module.log)
        if self.needs.tables is None or module.quoted_lines:  # partial modules have other tables on their page
            return tables
        return self.needs.tables(tables)

    def _small_findings(self) -> SmallFindings | None:
        """Return the counter of findings below thresholds; None for other requests."""
        if not self._counts_small:
            return None
        from hlo_inspect.findings.small_findings import SmallFindings

        return SmallFindings()

    def _headline(self, chosen: Sequence[Section], findings: Sequence[Finding], choice: RuleChoice) -> tuple[HeadlineRow, ...]:
        """Return the first lines of the passes, with commands if several; then the findings, unless no pass counts them."""
        names = [question.name if len(chosen) > 1 else "" for question in self.chosen]
        rows = [row._replace(command=name) for name, section in zip(names, chosen, strict=True) for row in section.headline]
        counts = any(question.findings_of != "none" for question in self.chosen)
        counted = [findings_row(findings, choice.scope)] if rows and counts else []
        return (*(truncation_rows(findings) if findings else ()), *rows, *counted)

    def _profile(self, context: Context) -> str | None:
        """Return the name of the hardware profile of the times. Raise UsageError for `--what-if` without a profile."""
        if not (self._uses_profile or context.on_machine.profile_is_named):
            if self._request.changes:
                raise UsageError("--what-if needs a hardware profile: name it with --profile")
            return None
        profile = context.on_machine.profile
        return profile.name if profile is not None else None


def _with_included(passes: Iterable[Pass], *, quick: bool) -> list[Pass]:
    """Return the passes and those that they add unless quick, each followed by those that it includes; none twice."""
    named = list(passes)
    named += [find_pass(name) for question in named if not quick for name in question.unless_quick]
    return list(dict.fromkeys(part for question in named for part in (question, *map(find_pass, question.includes))))


def _wants(running: Iterable[Pass], chosen: Collection[Pass], request: Request) -> Wants:
    """Return the needs of the facts of all passes and of the tables of the chosen passes.

    A chosen pass shows the tables of the passes that it includes, with costs unless quick.
    """
    wants = find_pass(MODULE_FACTS).wants
    for question in running:
        wants |= question.wants
    shown = [] if request.quick else _with_included((question for question in chosen if question.unless_quick), quick=False)
    for question in (*chosen, *shown):
        wants |= question.table_wants | question.profile_wants if request.profiles else question.table_wants
    return wants


_LINES = COLLECTIVE_WANTS | Wants(entry=True, unused=True, checked=True)
_GRAPH = _LINES | KERNEL_WANTS


_UNDECIDABLE = frozenset(name for name, entry in RULE_TABLE.items() if entry.undecided)


class RuleChoice(NamedTuple):
    """The rules that run on a module, and those that are left out, by name, with the reason.

    `questions` are the passes whose rules these are; empty if all rules are meant. `undecided` has the codes of rules that the
    module does not tell enough for, with the reasons.
    """

    rules: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    reason: str = ""
    questions: tuple[str, ...] = ()
    undecided: Mapping[str, str] = MappingProxyType({})

    @property
    def scope(self) -> str:
        """Text behind the number of findings: their passes, the number of rules left out, and the rules not decided."""
        asked = f" of {' and '.join(self.questions)}" if self.questions else ""
        count = len(self.left_out)
        rules = f"{count} {'rule' if count == 1 else 'rules'}"
        left_out = f" ({rules} left out {self.reason})" if count else ""
        return asked + left_out + (f" ({', '.join(self.undecided)} not decided)" if self.undecided else "")


class FindingOptions(NamedTuple):
    """Choice of findings: those of all rules if `counts_all`, else of the rules of some `questions`.

    `asked` are the passes that a user named. `every_rule` runs costly rules on large modules too.
    """

    counts_all: bool
    questions: tuple[str, ...]
    asked: tuple[str, ...]
    quick: bool
    every_rule: bool

    @property
    def wants(self) -> Wants:
        """Needs of the rules beyond those of their questions."""
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
        questions = set(self.questions)
        names = tuple(name for name, entry in RULE_TABLE.items() if self.counts_all or not questions.isdisjoint(entry.passes))
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


def _with_undecided(context: Context, choice: RuleChoice) -> RuleChoice:
    """Return the choice with the rules that the module does not tell enough for.

    They are about weights and the optimizer's state: a program without any has no finding.
    """
    names = (name for name in choice.rules if name in _UNDECIDABLE)
    reasons = ((name, attrgetter(RULE_TABLE[name].undecided)(context)) for name in names)
    undecided = {RULES.load(name).code: reason for name, reason in reasons if reason}
    return choice._replace(undecided=undecided) if undecided and _has_weights(context) else choice


def _has_weights(context: Context) -> bool:
    """Return True if a parameter is a weight or state of an optimizer, or has a gradient."""
    optimizer, interface = context.optimizer, context.shardings.interface
    entry = context.module.entry
    if optimizer.roles or optimizer.parameters_with_gradients(interface):
        return True
    if entry is None or entry.name not in context.views.computations:
        return False
    from hlo_inspect.analysis.named_gradients import parameters_with_named_gradients

    return bool(parameters_with_named_gradients(context.views, entry.name, interface))


def find_findings(
    context: Context,
    choice: RuleChoice,
    followed: Collection[str],
    about: tuple[int, str] | None,
    small: SmallFindings | None = None,
) -> tuple[Finding, ...]:
    """Run the rules and return their findings, the most severe first.

    `about` is line and name of an instruction: keep the findings that name it. `followed` are the analyses whose missing
    attributes are findings too. `small` counts the findings below thresholds.
    """
    opcodes, entries = context.module.opcodes, [(name, RULE_TABLE[name]) for name in choice.rules]
    rules = [
        name
        for name, entry in entries
        if not (entry.opcodes and entry.opcodes.isdisjoint(opcodes))
        and (not entry.analysis or attrgetter(entry.analysis)(context))
    ]
    findings = [
        finding
        for name in rules
        for finding in (RULES.load(name).check(context) if small is None else small.check(context, RULES.load(name)))
    ]
    if about is not None:
        findings = [finding for finding in findings if _names(finding, *about)]
    if findings:
        from hlo_inspect.findings.savings import with_saving

        findings = [with_saving(context, finding) for finding in findings]
    findings += reading_findings(context, followed)
    if not findings:
        return ()
    from hlo_inspect.findings.places import with_places

    return tuple(with_places(context, most_severe_first(findings)))


def _names(finding: Finding, line: int, name: str) -> bool:
    return finding.subject == name or (finding.location is not None and finding.location.line == line)
