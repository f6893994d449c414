"""The command `export`: a step as input of a network simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.inspection.written_exports import WrittenExport
from hlo_inspect.passes import EXPORT, OTHERS
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command(EXPORT, help=OTHERS.load(EXPORT).help())
@click.argument("dump", metavar="DUMP", shell_complete=completion.files)
def export(dump: str, fail_on: Severity | None, *, output: OutputOptions, request: Request) -> int:
    if request.simulator is None:
        raise click.UsageError("Missing option '--to': chakra, simai or astra-sim.")
    if output.output is None:
        raise click.UsageError("Missing option '-o': the folder or file to write.")
    request = replace(request, passes=EXPORT, jobs=1)
    written = WrittenExport(dump)
    inspected = ReportStream([dump], request, output, fail_on, needed=output.needed_tables, sink=written.take)
    reports = list(inspected)
    if inspected.status:
        return inspected.status
    written.write(output.output)
    return deliver(reports, output._replace(output=None))
