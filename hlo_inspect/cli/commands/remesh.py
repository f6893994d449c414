"""`remesh`: a program compiled for other meshes, beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.compile_options import OpenCompiler, compile_options, without_places
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.report_stream import ReadingBar
from hlo_inspect.cli.streams import FAILED
from hlo_inspect.inspection.remeshing import compile_for_meshes
from hlo_inspect.report.model import HeadlineRow, reaching
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command("remesh", without=("mesh",), short_help="Compile a program for other meshes and compare them.")
@compile_options
@click.option(
    "--mesh",
    "meshes",
    metavar="NAME=N,…",
    multiple=True,
    required=True,
    help="Compile for a mesh with these sizes of axes; `all` are all meshes of the same number of devices, all:64 those of 64.",
)
@click.argument("program", metavar="DUMP", shell_complete=completion.files)
def remesh(
    program: str,
    compilations_of: OpenCompiler,
    meshes: Sequence[str],
    fail_on: Severity | None,
    *,
    output: OutputOptions,
    request: Request,
) -> int:
    """Compile the program of a dump for other meshes, and compare them with its own mesh, compiled in the same way.

    With one --mesh the page says what changes, as `diff` does. With several it has a row for each: memory, bytes sent, FLOPs,
    and times with --profile. A mesh is marked `front` if no other needs less memory and less time.

    The mesh of the StableHLO (sdy.mesh) is rewritten and the program compiled anew. Refused are programs with a shard_map,
    whose groups and shapes belong to one mesh, and axes that do not divide an argument or result. -o FOLDER keeps what XLA
    writes, in a folder for each mesh. -j N compiles side by side. Exit status 1: no mesh can be compiled.
    """
    shown = output._replace(output=None)
    with compilations_of(program, request.module, output.output) as compilations:
        request = compilations.on_target(request)
        with ReadingBar(wanted=not output.quiet) as bar:
            bar.reading(program, 0)
            report, is_refused = compile_for_meshes(program, compilations, meshes, request, bar.analysing)
        if compilations.is_for_another_platform:
            text = f"the dump is of {compilations.program.platform}; all meshes are compiled for {compilations.target.text}"
            report = replace(report, headline=(HeadlineRow("", (text,), "info"), *report.headline))
        report = report if output.output is not None else without_places(report)
        has_failed = is_refused or (fail_on is not None and bool(reaching(report.findings, fail_on)))
        return max(deliver([report], shown), FAILED if has_failed else 0)
