"""`compile`: a program compiled for a target, and inspected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.compile_options import OpenCompiler, compile_options, without_places
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.report_stream import ReadingBar, ReportStream
from hlo_inspect.cli.streams import FAILED
from hlo_inspect.errors import CompileError
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import HeadlineRow, Input, Report
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command("compile", short_help="Compile a program for a target and inspect what comes out.")
@compile_options
@click.argument("program", metavar="PROGRAM", shell_complete=completion.files)
def compile_command(
    program: str, compilations_of: OpenCompiler, fail_on: Severity | None, *, output: OutputOptions, request: Request
) -> int:
    """Compile a program for a target, without its devices, and show the summary of what comes out.

    PROGRAM is StableHLO: a file, the module.mlir that XLA writes beside a module, or a dump directory with one, of which
    --module chooses. It can be a file of jax.export, which needs jax. Flags and options of a dump are kept. -o FOLDER keeps
    what XLA writes: texts before and after, buffer assignment, options. Every other command reads that folder. Exit status 1:
    the compiler refuses the program, as when it does not fit.

    Collectives, memory, schedule and donation are those of the target's compiler. Needs the extra [xla], and [tpu] for TPUs.
    """
    shown = output._replace(output=None)
    with compilations_of(program, request.module, output.output) as compilations:
        try:
            with ReadingBar(wanted=not output.quiet) as bar:
                bar.reading(program, 0)
                bar.analysing("it, compiling")
                description = compilations.describe()
                compiled = compilations.compile(description)
        except CompileError as error:
            refused = HeadlineRow("", (f"{compilations.target.text} refuses it: {error}",), "error")
            place = Input(program, first_line=1, lines=0, bytes=0)
            notes = (compilations.made_by,)
            page = Report("compile", place, Facts({}, ()), title=program, headline=(refused,), notes=notes)
            return max(deliver([page], shown), FAILED)
        request = compilations.on_target(replace(request, passes=("summary",), module=None, stage=None, jobs=1))
        if request.mesh is None:
            request = replace(request, mesh=description.mesh_text)
        inspected = ReportStream([str(compiled.text)], request, shown, fail_on, needed=shown.needed_tables)
        path = None if output.output is not None else f"{program} for {compilations.target.text}"
        reports = (_compiled_report(report, path, compilations.made_by) for report in inspected)
        return max(deliver(reports, shown), inspected.status)


def _compiled_report(report: Report, path: str | None, note: str) -> Report:
    """Return the report on a compiled text, with a note. `path` is shown if the text is not kept: it has no places then."""
    report = replace(report, notes=(note, *report.notes))
    return report if path is None else replace(without_places(report), input=report.input._replace(path=path))
