"""The findings of a program, and proofs of what their remedies save: each compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import HloInspectError
from hlo_inspect.inspection.compilations import Compilations, facts_of
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.passes import FINDINGS
from hlo_inspect.remedies.proofs import NOT_CONFIRMED, PROOFS, Facts, Proof, find_proofs
from hlo_inspect.remedies.remedy import CannotBeTriedError, Remedy
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request

BEFORE = "before"
"""Folder of the program as it is, beside those of its remedies."""


def prove(
    compilations: Compilations,
    request: Request,
    choose: Callable[[Report], Report] = lambda report: report,
    watch: Callable[[str], None] = lambda _: None,
) -> Report:
    """Compile a program as it is and with the remedy of each finding, and return the report with the table `proofs`.

    `choose` returns the report with the findings that count. Raise CompileError if the program does not compile as it is.
    """
    watch("the program as it is")
    description = compilations.describe()
    before = compilations.compile(description, folder=BEFORE).text
    request = replace(request, mesh=request.mesh or description.mesh_text, module=None, stage=None, jobs=1)
    report, context = _with_findings(before, request)
    report = choose(report)

    def facts_with(rule: str, remedy: Remedy) -> Facts:
        watch(f"{rule}: {remedy.words}")
        try:
            compiled = compilations.compile(description, folder=rule, edits=remedy.edits)
        except HloInspectError as error:
            raise CannotBeTriedError(f"the compiler refuses the remedy: {error.message}") from error
        return facts_of(compiled.text, request.mesh, request).facts

    facts = facts_of(before, request.mesh, request).facts
    return _with_proofs(report, list(find_proofs(report.findings, context, description, facts, facts_with)))


def _with_findings(text: Path, request: Request) -> tuple[Report, Context]:
    """Return the report on a text with the findings of all rules, and its analyses."""
    contexts: list[Context] = []
    with Inspection(replace(request, passes=(FINDINGS,)), ReportNeeds(every_rule=True)) as inspection:
        inspection.set_report_sink(lambda _, context: contexts.append(context))
        (report,) = inspection.reports(str(text))
    return report, contexts[0]


def _with_proofs(report: Report, proofs: Sequence[Proof]) -> Report:
    """Return a report with the table of proofs first. A finding that its remedy does not mend says so."""
    refuted = {proof.finding for proof in proofs if proof.verdict == NOT_CONFIRMED}
    findings = tuple(
        finding._replace(message=f"{finding.message} (not confirmed by a compile)") if finding in refuted else finding
        for finding in report.findings
    )
    return replace(report, tables=(PROOFS.of(proofs), *report.tables), findings=findings)
