"""Compare two modules: same program or not, the facts that differ, and the changes that explain them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.compare.changes import CHANGES, ModuleChange, format_change, headline_changes
from hlo_inspect.compare.code_changes import CODE_FILES, code_changes, code_headline
from hlo_inspect.compare.compared_module import ComparedModule
from hlo_inspect.compare.device_permutation import Permutation, find_permutation
from hlo_inspect.compare.explanation import Explanation, sites
from hlo_inspect.compare.fact_changes import FACT_TABLES, FactChange, axes_table, fact_changes, peak_table, scopes_table
from hlo_inspect.compare.pairing import surplus
from hlo_inspect.compare.setting_changes import FLAG_CHANGES, compare_settings
from hlo_inspect.findings.reading_problems import is_partial_module, truncation
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, FactSpec, Finding, HeadlineRow, Input, Parts, Report, sentence
from hlo_inspect.report.table import Column, Table, Value, number_of
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.version import HASHES

COMMAND = "diff"
SAME, ANOTHER_SCHEDULE, DIFFERENT = "same program", "same program, another schedule", "different programs"
PERMUTED = "same program on permuted devices"
SAME_FACTS, DIFFERENT_FACTS = "same facts", "different facts"
ONLY_IN_OLD, ONLY_IN_NEW = "only in OLD", "only in NEW"

SPECS = (
    FactSpec("diff.same_program", "bool", "programs equal up to numbering, metadata and the order of independent lines"),
    FactSpec("diff.same_schedule", "bool", "the same program with the same order of lines"),
    FactSpec("diff.device_permutation", "text", "device of NEW for each of OLD, if the programs differ in devices only"),
    FactSpec("diff.fact_count", "count", "facts that differ"),
    FactSpec("diff.change_count", "count", "instructions, parameters and settings added, removed or changed"),
)
_HEADLINE_FACTS, _LOOKED_THROUGH, _NOTABLE = 3, 24, 0.01
_MOST_MOVED = 16
_WORK = frozenset({"cost.executed_flops", "cost.executed_bytes_accessed"})
"""Facts that differ if the work of a scope does."""


_FACTS = TableSpec("facts", "Facts that differ", page_rows=15).with_columns(
    Column("fact", width=36, get=attrgetter("name")),
    Column("old", unit_of="unit"),
    Column("new", unit_of="unit"),
    Column("difference", unit_of="unit", optional=True, signed=True),
    Column("percent", "share", optional=True, signed=True, get=attrgetter("share")),
    Column("unit", detail=9),
)


@dataclass(frozen=True, slots=True)
class ModuleComparison:
    """Two modules, or a single one that the other side lacks; the report on their differences, and the verdict."""

    old: ComparedModule | None
    new: ComparedModule | None
    report: Report
    verdict: str
    have_other_flags: bool | None = None
    """True if flags or options differ, None if that is unknown."""

    @property
    def is_different(self) -> bool:
        """True if they differ in more than numbering, metadata and order."""
        return self.verdict not in (SAME, SAME_FACTS)


def unpaired(module: ComparedModule, verdict: str) -> ModuleComparison:
    """Return the comparison of a module without a mate, which is `ONLY_IN_OLD` or `ONLY_IN_NEW`."""
    report, is_old = module.report, verdict == ONLY_IN_OLD
    specs = (*report.module_specs, *SPECS)
    words = f"{verdict}: {'NEW' if is_old else 'OLD'} has no module to compare with"
    alone = Report(
        command=COMMAND,
        input=report.input,
        facts=Facts(report.module_facts, specs),
        profile=report.profile,
        specs=specs,
        title=report.title,
        headline=(HeadlineRow("", (words,), "warning"),),
    )
    return ModuleComparison(module if is_old else None, None if is_old else module, alone, verdict)


def compare(old: ComparedModule, new: ComparedModule) -> ModuleComparison:
    """Compare two modules."""
    facts = fact_changes(old.report, new.report)
    verdict = _verdict(old, new, facts)
    code = code_changes(old.context, new.context)
    settings = compare_settings(old.settings, new.settings, list(_other_key_parts(old, new)))
    explanation = _explanation(old, new)
    changes = [] if verdict in (SAME, ANOTHER_SCHEDULE) else explanation.changes()
    measured = _measured(old, new, explanation)
    permutation = _permutation(old, new, changes) if verdict == DIFFERENT else None
    if permutation is not None:
        verdict = PERMUTED
    reads_texts = verdict not in (SAME_FACTS, DIFFERENT_FACTS)
    own: dict[str, Value] = {
        "diff.same_program": verdict in (SAME, ANOTHER_SCHEDULE) if reads_texts else None,
        "diff.same_schedule": verdict == SAME if reads_texts else None,
        "diff.device_permutation": ",".join(map(str, permutation)) if permutation is not None else None,
        "diff.fact_count": len(facts),
        "diff.change_count": sites(changes),
    }
    source, target = old.report.input, new.report.input
    specs = (*new.report.module_specs, *measured.specs, *SPECS)
    report = Report(
        command=COMMAND,
        input=Input(f"{source.path} -> {target.path}", target.first_line, target.lines, target.bytes, "NEW: "),
        facts=Facts({**new.report.module_facts, **measured.facts, **own}, specs),
        tables=(
            *measured.tables,
            _FACTS.of(facts, on_page=bool(facts)),
            CHANGES.of(changes, on_page=bool(changes)),
            settings.table(),
            CODE_FILES.of(code, on_page=bool(code)),
            *_more_tables(old, new, facts),
        ),
        findings=tuple(surplus(new.report.findings, map(_finding_key, old.report.findings), _finding_key)),
        notes=(*_notes(old, new, verdict, changes), *settings.notes()),
        profile=new.report.profile,
        specs=specs,
        title=new.report.title,
        headline=(
            *_warnings(old.report, new.report),
            HeadlineRow("", (verdict,)),
            *(_mesh_row(old, new) if verdict != PERMUTED else ()),
            *(code_headline(code) if verdict in (SAME, ANOTHER_SCHEDULE) else ()),
            *measured.headline,
            *(_step_row(new.report, facts) if verdict != PERMUTED else ()),
            *settings.headline(is_same=verdict in (SAME, ANOTHER_SCHEDULE)),
            *_headline(permutation, facts, changes),
        ),
    )
    return ModuleComparison(old, new, report, verdict, settings.differ)


def _more_tables(old: ComparedModule, new: ComparedModule, facts: Sequence[FactChange]) -> Iterator[Table]:
    """Yield the bytes sent over each axis, the arrays at the peak, and the work of scopes, if these differ."""
    names = {fact.name for fact in facts}
    if any(name.startswith("collectives.axis.") and name.endswith(".executed_wire_bytes") for name in names):
        yield axes_table(old.report, new.report)
    if "memory.peak_bytes" in names and old.context is not None and new.context is not None:
        yield peak_table(old.context.live_arrays, new.context.live_arrays)
    if names & _WORK and old.context is not None and new.context is not None:
        yield scopes_table(old.context, new.context)


def _verdict(old: ComparedModule, new: ComparedModule, changes: Sequence[FactChange]) -> str:
    if not (old.is_whole and new.is_whole):
        return DIFFERENT_FACTS if changes else SAME_FACTS
    if any(before != after for before, after in zip(old.identities(), new.identities(), strict=True)):
        return DIFFERENT
    if _have_other_constants(old, new):
        return DIFFERENT
    return SAME if old.schedule == new.schedule else ANOTHER_SCHEDULE


def _other_key_parts(old: ComparedModule, new: ComparedModule) -> Iterator[str]:
    """Yield the parts of a compilation cache's key that differ besides program, flags and options."""
    if old.name != new.name:
        yield f"the module's name ({old.name}, {new.name})"
    stablehlo = [side.context.stablehlo if side.context is not None else None for side in (old, new)]
    if stablehlo[0] is not None and stablehlo[1] is not None and stablehlo[0].weak_values != stablehlo[1].weak_values:
        yield "weak types (module.mlir)"


