"""The report of one module: the facts of all passes that run, the tables of those that were chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from hlo_inspect.analysis.context import NO_QUERY, Context, InstructionQuery, PhasesFrom
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes import MODULE_FACTS, PASSES, WORKLOAD, find_pass
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.part_of_module import facts_of_cut, facts_of_part, notes_of_cut, of_part, tables_of_cut
from hlo_inspect.passes.rule_pages import findings_row, truncation_rows
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Finding, HeadlineRow, Input, Report, Section, Table, most_severe_first
from hlo_inspect.rules import rules_of
from hlo_inspect.rules.reading_problems import reading_findings

if TYPE_CHECKING:
    from hlo_inspect.analysis.alpa import CostModel
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
    from hlo_inspect.analysis.memory.platforms import PlatformName
    from hlo_inspect.analysis.time.profiles import AskedMachine
    from hlo_inspect.hlo.device_groups import NamedMesh


class Asked(TypedDict, total=False):
    """What is asked of each module, as `inspect_all` has it, and `cost_model`, the one of Alpa's that the pass `alpa` shows:
    its `name`, and `alpha` and `beta` by mesh axes (`d0=1,d1=0.1`). `query` has the fields of `InstructionQuery`. Without
    `with_notes` reports do not say why facts are unknown, which a comparison does not show. `needed` chooses what reports have
    of their tables; without it they have all.
    """

    profile: str | Sequence[str] | None
    what_if: Sequence[str]
    devices_per_node: int | None
    topology: str | None
    mesh: str | None
    custom_calls: str | None
    phases: PhasesFrom
    cost_model: Mapping[str, str | None] | None
    platform: PlatformName | None
    query: Mapping[str, Any]
    also: Sequence[str]
    with_notes: bool
    needed: NeededTables | None


NeededTables = Callable[[Sequence[Table]], Sequence[Table]]
"""What whoever reads a report needs of its tables: no more rows of them are made."""

Taker = Callable[[Report, Context], None]
"""Who takes a report together with the module that it is about."""


class ModuleReports:
    """Makes the report of any module: the passes that were asked for, and what they are asked.

    `chosen` are the passes whose tables the report has, `wants` what they all need of a module. Where `asks_graph`, a module
    that was read without its graph is read again with it when its names leave a phase open. `taker` is given the analyses of
    each module beside its report.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        passes: Sequence[str],
        *,
        profile: str | Sequence[str] | None = None,
        what_if: Sequence[str] = (),
        devices_per_node: int | None = None,
        topology: str | None = None,
        mesh: str | None = None,
        custom_calls: str | None = None,
        phases: PhasesFrom = "graph",
        cost_model: Mapping[str, str | None] | None = None,
        platform: PlatformName | None = None,
        query: Mapping[str, Any] | None = None,
        also: Sequence[str] = (),
        with_notes: bool = True,
        needed: NeededTables | None = None,
    ) -> None:
        if phases not in get_args(PhasesFrom):
            raise UsageError(f"phases come from {' or '.join(get_args(PhasesFrom))}, not from {phases!r}")
        self.chosen = [find_pass(name) for name in passes if name != WORKLOAD]
        self._with_notes = with_notes
        self._also = frozenset(find_pass(name).name for name in also)
        running = _with_included([*self.chosen, *map(find_pass, also)])
        self._answering = list(dict.fromkeys((*running, find_pass(MODULE_FACTS))))
        self.specs = tuple(spec for one in self._answering for spec in one.specs)
        profiles = [] if profile is None else [profile] if isinstance(profile, str) else list(profile)
        self.wants = _wants(running, self.chosen, self._also, with_profile=bool(profiles))
        left_out = self.chosen[0].also if self.chosen else ()
        self._phases: PhasesFrom = "names" if left_out and self._also.isdisjoint(left_out) else phases
        self.asks_graph = self._phases == "graph" and any(one.asks_phases for one in running)
        if len(profiles) > 1 and not any(one.compares_profiles for one in self.chosen):
            raise UsageError(f"{', '.join(passes)} can be asked about one profile; `time` compares several")
        changes = (what_if,) if isinstance(what_if, str) else what_if
        self._machine = _machine(profiles, changes, topology, devices_per_node)
        self._mesh = _mesh(mesh)
        self._user_rules = _user_rules(custom_calls)
        self._cost_model = _cost_model(cost_model)
        self._platform = platform
        self._query = InstructionQuery(**query) if query else NO_QUERY
        self._needed = needed
        self.taker: Taker | None = None

    def report(self, module: Module, notes: Sequence[str], read_graph: Callable[[], Module | None] | None) -> Report:
        """The report of a module that was read with `wants`. `read_graph` reads it with its graph."""
        context = Context(
            module,
            self._machine,
            self._mesh,
            self._also,
            self._user_rules,
            self._phases,
            read_graph,
            self._cost_model,
            self._platform,
            self._query,
        )
        chosen = self.chosen
        sections = {one.name: one.run(context) for one in self._answering}
        facts = {name: value for section in sections.values() for name, value in section.facts.items()}
        unknown = [line for section in sections.values() for line in section.notes] if self._with_notes else []
        tables: Iterable[Table] = chain.from_iterable(sections[one.name].tables for one in dict.fromkeys(chosen))
        if module.quoted_lines:
            facts = facts_of_part(facts)
        elif module.problems.hold_a_cut:
            unknown += notes_of_cut(facts) if self._with_notes else []
            facts = facts_of_cut(facts)
            tables = tables_of_cut(tables)
        tables = chain(tables, _log_tables(module))
        if self._needed is not None and not module.quoted_lines:  # these have other tables on their page
            tables = self._needed(list(tables))
        made = tuple([table.made() for table in tables])  # before the findings: what makes rows may find something
        findings = _findings(context, sections)
        findings += reading_findings(context)  # last: an analysis can find that attributes make no sense
        findings = most_severe_first(findings)
        counts = any(one.counts_findings for one in chosen)
        headline = _headline(dict.fromkeys(chosen), sections)
        profile_used = context.on_machine.profile_used  # last: a pass or a rule may ask for times
        if profile_used is None and self._machine is not None and self._machine.changes:
            raise UsageError("--what-if changes figures of a profile: name it with --profile")
        report = Report(
            command=chosen[0].name,
            input=Input(module.path, module.first_line, module.lines, module.bytes),
            facts=Facts({name: facts[name] for name in sorted(facts, key=_behind_the_module)}, self.specs),
            tables=made,
            findings=tuple(findings),
            notes=tuple(dict.fromkeys((*notes, *unknown))),
            profile=profile_used.name if profile_used is not None else None,
            specs=self.specs,
            passages=tuple(passage for one in dict.fromkeys(chosen) for passage in sections[one.name].passages),
            headline=(*truncation_rows(findings), *headline, *([findings_row(findings)] if headline and counts else [])),
        )
        report = of_part(report, module.quoted_lines) if module.quoted_lines else report
        if self.taker is not None:
            self.taker(report, context)
        return report


