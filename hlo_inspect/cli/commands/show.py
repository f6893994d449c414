"""The command `show`: about one instruction, or about two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.inputs import Inspected
from hlo_inspect.cli.options import OutputOptions, ReadOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.passes import SHOW
from hlo_inspect.passes.show import Show

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


_PASS = Show()


@reading_command(SHOW, *_PASS.formats, help=_PASS.help())
@click.option(
    "--path", "ends", nargs=2, metavar="A B", shell_complete=completion.instructions, help="The ways from A to B instead."
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    default=Show.depth,
    show_default=True,
    metavar="N",
    help="How many steps around the instruction are shown.",
)
@click.option("--quick", is_flag=True, help="Leave out live ranges, and phases that names leave open: much faster.")
@click.argument("source", metavar="INPUT", shell_complete=completion.files)
@click.argument("name", metavar="[NAME|LINE|PATTERN]", required=False, shell_complete=completion.instructions)
def command(
    source: str,
    name: str | None,
    ends: tuple[str, str] | None,
    depth: int,
    fail_on: Severity | None,
    *,
    quick: bool,
    output: OutputOptions,
    read: ReadOptions,
) -> int:
    if (name is None) == (ends is None):
        raise click.UsageError("give an instruction (NAME, LINE or PATTERN), or two of them with --path A B.")
    start, end = (name, None) if ends is None else ends
    query = {"name": start, "to": end, "depth": depth, "quick": quick}
    found = Inspected([source], [SHOW], read._replace(query=query), quiet=output.quiet, fail_on=fail_on, output=output.output)
    deliver(found, output)
    return found.status
