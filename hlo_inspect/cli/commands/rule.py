"""`rule`: the documentation of a finding."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options
from hlo_inspect.cli.output import deliver


@click.command("rule", cls=SectionedCommand)
@output_options()
@click.argument("name", metavar="CODE|NAME", shell_complete=completion.rules)
def command(name: str, *, output: OutputOptions) -> int:
    """Show what a finding means, why it matters and how to fix it: `hlo-inspect rule HI506`."""
    from hlo_inspect.passes.rule_pages import rule_report

    deliver([rule_report(name)], output)
    return 0