def _have_other_constants(old: ComparedModule, new: ComparedModule) -> bool:
    """Return True if the values of elided constants differ; False if they are unknown."""
    constants = [side.context.elided_constants if side.context is not None else None for side in (old, new)]
    return None not in constants and constants[0] != constants[1]


def _explanation(old: ComparedModule, new: ComparedModule) -> Explanation:
    """Return the explanation of the difference, with instructions if both texts were read."""
    contexts = None
    if old.context is not None and new.context is not None and old.is_whole and new.is_whole:
        contexts = (old.context, new.context)
    return Explanation(old.report, new.report, contexts)


class _MeasuredParts(NamedTuple):
    """The parts of a report on two recorded profiles; empty for other inputs. The facts are those of NEW."""

    facts: Mapping[str, Value] = {}
    specs: tuple[FactSpec, ...] = ()
    tables: tuple[Table, ...] = ()
    headline: tuple[HeadlineRow, ...] = ()


def _measured(old: ComparedModule, new: ComparedModule, explanation: Explanation) -> _MeasuredParts:
    """Return the changes of measured times, if both modules ran in a recorded profile."""
    before, after = old.measured, new.measured
    if before is None or after is None:
        return _MeasuredParts()
    from hlo_inspect.compare.measured_changes import MEASURED_CHANGES, measured_changes, measured_headline
    from hlo_inspect.passes.measured import Measured

    changes = measured_changes(before, after, explanation.lines)
    return _MeasuredParts(
        {spec.name: new.report.facts[spec.name] for spec in Measured.specs},
        Measured.specs,
        (MEASURED_CHANGES.of(changes, on_page=bool(changes)),),
        (measured_headline(before, after, changes),),
    )


