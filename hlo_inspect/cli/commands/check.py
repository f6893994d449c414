"""`check`: facts against a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.config_options import current_config
from hlo_inspect.cli.options import OutputOptions, fail_if_option, inputs_argument, reading_command
from hlo_inspect.cli.output import deliver, refuse_to_overwrite
from hlo_inspect.cli.report_stream import ReportStream
from hlo_inspect.cli.streams import FAILED, UNREADABLE, tell
from hlo_inspect.cli.whole_modules import refusing, whole_modules
from hlo_inspect.report.formats import CI_FORMATS
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.checks.policy import Policy
    from hlo_inspect.compare.comparison import ModuleComparison
    from hlo_inspect.report.model import Report, Severity


@reading_command("check", *CI_FORMATS)
@click.option(
    "--policy",
    "policies",
    metavar="FILE",
    multiple=True,
    shell_complete=completion.files,
    help="Read checks from this YAML file. Repeat the option to add files.",
)
@click.option(
    "--assert",
    "assertions",
    metavar="EXPR",
    multiple=True,
    shell_complete=completion.facts,
    help="Check one condition, for example 'collectives.all-to-all.count == 0'.",
)
@click.option(
    "--baseline",
    metavar="FILE|DIRECTORY",
    shell_complete=completion.files,
    help="Compare INPUT with this for --fail-if: a dump, a directory of dumps, or a report that --format json wrote.",
)
@fail_if_option("Fail on this difference from the baseline, for example 'memory.peak_bytes > +5%' or 'different'; see `diff`.")
@click.option(
    "--allow-partial",
    is_flag=True,
    help="Check the part that a truncated module has. Without it a truncated module is exit status 3.",
)
@click.option("--list-facts", is_flag=True, help="List every fact with its meaning, and its value in INPUT if given.")
@inputs_argument(required=False)
def check(
    inputs: tuple[str, ...],
    policies: tuple[str, ...],
    assertions: tuple[str, ...],
    conditions: tuple[str, ...],
    baseline: str | None,
    fail_on: Severity | None,
    *,
    allow_partial: bool,
    list_facts: bool,
    output: OutputOptions,
    request: Request,
) -> int:
    """Check facts against a policy: exit status 1 when one fails.

    Each failed check prints the actual value and the rows that broke it; the last line is the verdict. A truncated module is
    not checked: exit status 3. Without --policy, --assert, --fail-on and --fail-if the policies of the configuration hold.
    """
    from hlo_inspect.checks.needed_passes import passes_for
    from hlo_inspect.checks.runner import CheckRun

    if list_facts:
        if policies or assertions or conditions or baseline is not None or fail_on is not None:
            raise click.UsageError(
                "--list-facts checks nothing: leave out --policy, --assert, --baseline, --fail-if, --fail-on."
            )
        return _list_facts(inputs, request, output)
    if not inputs:
        raise click.UsageError("Missing argument 'INPUT...'.")
    config = current_config()
    if config is not None and not (policies or assertions or conditions or fail_on):
        policies = config.policies
    policy = _policy(policies, assertions, conditions, fail_on)
    refuse_to_overwrite(output.output, policies)
    if policy.fail_if or baseline is not None:
        return _against_baseline(baseline, inputs, policy, request, output, allow_partial=allow_partial)
    asked = replace(request, passes=passes_for(policy))
    inspected = ReportStream(inputs, asked, output, every_rule=True)
    run = CheckRun(policy)
    checked = run.reports(inspected if allow_partial else whole_modules(inspected, run, "checked"), refusing(run))
    status = deliver(checked, output)
    return max(status, inspected.status, UNREADABLE if run.refused else 0, FAILED if run.failed else 0)


def _against_baseline(
    baseline: str | None, inputs: Sequence[str], policy: Policy, request: Request, output: OutputOptions, *, allow_partial: bool
) -> int:
    """Check the modules of one input, and their differences from those of the baseline."""
    from hlo_inspect.checks.differences import as_checks, examined, no_mate
    from hlo_inspect.checks.runner import CheckResult, CheckRun
    from hlo_inspect.cli.commands.diff import PairedModules, parsed
    from hlo_inspect.inspection.comparisons import ComparedInput

    if baseline is None:
        raise click.UsageError("--fail-if needs --baseline: it names the dump or report to compare INPUT with.")
    if not policy.fail_if:
        raise click.UsageError("--baseline alone checks nothing: name a difference with --fail-if.")
    if len(inputs) != 1:
        raise click.UsageError(f"--baseline takes one input, not {len(inputs)}.")
    conditions = parsed(policy.fail_if)
    paired = PairedModules(ComparedInput(baseline), ComparedInput(inputs[0]), request, output)
    compared: dict[int, ModuleComparison] = {}
    lost = []

    def reports() -> Iterator[Report]:
        for pair in paired:
            if pair.new is None:
                lost.append(pair.report)
                continue
            compared[id(pair.new.report)] = pair
            yield pair.new.report

    def differences(report: Report) -> list[CheckResult]:
        pair = compared.pop(id(report))
        if pair.old is None:
            return [no_mate()]
        results = examined(
            conditions,
            pair.old.report,
            report,
            is_different=pair.is_different,
            have_other_flags=pair.have_other_flags,
            sides=("the baseline", "the module"),
        )
        return as_checks(results)

    run = CheckRun(policy, differences)
    checked = run.reports(reports() if allow_partial else whole_modules(reports(), run, "checked"), refusing(run))
    status = deliver(checked, output)
    for report in lost:
        tell(f"hlo-inspect: {report.input.path}: {inputs[0]} has no module to compare with {report.facts['module.name']}")
    return max(status, paired.status, UNREADABLE if run.refused else 0, FAILED if run.failed or lost else 0)


def _list_facts(inputs: Sequence[str], request: Request, output: OutputOptions) -> int:
    """List all facts; with inputs, those of their reports with values."""
    from hlo_inspect.checks.needed_passes import all_passes
    from hlo_inspect.checks.policy import facts_of, facts_report
    from hlo_inspect.passes import all_specs

    if not inputs:
        return deliver([facts_report(all_specs())], output)
    inspected = ReportStream(inputs, replace(request, passes=all_passes()), output)
    return max(deliver(map(facts_of, inspected), output), inspected.status)


def _policy(files: Iterable[str], assertions: Iterable[str], conditions: Iterable[str], fail_on: Severity | None) -> Policy:
    """Join the policies, assertions and conditions of the command line."""
    from hlo_inspect.checks.policy import Policy, given, parse_assertion, read_policy

    policy = Policy()
    for file in files:
        read = read_policy(file)
        policy = Policy(
            policy.assertions + read.assertions,
            read.fail_on or policy.fail_on,
            policy.ignores + read.ignores,
            policy.fail_if + read.fail_if,
        )
    added = tuple(parse_assertion(text) for text in assertions)
    return Policy(
        policy.assertions + added,
        fail_on or policy.fail_on,
        policy.ignores,
        (*policy.fail_if, *(given("--fail-if", text) for text in conditions)),
    )
