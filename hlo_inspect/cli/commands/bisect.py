"""`bisect`: the passes of the compiler on which a condition depends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.compile_options import OpenCompiler, compile_options, made_by, on_target
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options, request_options
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.streams import FAILED, tell
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.bisection.conditions import BisectCondition


@click.command("bisect", cls=SectionedCommand, short_help="Find the compiler passes on which a condition depends.")
@output_options()
@request_options("bisect", without=("jobs",))
@compile_options
@click.option("--over", type=click.Choice(["passes"]), required=True, help="Disable each pass and pipeline that runs.")
@click.option(
    "--if",
    "fact",
    metavar="'FACT OP VALUE'",
    shell_complete=completion.facts,
    help="Look at a fact of the compiled module, as `check --assert`, for example 'fusions.count > 20'.",
)
@click.option(
    "--if-differs",
    "expected",
    metavar="[EXPECTED.npz]",
    is_flag=False,
    flag_value="",
    help="Run the program on CPU: its outputs differ from these, or without a file from those without optimizations.",
)
@click.option(
    "--inputs", metavar="FILE.npz", default="", help="Run it on these arguments. Without a file they are made from a seed."
)
@click.option(
    "--tolerance",
    metavar="ULP",
    type=click.IntRange(min=0),
    default=0,
    help="Let floating-point outputs differ by so many units in the last place.",
)
@click.option(
    "--run", "command", metavar="'COMMAND {}'", help="Run a command on the folder of the dump: another exit status than 0."
)
@click.argument("program", metavar="PROGRAM", shell_complete=completion.files)
def bisect(
    program: str,
    compilations_of: OpenCompiler,
    over: str,
    fact: str | None,
    expected: str | None,
    inputs: str,
    tolerance: int,
    command: str | None,
    *,
    output: OutputOptions,
    request: Request,
) -> int:
    """Find the compiler passes on which a condition depends, by compiles without each of them.

    PROGRAM is what `compile` takes. The condition is what is wrong: --if on a fact, --if-differs on the outputs, or --run with
    a command. It has to hold for the program as it is. Each pass and pipeline that ran is disabled alone
    (xla_disable_hlo_passes), those that changed the module first. If none alone is necessary, pairs of the likeliest are.
    Passes without which XLA cannot compile the program are a table of their own.

    A line on standard error tells each step. Exit status 1: the condition does not hold, or no pass is necessary.
    """
    from hlo_inspect.bisection.bisect_reports import passes_report
    from hlo_inspect.bisection.passes import bisect_passes
    from hlo_inspect.bisection.trials import Trials

    refuse_to_overwrite(output.output, [program, expected, inputs])
    with compilations_of(program, request.module, None) as compilations:
        condition = _condition(fact, expected, inputs, tolerance, command, on_target(request, compilations))
        trials = Trials(compilations, condition, lambda line: None if output.quiet else tell(line))
        result = bisect_passes(trials)
        notes = (made_by(compilations), *condition.notes)
        report = passes_report(program, condition.text, result, trials.effort, notes)
    return max(deliver([report], output), 0 if result.necessary else FAILED)


def _condition(
    fact: str | None, expected: str | None, inputs: str, tolerance: int, command: str | None, request: Request
) -> BisectCondition:
    """Return the condition of the options. Raise UsageError unless there is exactly one."""
    from hlo_inspect.bisection.conditions import CommandCondition, DifferenceCondition, FactCondition

    if [fact, expected, command].count(None) != 2:
        raise click.UsageError("bisect takes one condition: --if, --if-differs or --run.")
    if expected is None and (inputs or tolerance):
        raise click.UsageError("--inputs and --tolerance need --if-differs.")
    if fact is not None:
        return FactCondition(fact, request)
    return CommandCondition(command) if command is not None else DifferenceCondition(expected or "", inputs, tolerance)
