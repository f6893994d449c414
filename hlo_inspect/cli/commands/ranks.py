"""The command `ranks`: whether all ranks of a job run the same program, and if not, whether they hang."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import OutputOptions, SectionedCommand, fail_if_option, output_options
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReadingBar, require_local
from hlo_inspect.cli.streams import FAILED, reported


@click.command("ranks", cls=SectionedCommand)
@output_options()
@fail_if_option("Exit with 1 if this holds, for example 'ranks.hangs > 0' or 'ranks.deviating > 0'.")
@click.option("--module", metavar="REGEX", help="Choose modules by name.")
@click.argument("pattern", metavar="PATTERN", nargs=-1, required=True, shell_complete=completion.files)
def ranks(pattern: tuple[str, ...], conditions: tuple[str, ...], module: str | None, *, output: OutputOptions) -> int:
    """Compare the programs of all ranks of a job: which rank deviates, in which instruction, and whether it hangs.

    PATTERN names a dump directory for each rank: 'dumps/{rank}' or 'process-*' in quotes, a directory of directories, or
    several directories. What {rank} or * stands for is the rank. The majority is what most ranks run. Names, numbers, paths
    and choices of autotuning are no deviation.

    Ranks hang if their collectives wait for each other in a cycle. That is decided for all ranks as they are, by the devices of
    each collective and their order.
    """
    from hlo_inspect.checks.fact_conditions import parse_conditions, with_conditions
    from hlo_inspect.compare.programs.rank_tables import RANK_SPECS
    from hlo_inspect.inspection.rank_reports import RankReports

    require_local("ranks", pattern)
    parsed = parse_conditions(conditions, RANK_SPECS)
    with ReadingBar(wanted=not output.quiet) as bar:
        comparison = RankReports(pattern, module, bar.analysing)
        report = with_conditions(comparison.report(), parsed)
        refuse_to_overwrite(output.output, comparison.paths)
    failed = FAILED if report.verdict is not None and not report.verdict.passed else 0
    return max([deliver([report], output), failed, *map(reported, comparison.errors)])