def _permutation(old: ComparedModule, new: ComparedModule, changes: Sequence[ModuleChange]) -> Permutation | None:
    """Return the permutation of devices; it is not sought if things are new or gone, or the optimizer is another one."""
    if old.context is None or new.context is None:
        return None
    if any(change.what != "changed" or change.area == "optimizer" for change in changes):
        return None
    return find_permutation(old.context, new.context)


def _warnings(old: Report, new: Report) -> Iterator[HeadlineRow]:
    """Yield the reasons why two modules cannot be compared as a whole."""
    for name, report in (("OLD", old), ("NEW", new)):
        cut = truncation(report)
        if cut is not None:
            inside = f" inside {cut.subject}" if cut.subject else ""
            what = "a partial module" if is_partial_module(cut) else f"cut off{inside}"
            yield HeadlineRow("", (f"{name} is {what}; only the printed part is compared",), "warning")
    sides = [report.facts.get("module.is_scheduled") for report in (old, new)]
    if None not in sides and sides[0] != sides[1]:
        scheduled, other = ("OLD", "NEW") if sides[0] else ("NEW", "OLD")
        words = f"{scheduled} is scheduled and {other} is not: they come from different stages of the compiler"
        yield HeadlineRow("", (words,), "warning")


def _notes(old: ComparedModule, new: ComparedModule, verdict: str, changes: Sequence[ModuleChange]) -> Iterator[str]:
    """Yield the notes of a comparison."""
    for name, side in (("OLD", old), ("NEW", new)):
        yield from (f"{name}: {note}" for note in side.report.notes if note.startswith(HASHES))
    saved = [name for name, side in (("OLD", old), ("NEW", new)) if side.context is None]
    if saved:
        yield f"{' and '.join(saved)}: saved reports and workload files are compared by facts and tables, not by instructions"
    elif verdict == DIFFERENT and _have_other_constants(old, new):
        yield "the values of constants differ that the texts elide as {...}: the module.mlir files have them"
    elif verdict == DIFFERENT and not changes:
        yield "no instruction differs; the order of operands or a computation that does not run differs"


def _mesh_row(old: ComparedModule, new: ComparedModule) -> Iterator[HeadlineRow]:
    """Yield the meshes if their sizes differ: shardings in the names of the axes then mean other parts of an array."""
    sizes = [side.report.facts.get("mesh.shape") for side in (old, new)]
    meshes = _mesh_text(old), _mesh_text(new)
    if sizes[0] != sizes[1] and None not in meshes:
        yield HeadlineRow("mesh", (f"{meshes[0]} → {meshes[1]}",))


def _mesh_text(module: ComparedModule) -> str | None:
    shape = module.report.facts.get("mesh.shape")
    mesh = module.context.mesh if module.context is not None else None
    if mesh is None or not mesh.shape:
        return str(shape) if shape is not None else None
    return " ".join(f"{name}={size}" for name, size in zip(mesh.names, mesh.shape, strict=False))


def _headline(
    permutation: Permutation | None, facts: Sequence[FactChange], changes: Sequence[ModuleChange]
) -> Iterator[HeadlineRow]:
    """Yield the most important facts beside those of the step, and the changes that explain them."""
    if permutation is not None:
        moved = [f"{device} → {image}" for device, image in enumerate(permutation) if device != image]
        more = f" and {len(moved) - _MOST_MOVED} more" if len(moved) > _MOST_MOVED else ""
        yield HeadlineRow("devices", (f"OLD → NEW: {', '.join(moved[:_MOST_MOVED])}{more}",))
    others = [fact for fact in facts if not any(fact.name in names for names in _OF_STEP.values())]
    if others:
        yield HeadlineRow("facts", tuple(_first_facts(others)))
    shown = headline_changes(changes)
    for change in shown:
        yield HeadlineRow(change.area, tuple(format_change(change)))
    if len(changes) > len(shown):
        yield HeadlineRow("", (Amount(len(changes) - len(shown), "count", "more change"),))


