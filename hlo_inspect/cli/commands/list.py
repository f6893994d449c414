"""`list`: one row a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hlo_inspect.cli.commands.of_pass import OVERVIEW
from hlo_inspect.cli.inputs import Inspected
from hlo_inspect.cli.options import OutputOptions, ReadOptions, inputs_argument, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.passes import MODULE_FACTS, find_pass

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command("list")
@click.option("--quick", is_flag=True, help="Leave out costs and the optimizer: faster.")
@inputs_argument()
def command(inputs: tuple[str, ...], fail_on: Severity | None, *, quick: bool, output: OutputOptions, read: ReadOptions) -> int:
    """List the modules of files, directories and patterns in quotes: one row each, the one with the most lines first.

    FLOPs and collectives are those of a step, findings those of the summary. With --quick FLOPs and some findings are left out.
    """
    from hlo_inspect.passes.modules import PASSES as SHOWN
    from hlo_inspect.passes.modules import ModuleList

    also = SHOWN if quick else (*SHOWN, *find_pass(OVERVIEW).also)
    found = Inspected(inputs, (MODULE_FACTS,), read, also, quiet=output.quiet, fail_on=fail_on, output=output.output)
    listed = ModuleList()
    for report in found:
        listed.add(report)
    if listed:
        deliver([listed.report(", ".join(inputs))], output)
    return found.status
