"""From an input to reports: what is read, which passes run on it, and in which order their answers come."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import groupby, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, get_args

from hlo_inspect.analysis.alpa import given_cost_model
from hlo_inspect.analysis.context import Context, PhasesFrom
from hlo_inspect.analysis.cost.custom_calls.user_rules import NO_USER_RULES, load_user_rules
from hlo_inspect.analysis.memory.platforms import PlatformName
from hlo_inspect.analysis.mesh_axes import given_mesh
from hlo_inspect.errors import (
    HloInspectError,
    InputError,
    Location,
    MissingExtraError,
    ParseError,
    UsageError,
    did_you_mean,
)
from hlo_inspect.hlo.dump_directory import dump_files, expanded, is_directory
from hlo_inspect.hlo.foreign_text import what_log_holds, what_text_looks_like
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.second_reading import SecondReading
from hlo_inspect.hlo.source import Openable, Source, open_source
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.jobs import Jobs, LostProcessError
from hlo_inspect.memory_reports import COMMAND as MEMORY
from hlo_inspect.memory_reports import holds_memory_file, report_on_log, report_on_memory_file
from hlo_inspect.passes import MODULE_FACTS, WORKLOAD, find_pass, find_workload_pass
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.headline import findings_row, truncation_rows
from hlo_inspect.passes.log_table import log_tables
from hlo_inspect.passes.part_of_module import facts_of_part, is_part, of_part
from hlo_inspect.report import notebook
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Input, Report, most_severe_first, show_with
from hlo_inspect.rules import RULES
from hlo_inspect.rules.reading_problems import reading_findings
from hlo_inspect.workload_reports import holds_workload, is_no_workload, report_on_workload
from hlo_inspect.workloads.reader import read_workload
from hlo_inspect.xla import Xla

if TYPE_CHECKING:
    from hlo_inspect.analysis.hardware import HardwareProfile

show_with(notebook.as_text, notebook.as_html)

SWEEP_BYTES, MODULE_COST = 1 << 20, 1 << 12
"""Bytes of text after whose modules memory is swept, and what any module counts for beside its text."""

_NAMED = 8
"""So many modules are named where none is named as asked."""


class Watcher(Protocol):
    """Who wants to know how far an inspection is."""

    def reading(self, name: str, read: int) -> None:
        """So many bytes of the file are read."""

    def analysing(self, module: str) -> None:
        """The module is read, and what it means is worked out."""


class HasText(Protocol):
    """Something that has HLO text: `jax.stages.Lowered` and `Compiled`, for example."""

    @property
    def as_text(self) -> Callable[..., str | None]: ...


def inspect_all(  # noqa: PLR0913 - each is an option of its own
    source: Openable | HasText,
    passes: str | Sequence[str] = ("summary",),
    *,
    module: str | None = None,
    stage: str | None = None,
    strict: bool = False,
    profile: str | None = None,
    mesh: str | None = None,
    custom_calls: str | None = None,
    phases: PhasesFrom = "graph",
    platform: PlatformName | None = None,
    name: str | None = None,
    also: Sequence[str] = (),
) -> Iterator[Report]:
    """A report for each module of `source`, in order.

    `source` is a path (compressed or not, a dump directory), `-`, an open file, HLO text itself, or what has `as_text()`, as
    JAX's `lowered` and `compiled`; with the extra `[xla]` also serialized HLO or StableHLO, as a file or as bytes. `passes` are
    names of commands, of which the first names the report. `also` are passes that add to it without tables of their own: their
    facts, findings and notes, and what tables of others show of them (`optimizer` gives `params` its roles, `cost` and
    `optimizer` give `summary` a table each). `module` is a regular expression that a module's name has to match; `stage`
    chooses another file of a dump directory; `profile` is the accelerator to compute times for; `mesh` names the axes of the
    device mesh (`data=4,model=2`); `custom_calls` is a YAML file with the work of custom calls. `phases` says what may tell the
    phase of an instruction: `names` alone, or also the `graph` of values where names leave it open; a first pass without the
    passes of its command, such as `summary` without `also`, asks names alone. `platform` (`cpu`, `gpu`, `tpu`) is what the
    program was compiled for, where its marks mislead, and `name` the instruction that `memory` is asked about. Raises
    `InputError` for what cannot be read or holds no such module, under `strict` a `ParseError` for what XLA's parser refuses,
    `UsageError` for an unknown pass or instruction and for a mesh or rules that cannot be read, and its subclass
    `MissingExtraError` when the extra `[xla]` is needed.
    """
    with Inspection(
        passes,
        module=module,
        stage=stage,
        strict=strict,
        profile=profile,
        mesh=mesh,
        custom_calls=custom_calls,
        phases=phases,
        platform=platform,
        name=name,
        also=also,
    ) as inspection:
        yield from inspection.reports(_openable(source))


def _openable(source: Openable | HasText) -> Openable:
    """The source, or its text. JAX's `Lowered` is asked for HLO instead of StableHLO, which would need jaxlib to read."""
    as_text = getattr(source, "as_text", None)
    if as_text is None:
        return cast("Openable", source)
    text = as_text(dialect="hlo") if "dialect" in signature(as_text).parameters else as_text()
    if not isinstance(text, str):
        raise InputError(f"as_text() of {type(source).__name__} gives no text")
    return text


