"""`recompiles`: why each function was compiled again."""

from __future__ import annotations

import click

from hlo_inspect.cli.options import OutputOptions, SectionedCommand, fail_if_option, inputs_argument, output_options
from hlo_inspect.cli.output import deliver, refuse_to_overwrite_dump
from hlo_inspect.cli.report_stream import ReadingBar, require_local
from hlo_inspect.cli.streams import FAILED, reported


@click.command("recompiles", cls=SectionedCommand)
@output_options()
@click.option("--module", metavar="REGEX", help="Choose functions by the name of their module.")
@fail_if_option("Exit with 1 if this holds, for example 'recompiles.avoidable > 0' or 'recompiles.compiles > 12'.")
@inputs_argument("DIR...")
def recompiles(inputs: tuple[str, ...], module: str | None, conditions: tuple[str, ...], *, output: OutputOptions) -> int:
    """Show why each function was compiled again: one row per compile, with its reasons.

    DIR is a dump directory, as XLA writes it with --xla_dump_to=DIR, or any modules. Compiles are grouped by function, in the
    order of the inputs, then by module number. Each is compared with the earlier compile of its function that differs least.

    A compile for `nothing` is avoidable: the same program with the same flags and options was compiled before. Reasons come
    from the texts before optimizations and the files beside them.
    """
    from hlo_inspect.checks.fact_conditions import parse_conditions, with_conditions
    from hlo_inspect.compare.programs.recompile_report import RECOMPILE_SPECS, recompile_report
    from hlo_inspect.inspection.recompilations import Recompilations

    require_local("recompiles", inputs)
    parsed = parse_conditions(conditions, RECOMPILE_SPECS)
    with ReadingBar(wanted=not output.quiet) as bar:
        recompilations = Recompilations(module, bar.analysing)
        functions = recompilations.read(inputs)
        for function in functions:
            for compile_ in function.compiles:
                refuse_to_overwrite_dump(output.output, compile_.record.path)
    status = max(map(reported, recompilations.errors), default=0)
    if not functions:
        return status
    report = with_conditions(recompile_report(", ".join(inputs), functions, recompilations.notes), parsed)
    failed = report.verdict is not None and not report.verdict.passed
    return max(deliver([report], output), status, FAILED if failed else 0)
