"""From an input to reports: what is read, which passes run on it, and in which order their answers come."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.mesh_names import given_mesh
from hlo_inspect.errors import HloInspectError, InputError, Location, MissingExtraError, UsageError
from hlo_inspect.hlo.dump_directory import dump_files, is_directory
from hlo_inspect.hlo.foreign_text import what_text_looks_like
from hlo_inspect.hlo.module import Wants
from hlo_inspect.hlo.source import Openable, Source, open_source
from hlo_inspect.passes import READING, find_pass
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import FactSpec, Input, Report, Section, Value, most_severe_first
from hlo_inspect.xla import Xla

if TYPE_CHECKING:
    from hlo_inspect.analysis.hardware import HardwareProfile


def inspect_all(
    source: Openable,
    passes: str | Sequence[str] = ("summary",),
    *,
    module: str | None = None,
    stage: str | None = None,
    strict: bool = False,
    profile: str | None = None,
    mesh: str | None = None,
    also: Sequence[str] = (),
) -> Iterator[Report]:
    """A report for each module of `source`, in order.

    `source` is a path (compressed or not, a dump directory), `-`, an open file, or HLO text itself; with the extra `[xla]`
    also serialized HLO or StableHLO, as a file or as bytes. `passes` are command names; the first names the report; `also` are
    others of which the facts, findings and notes are told, but no tables of their own. `module` is a regular expression that a
    module's name has to match; `stage` chooses another file of a dump directory; `profile` is the accelerator that times are
    told for; `mesh` names the axes of the device mesh (`data=4,model=2`). Raises `InputError` for what cannot be read or holds
    no such module, under `strict` a `ParseError` for what XLA's parser refuses, `UsageError` for an unknown pass or what is no
    mesh, and its subclass `MissingExtraError` when the extra `[xla]` is needed.
    """
    with Inspection(passes, module=module, stage=stage, strict=strict, profile=profile, mesh=mesh, also=also) as inspection:
        yield from inspection.reports(source)


class Inspection:
    """What is asked of each input: the arguments of `inspect_all` except the source. One process of jaxlib serves the inputs
    that are read in one `with` block.
    """

    def __init__(
        self,
        passes: str | Sequence[str],
        *,
        module: str | None = None,
        stage: str | None = None,
        strict: bool = False,
        profile: str | None = None,
        mesh: str | None = None,
        also: Sequence[str] = (),
    ) -> None:
        self._chosen = [find_pass(name) for name in ((passes,) if isinstance(passes, str) else passes)]
        if not self._chosen:
            raise UsageError("no pass is named")
        self._others = [find_pass(name) for name in also]
        self._wants = _wants([*self._chosen, *self._others])
        self._module = module
        self._pattern = _pattern(module)
        self._stage = stage
        self._strict = strict
        self._profile = _profile(profile)
        self._mesh = given_mesh(mesh) if mesh is not None else None
        self._xla = Xla()
        if strict:
            self._xla.require("--strict needs")

    def __enter__(self) -> Inspection:
        return self

    def __exit__(self, *_: object) -> None:
        self._xla.close()

    def reports(self, source: Openable) -> Iterator[Report]:
        """A report for each module of `source` whose name matches. Of a dump directory all files are read before the first
        error is raised.
        """
        seen = matched = 0
        name = ""
        unread: HloInspectError | None = None
        for one, note in _sources(source, self._stage):
            name = one.name
            try:
                for report in self._reports_of(one, note):
                    seen += 1
                    if report is not None:
                        matched += 1
                        yield report
            except (InputError, MissingExtraError) as error:
                unread = unread or error
        if unread is not None:
            raise unread
        if not matched:
            raise InputError(f"holds no module that is named like {self._module!r}, but {seen} others", Location(name))

    def _reports_of(self, source: Source, note: str | None) -> Iterator[Report | None]:
        """A report for each module of a file, `None` where its name does not match. `InputError` for a file without modules."""
        modules = self._xla.modules(source, self._wants, strict=self._strict)
        holds_module = False
        while True:
            with without_collection():
                found, reading_note = next(modules, (None, None))
                if found is None:
                    break
                holds_module = True
                wanted = self._pattern is None or self._pattern.search(found.name) is not None
                notes = [one for one in (note, source.note, reading_note) if one is not None]
                context = Context(found, self._profile, self._mesh)
                report = _report(context, self._chosen, self._others, notes) if wanted else None
            yield report
        if not holds_module:
            raise InputError(f"holds no HLO module{what_text_looks_like(source.start)}", Location(source.name))


@contextmanager
def without_collection() -> Iterator[None]:
    """Reading makes many small objects and no cycles: the garbage collector would only look at them over and over."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():  # else they are somebody's that have to stay frozen
                gc.freeze()  # and back: what was read is old then, and not looked at by the next quick collection
                gc.unfreeze()
            gc.enable()