class Inspection:
    """What is asked of each input: the arguments of `inspect_all` except the source, and `cost_model`, the one of Alpa's that
    the pass `alpa` shows: its `name`, and `alpha` and `beta` by mesh axes (`d0=1,d1=0.1`). One process of jaxlib serves the
    inputs that are read in one `with` block.
    """

    def __init__(  # noqa: PLR0913 - as inspect_all
        self,
        passes: str | Sequence[str],
        *,
        module: str | None = None,
        stage: str | None = None,
        strict: bool = False,
        profile: str | None = None,
        mesh: str | None = None,
        custom_calls: str | None = None,
        phases: PhasesFrom = "graph",
        cost_model: Mapping[str, str | None] | None = None,
        platform: PlatformName | None = None,
        name: str | None = None,
        also: Sequence[str] = (),
    ) -> None:
        self._arguments = {
            "passes": passes,
            "module": module,
            "stage": stage,
            "strict": strict,
            "profile": profile,
            "mesh": mesh,
            "custom_calls": custom_calls,
            "phases": phases,
            "cost_model": cost_model,
            "platform": platform,
            "name": name,
            "also": also,
        }
        names = (passes,) if isinstance(passes, str) else tuple(passes)
        if not names:
            raise UsageError("no pass is named")
        self._command = names[0]
        self._held = "a workload" if names == (WORKLOAD.name,) else "an HLO module"
        self._chosen = [find_pass(name) for name in names if name != WORKLOAD.name]
        asked = also if names == (MODULE_FACTS.name,) else names  # a list of modules shows what belongs to it
        self._about_workloads = [one for name in asked if (one := find_workload_pass(name)) is not None]
        self._also = frozenset(find_pass(name).name for name in also)
        self._running = _with_included([*self._chosen, *map(find_pass, also)])
        self._answering = list(dict.fromkeys((*self._running, MODULE_FACTS)))
        self._specs = tuple(spec for one in self._answering for spec in one.specs)
        self._wants = _wants(self._running, self._chosen)
        if phases not in get_args(PhasesFrom):
            raise UsageError(f"phases are told by {' or '.join(get_args(PhasesFrom))}, not by {phases!r}")
        left_out = self._chosen[0].also if self._chosen else ()
        self._phases: PhasesFrom = "names" if left_out and self._also.isdisjoint(left_out) else phases
        self._asks_phases = any(one.asks_phases for one in self._running)
        if strict and self._phases == "graph" and self._asks_phases:
            self._wants |= Wants(graph=True)  # what XLA printed is read once
        self._module = module
        self._pattern = _pattern(module)
        self._stage = stage
        self._strict = strict
        self._profile = _profile(profile)
        self._mesh = given_mesh(mesh) if mesh is not None else None
        self._platform = platform
        self._name = name
        self._user_rules = load_user_rules(custom_calls) if custom_calls is not None else NO_USER_RULES
        self._cost_model = given_cost_model(**cost_model) if cost_model is not None else None
        self._xla = Xla()
        self.watcher: Watcher | None = None
        self._unswept = 0
        self.passed_over: list[str] = []
        """Files of directories that hold no module: one line each."""
        if strict:
            self._xla.require("--strict needs")

    def __enter__(self) -> Inspection:
        return self

    def __exit__(self, *_: object) -> None:
        self._xla.close()

    def sources(self, argument: str) -> list[Path | str]:
        """What an argument of the command line names: standard input (`-`), a file, a directory, or all that a pattern fits."""
        return [argument] if argument in {"-", ""} else [Path(path) for path in expanded(argument)]

    def reports(self, source: Openable) -> Iterator[Report]:
        """A report for each module of `source` whose name matches. All of it is read before the first error is raised."""
        errors: list[HloInspectError] = []
        for one in self.read([source]):
            if isinstance(one, Report):
                yield one
            else:
                errors.append(one)
        if errors:
            raise errors[0]

    def read(self, sources: Iterable[Openable], jobs: int = 1) -> Iterator[Report | HloInspectError]:
        """A report for each module of each source whose name matches, and an error for each file and module that cannot be
        read: nothing stops the others. `jobs` processes read the files; the order is that of the sources.
        """
        files = _files(sources, self._stage)
        if jobs == 1:
            read = ((file, self._items(file)) for file in files)
            yield from self._of_sources(read)
            return
        first, waiting = tee(files)
        with Jobs(jobs, partial(_start_reading, self._arguments)) as processes:
            results = processes.in_order(first)
            yield from self._of_sources(
                (file, self._arrived(file, *arrived)) for file, arrived in zip(waiting, results, strict=False)
            )

    def _of_sources(self, read: Iterable[tuple[_File, Iterable[_Item]]]) -> Iterator[Report | HloInspectError]:
        """What was read of all files. Of a directory no error is made of a file that only may hold a module."""
        for _, group in groupby(read, key=lambda one: one[0].number):
            matched, failed = 0, False
            others: list[str] = []
            empty: list[InputError] = []
            file = None
            for file, items in group:
                for item in items:
                    if isinstance(item, Report):
                        matched += 1
                        yield item
                    elif isinstance(item, str):
                        others.append(item)
                    elif isinstance(item, NoModuleError) and file.may_hold:
                        empty.append(item)
                    else:
                        failed = True
                        yield item
            place = Location(file.of if file is not None else "")
            if not failed and empty and not matched and not others:
                yield InputError(f"is a directory of which no file holds {self._held} ({len(empty)} read)", place)
                continue
            self.passed_over += map(str, empty)
            if not failed and not matched:
                yield InputError(_no_such_module(self._module, others), place)

    def _arrived(self, file: _File, items: list[_Item], failure: Exception | None) -> Iterator[_Item]:
        """What another process made of a file, with what did not have to travel."""
        for item in items:
            if isinstance(item, Report):
                specs = item.specs or self._specs
                yield replace(item, facts=Facts(item.facts, specs), specs=specs)
            else:
                yield item
        if isinstance(failure, LostProcessError):
            yield InputError(str(failure), Location(str(file.source)))
        elif failure is not None:
            raise failure

    def _items(self, file: _File) -> Iterator[_Item]:
        """A report for each module of a file, its name where that does not match, and what cannot be read."""
        if isinstance(file.source, HloInspectError):
            yield file.source
            return
        try:
            yield from self._reports_of(open_source(file.source), file.note)
        except (InputError, MissingExtraError) as error:
            yield error

    def _sweep(self, read: int) -> None:
        """Before the analysis of a module of so many bytes: those of the modules before it refer to one another, and would wait
        for a full collection. One is made whenever these had some text, so that memory does not grow with the number of
        modules; an input of one module needs none.
        """
        if self._unswept > SWEEP_BYTES:
            gc.collect()
            self._unswept = 0
        self._unswept += read + MODULE_COST

    def _reports_of(self, source: Source, note: str | None) -> Iterator[_Item]:
        """As `_items`; raises where the source cannot be read on, or holds no module."""
        if self.watcher is not None:
            source.on_bytes = partial(self.watcher.reading, source.name)
        source.converter = self._xla.as_text
        if holds_workload(source):
            yield self._on_workload(source, note)
            return
        if self._command == MEMORY and holds_memory_file(source):
            yield report_on_memory_file(source)
            return
        if not self._chosen:
            raise NoModuleError(is_no_workload(source), Location(source.name))
        graphs = None
        if self._phases == "graph" and not self._wants.graph and self._asks_phases:
            graphs = SecondReading(source, self._wants, self._read_again)
        modules = self._xla.modules(source, self._wants, strict=self._strict)
        number = 0
        while True:
            collecting = gc.isenabled()
            with without_collection():
                found = next(modules, None)
                if found is None:
                    break
                number += 1
                if isinstance(found, ParseError):
                    item: _Item = found
                else:
                    module, reading_note = found
                    read_graph = partial(graphs.module, module, number) if graphs is not None else None
                    noted = [one for one in (note, source.note, reading_note, *module.mends) if one is not None]
                    if collecting:
                        self._sweep(module.bytes)
                    item = self._report_on(module, noted, read_graph)
                    if graphs is not None:
                        graphs.forget(module)
            yield item
        if not number:
            yield self._without_module(source)

    def _without_module(self, source: Source) -> Report:
        """The report on a log that only says that memory did not suffice, where that is asked for."""
        found = report_on_log(source) if source.memory_lines else None
        if found is None:
            what = what_text_looks_like(source.start) or what_log_holds(source.measured)
            raise NoModuleError(f"holds no HLO module{what}", Location(source.name))
        if self._command != MEMORY:
            message = "holds no HLO module, but XLA's report of memory that did not suffice: `hlo-inspect memory` shows it"
            raise NoModuleError(message, Location(source.name))
        return found

    def _on_workload(self, source: Source, note: str | None) -> Report | str:
        """The report of a simulator's workload file; its policy where that is not what `module` names. An error where none of
        the passes is about such files.
        """
        if not self._about_workloads:
            message = f"is a workload file of a network simulator, of which {self._command} says nothing"
            raise NoModuleError(f"{message}: `hlo-inspect workload` reads it", Location(source.name))
        with without_collection():
            workload = read_workload(source)
            policy = workload.header.policy
            if self._pattern is not None and self._pattern.search(policy) is None:
                return policy
            notes = [one for one in (note, source.note) if one is not None]
            report = report_on_workload(workload, self._command, self._about_workloads, notes)
        answered = {spec.name for spec in report.specs}
        return replace(report, unanswered=tuple(spec for spec in self._specs if spec.name not in answered))

    def _read_again(self, source: Source, wants: Wants) -> Iterator[Module]:
        """The modules of a source that was read without `--strict`."""
        return (one[0] for one in self._xla.modules(source, wants, strict=False) if not isinstance(one, ParseError))

    def _report_on(self, module: Module, notes: Sequence[str], read_graph: Callable[[], Module | None] | None) -> Report | str:
        """The report, or the name of a module that is not named as asked. `read_graph` reads it with its graph."""
        if self._pattern is not None and self._pattern.search(module.name) is None:
            return module.name
        if self.watcher is not None:
            self.watcher.analysing(module.name)
        context = Context(
            module,
            self._profile,
            self._mesh,
            self._also,
            self._user_rules,
            self._phases,
            read_graph,
            self._cost_model,
            self._platform,
            self._name,
        )
        return self._report(context, notes)

    def _report(self, context: Context, notes: Sequence[str]) -> Report:
        """The report of one module: the facts of all passes that run, the tables of those that were chosen."""
        chosen = self._chosen
        module = context.module
        sections = {one.name: one.run(context) for one in self._answering}
        facts = {name: value for section in sections.values() for name, value in section.facts.items()}
        facts = facts_of_part(facts) if module.quoted_lines else facts
        tables = (
            *(table for one in dict.fromkeys(chosen) for table in sections[one.name].tables),
            *log_tables(module),
        )
        rules = [rule for rule in RULES if not sections.keys().isdisjoint(rule.passes)]
        findings = [finding for rule in rules for finding in rule.check(context)]
        findings += reading_findings(context)  # last: an analysis can find that attributes make no sense
        findings = most_severe_first(findings)
        headline = tuple(row for one in dict.fromkeys(chosen) for row in sections[one.name].headline)
        report = Report(
            command=chosen[0].name,
            input=Input(module.path, module.first_line, module.lines, module.bytes),
            facts=Facts({name: facts[name] for name in sorted(facts, key=_behind_the_module)}, self._specs),
            tables=tables,
            findings=tuple(findings),
            notes=tuple(dict.fromkeys((*notes, *(line for section in sections.values() for line in section.notes)))),
            profile=context.profile.name if context.profile is not None else None,
            specs=self._specs,
            passages=tuple(passage for one in dict.fromkeys(chosen) for passage in sections[one.name].passages),
            headline=(*truncation_rows(findings), *headline, *([findings_row(findings)] if headline else [])),
        )
        return of_part(report, module.quoted_lines) if module.quoted_lines else report


