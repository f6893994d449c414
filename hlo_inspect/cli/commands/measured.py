"""The command `measured`: a recorded profile beside the bounds of its programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlo_inspect.atomic_files import atomic_writer
from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, reading_command
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.cli.streams import reported, tell
from hlo_inspect.errors import InputError
from hlo_inspect.inspection.fitted_profile import FittedRates
from hlo_inspect.passes import MEASURED, OTHERS
from hlo_inspect.report.table import number_of
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.report.model import Severity


@reading_command(MEASURED, help=OTHERS.load(MEASURED).help())
@click.option(
    "--fit",
    metavar="FILE.yaml",
    shell_complete=completion.files,
    help="Write the rates of the best kernels as a hardware profile that extends that of --profile.",
)
@click.argument("recorded", metavar="PROFILE", shell_complete=completion.files)
@click.argument("dump", metavar="[DUMP]", required=False, shell_complete=completion.files)
def measured(
    recorded: str, dump: str | None, fit: str | None, fail_on: Severity | None, *, output: OutputOptions, request: Request
) -> int:
    request = replace(request, passes=MEASURED, recorded=None if dump is None else recorded)
    needed = output.needed_tables if fit is None else None
    inspected = ReportStream([dump or recorded], request, output, fail_on, needed=needed)
    if fit is None:
        return max(deliver(inspected, output), inspected.status)
    if not request.profiles:
        raise click.UsageError("--fit needs --profile NAME, which the new profile extends.")
    if not fit.endswith((".yaml", ".yml")):
        raise click.UsageError(f"--fit takes the name of a .yaml file, which --profile can read, not {fit!r}.")
    refuse_to_overwrite(fit, [recorded, dump, *request.profiles])
    rates = FittedRates(request.profiles[0], recorded)
    return max(deliver(rates.noting(inspected), output), inspected.status) or _written(rates, fit)


def _written(rates: FittedRates, target: str) -> int:
    """Write the rates as a hardware profile and return the exit status."""
    try:
        text = rates.text(Path(target))
    except InputError as error:
        return reported(error)
    with atomic_writer(target) as stream:
        stream.write(text)
    tell(f"hlo-inspect: {target}: {number_of(len(rates), 'rate')} of the best kernels")
    return 0
