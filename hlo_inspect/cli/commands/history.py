"""The command `history`: which compiler pass changed what."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.inputs import ReadingBar
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options, request_option
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.streams import reported


@click.command("history", cls=SectionedCommand)
@output_options()
@click.option("--module", metavar="REGEX", help="The module whose name matches; the largest by default.")
@request_option("jobs")
@click.argument("directory", metavar="DIR", shell_complete=completion.files)
@click.argument("pattern", metavar="[PATTERN]", required=False)
def history(directory: str, pattern: str | None, module: str | None, jobs: int, *, output: OutputOptions) -> int:
    """Which compiler pass changed what: one row for each pass that changed something, with the figures of the module
    after it.

    DIR is a dump directory with a file for each pass, as XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_pass_re=.*; of
    several modules it is the one of --module, else the largest. With PATTERN (all-gather, a name, a part of an op_name, `*` for
    anything) the passes that brought each such instruction in, merged it, made it asynchronous or removed it. Instructions are
    followed by name, op_name, shape and groups, as XLA writes down nothing else.
    """
    from hlo_inspect.inspection.pass_histories import PassHistory

    with ReadingBar(wanted=not output.quiet and jobs == 1) as bar:
        history = PassHistory(directory, module, pattern, jobs, bar.analysing)
        if output.output is not None:
            refuse_to_overwrite(output.output, history.paths())
        report = history.report()
    return max([deliver([report], output), *map(reported, history.errors)])
