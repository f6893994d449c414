"""The command `show`: about one instruction, or about two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.passes import SHOW
from hlo_inspect.passes.show import Show
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


_PASS = Show()


@reading_command(SHOW, *_PASS.formats, help=_PASS.help())
@click.option(
    "--path",
    "ends",
    nargs=2,
    metavar="A B",
    shell_complete=completion.instructions,
    help="Show the paths from instruction A to B instead.",
)
@click.argument("source", metavar="INPUT", shell_complete=completion.files)
@click.argument("name", metavar="[NAME|LINE|PATTERN|FILE:LINE]", required=False, shell_complete=completion.instructions)
def show(
    source: str,
    name: str | None,
    ends: tuple[str, str] | None,
    fail_on: Severity | None,
    *,
    output: OutputOptions,
    request: Request,
) -> int:
    if (name is None) == (ends is None):
        raise click.UsageError("give an instruction (NAME, LINE or PATTERN), or two of them with --path A B.")
    start, end = (name, None) if ends is None else ends
    asked = replace(request, passes=SHOW, name=start, to=end)
    inspected = ReportStream([source], asked, output, fail_on)
    return max(deliver(inspected, output), inspected.status)
