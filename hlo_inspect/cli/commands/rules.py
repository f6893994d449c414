"""`rules`: the findings that exist."""

from __future__ import annotations

from typing import Any

import click

from hlo_inspect.cli.help_sections import SectionedCommand
from hlo_inspect.cli.options import output_options, take_output
from hlo_inspect.cli.output import deliver


@click.command("rules", cls=SectionedCommand)
@output_options
def command(**arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """List the findings that exist: code, name, severity and one line."""
    from hlo_inspect.passes.rule_pages import rules_report

    deliver([rules_report()], take_output(arguments))
    return 0
