"""The command `report`: one HTML file with pictures and tables, of modules with what passes did to them, or of pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.commands.diff import PairedModules
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, fail_on_option, inputs_argument, request_options
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.cli.streams import reported, tell
from hlo_inspect.compare.comparison import PairList
from hlo_inspect.errors import InputError, InternalError, Location, UsageError, as_internal_errors
from hlo_inspect.findings import rule_pages
from hlo_inspect.inspection.comparisons import ComparedInput
from hlo_inspect.inspection.pass_histories import PassHistory
from hlo_inspect.inspection.source_lines import with_finding_lines
from hlo_inspect.passes.modules import ModuleList
from hlo_inspect.passes.rule_pages import rule_report
from hlo_inspect.report.model import Report, Severity
from hlo_inspect.request import Request

PASSES = (
    *("summary", "cost", "time", "top", "collectives", "memory", "params", "optimizer", "fusions", "custom-calls"),
    *("pictures", "instructions"),
)
"""Passes whose tables a page has."""


@click.command("report", cls=SectionedCommand, short_help="Write one HTML file with pictures and tables.")
@click.option("-o", "--output", metavar="FILE", shell_complete=completion.files, help="Write to FILE, for example report.html.")
@click.option(
    "-n", "--top", type=click.IntRange(min=0), metavar="N", help="Keep N rows of each table and sum the rest (smaller file)."
)
@click.option("--diff", "compares", is_flag=True, help="Compare two inputs as `diff` does, and show both.")
@click.option("--bytes", "raw_bytes", is_flag=True, help="Print sizes as plain integers of bytes.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
@request_options("report")
@fail_on_option
@inputs_argument()
def report(
    inputs: tuple[str, ...],
    output: str | None,
    top: int | None,
    fail_on: Severity | None,
    *,
    compares: bool,
    raw_bytes: bool,
    quiet: bool,
    request: Request,
) -> int:
    """Write one HTML file: time of the step, kernels, collectives, memory, parameters, findings.

    It opens in any browser without a network, and can be attached to an issue. Tables sort, filter and copy as CSV. Each of
    several modules has a page in the file, behind an index. With --diff and two inputs the file begins with the changes. A
    directory with a file for each compiler pass adds a history of the passes. Without -o the page goes to standard output,
    unless that is a terminal. Needs the extra [html].
    """
    from hlo_inspect.report.formats.html.assets import need_extra

    need_extra()
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("a page is not written to a terminal: name a file, for example -o report.html")
    options = OutputOptions("html", output, top, raw_bytes=raw_bytes, quiet=quiet, verbose=True, sites=True)
    inspected, reports = page_reports(inputs, replace(request, passes=PASSES), options, fail_on, compares=compares)
    status = deliver(reports, options)
    if output is not None:
        _warn_of_size(output)
    return max(status, inspected.status)


def _warn_of_size(output: str) -> None:
    """Print how to make a page smaller that is too large."""
    from hlo_inspect.report.formats.html.page_size import advice

    path = Path(output)
    words = advice(path) if path.is_file() else ""
    if words:
        tell(f"hlo-inspect: {output}: {words}")


def page_reports(
    inputs: Sequence[str], request: Request, output: OutputOptions, fail_on: Severity | None, *, compares: bool
) -> tuple[ReportStream | PairedModules, Iterator[Report]]:
    """Return the reports of all modules or pairs, and the object that has the exit status after they are made."""
    if not compares:
        inspected = ReportStream(inputs, request, output, fail_on, measured=True)
        return inspected, _module_reports(inspected)
    if len(inputs) != len(("OLD", "NEW")):
        raise click.UsageError(f"--diff compares two inputs, OLD and NEW, not {len(inputs)}.")
    old, new = map(ComparedInput, inputs)
    paired = PairedModules(old, new, request, output, fail_on, shown=request.pass_names)
    return paired, _pair_reports(paired, inputs)


def _module_reports(inspected: ReportStream) -> Iterator[Report]:
    """Yield the report of each module, followed by its pass history if the dump has one; then the documentation of findings.

    If there are several modules, their list is the last report.
    """
    listed = ModuleList()
    yield from _documented(_with_histories(listed.noting(inspected), list(_histories(inspected)), inspected))
    if len(listed) > 1:
        yield listed.report(", ".join(inspected.inputs))


def _pair_reports(paired: PairedModules, inputs: Sequence[str]) -> Iterator[Report]:
    """Yield each comparison and the reports of its two modules; then the documentation of findings.

    If there are several pairs, their list is the last report.
    """
    listed = PairList()

    def reports() -> Iterator[Report]:
        for comparison in paired:
            listed.add(comparison)
            yield comparison.report
            if comparison.old is not None and comparison.new is not None:
                yield from (comparison.old.report, comparison.new.report)

    yield from _documented(reports())
    if len(listed) > 1:
        yield listed.report(" -> ".join(inputs))


def _histories(inspected: ReportStream) -> Iterator[tuple[PassHistory, frozenset[str]]]:
    """Yield for each directory with files of compiler passes the history of a module and the paths of its files."""
    for directory in inspected.inputs:
        if Path(directory).is_dir():
            history = PassHistory(directory, inspected.request.module, jobs=inspected.request.jobs)
            try:
                paths = history.paths()
            except InputError:
                continue
            refuse_to_overwrite(inspected.output.output, paths)
            yield history, paths


def _with_histories(
    reports: Iterable[Report], histories: list[tuple[PassHistory, frozenset[str]]], inspected: ReportStream
) -> Iterator[Report]:
    """Yield the reports, each followed by the histories of its file; at the end the other histories."""
    for report in reports:
        yield report
        for entry in [entry for entry in histories if report.input.path in entry[1]]:
            histories.remove(entry)
            yield from _history_report(entry[0], inspected)
    for history, _ in histories:
        yield from _history_report(history, inspected)


def _history_report(history: PassHistory, inspected: ReportStream) -> Iterator[Report]:
    """Yield the report on a history, or print why there is none."""
    try:
        with as_internal_errors(Location(history.directory)):
            yield history.report()
    except InputError as error:
        tell(f"hlo-inspect: {error}")
    except InternalError as error:
        history.errors.append(error)
    inspected.status = max([inspected.status, *map(reported, history.errors)])


def _documented(reports: Iterable[Report]) -> Iterator[Report]:
    """Yield the reports, each with the lines that its findings name, then the documentation of all findings.

    A saved report can hold codes that no rule has.
    """
    codes: set[str] = set()
    for report in reports:
        codes.update(finding.rule for finding in report.findings)
        yield with_finding_lines(report)
    yield from map(rule_report, sorted({page.code for page in rule_pages()}.intersection(codes)))
