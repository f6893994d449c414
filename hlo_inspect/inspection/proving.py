"""The findings of a program, and proofs of what their remedies save: each compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.errors import HloInspectError
from hlo_inspect.inspection.compilations import Compilations, facts_of
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.passes import FINDINGS
from hlo_inspect.remedies.proofs import NOT_CONFIRMED, PROOFS, Facts, Proof, find_proofs
from hlo_inspect.remedies.remedy import CannotBeTriedError, Remedy
from hlo_inspect.report.model import Finding, Report
from hlo_inspect.request import Request

BEFORE = "before"
"""Folder of the program as it is, beside those of its remedies."""


class Prover:
    """A program that is compiled as it is, with its findings, and then with the remedy of each."""

    def __init__(self, compilations: Compilations, request: Request, watch: Callable[[str], None] = lambda _: None) -> None:
        self._compilations = compilations
        self._request = replace(request, module=None, stage=None, jobs=1)
        self._watch = watch
        watch("the program as it is")
        self._description: Description = compilations.describe()
        self._text = compilations.compile(self._description, folder=BEFORE).text
        self._contexts: list[Context] = []

    def report(self) -> Report:
        """Return the report on the program as it is, with the findings of all rules."""
        mesh = self._request.mesh or self._description.mesh_text
        asked = replace(self._request, passes=(FINDINGS,), mesh=mesh)
        with Inspection(asked, ReportNeeds(every_rule=True)) as inspection:
            inspection.set_report_sink(lambda _, context: self._contexts.append(context))
            (report,) = inspection.reports(str(self._text))
        return report

    def proofs(self, findings: Sequence[Finding]) -> Iterator[Proof]:
        """Yield a proof for each finding of the report."""
        (context,) = self._contexts
        yield from find_proofs(findings, context, self._description, self._facts(str(self._text)), self._compiled)

    def _facts(self, text: str) -> Facts:
        return facts_of(text, self._request.mesh or self._description.mesh_text, self._request).facts

    def _compiled(self, rule: str, remedy: Remedy) -> Facts:
        """Compile the program with a remedy and return its facts. Raise CannotBeTriedError if the compiler refuses it."""
        self._watch(f"{rule}: {remedy.words}")
        try:
            compiled = self._compilations.compile(self._description, folder=rule, edits=remedy.edits)
        except HloInspectError as error:
            raise CannotBeTriedError(f"the compiler refuses the remedy: {error.message}") from error
        return self._facts(str(compiled.text))


def with_proofs(report: Report, proofs: Sequence[Proof]) -> Report:
    """Return a report with the table of proofs first. A finding that its remedy does not mend says so."""
    refuted = {proof.finding for proof in proofs if proof.verdict == NOT_CONFIRMED}
    findings = tuple(
        finding._replace(message=f"{finding.message} (not confirmed by a compile)") if finding in refuted else finding
        for finding in report.findings
    )
    return replace(report, tables=(PROOFS.of(proofs), *report.tables), findings=findings)
