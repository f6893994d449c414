"""`bisect`: the passes, flags or version of the compiler on which a condition depends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.compile_options import OpenCompiler, compile_options, without_places
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, output_options, request_options
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.streams import FAILED, tell
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.bisection.conditions import BisectCondition

_ARGUMENTS = {"passes": 0, "flags": 2, "versions": 1}
"""Arguments after PROGRAM by `--over`."""


@click.command("bisect", cls=SectionedCommand, short_help="Find the compiler passes, flags or version behind a fault.")
@output_options()
@request_options("bisect", without=("jobs",))
@compile_options
@click.option(
    "--over",
    type=click.Choice(["passes", "flags", "versions"]),
    required=True,
    help="Disable each pass that runs, try the flags of two sets, or versions of jaxlib (for TPUs of libtpu).",
)
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
    help="Let floating-point outputs differ by this number of units in the last place.",
)
@click.option(
    "--run", "command", metavar="'COMMAND {}'", help="Run a command on the folder of the dump: another exit status than 0."
)
@click.option(
    "--versions-from",
    "versions_list",
    metavar="LIST",
    default="",
    shell_complete=completion.files,
    help="Take versions from a file in place of pip: lines like '0.10.1 /path/to/environment', the oldest first.",
)
@click.argument("program", metavar="PROGRAM", shell_complete=completion.files)
@click.argument("sides", metavar="[A B | A..B]", nargs=-1, shell_complete=completion.files)
def bisect(
    program: str,
    compilations_of: OpenCompiler,
    sides: tuple[str, ...],
    over: str,
    versions_list: str,
    *,
    output: OutputOptions,
    request: Request,
    **given: Any,  # noqa: ANN401 - the options of `ConditionOptions`, as click hands them over
) -> int:
    """Find the compiler passes, flags or version on which a condition depends, by compiles with and without them.

    PROGRAM is what `compile` takes. The condition is what is wrong: --if on a fact, --if-differs on the outputs, or --run with
    a command.

    With --over passes the condition has to hold for the program as it is. Each pass and pipeline that ran is disabled alone
    (xla_disable_hlo_passes), those that changed the module first. If none alone is necessary, pairs of the likeliest are tried.
    Passes without which XLA cannot compile the program are a table of their own.

    With --over flags the condition has to differ between two sets, A and B: files of debug_options, or lists such as
    'xla_cpu_enable_fast_math=true xla_cpu_use_onednn=false'. The result is the least part of their difference that turns it.

    With --over versions the condition has to differ between two versions, A..B, such as 0.10.1..0.12.0. pip brings each version
    that is tried into the folder hlo-inspect of the cache (XDG_CACHE_HOME, else ~/.cache). If it has no wheels for this Python,
    another Python 3.11 or newer of pyenv or of PATH compiles. The result is the version with which the condition turns, and
    what `diff` says of the two programs.

    A line on standard error tells each step. Exit status 1: the condition does not hold, or nothing is necessary.
    """
    from hlo_inspect.bisection.bisect_reports import NECESSARY, flags_report, passes_report, versions_report
    from hlo_inspect.bisection.flags import bisect_flags, read_flags
    from hlo_inspect.bisection.passes import bisect_passes, check_pass_names
    from hlo_inspect.bisection.trials import Trials
    from hlo_inspect.bisection.versions import bisect_versions, open_first, versions_between

    if len(sides) != _ARGUMENTS[over]:
        raise click.UsageError("After PROGRAM --over flags takes A and B, --over versions A..B, --over passes nothing.")
    if versions_list and over != "versions":
        raise click.UsageError("--versions-from needs --over versions.")
    flags = [read_flags(side) for side in sides] if over == "flags" else []
    options = ConditionOptions(**given)
    refuse_to_overwrite(output.output, [program, *sides, options.expected, options.inputs, versions_list])
    with compilations_of(program, request.module, None) as compilations:
        request = compilations.on_target(request)
        condition = _condition(options, request)
        versions = versions_between(sides[0], compilations.target, versions_list) if over == "versions" else []
        if versions:
            open_first(compilations, versions)
        trials = Trials(compilations, condition, lambda line: None if output.quiet else tell(line))
        lists = [own for side, own in zip(sides, flags, strict=False) if not os.path.isfile(side)]  # noqa: PTH113 - a long list
        for typed in () if versions else (compilations.own_flags, *lists):
            check_pass_names(trials, typed)
        if versions:
            report = versions_report(program, trials, bisect_versions(trials, versions), request)
        elif flags:
            report = flags_report(program, trials, bisect_flags(trials, *flags))
        else:
            report = passes_report(program, trials, bisect_passes(trials))
    return max(deliver([without_places(report)], output), 0 if report.table(NECESSARY.name).rows else FAILED)


class ConditionOptions(NamedTuple):
    """The options that make the condition."""

    fact: str | None
    expected: str | None
    inputs: str
    tolerance: int
    command: str | None


def _condition(options: ConditionOptions, request: Request) -> BisectCondition:
    """Return the condition of the options. Raise UsageError unless there is exactly one."""
    from hlo_inspect.bisection.conditions import CommandCondition, TriedFact, TriedOutputs

    if (options.fact, options.expected, options.command).count(None) != 2:
        raise click.UsageError("bisect takes one condition: --if, --if-differs or --run.")
    if options.expected is None and (options.inputs or options.tolerance):
        raise click.UsageError("--inputs and --tolerance need --if-differs.")
    if options.fact is not None:
        return TriedFact(options.fact, request)
    if options.command is not None:
        return CommandCondition(options.command)
    return TriedOutputs(options.expected or "", options.inputs, options.tolerance)
