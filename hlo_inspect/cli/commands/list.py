"""`list`: one row a module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hlo_inspect.cli.commands.of_pass import OVERVIEW
from hlo_inspect.cli.help_sections import SectionedCommand
from hlo_inspect.cli.inputs import Inspected
from hlo_inspect.cli.options import (
    fail_on_option,
    inputs_argument,
    output_options,
    read_options,
    take_output,
    take_read,
)
from hlo_inspect.cli.output import deliver
from hlo_inspect.passes import MODULE_FACTS, find_pass

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@click.command("list", cls=SectionedCommand)
@output_options
@read_options
@fail_on_option
@click.option("--quick", is_flag=True, help="Leave out costs and optimizer: several times as fast.")
@inputs_argument()
def command(inputs: tuple[str, ...], fail_on: Severity | None, *, quick: bool, **arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """List the modules of files, directories and patterns in quotes: one row each, the one with the most lines first.

    FLOPs and collectives are those of a step, findings those of the summary. With --quick FLOPs and some findings are left out.
    """
    from hlo_inspect.passes.modules import PASSES as SHOWN
    from hlo_inspect.passes.modules import ModuleList

    output, read = take_output(arguments), take_read(arguments, quick=quick)
    also = SHOWN if quick else (*SHOWN, *find_pass(OVERVIEW).also)
    found = Inspected(inputs, (MODULE_FACTS,), read, also, quiet=output.quiet, fail_on=fail_on, output=output.output)
    listed = ModuleList()
    for report in found:
        listed.add(report)
    if listed:
        deliver([listed.report(", ".join(inputs))], output)
    return found.status
