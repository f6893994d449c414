"""The command `report`: one HTML file with pictures and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.inputs import Inspected
from hlo_inspect.cli.options import OutputOptions, fail_on_option, read_options, take_read
from hlo_inspect.cli.output import deliver
from hlo_inspect.errors import UsageError
from hlo_inspect.report.selection import TableSelection

if TYPE_CHECKING:
    from hlo_inspect.report.model import Report, Severity

PASSES = (
    *("summary", "cost", "time", "top", "collectives", "memory", "params", "optimizer", "fusions", "custom-calls"),
    *("pictures", "instructions"),
)
"""The passes whose tables a page has."""


@click.command("report", short_help="One HTML file with pictures and tables, to look at and to send.")
@click.option("-o", "--output", metavar="FILE", shell_complete=completion.files, help="The file to write, as report.html.")
@click.option(
    "-n", "--top", type=click.IntRange(min=0), metavar="N", help="Keep N rows of each table, the rest summed: a smaller file."
)
@click.option("--bytes", "raw_bytes", is_flag=True, help="Sizes as plain integers of bytes.")
@click.option("-q", "--quiet", is_flag=True, help="No bar while inputs are read.")
@read_options
@fail_on_option
@click.argument("inputs", metavar="INPUT...", nargs=-1, shell_complete=completion.files, required=True)
def command(
    inputs: tuple[str, ...],
    output: str | None,
    top: int | None,
    fail_on: Severity | None,
    *,
    raw_bytes: bool,
    quiet: bool,
    **arguments: Any,  # noqa: ANN401 - click hands over all options
) -> int:
    """One HTML file with everything inside: where the step goes, kernels, collectives, memory, parameters, findings.

    It opens in any browser, without a network, and can be attached to an issue. Tables sort, filter and copy as CSV. Without -o
    it goes to standard output, unless that is a terminal. Needs the extra [html].
    """
    from hlo_inspect.report.html.assets import need_extra

    need_extra()
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("a page is no text for a terminal: name its file with -o report.html")
    options = OutputOptions(
        format="html",
        output=output,
        top=top,
        table=None,
        raw_bytes=raw_bytes,
        no_color=True,
        quiet=quiet,
        verbose=True,
        sites=True,
        selection=TableSelection((), (), ()),
    )
    found = Inspected(inputs, PASSES, take_read(arguments), PASSES, quiet=quiet, fail_on=fail_on, output=output)
    deliver(_documented(found), options)
    return found.status


def _documented(reports: Iterable[Report]) -> Iterator[Report]:
    """The reports, and after them the documentation of what they find."""
    from hlo_inspect.inspection.finding_lines import with_finding_lines
    from hlo_inspect.passes.rule_pages import rule_report

    codes: set[str] = set()
    for report in reports:
        codes.update(finding.rule for finding in report.findings)
        yield with_finding_lines(report)
    yield from map(rule_report, sorted(codes))
