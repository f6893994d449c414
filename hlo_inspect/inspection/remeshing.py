"""A program compiled for other meshes, beside its own mesh compiled in the same way: what changes, or a row for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from hlo_inspect.compare.remesh_report import MeshOutcome, refused_report, remesh_report, remesh_table
from hlo_inspect.compiler.meshes import RefusedMeshError, mesh_text, wanted_meshes
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.inspection.compilations import Compilations, CompiledMesh, facts_of
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request


def compile_for_meshes(
    program: str, compilations: Compilations, meshes: Sequence[str], request: Request, watch: Callable[[str], None]
) -> tuple[Report, bool]:
    """Compile the program for its own mesh and those that the user names. Return the report, and True if none compiles."""
    description = compilations.describe()
    try:
        own = description.mesh
    except RefusedMeshError as error:
        refused = MeshOutcome(meshes[0], 0, None, str(error))
        return refused_report(program, refused, [compilations.made_by]), True
    others = wanted_meshes(meshes, own)
    listed = [own, *(mesh for mesh in others if mesh != own)]
    outcomes = list(compilations.for_meshes(description, listed, request, watch))
    notes = [compilations.made_by, *_other_than_the_dump(compilations, outcomes[0], request)]
    shown = [_shown(outcome) for outcome in (outcomes if own in others else outcomes[1:])]
    if len(others) > 1 or others == [own]:
        return remesh_report(program, shown, notes), all(outcome.facts is None for outcome in shown)
    new = outcomes[-1]
    if new.compiled is None or outcomes[0].compiled is None:
        return refused_report(program, _shown(new if new.compiled is None else outcomes[0]), notes), True
    return _difference(program, outcomes[0], new, notes, request), False


def _difference(program: str, old: CompiledMesh, new: CompiledMesh, notes: Sequence[str], request: Request) -> Report:
    """Return what changes from one mesh to another, with a row for both."""
    comparisons = Comparisons(replace(request, passes=(), module=None, stage=None, jobs=1))
    sides = [(outcome.compiled.text, mesh_text(outcome.mesh)) for outcome in (old, new) if outcome.compiled is not None]
    (comparison,) = comparisons.compare(*(ComparedInput(str(text), mesh=mesh) for text, mesh in sides))
    report, facts = comparison.report, new.report or comparison.report
    specs = tuple(dict.fromkeys((*facts.specs, *report.specs)))
    return replace(
        report,
        command="remesh",
        facts=Facts({**facts.facts, **report.facts}, specs),
        specs=specs,
        input=report.input._replace(path=program, counted=f"{sides[1][1]}: "),
        tables=(remesh_table([_shown(old), _shown(new)]), *report.tables),
        notes=(*notes, *report.notes),
    )


def _other_than_the_dump(compilations: Compilations, own: CompiledMesh, request: Request) -> list[str]:
    """Say which facts of the dump's own text differ from those of its mesh compiled here; nothing if none does."""
    text = compilations.program.module_file
    if text is None or own.report is None or compilations.is_for_another_platform:
        return []
    dumped, here = facts_of(text, mesh_text(own.mesh), request), own.report
    pairs = {name: (dumped.facts.get(name), value) for name, value in here.facts.items()}
    names = [name for name, pair in pairs.items() if None not in pair and pair[0] != pair[1]]
    if not names:
        return []
    first = f"{names[0]} {pairs[names[0]][0]} in the dump, {pairs[names[0]][1]} here"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [f"the dump's own mesh compiled here differs from its text, as by another compiler or other flags: {first}{more}"]


def _shown(outcome: CompiledMesh) -> MeshOutcome:
    facts = outcome.report.facts if outcome.report is not None else None
    return MeshOutcome(mesh_text(outcome.mesh), prod(outcome.mesh.values()), facts, outcome.reason)
