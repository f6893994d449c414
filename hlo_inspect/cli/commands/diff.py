"""`diff`: what changed between two dumps. And their modules in pairs, for `check --baseline` and pages too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import click

from hlo_inspect.checks.differences import DifferenceCondition, conditions_table, conditions_verdict, examined, parse_difference
from hlo_inspect.checks.policy import given
from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, fail_if_option, reading_command
from hlo_inspect.cli.output import deliver, refuse_to_overwrite, refuse_to_overwrite_dump
from hlo_inspect.cli.report_stream import ReadingBar
from hlo_inspect.cli.streams import FAILED, reported
from hlo_inspect.compare.comparison import ModuleComparison
from hlo_inspect.compare.planned_traffic import refuse_conditions
from hlo_inspect.configs import Node
from hlo_inspect.errors import UsageError
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.inspection.plan_reports import is_plan, plan_report
from hlo_inspect.report.faults import answers, internal_error
from hlo_inspect.report.model import Report, Severity, reaching
from hlo_inspect.request import Request


@reading_command("diff", short_help="Compare two dumps, directories of dumps or saved reports.")
@fail_if_option(
    "Exit with 1 if this holds, for example 'memory.peak_bytes > +5%' or 'collectives.count != 0' (NEW - OLD); "
    "'optimizer.name different' (one fact), 'flags' (flags and options) or 'different' (programs)."
)
@click.option(
    "--new-module", metavar="REGEX", help="Choose modules of NEW by this name; --module then chooses those of OLD only."
)
@click.argument("old", shell_complete=completion.files)
@click.argument("new", shell_complete=completion.files)
def diff(
    old: str,
    new: str,
    conditions: tuple[str, ...],
    new_module: str | None,
    fail_on: Severity | None,
    *,
    output: OutputOptions,
    request: Request,
) -> int:
    """Compare OLD with NEW: facts that differ first, then the changes that explain them.

    OLD and NEW are files, directories, patterns or reports that --format json wrote. Modules are paired by name, then by
    content. Programs that differ in names, numbers and metadata only are the same program. A difference is exit status 0; with
    --fail-if or --fail-on it can be 1. Only findings that OLD lacks are shown. Object files, LLVM modules, PTX files and thunk
    sequences beside equal texts are compared too. Another mesh stands first: shardings over the same axes are then no change.

    If OLD is a network simulator's workload file and NEW a dump, their collectives are compared: bytes by kind and group, and
    their ratio. --axis names the groups.
    """
    if is_plan(old, new):
        refuse_conditions(conditions, old)
        refuse_to_overwrite(output.output, [old, new])
        return deliver([plan_report(old, new, request)], output)
    if request.axis_words:
        raise UsageError("--axis has an effect if OLD is a workload file")
    paired = PairedModules(ComparedInput(old), ComparedInput(new, new_module), request, output, fail_on, with_notes=False)
    reports = judged(paired, parsed(given("--fail-if", text) for text in conditions))
    return max(deliver(reports, output), paired.status)


@dataclass(slots=True)
class PairedModules:
    """Iterable over the comparisons of all pairs of modules of two inputs, once.

    Reports of modules have the tables of the passes `shown`, and notes if `with_notes`. `status` is the exit status so far:
    findings of `fail_on` or above fail.
    """

    old: ComparedInput
    new: ComparedInput
    request: Request
    output: OutputOptions
    fail_on: Severity | None = None
    shown: Sequence[str] = ()
    with_notes: bool = True
    status: int = 0

    def __iter__(self) -> Iterator[ModuleComparison]:
        target = self.output.output
        inputs = [str(side.source) for side in (self.old, self.new)]
        refuse_to_overwrite(target, [*inputs, *self.request.profiles, self.request.custom_calls])
        with ReadingBar(wanted=not self.output.quiet) as bar:
            comparisons = Comparisons(
                self.request,
                watch=lambda inspection: inspection.watch(bar),
                shown=self.shown,
                with_notes=self.with_notes,
            )
            for comparison in comparisons.compare(self.old, self.new):
                for side in (comparison.old, comparison.new):
                    if side is not None:
                        refuse_to_overwrite_dump(target, side.report.input.path)
                if self.fail_on is not None and reaching(comparison.report.findings, self.fail_on):
                    self.status = max(self.status, FAILED)
                with bar.out_of_the_way():
                    yield comparison
            for error in comparisons.errors:
                with bar.out_of_the_way():
                    self.status = max(self.status, reported(error))


def parsed(conditions: Iterable[Node]) -> list[DifferenceCondition]:
    """Parse the conditions of the command line and of policies."""
    return [parse_difference(written) for written in conditions]


def judged(paired: PairedModules, conditions: Sequence[DifferenceCondition]) -> Iterator[Report]:
    """Yield the reports of all pairs with the results of the conditions. If a condition is met, `paired.status` fails."""

    def judge(comparison: ModuleComparison) -> Report:
        report = comparison.report
        if conditions and comparison.old is not None and comparison.new is not None:
            results = examined(
                conditions,
                comparison.old.report,
                comparison.new.report,
                is_different=comparison.is_different,
                have_other_flags=comparison.have_other_flags,
            )
            met = sum(result.is_met for result in results)
            verdict = conditions_verdict(met, len(results))
            report = replace(report, tables=(*report.tables, conditions_table(results)), verdict=verdict)
        else:
            met = sum(condition.assertion is None for condition in conditions)
        if met:
            paired.status = max(paired.status, FAILED)
        return report

    def failed(comparison: ModuleComparison, error: Exception) -> None:
        side = comparison.new or comparison.old
        report = side.report if side is not None else comparison.report
        paired.status = max(paired.status, reported(internal_error(report, error)))

    return answers(paired, judge, failed)