def _profile(name_or_path: str | None) -> HardwareProfile | None:
    if name_or_path is None:
        return None
    from hlo_inspect.analysis.hardware import load_profile

    return load_profile(name_or_path)


def inspect(
    source: Openable,
    passes: str | Sequence[str] = ("summary",),
    *,
    module: str | None = None,
    stage: str | None = None,
    strict: bool = False,
    profile: str | None = None,
    mesh: str | None = None,
    also: Sequence[str] = (),
) -> Report:
    """The report of the only module of `source`, or of the one that `module` names; arguments and errors as `inspect_all`
    has them.
    """
    reports = list(
        inspect_all(source, passes, module=module, stage=stage, strict=strict, profile=profile, mesh=mesh, also=also)
    )
    if len(reports) > 1:
        names = ", ".join(str(report.facts["module.name"]) for report in reports[:5])
        raise UsageError(f"{len(reports)} modules ({names}{', …' if len(reports) > 5 else ''}): name one with module=")
    return reports[0]


def _pattern(module: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(module) if module is not None else None
    except re.error as error:
        raise UsageError(f"{module!r} is no regular expression: {error}") from error


def _sources(source: Openable, stage: str | None) -> Iterator[tuple[Source, str | None]]:
    """The inputs to read, each with a note where it is not what one would expect."""
    if is_directory(source):
        for path, note in dump_files(source, stage):
            yield open_source(path), note
    else:
        yield open_source(source), None


def _included(one: Pass) -> tuple[Pass, ...]:
    return tuple(find_pass(name) for name in one.includes)


def _wants(chosen: Sequence[Pass]) -> Wants:
    wants = READING.wants
    for one in chosen:
        wants |= one.wants
        for other in _included(one):
            wants |= other.wants
    return wants


def _report(context: Context, chosen: Sequence[Pass], others: Sequence[Pass], notes: list[str]) -> Report:
    module = context.module
    running: dict[str, Pass] = {}
    for one in (*chosen, *others):
        running |= {part.name: part for part in (one, *_included(one))}
    section = Section(notes=notes)
    specs: list[FactSpec] = []
    with_tables = {one.name for one in chosen}
    for one in (*running.values(), READING):  # last: other passes may find faults in the text
        facts = one.facts(context)
        section.facts |= facts
        section.tables += one.tables(context) if one.name in with_tables else []
        section.findings += one.findings(context)
        section.notes += one.notes(context, [name for name, value in facts.items() if value is None])
        specs += one.specs
    return Report(
        command=chosen[0].name,
        input=Input(module.path, module.first_line, module.lines, module.bytes),
        facts=_in_order(section.facts),
        tables=tuple(section.tables),
        findings=tuple(most_severe_first(dict.fromkeys(section.findings))),  # two passes may find the same
        notes=tuple(section.notes),
        profile=context.profile.name if context.profile is not None else None,
        specs=tuple(specs),
    )


def _in_order(facts: dict[str, Value]) -> dict[str, Value]:
    """The module's own facts first, the others as their passes give them."""
    return {name: facts[name] for name in sorted(facts, key=lambda name: not name.startswith("module."))}
