"""The commands: options -> inspect -> renderer -> exit status. Each pass is one; its docstring is the help text.

What only one command needs, and what renders, is imported when it runs: `--help` has to feel instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.inputs import FAILED, UNREADABLE, Inspected, with_name
from hlo_inspect.cli.normalize import normalize
from hlo_inspect.cli.options import (
    OutputOptions,
    ReadOptions,
    cost_model_options,
    fail_on_option,
    output_options,
    read_options,
    take_output,
    take_read,
)
from hlo_inspect.cli.output import deliver, deliver_bytes, refuse_to_overwrite
from hlo_inspect.cli.streams import tell
from hlo_inspect.errors import InputError
from hlo_inspect.passes import ALPA, MODULE_FACTS, PASSES, WORKLOAD, all_specs, find_pass

if TYPE_CHECKING:
    from hlo_inspect.checks.policy import Policy
    from hlo_inspect.checks.runner import CheckRun
    from hlo_inspect.passes.base import Question
    from hlo_inspect.report.model import Report, Severity

OVERVIEW, _FEW, _PAGES = "summary", 3, ("table", "markdown")
"""The pass after whose pages, in formats for people, comes a list of the modules where there are more than these few."""

UNPARSED_LINES, EVERY_LINE = "module.unparsed_lines", "summary"
"""A fact that is known where every line is read, and the pass that asks for that."""


def _pass_commands(one: Question) -> list[click.Command]:
    """The command of a pass, and the same under its other names."""

    @output_options
    @read_options
    @fail_on_option
    @click.argument(
        "inputs",
        metavar="INPUT... [NAME]" if one.takes_name else "INPUT...",
        nargs=-1,
        shell_complete=completion.files,
        required=True,
    )
    def run(
        inputs: tuple[str, ...],
        fail_on: Severity | None,
        *,
        quick: bool = False,
        to: str | None = None,
        **arguments: Any,  # noqa: ANN401 - click hands over all options
    ) -> int:
        output, read = take_output(arguments), take_read(arguments)
        if one.takes_name:
            inputs, name = with_name(inputs)
            read = replace(read, name=name)
        if to is not None:
            return _rewritten(inputs, to, output)
        also = () if quick else one.also
        read = replace(read, phases="names") if quick else read
        names = (one.name,) if read.cost_model is None else (one.name, ALPA.name)
        found = Inspected(inputs, names, read, also, quiet=output.quiet, fail_on=fail_on, output=output.output)
        ends_with_list = one.name == OVERVIEW and output.format in _PAGES and output.table is None
        deliver(_with_list(found, inputs) if ends_with_list else found, output)
        return found.status

    if one.also:
        run = click.option("--quick", is_flag=True, help=f"Leave out {' and '.join(one.also)}: several times as fast.")(run)
    if one.cost_models:
        run = cost_model_options(one.cost_models)(run)
    if one.writes:
        run = click.option("--to", type=click.Choice(one.writes), help="Write the input in this dialect instead.")(run)
    command = click.command(one.name, help=one.help(), short_help=one.summary())(run)
    others = [
        click.Command(alias, callback=command.callback, params=command.params, help=one.help(), hidden=True)
        for alias in one.aliases
    ]
    return [command, *others]


def _rewritten(inputs: Sequence[str], to: str, output: OutputOptions) -> int:
    """Writes the workload file in another dialect."""
    from hlo_inspect.inspection.workload_reports import rewritten_workload

    if len(inputs) != 1:
        raise click.UsageError(f"--to writes one workload file, and there are {len(inputs)}.")
    refuse_to_overwrite(output.output, inputs)
    deliver_bytes(rewritten_workload(inputs[0], to), output)
    return 0


def _with_list(reports: Iterable[Report], inputs: Iterable[str]) -> Iterator[Report]:
    """The reports as they come and, where they are more than a few, the list of them."""
    from hlo_inspect.passes.modules import ModuleList

    listed = ModuleList()
    yield from listed.noting(reports)
    if len(listed) > _FEW:
        yield listed.report(", ".join(inputs))


@click.command("list", short_help="List the modules: one row each, the largest first.")
@output_options
@read_options
@fail_on_option
@click.option("--quick", is_flag=True, help="Leave out costs and optimizer: several times as fast.")
@click.argument("inputs", metavar="INPUT...", nargs=-1, shell_complete=completion.files, required=True)
def list_modules(inputs: tuple[str, ...], fail_on: Severity | None, *, quick: bool, **arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """List the modules of files, directories and patterns in quotes: one row each, the one with the most lines first.

    FLOPs and collectives are those of a step, findings those of the summary. With --quick FLOPs and some findings are left out.
    """
    from hlo_inspect.passes.modules import PASSES as SHOWN
    from hlo_inspect.passes.modules import ModuleList

    output, read = take_output(arguments), take_read(arguments)
    also = SHOWN if quick else (*SHOWN, *find_pass(OVERVIEW).also)
    read = replace(read, phases="names") if quick else read
    found = Inspected(inputs, (MODULE_FACTS.name,), read, also, quiet=output.quiet, fail_on=fail_on, output=output.output)
    listed = ModuleList()
    for report in found:
        listed.add(report)
    if listed:
        deliver([listed.report(", ".join(inputs))], output)
    return found.status


@click.command("check")
@output_options
@read_options
@fail_on_option
@click.option(
    "--policy", "policies", metavar="FILE", multiple=True, shell_complete=completion.files, help="YAML policy; several add up."
)
@click.option(
    "--assert",
    "assertions",
    metavar="EXPR",
    multiple=True,
    shell_complete=completion.facts,
    help="An assertion, as 'collectives.all-to-all.count == 0'.",
)
@click.option("--allow-partial", is_flag=True, help="Check what there is of a module that is cut off; else exit status 3.")
@click.option("--list-facts", is_flag=True, help="Print every fact with its meaning, and its value in INPUT.")
@click.argument("inputs", metavar="INPUT...", nargs=-1, shell_complete=completion.files)
def check(
    inputs: tuple[str, ...],
    policies: tuple[str, ...],
    assertions: tuple[str, ...],
    fail_on: Severity | None,
    *,
    allow_partial: bool,
    list_facts: bool,
    **arguments: Any,  # noqa: ANN401 - click hands over all options
) -> int:
    """Check facts against a policy: exit status 1 when one fails.

    Each failed check prints the actual value and the rows that broke it; the last line is the verdict. A module that is cut
    off is not checked, which is exit status 3.
    """
    from hlo_inspect.checks.runner import CheckRun

    output, read = take_output(arguments), take_read(arguments)
    if list_facts:
        return _list_facts(inputs, read, output)
    if not inputs:
        raise click.UsageError("Missing argument 'INPUT...'.")
    policy = _policy(policies, assertions, fail_on)
    refuse_to_overwrite(output.output, policies)
    found = Inspected(inputs, passes_for(policy), read, quiet=output.quiet, output=output.output)
    run = CheckRun(policy)
    deliver(run.reports(found if allow_partial else _whole(found, run)), output)
    return max(found.status, UNREADABLE if run.refused else 0, FAILED if run.failed else 0)


@click.command("diff", short_help="What changed between two dumps, directories of dumps or saved reports.")
@output_options
@read_options
@fail_on_option
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
def diff(
    old: str,
    new: str,
    conditions: tuple[str, ...],
    new_module: str | None,
    fail_on: Severity | None,
    **arguments: Any,  # noqa: ANN401 - click hands over all options
) -> int:
    """What changed from OLD to NEW: facts first, then what explains them.

    OLD and NEW are files, directories, patterns or reports that --format json wrote. Several modules are paired by name, then
    by content. What is the same up to names, numbers and metadata is the same program. A difference is exit status 0, except
    where a --fail-if or --fail-on is met. Of the findings those are shown that OLD does not have.
    """
    from hlo_inspect.cli.differences import Compared

    output, read = take_output(arguments), take_read(arguments)
    found = Compared(old, new, new_module, read, conditions, fail_on, output)
    deliver(found, output)
    return found.status


def _whole(reports: Iterable[Report], run: CheckRun) -> Iterator[Report]:
    """The reports on whole modules; the others are refused."""
    for report in reports:
        if _is_whole(report):
            yield report
        else:
            run.refused += 1


def _is_whole(report: Report) -> bool:
    """Whether the text holds the whole module; where it does not, an error says what to do."""
    from hlo_inspect.rules.reading_problems import is_part, truncation

    cut = truncation(report)
    if cut is not None:
        inside = f" inside {cut.subject}" if cut.subject is not None else ""
        name = report.facts.get("module.name", report.title)
        what = "a part of a module is" if is_part(cut) else f"{name} is cut off{inside} and is"
        message = f"{what} not checked: its facts would be those of a part (--allow-partial checks it)"
        tell(f"hlo-inspect: {InputError(message, cut.location)}")
    return cut is None


def _list_facts(inputs: Sequence[str], read: ReadOptions, output: OutputOptions) -> int:
    """The facts that there are, with their values where there are inputs."""
    from hlo_inspect.checks.facts import facts_of, facts_report

    if not inputs:
        deliver([facts_report(all_specs())], output)
        return 0
    found = Inspected(inputs, _all_names(), read, quiet=output.quiet, output=output.output)
    deliver(map(facts_of, found), output)
    return found.status


def _policy(files: Iterable[str], assertions: Iterable[str], fail_on: Severity | None) -> Policy:
    """The policies and assertions of the command line as one."""
    from hlo_inspect.checks.policy import Policy, parse_assertion, read_policy

    policy = Policy()
    for file in files:
        one = read_policy(file)
        policy = Policy(policy.assertions + one.assertions, one.fail_on or policy.fail_on, policy.ignores + one.ignores)
    added = tuple(parse_assertion(text) for text in assertions)
    return replace(policy, assertions=policy.assertions + added, fail_on=fail_on or policy.fail_on)


def passes_for(policy: Policy) -> list[str]:
    """The passes whose facts the policy names or whose findings it ignores; all where findings can fail. Unknown facts are
    refused before reading.
    """
    from hlo_inspect.checks.resolve import resolve
    from hlo_inspect.report.facts import find_spec
    from hlo_inspect.rules import RULES
    from hlo_inspect.rules.reading_problems import READING_PROBLEMS

    facts = [resolve(assertion, all_specs()).name for assertion in policy.assertions]
    if policy.fail_on is not None or not facts:
        return _all_names()
    ignored = {ignore.rule for ignore in policy.ignores}
    named = {rule.passes[0] for rule in RULES if rule.code in ignored}
    if UNPARSED_LINES in facts or any(page.code in ignored for page in READING_PROBLEMS):
        named.add(EVERY_LINE)
    named |= {one.name for one in (*PASSES, ALPA, WORKLOAD) if any(find_spec(fact, one.specs) for fact in facts)}
    return [name for name in _all_names() if name in named] or [MODULE_FACTS.name]


def _all_names() -> list[str]:
    return [one.name for one in (*PASSES, ALPA, WORKLOAD)]


@click.command("profiles", short_help="List the hardware profiles, or show one with the sources of its figures.")
@output_options
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=completion.profiles)
def profiles(name: str | None, **arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """List the hardware profiles, or show one with the source of each figure."""
    from hlo_inspect.passes.profiles import profile_report, profiles_report

    output = take_output(arguments)
    deliver([profiles_report() if name is None else profile_report(name)], output)
    return 0


@click.command("rules", short_help="List the findings that exist.")
@output_options
def rules(**arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """List the findings that exist: code, name, severity and one line."""
    from hlo_inspect.passes.rule_pages import rules_report

    deliver([rules_report()], take_output(arguments))
    return 0


@click.command("rule", short_help="Show what a finding means, why it matters and how to fix it.")
@output_options
@click.argument("name", metavar="CODE|NAME", shell_complete=completion.rules)
def rule(name: str, **arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
    """Show what a finding means, why it matters and how to fix it: `hlo-inspect rule HI506`."""
    from hlo_inspect.passes.rule_pages import rule_report

    deliver([rule_report(name)], take_output(arguments))
    return 0


COMMANDS: tuple[click.Command, ...] = (
    *(command for one in (*PASSES, WORKLOAD) for command in _pass_commands(one)),
    list_modules,
    check,
    diff,
    normalize,
    profiles,
    rules,
    rule,
)
