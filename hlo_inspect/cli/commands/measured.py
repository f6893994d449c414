"""The command `measured`: a recorded profile beside the bounds of its programs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.inputs import ReportStream
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.passes import MEASURED, OTHERS
from hlo_inspect.report import FORMATS_FOR_PEOPLE
from hlo_inspect.report.options import needed_tables
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command(MEASURED, help=OTHERS.load(MEASURED).help())
@click.argument("recorded", metavar="PROFILE", shell_complete=completion.files)
@click.argument("dump", metavar="[DUMP]", required=False, shell_complete=completion.files)
def measured(recorded: str, dump: str | None, fail_on: Severity | None, *, output: OutputOptions, request: Request) -> int:
    request = replace(request, passes=MEASURED, recorded=None if dump is None else recorded)
    is_page = output.format in FORMATS_FOR_PEOPLE and not output.selection
    needed = partial(needed_tables, options=output.rendering()) if is_page else None
    inspected = ReportStream([dump or recorded], request, output, fail_on, needed=needed)
    return max(deliver(inspected, output), inspected.status)