@contextmanager
def without_collection() -> Iterator[None]:
    """Reading makes many small objects and no cycles: the garbage collector would visit them over and over for nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():  # objects that the caller has frozen have to stay frozen
                gc.freeze()  # and back: what was read is in the oldest generation then, which quick collections leave alone
                gc.unfreeze()
            gc.enable()


def _behind_the_module(fact: str) -> bool:
    return not fact.startswith("module.")


def _profile(name_or_path: str | None) -> HardwareProfile | None:
    if name_or_path is None:
        return None
    from hlo_inspect.analysis.hardware import load_profile

    return load_profile(name_or_path)


def inspect(  # noqa: PLR0913 - as inspect_all
    source: Openable | HasText,
    passes: str | Sequence[str] = ("summary",),
    *,
    module: str | None = None,
    stage: str | None = None,
    strict: bool = False,
    profile: str | None = None,
    mesh: str | None = None,
    custom_calls: str | None = None,
    phases: PhasesFrom = "graph",
    platform: PlatformName | None = None,
    name: str | None = None,
    also: Sequence[str] = (),
) -> Report:
    """The report of the only module of `source`, or of the one that `module` names; arguments and errors as `inspect_all`
    has them. Of a module with quoted lines around it, it is the module's.
    """
    reports = list(
        inspect_all(
            source,
            passes,
            module=module,
            stage=stage,
            strict=strict,
            profile=profile,
            mesh=mesh,
            custom_calls=custom_calls,
            phases=phases,
            platform=platform,
            name=name,
            also=also,
        )
    )
    whole = [report for report in reports if not is_part(report)]
    if len(whole) == 1 < len(reports):
        parts = len(reports) - 1
        note = f"{parts} part{'s' if parts > 1 else ''} of modules stand beside this module: inspect_all gives all"
        return replace(whole[0], notes=(*whole[0].notes, note))
    if len(reports) > 1:
        names = ", ".join(str(report.facts.get("module.name", report.title)) for report in reports[:5])
        raise UsageError(f"{len(reports)} modules ({names}{', …' if len(reports) > 5 else ''}): name one with module=")
    return reports[0]


def _pattern(module: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(module) if module is not None else None
    except re.error as error:
        raise UsageError(f"{module!r} is not a regular expression: {error}") from error


@dataclass(frozen=True, slots=True)
class _File:
    """One file to read, or why there is none: the `number` of the source it is `of`, and a note where it is not what one would
    expect. One that only `may_hold` a module may hold none.
    """

    number: int
    of: str
    source: Openable | HloInspectError
    note: str | None = None
    may_hold: bool = False


_Item = Report | str | HloInspectError


def _files(sources: Iterable[Openable], stage: str | None) -> Iterator[_File]:
    """The files of all sources, in order: of a directory those that hold its modules."""
    for number, source in enumerate(sources):
        if not is_directory(source):
            yield _File(number, open_source(source).name, source)
            continue
        of = str(source)
        try:
            for file in dump_files(source, stage):
                yield _File(number, of, file.path, file.note, file.may_hold)
        except (InputError, UsageError) as error:
            yield _File(number, of, error)


def _start_reading(arguments: Mapping[str, Any]) -> Callable[[_File], Iterator[_Item]]:
    """What a process does with each file. The specifications of facts are the same for all modules, and stay behind."""
    inspection = Inspection(**arguments)

    def read(file: _File) -> Iterator[_Item]:
        for item in inspection._items(file):
            if isinstance(item, Report):
                yield replace(item, facts=dict(item.facts), specs=() if item.specs is inspection._specs else item.specs)
            else:
                yield item

    return read


def _no_such_module(pattern: str | None, names: Iterable[str]) -> str:
    """What is wrong where no module is named as the pattern says."""
    names = list(dict.fromkeys(names))
    listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return f"holds no module that is named like {pattern!r}; there are: {listed}{did_you_mean(pattern or '', names)}"


class NoModuleError(InputError):
    """A text that can be read and holds no HLO module."""


def _with_included(passes: Iterable[Pass]) -> list[Pass]:
    """The passes, each followed by those that belong to its answer; none twice."""
    return list(dict.fromkeys(part for one in passes for part in (one, *map(find_pass, one.includes))))


def _wants(running: Iterable[Pass], chosen: Iterable[Pass]) -> Wants:
    """What the facts of all passes and the tables of the chosen ones need of a module."""
    wants = MODULE_FACTS.wants
    for one in running:
        wants |= one.wants
    for one in chosen:
        wants |= one.table_wants
    return wants
