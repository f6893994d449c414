"""`profiles`, `rules` and `rule`: what there is, without an input."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options
from hlo_inspect.cli.output import deliver


@click.command("profiles", cls=SectionedCommand)
@output_options()
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=completion.profiles)
def profiles(name: str | None, *, output: OutputOptions) -> int:
    """List the hardware profiles, or show one with the source of each figure."""
    from hlo_inspect.passes.profiles import profile_report, profiles_report

    return deliver([profiles_report() if name is None else profile_report(name)], output)


@click.command("rules", cls=SectionedCommand)
@output_options()
@click.argument("name", metavar="[CODE|NAME]", required=False, shell_complete=completion.rules)
def rules(name: str | None, *, output: OutputOptions) -> int:
    """List the findings that exist: code, name, severity and one line; or show one, as `rule` does."""
    from hlo_inspect.passes.rule_pages import rule_report, rules_report

    return deliver([rules_report() if name is None else rule_report(name)], output)


@click.command("rule", cls=SectionedCommand)
@output_options()
@click.argument("name", metavar="CODE|NAME", shell_complete=completion.rules)
def rule(name: str, *, output: OutputOptions) -> int:
    """Show what a finding means, why it matters and how to fix it: `hlo-inspect rule HI506`."""
    from hlo_inspect.passes.rule_pages import rule_report

    return deliver([rule_report(name)], output)
