"""Two modules compared: what is the same, which facts differ, and what explains that, as a report."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.fact_changes import FactChange, fact_changes
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import (
    Amount,
    Column,
    FactSpec,
    Finding,
    HeadlineRow,
    Input,
    Report,
    Table,
    Value,
)

COMMAND = "diff"
SAME, ANOTHER_SCHEDULE, DIFFERENT = "same program", "same program, another schedule", "different programs"
SAME_FACTS, DIFFERENT_FACTS = "same facts", "different facts"

SPECS = (
    FactSpec("diff.same_program", "bool", "the same but for numbering, metadata and the order of independent lines"),
    FactSpec("diff.same_schedule", "bool", "the same order of lines too"),
    FactSpec("diff.fact_count", "count", "facts that differ"),
)
_HEADLINE_FACTS = 3
_FACT_COLUMNS = (
    Column("fact", width=36),
    Column("old", unit_of="unit"),
    Column("new", unit_of="unit"),
    Column("difference", unit_of="unit", optional=True, signed=True),
    Column("percent", "share", optional=True, signed=True),
    Column("unit", detail=9),
)


class ComparedModule:
    """A module's report, with its analyses where its text was read and not a saved report."""

    def __init__(self, report: Report, context: Context | None = None) -> None:
        self.report = report
        self.context = context

    @property
    def name(self) -> str:
        return str(self.report.facts.get("module.name", self.report.title))

    @cached_property
    def program(self) -> str | None:
        """A hash of the program, whatever its numbering, metadata and schedule; `None` where it is not known."""
        return self.context.canonical.program if self.context is not None and self.is_whole else None

    @cached_property
    def schedule(self) -> str | None:
        """A hash of the schedule; `None` where the text has none."""
        return self.context.canonical.schedule if self.context is not None and self.is_whole else None

    @property
    def is_whole(self) -> bool:
        """Whether the text was read, and not only lines of it are quoted."""
        return self.context is not None and not self.context.module.quoted_lines

    @cached_property
    def signature(self) -> tuple[str, ...] | None:
        """The shapes of parameters and results; `None` where they are not known."""
        if self.context is None or not self.context.interface.known:
            return None
        interface = self.context.interface
        shapes = [*(leaf.shape for leaf in interface.parameters), *(output.shape for output in interface.outputs)]
        return (*map(str, shapes), str(len(interface.parameters)))


@dataclass(frozen=True, slots=True)
class ModuleComparison:
    """Two modules, or one that the other side does not have, and the report on what differs."""

    old: ComparedModule | None
    new: ComparedModule | None
    report: Report
    is_different: bool


def only_in_old(old: ComparedModule) -> ModuleComparison:
    """What is to say of a module of OLD without a mate."""
    return ModuleComparison(old, None, _unpaired(old.report, "OLD", "NEW"), is_different=True)


def only_in_new(new: ComparedModule) -> ModuleComparison:
    """What is to say of a module of NEW without a mate."""
    return ModuleComparison(None, new, _unpaired(new.report, "NEW", "OLD"), is_different=True)


def compare(old: ComparedModule, new: ComparedModule) -> ModuleComparison:
    """The comparison of two modules."""
    changes = fact_changes(old.report, new.report)
    verdict = _verdict(old, new, changes)
    same = verdict in (SAME, ANOTHER_SCHEDULE) if verdict not in (SAME_FACTS, DIFFERENT_FACTS) else None
    own: dict[str, Value] = {
        "diff.same_program": same,
        "diff.same_schedule": None if same is None else verdict == SAME,
        "diff.fact_count": len(changes),
    }
    source, target = old.report.input, new.report.input
    report = Report(
        command=COMMAND,
        input=Input(f"{source.path} -> {target.path}", target.first_line, target.lines, target.bytes),
        facts=Facts(_module_facts(new.report) | own, (*_module_specs(new.report), *SPECS)),
        tables=(_facts_table(changes),),
        findings=tuple(_new_findings(old.report.findings, new.report.findings)),
        notes=(),
        profile=new.report.profile,
        specs=(*_module_specs(new.report), *SPECS),
        title=new.report.title,
        headline=tuple(_headline(verdict, changes)),
    )
    return ModuleComparison(old, new, report, is_different=verdict not in (SAME, SAME_FACTS))


def _module_facts(report: Report) -> dict[str, Value]:
    return {name: value for name, value in report.facts.items() if name.startswith("module.")}


def _module_specs(report: Report) -> tuple[FactSpec, ...]:
    return tuple(spec for spec in report.specs if spec.name.startswith("module."))


def _verdict(old: ComparedModule, new: ComparedModule, changes: Sequence[FactChange]) -> str:
    if old.program is None or new.program is None:
        return DIFFERENT_FACTS if changes else SAME_FACTS
    if old.program != new.program:
        return DIFFERENT
    return SAME if old.schedule == new.schedule else ANOTHER_SCHEDULE


def _headline(verdict: str, changes: Sequence[FactChange]) -> Iterator[HeadlineRow]:
    yield HeadlineRow("", (verdict,))
    if changes:
        yield HeadlineRow("facts", tuple(_first_facts(changes)))


def _first_facts(changes: Sequence[FactChange]) -> Iterator[str | Amount]:
    """The most important facts in one line."""
    for number, change in enumerate(changes[:_HEADLINE_FACTS]):
        yield f"{'; ' if number else ''}{change.name} "
        yield Amount(change.old, change.unit)
        yield " → "
        yield Amount(change.new, change.unit)
        if change.share is not None:
            yield " (+" if change.share > 0 else " ("
            yield Amount(change.share, "share")
            yield ")"
    if len(changes) > _HEADLINE_FACTS:
        yield f"; {len(changes) - _HEADLINE_FACTS:,} more"


def _facts_table(changes: Sequence[FactChange]) -> Table:
    rows = tuple((one.name, one.old, one.new, one.difference, one.share, one.unit) for one in changes)
    return Table("facts", "Facts that differ", _FACT_COLUMNS, rows, page_rows=15)


def _new_findings(old: Sequence[Finding], new: Sequence[Finding]) -> list[Finding]:
    """The findings of NEW that OLD does not have, whatever the numbers in their words."""
    known: dict[Hashable, int] = {}
    for finding in old:
        known[_alike(finding)] = known.get(_alike(finding), 0) + 1
    found = []
    for finding in new:
        known[_alike(finding)] = known.get(_alike(finding), 0) - 1
        if known[_alike(finding)] < 0:
            found.append(finding)
    return found


def _alike(finding: Finding) -> Hashable:
    return finding.rule, "".join("0" if char.isdigit() else char for char in finding.message)


def _unpaired(report: Report, name: str, other: str) -> Report:
    """The report on a module that only the side of that name has."""
    return Report(
        command=COMMAND,
        input=report.input,
        facts=Facts(_module_facts(report), (*_module_specs(report), *SPECS)),
        profile=report.profile,
        specs=(*_module_specs(report), *SPECS),
        title=report.title,
        headline=(HeadlineRow("", (f"only in {name}: {other} has no module that belongs to it",), "warning"),),
    )