_OF_STEP = {
    "memory": ("memory.needed_bytes", "memory.peak_bytes"),
    "time": ("time.estimate_step_s", "time.step_s"),
    "sent": ("collectives.executed_wire_bytes",),
}
"""Facts of the step that come first, the better ones before others."""


def _step_row(report: Report, facts: Sequence[FactChange]) -> Iterator[HeadlineRow]:
    """Yield what changed for the step, as far as NEW, which has the `report`, knows it; nothing if no fact differs."""
    changed = {fact.name: fact for fact in facts}
    parts: list[str | Amount] = []
    for word, names in _OF_STEP.items():
        name = next((name for name in names if name in changed or report.facts.get(name) is not None), None)
        if name is not None:
            parts.append(f"; {word} " if parts else f"{word} ")
            parts += _change_words(changed[name]) if name in changed else ("unchanged",)
    if facts and parts:
        yield HeadlineRow("step", tuple(parts))


def _change_words(fact: FactChange) -> Parts:
    yield from sentence("{} → {}", Amount(fact.old, fact.unit), Amount(fact.new, fact.unit))
    if fact.share is not None:
        yield from sentence(" (+{})" if fact.share > 0 else " ({})", Amount(fact.share, "share"))


def _first_facts(facts: Sequence[FactChange]) -> Parts:
    """Format the most important facts in one line, first those that changed by a percent or more.

    Of facts with nearly the same values, such as needed memory and its peak, the first is shown.
    """
    ordered = sorted(facts, key=lambda fact: fact.share is not None and abs(fact.share) < _NOTABLE)
    chosen: list[FactChange] = []
    for fact in ordered[:_LOOKED_THROUGH]:
        if len(chosen) < _HEADLINE_FACTS and not any(_says_the_same(fact, other) for other in chosen):
            chosen.append(fact)
    for number, fact in enumerate(chosen):
        yield f"; {fact.name} " if number else f"{fact.name} "
        yield from _change_words(fact)
    if len(facts) > len(chosen):
        yield f"; {len(facts) - len(chosen):,} more"


def _says_the_same(fact: FactChange, other: FactChange) -> bool:
    """Return True if two facts have nearly the same values before and after."""
    if fact.unit != other.unit or fact.difference is None or other.difference is None:
        return (fact.unit, fact.old, fact.new) == (other.unit, other.old, other.new)
    pairs = ((fact.old, other.old), (fact.new, other.new))
    return all(math.isclose(float(first or 0), float(second or 0), rel_tol=_NOTABLE) for first, second in pairs)


def _finding_key(finding: Finding) -> Hashable:
    """Return what equal findings of two modules share, whatever the numbers in their messages."""
    return finding.rule, "".join("0" if char.isdigit() else char for char in finding.message)


# -- many pairs in one report ------------------------------------------------------------------------------------------


class _ListedPair(NamedTuple):
    """A row of the table `pairs`."""

    name: Value
    verdict: str
    facts: Value
    changes: Value
    findings: int
    path: str


_PAIRS = TableSpec("pairs", "Pairs of modules", page_rows=0).with_columns(
    Column("name"),
    Column("verdict", width=24),
    Column("facts", "count", optional=True),
    Column("changes", "count", optional=True),
    Column("findings", "count"),
    Column("path", detail=1, width=24),
)
TABLES = (_FACTS, CHANGES, FLAG_CHANGES, CODE_FILES, *FACT_TABLES, _PAIRS)


class PairList:
    """The table `pairs`. Each comparison is added as a row, so that comparisons need not be kept."""

    def __init__(self) -> None:
        self._pairs: list[_ListedPair] = []
        self._lines = self._bytes = 0

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, comparison: ModuleComparison) -> None:
        report = comparison.report
        counts = (report.facts.get("diff.fact_count"), report.facts.get("diff.change_count"))
        self._pairs.append(
            _ListedPair(report.module_name, comparison.verdict, *counts, len(report.findings), report.input.place)
        )
        self._lines += report.input.lines
        self._bytes += report.input.bytes

    def report(self, path: str) -> Report:
        """Return the report on the pairs in the order in which they were added; `path` names the inputs."""
        return Report(
            COMMAND,
            Input(path, first_line=1, lines=self._lines, bytes=self._bytes),
            facts={},
            tables=(_PAIRS.of(self._pairs),),
            title=f"{number_of(len(self), 'pair')} of modules",
        )
