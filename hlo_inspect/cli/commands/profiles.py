"""`profiles`: the hardware profiles."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options
from hlo_inspect.cli.output import deliver


@click.command("profiles", cls=SectionedCommand)
@output_options()
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=completion.profiles)
def command(name: str | None, *, output: OutputOptions) -> int:
    """List the hardware profiles, or show one with the source of each figure."""
    from hlo_inspect.passes.profiles import profile_report, profiles_report

    deliver([profiles_report() if name is None else profile_report(name)], output)
    return 0
