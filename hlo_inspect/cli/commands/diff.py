"""`diff`: what changed between two dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command("diff", short_help="What changed between two dumps, directories of dumps or saved reports.")
@click.option(
    "--fail-if",
    "conditions",
    metavar="COND",
    multiple=True,
    shell_complete=completion.facts,
    help="Exit with 1 when this is so: 'memory.peak_bytes > +5%', 'collectives.count != 0' (NEW - OLD), "
    "'optimizer.name different', or different (any difference).",
)
@click.option("--new-module", metavar="REGEX", help="Modules of NEW whose name matches, where --module is about OLD alone.")
@click.argument("old", shell_complete=completion.files)
@click.argument("new", shell_complete=completion.files)
def command(
    old: str,
    new: str,
    conditions: tuple[str, ...],
    new_module: str | None,
    fail_on: Severity | None,
    *,
    output: OutputOptions,
    request: Request,
) -> int:
    """What changed from OLD to NEW: facts first, then what explains them.

    OLD and NEW are files, directories, patterns or reports that --format json wrote. Several modules are paired by name, then
    by content. What is the same up to names, numbers and metadata is the same program. A difference is exit status 0, except
    where a --fail-if or --fail-on is met. Only findings that OLD does not have are shown.
    """
    from hlo_inspect.checks.policy import given
    from hlo_inspect.cli.differences import PairedModules, judged, parsed
    from hlo_inspect.inspection.comparisons import ComparedInput

    paired = PairedModules(ComparedInput(old), ComparedInput(new, new_module), request, output, fail_on, with_notes=False)
    deliver(judged(paired, parsed(given("--fail-if", text) for text in conditions)), output)
    return paired.status
