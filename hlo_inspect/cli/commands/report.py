"""The command `report`: one HTML file with pictures and tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import (
    OutputOptions,
    SectionedCommand,
    fail_on_option,
    inputs_argument,
    request_options,
)
from hlo_inspect.cli.output import deliver
from hlo_inspect.cli.streams import tell
from hlo_inspect.errors import UsageError
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity

PASSES = (
    *("summary", "cost", "time", "top", "collectives", "memory", "params", "optimizer", "fusions", "custom-calls"),
    *("pictures", "instructions"),
)
"""The passes whose tables a page has."""


@click.command("report", cls=SectionedCommand, short_help="One HTML file with pictures and tables, to look at and to send.")
@click.option("-o", "--output", metavar="FILE", shell_complete=completion.files, help="The file to write, as report.html.")
@click.option(
    "-n", "--top", type=click.IntRange(min=0), metavar="N", help="Keep N rows of each table, the rest summed: a smaller file."
)
@click.option("--diff", "compares", is_flag=True, help="What changed between two inputs, as `diff` says it, and both.")
@click.option("--bytes", "raw_bytes", is_flag=True, help="Sizes as plain integers of bytes.")
@click.option("-q", "--quiet", is_flag=True, help="No bar while inputs are read.")
@request_options("report")
@fail_on_option
@inputs_argument()
def command(
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
    """One HTML file with everything inside: where the step goes, kernels, collectives, memory, parameters, findings.

    It opens in any browser, without a network, and can be attached to an issue. Tables sort, filter and copy as CSV. Of several
    modules each has a page in the file, behind an index; OLD NEW --diff begins with what changed. A directory with a file for
    each compiler pass adds what the passes did. Without -o the page goes to standard output, unless that is a terminal. Needs
    the extra [html].
    """
    from hlo_inspect.report.html.assets import need_extra

    need_extra()
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("a page is no text for a terminal: name its file with -o report.html")
    options = OutputOptions("html", output, top, raw_bytes=raw_bytes, quiet=quiet, verbose=True, sites=True)
    from hlo_inspect.cli.page_reports import page_reports

    found, reports = page_reports(inputs, replace(request, passes=PASSES), options, fail_on, compares=compares)
    deliver(reports, options)
    if output is not None:
        _warn_of_size(output)
    return found.status


def _warn_of_size(output: str) -> None:
    """Says what makes a page smaller that is too large."""
    from hlo_inspect.report.html.page import advice

    path = Path(output)
    words = advice(path) if path.is_file() else ""
    if words:
        tell(f"hlo-inspect: {output}: {words}")
