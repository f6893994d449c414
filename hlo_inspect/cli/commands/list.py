"""`list`: one row a module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hlo_inspect.cli.commands.of_pass import OVERVIEW
from hlo_inspect.cli.inputs import Inspected
from hlo_inspect.cli.options import OutputOptions, inputs_argument, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.passes import MODULE_FACTS
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command("list")
@inputs_argument()
def command(inputs: tuple[str, ...], fail_on: Severity | None, *, output: OutputOptions, request: Request) -> int:
    """List the modules of files, directories and patterns in quotes: one row each, the one with the most lines first.

    FLOPs and collectives are those of a step, findings those of the summary. With --quick FLOPs and some findings are left out.
    """
    from hlo_inspect.passes.modules import ModuleList

    request = replace(request, passes=MODULE_FACTS, also=(OVERVIEW,))
    found = Inspected(inputs, request, quiet=output.quiet, fail_on=fail_on, output=output.output)
    listed = ModuleList()
    for report in found:
        listed.add(report)
    if listed:
        deliver([listed.report(", ".join(inputs))], output)
    return found.status
