"""The reports of a page, in the order in which the page takes them: modules with what passes did to them, or pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from hlo_inspect.cli.differences import PairedModules
from hlo_inspect.cli.inputs import Inspected
from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.cli.output import refuse_to_overwrite
from hlo_inspect.cli.streams import tell
from hlo_inspect.compare.comparison import PairList
from hlo_inspect.errors import InputError
from hlo_inspect.findings import rule_pages
from hlo_inspect.inspection.comparisons import ComparedInput
from hlo_inspect.inspection.finding_lines import with_finding_lines
from hlo_inspect.inspection.pass_histories import PassHistory
from hlo_inspect.passes.modules import ModuleList
from hlo_inspect.passes.rule_pages import rule_report
from hlo_inspect.report.model import Report, Severity
from hlo_inspect.request import Request


def page_reports(
    inputs: Sequence[str],
    request: Request,
    output: OutputOptions,
    fail_on: Severity | None,
    *,
    compares: bool,
) -> tuple[Inspected | PairedModules, Iterator[Report]]:
    """The reports of all modules, or of pairs of modules of two inputs, and what has the exit status once they are taken."""
    if not compares:
        found = Inspected(inputs, request, quiet=output.quiet, fail_on=fail_on, output=output.output)
        return found, _of_modules(found, inputs, request, output.output)
    if len(inputs) != len(("OLD", "NEW")):
        raise click.UsageError(f"--diff compares two inputs, OLD and NEW, and there are {len(inputs)}.")
    old, new = map(ComparedInput, inputs)
    paired = PairedModules(old, new, request, output, fail_on, shown=request.pass_names)
    return paired, _of_pairs(paired, inputs)


def _of_modules(found: Iterable[Report], inputs: Sequence[str], request: Request, output: str | None) -> Iterator[Report]:
    """After the report of a module the one of its compiler passes where the dump holds their files; the documentation of all
    findings; and the list of the modules where there are several.
    """
    listed = ModuleList()
    yield from _documented(_with_histories(listed.noting(found), list(_histories(inputs, request, output))))
    if len(listed) > 1:
        yield listed.report(", ".join(inputs))


def _of_pairs(paired: PairedModules, inputs: Sequence[str]) -> Iterator[Report]:
    """After each comparison the reports of its two modules; the documentation of all findings; and the list of the pairs where
    there are several.
    """
    listed = PairList()

    def reports() -> Iterator[Report]:
        for one in paired:
            listed.add(one)
            yield one.report
            if one.old is not None and one.new is not None:
                yield from (one.old.report, one.new.report)

    yield from _documented(reports())
    if len(listed) > 1:
        yield listed.report(" -> ".join(inputs))


def _histories(inputs: Iterable[str], request: Request, output: str | None) -> Iterator[tuple[PassHistory, frozenset[str]]]:
    """The history of a module of each directory that holds files of compiler passes, and the paths of these files."""
    for directory in inputs:
        if Path(directory).is_dir():
            history = PassHistory(directory, request.module, jobs=request.jobs)
            try:
                paths = history.paths()
            except InputError:
                continue
            refuse_to_overwrite(output, paths)
            yield history, paths


def _with_histories(reports: Iterable[Report], histories: list[tuple[PassHistory, frozenset[str]]]) -> Iterator[Report]:
    """The reports, each followed by the histories of its file; at the end the other histories."""
    for report in reports:
        yield report
        for one in [one for one in histories if report.input.path in one[1]]:
            histories.remove(one)
            yield from _history_report(one[0])
    for history, _ in histories:
        yield from _history_report(history)


def _history_report(history: PassHistory) -> Iterator[Report]:
    """The report on a history; where it cannot be made a message says why."""
    try:
        yield history.report()
    except InputError as error:
        tell(f"hlo-inspect: {error}")


def _documented(reports: Iterable[Report]) -> Iterator[Report]:
    """The reports, each with the lines that its findings name, then the documentation of all findings. A saved report
    can hold codes that no rule has.
    """
    codes: set[str] = set()
    for report in reports:
        codes.update(finding.rule for finding in report.findings)
        yield with_finding_lines(report)
    yield from map(rule_report, sorted({page.code for page in rule_pages()}.intersection(codes)))
