"""The command `history`: which compiler pass changed what."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options, request_option
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReadingBar, require_local
from hlo_inspect.cli.streams import reported


@click.command("history", cls=SectionedCommand)
@output_options()
@click.option("--module", metavar="REGEX", help="Choose the module by name. Default: the largest.")
@request_option("jobs")
@click.argument("directory", metavar="DIR", shell_complete=completion.files)
@click.argument("pattern", metavar="[PATTERN]", required=False)
def history(directory: str, pattern: str | None, module: str | None, jobs: int, *, output: OutputOptions) -> int:
    """Show which compiler pass changed the module: one row per pass, with the module's figures after it.

    DIR is a dump directory with a file for each pass; XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*. If it
    holds several modules, --module chooses one; the default is the largest.

    With PATTERN the page lists instructions. For each it names the passes that introduced, merged or removed it, or made it
    asynchronous. PATTERN is an opcode such as all-gather, a name, a part of an op_name, or `*`. XLA records no identity of
    instructions, so they are matched by name, op_name, shape and groups.
    """
    from hlo_inspect.inspection.pass_histories import PassHistory

    require_local("history", (directory,))
    with ReadingBar(wanted=not output.quiet and jobs == 1) as bar:
        history = PassHistory(directory, module, pattern, jobs, bar.analysing)
        if output.output is not None:
            refuse_to_overwrite(output.output, history.paths())
        report = history.report()
    return max([deliver([report], output), *map(reported, history.errors)])
