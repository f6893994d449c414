"""`profiles`: the hardware profiles."""

from __future__ import annotations

from typing import Any

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.help_sections import SectionedCommand
from hlo_inspect.cli.options import output_options, take_output
from hlo_inspect.cli.output import deliver


@click.command("profiles", cls=SectionedCommand)
@output_options
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=completion.profiles)
def command(name: str | None, **arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """List the hardware profiles, or show one with the source of each figure."""
    from hlo_inspect.passes.profiles import profile_report, profiles_report

    output = take_output(arguments)
    deliver([profiles_report() if name is None else profile_report(name)], output)
    return 0