def _headline(chosen: Collection[Pass], sections: Mapping[str, Section]) -> tuple[HeadlineRow, ...]:
    """The first lines of all pages; of several each says which it is on."""
    if len(chosen) == 1:
        return tuple(row for one in chosen for row in sections[one.name].headline)
    return tuple(row._replace(command=one.name) for one in chosen for row in sections[one.name].headline)


def _findings(context: Context, sections: Mapping[str, Section]) -> list[Finding]:
    """The findings that are a part of the answers; of an answer about one instruction those of all rules that name it."""
    about = next((section.about for section in sections.values() if section.about is not None), None)
    found = [finding for rule in rules_of(sections if about is None else PASSES.names) for finding in rule.check(context)]
    if about is None:
        return found
    line, name = about
    return [one for one in found if one.subject == name or (one.location is not None and one.location.line == line)]


def _behind_the_module(fact: str) -> bool:
    return not fact.startswith("module.")


def _log_tables(module: Module) -> Iterable[Table]:
    if not module.log:
        return ()
    from hlo_inspect.passes.log_table import log_tables

    return log_tables(module.log)


def _machine(
    profiles: Sequence[str], changes: Sequence[str], topology: str | None, devices_per_node: int | None
) -> AskedMachine | None:
    """What a user says of the machine."""
    if not (profiles or changes or topology is not None or devices_per_node is not None):
        return None
    from hlo_inspect.analysis.hardware import load_profile
    from hlo_inspect.analysis.time.placement import given_placement
    from hlo_inspect.analysis.time.profiles import AskedMachine, given_change

    placement = given_placement(topology, devices_per_node)
    return AskedMachine(tuple(map(load_profile, profiles)), tuple(map(given_change, changes)), placement)


def _mesh(text: str | None) -> NamedMesh | None:
    if text is None:
        return None
    from hlo_inspect.analysis.mesh_axes import given_mesh

    return given_mesh(text)


def _cost_model(asked: Mapping[str, str | None] | None) -> CostModel | None:
    if asked is None:
        return None
    from hlo_inspect.analysis.alpa import given_cost_model

    return given_cost_model(**asked)


def _user_rules(path: str | None) -> UserRules | None:
    if path is None:
        return None
    from hlo_inspect.analysis.cost.custom_calls.user_rules import load_user_rules

    return load_user_rules(path)


def _with_included(passes: Iterable[Pass]) -> list[Pass]:
    """The passes, each followed by those that belong to its answer; none twice."""
    return list(dict.fromkeys(part for one in passes for part in (one, *map(find_pass, one.includes))))


def _wants(running: Iterable[Pass], chosen: Iterable[Pass], also: Set[str], *, with_profile: bool) -> Wants:
    """What the facts of all passes and the tables of the chosen ones need of a module. A chosen pass shows tables as those that
    it includes have them where it is asked for what its command adds.
    """
    wants = find_pass(MODULE_FACTS).wants
    for one in running:
        wants |= one.wants
    shown = _with_included(one for one in chosen if not also.isdisjoint(one.also))
    for one in (*chosen, *shown):
        wants |= one.table_wants | one.profile_wants if with_profile else one.table_wants
    return wants
