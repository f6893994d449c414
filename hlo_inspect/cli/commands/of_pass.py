"""The command of a pass: options -> inspect -> renderer -> exit status. Its docstring is the help text. And `list`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli.options import (
    OutputOptions,
    SectionedCommand,
    fail_on_option,
    inputs_argument,
    output_options,
    reading_command,
    request_options,
)
from hlo_inspect.cli.output import deliver, deliver_bytes, deliver_lines, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReportStream, split_instruction_name
from hlo_inspect.passes import MEASURED, MODULE_FACTS
from hlo_inspect.report.formats import FORMATS_FOR_PEOPLE
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.passes.base import Question
    from hlo_inspect.report.model import Report, Severity


HASHES = "fingerprint"
"""Pass whose reports say what else differs if modules share a program."""
OVERVIEW, _FEW = "summary", 3
"""Pass whose pages for people end with a list of the modules, if there are more than these few."""


def command_of(pass_: Question) -> click.Command:
    """Make the command of a pass."""

    @output_options(*pass_.formats)
    @request_options(pass_.name)
    @fail_on_option
    @inputs_argument("INPUT... [NAME]" if pass_.takes_name else "INPUT...", required=not pass_.takes_recorded)
    def run(
        inputs: tuple[str, ...],
        fail_on: Severity | None,
        *,
        output: OutputOptions,
        request: Request,
        to: str | None = None,
        facts: bool = False,
    ) -> int:
        if pass_.takes_name:
            inputs, name = split_instruction_name(inputs)
            request = replace(request, name=name)
        if to is not None:
            if output.format != OutputOptions().format or (output.table, output.top, output.max_chars) != (None, None, None):
                raise click.UsageError("--to writes a workload file: --format, --table, --top and --max-chars have no effect.")
            return _rewritten(inputs, to, output)
        if request.recorded is not None:
            if request.recorded == "-" and not inputs:
                raise click.UsageError("--measured - needs INPUT: standard input is read once. Write the profile to a file.")
            inputs, request = inputs or (request.recorded,), replace(request, also=(MEASURED,))
        elif not inputs:
            raise click.UsageError("Missing argument 'INPUT...'.")
        if facts:
            return _screen_facts(inputs, request, output, fail_on)
        request = replace(request, passes=pass_.passes_of_formats.get(output.format, pass_.name))
        needed = output.needed_tables if pass_.name != HASHES else None
        inspected = ReportStream(inputs, request, output, fail_on, needed=needed)
        if pass_.name == HASHES:
            from hlo_inspect.compare.programs.identities import explained

            return max(deliver(explained(inspected), output), inspected.status)
        ends_with_list = pass_.name == OVERVIEW and output.format in FORMATS_FOR_PEOPLE and output.table is None
        return max(deliver(_with_list(inspected, inputs) if ends_with_list else inspected, output), inspected.status)

    if pass_.writes:
        run = click.option("--to", type=click.Choice(pass_.writes), help="Write the input in this dialect instead.")(run)
    if pass_.name == OVERVIEW:
        run = click.option("--facts", is_flag=True, help="Print the facts of the first lines, for a policy or a test.")(run)
    return click.command(pass_.name, cls=SectionedCommand, help=pass_.help())(run)


def _screen_facts(inputs: Sequence[str], request: Request, output: OutputOptions, fail_on: Severity | None) -> int:
    """Print the facts of the summary's first lines as the `checks` of a policy."""
    from hlo_inspect.checks.screen_facts import PASSES_OF_FACTS, PASSES_OF_TIMES, policy_lines

    if output.format != OutputOptions().format or output.table is not None:
        raise click.UsageError("--facts prints lines of a policy: --format and --table have no effect.")
    also = PASSES_OF_FACTS + (PASSES_OF_TIMES if request.profiles else ())
    asked = replace(request, passes=OVERVIEW, also=also)
    inspected = ReportStream(inputs, asked, output, fail_on)
    lines = (line for report in inspected for line in policy_lines(report))
    deliver_lines(lines, output.output, output.max_chars, "# ")
    return inspected.status


def _rewritten(inputs: Sequence[str], to: str, output: OutputOptions) -> int:
    """Write the workload file in another dialect."""
    from hlo_inspect.inspection.other_inputs import rewritten_workload

    if len(inputs) != 1:
        raise click.UsageError(f"--to writes one workload file, not {len(inputs)}.")
    refuse_to_overwrite(output.output, inputs)
    deliver_bytes(rewritten_workload(inputs[0], to), output.output)
    return 0


def _with_list(reports: Iterable[Report], inputs: Iterable[str]) -> Iterator[Report]:
    """Yield the reports as they come, then their list if there are more than `_FEW`."""
    from hlo_inspect.passes.modules import ModuleList

    listed = ModuleList()
    yield from listed.noting(reports)
    if len(listed) > _FEW:
        yield listed.report(", ".join(inputs))


@reading_command("list")
@inputs_argument()
def list_command(inputs: tuple[str, ...], fail_on: Severity | None, *, output: OutputOptions, request: Request) -> int:
    """List the modules of files, directories and patterns in quotes: one row each, the one with the most lines first.

    FLOPs and collectives are those of one step, findings those of `summary`. With --quick there are no FLOPs and fewer
    findings.
    """
    from hlo_inspect.passes.modules import ModuleList

    request = replace(request, passes=MODULE_FACTS, also=(OVERVIEW,))
    inspected = ReportStream(inputs, request, output, fail_on)
    listed = ModuleList()
    for report in inspected:
        listed.add(report)
    status = deliver([listed.report(", ".join(inputs))], output) if listed else 0
    return max(status, inspected.status)
