"""`rules`: the findings that exist."""

from __future__ import annotations

import click

from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options
from hlo_inspect.cli.output import deliver


@click.command("rules", cls=SectionedCommand)
@output_options()
def command(*, output: OutputOptions) -> int:
    """List the findings that exist: code, name, severity and one line."""
    from hlo_inspect.passes.rule_pages import rules_report

    deliver([rules_report()], output)
    return 0
