"""`lint`: the findings of all rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.config_options import current_config
from hlo_inspect.cli.options import OutputOptions, inputs_argument, reading_command, split_names
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.cli.streams import FAILED, UNREADABLE, tell
from hlo_inspect.cli.whole_modules import refusing, whole_modules
from hlo_inspect.errors import CompileError
from hlo_inspect.passes import FINDINGS
from hlo_inspect.report.formats import CI_FORMATS, FORMATS_FOR_PEOPLE
from hlo_inspect.report.model import Severity
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.checks.lint_config import LintConfig
    from hlo_inspect.checks.lint_reports import LintRun


@reading_command("lint", *CI_FORMATS)
@click.option(
    "--select",
    metavar="RULE,…",
    multiple=True,
    shell_complete=completion.rules,
    help="Report only these rules, by code or name; * stands for any text: 'HI2*'.",
)
@click.option(
    "--ignore",
    metavar="RULE,…",
    multiple=True,
    shell_complete=completion.rules,
    help="Leave out these rules, by code or name.",
)
@click.option(
    "--threshold",
    "thresholds",
    metavar="RULE=SIZE",
    multiple=True,
    help="Set the least stake that a rule reports, for example small-collectives=4MiB or widened-matmul=10GFLOP.",
)
@click.option("--explain", is_flag=True, help="Print the documentation of each rule that found something.")
@click.option(
    "--policy",
    metavar="FILE",
    shell_complete=completion.files,
    help="Take `ignore` and `fail-on` of this policy, as `check` does.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    shell_complete=completion.files,
    help="Report only findings that are not in this file. A new error or warning is exit status 1.",
)
@click.option("--update-baseline", is_flag=True, help="Write the findings of INPUT to the file of --baseline.")
@click.option("--strict-baseline", is_flag=True, help="Fail if the baseline accepts findings that no longer occur.")
@click.option(
    "--allow-partial", is_flag=True, help="Lint the part of a truncated module too. Without it that is exit status 3."
)
@click.option("--prove", is_flag=True, help="Compile the StableHLO of INPUT with the remedy of each finding: what it saves.")
@click.option(
    "--on", metavar="TARGET", default="cpu", show_default=True, help="Compile for this target with --prove, as `compile` does."
)
@click.option("--keep", metavar="FOLDER", help="Keep what XLA writes with --prove: a folder before, and one for each rule.")
@inputs_argument()
def lint(
    inputs: tuple[str, ...],
    fail_on: Severity | None,
    *,
    output: OutputOptions,
    request: Request,
    **given: Any,  # noqa: ANN401 - the options of `LintOptions`, as click hands them over
) -> int:
    """List the findings of all rules, the largest saving first.

    The stake is what mending saves in one step on one device: bytes, FLOPs, or with --profile seconds. Its share of the step's
    time or of memory orders the rows; errors and faults of the text come before them. Equal findings, as of all layers, are
    one row. Findings of several modules are one table; JSON and the formats for CI have a report for each module.
    The exit status is 0 unless --fail-on is reached, or a baseline lacks an error or a warning.

    With --prove INPUT is a program as `compile` takes it. It is compiled as it is, and with the remedy of each finding written
    into its StableHLO: donations, shardings, constraints. Numerics are not compared.
    """
    from hlo_inspect.checks.baseline import write_baseline

    config = _config()
    options = LintOptions(**given)
    if options.baseline is None:
        options = options._replace(baseline=config.baseline)
    refuse_to_overwrite(output.output, [options.policy, options.baseline])
    run = _run(options, config, fail_on)
    asked = replace(request, passes=(FINDINGS,), thresholds=(*request.thresholds, *options.thresholds))
    if options.prove:
        from hlo_inspect.cli.proving import proved

        try:
            report = proved(inputs, asked, run, options.on, options.keep, wants_bar=not output.quiet)
        except CompileError as error:  # the program as it is
            tell(f"hlo-inspect: {error}")
            return FAILED
        return max(deliver([report], output), FAILED if run.failed else 0)
    if options.keep is not None:
        raise click.UsageError("--keep needs --prove.")
    inspected = ReportStream(inputs, asked, output, every_rule=True)
    linted = run.reports(inspected if options.allow_partial else whole_modules(inspected, run, "linted"), refusing(run))
    if output.format in FORMATS_FOR_PEOPLE:
        from hlo_inspect.checks.lint_page import one_page

        linted = one_page(linted, run)
    status = max(deliver(linted, output), inspected.status, UNREADABLE if run.refused else 0)
    if options.update_baseline and options.baseline is not None:
        if status == 0:
            entries = write_baseline(options.baseline, run.counted)
            tell(f"hlo-inspect: {options.baseline}: wrote the baseline (entries: {entries:,})")
        return status
    return max(status, FAILED if run.failed or (options.strict_baseline and run.has_stale_entries) else 0)


class LintOptions(NamedTuple):
    """The options of `lint` beyond those of all commands that read modules."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    thresholds: tuple[str, ...] = ()
    explain: bool = False
    policy: str | None = None
    baseline: str | None = None
    update_baseline: bool = False
    strict_baseline: bool = False
    allow_partial: bool = False
    prove: bool = False
    on: str = "cpu"
    keep: str | None = None


def _config() -> LintConfig:
    from hlo_inspect.checks.lint_config import LintConfig

    config = current_config()
    return config.lint if config is not None else LintConfig()


def _run(options: LintOptions, config: LintConfig, fail_on: Severity | None) -> LintRun:
    """Return the run that the options and the configuration ask for. Raise UsageError if they contradict each other."""
    from hlo_inspect.checks.baseline import read_baseline
    from hlo_inspect.checks.lint_config import RuleSelection
    from hlo_inspect.checks.lint_reports import LintRun
    from hlo_inspect.checks.policy import Policy, read_policy

    if options.baseline is None and (options.update_baseline or options.strict_baseline):
        raise click.UsageError("--update-baseline and --strict-baseline need --baseline FILE.")
    if options.update_baseline and options.strict_baseline:
        raise click.UsageError("--update-baseline writes what --strict-baseline compares with: give one of them.")
    policy = read_policy(options.policy) if options.policy is not None else Policy()
    selection = RuleSelection(
        split_names(*options.select) or config.selection.select,
        (*split_names(*options.ignore), *config.selection.ignore),
    )
    is_read = options.baseline is not None and not options.update_baseline
    return LintRun(
        selection,
        (*policy.ignores, *config.ignores),
        baseline=read_baseline(options.baseline) if is_read and options.baseline is not None else None,
        fail_on=fail_on or policy.fail_on or config.fail_on,
        explains=options.explain,
    )
