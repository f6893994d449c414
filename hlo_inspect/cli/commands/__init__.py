"""The commands, in one explicit list: the passes, and others, each imported when it runs."""

from __future__ import annotations

import os
from importlib import import_module

import click

from hlo_inspect.passes import PASSES, SUMMARIES, WORKLOAD, find_pass, workload_pass
from hlo_inspect.version import __version__

COMMANDS: dict[str, str] = {
    **SUMMARIES,
    "list": "List the modules: one row each, the largest first.",
    "check": "Check facts against a policy: exit status 1 when one fails.",
    "lint": "List the findings of all rules, the largest saving first; with a baseline only what is new.",
    "diff": "Compare OLD with NEW: facts that differ first, then the changes that explain them.",
    "report": "Write one HTML file: time of the step, kernels, collectives, memory, parameters, findings.",
    "show": "Show one instruction: its operands, users and source line; or a source line; or the paths between two.",
    "measured": "Show the measured time of a step beside its bound: kernels, collectives, waiting, runs and devices.",
    "export": "Write a step as input of a network simulator: ASTRA-sim 2 (Chakra), SimAI or ASTRA-sim 1.0.",
    "normalize": "Print the module with canonical names, for git diff and golden tests.",
    "ranks": "Compare the programs of all ranks of a job: which rank deviates, in which instruction, whether it hangs.",
    "history": "Show which compiler pass changed the module, from a dump directory with a file for each pass.",
    "bisect": "Find the compiler passes or flags on which a condition depends, by compiles without each of them.",
    "compile": "Compile a program for a target, without its devices, and show the summary of what comes out.",
    "remesh": "Compile the program of a dump for other meshes, and compare them.",
    "recompiles": "Show why each function was compiled again: one row per compile, with its reasons.",
    "collect": "Keep the facts of any number of dumps in a store, on one machine or a cluster.",
    "query": "Ask a store of `collect` with SQL, or a named query.",
    "skill": "Print a SKILL.md for agents: which command answers which question, and how to read it.",
    "mcp": "Serve summary, top, show, diff, check and lint over the Model Context Protocol.",
    "profiles": "List the hardware profiles, or show one with the sources of its figures.",
    "rules": "List the findings that exist.",
    "rule": "Show what a finding means, why it matters and how to fix it.",
}
"""Summary of each command in the list of commands."""

_FILES = {"list": "of_pass", **dict.fromkeys(("profiles", "rules", "rule"), "reference")}
"""The files of commands that are not called like them."""
_BUILTIN = frozenset({"list", "compile"})
"""Commands whose names Python has for functions of its own."""


def find_command(name: str) -> click.Command | None:
    """Return the command of a name or alias; None if there is none."""
    if name in COMMANDS and name not in SUMMARIES:
        module = import_module(f"{__name__}.{_FILES.get(name, name)}")
        command: click.Command = getattr(module, f"{name}_command" if name in _BUILTIN else name)
        return command
    from hlo_inspect.cli.commands.of_pass import command_of
    from hlo_inspect.errors import UsageError

    if name == WORKLOAD:
        return command_of(workload_pass())
    try:
        pass_ = find_pass(name)
    except UsageError:
        return None
    return command_of(pass_) if pass_.name in PASSES.names else None


class _Commands(click.Group):
    """Imports a command when it runs; for the list of all nothing is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first argument; `summary` if that is a file or directory and no command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from hlo_inspect.errors import did_you_mean

            if os.path.exists(args[0]):  # noqa: PTH110 - unlike pathlib it takes any text, as of a name that is too long
                return "summary", find_command("summary"), args

            message = error.message.removesuffix(".") + (did_you_mean(args[0], COMMANDS) or ".")
            raise click.UsageError(message, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _print_version(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    """Print the version, and which reader runs."""
    if is_asked and not context.resilient_parsing:
        from hlo_inspect.native.library import described

        click.echo(f"hlo-inspect, version {__version__} ({described()})")
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version and exit."
)
def cli() -> None:
    """Read XLA's HLO text dumps and answer in tables.

    INPUT is a file (.gz, .bz2, .xz and .zst too), - for standard input, a directory of dumps, or a pattern in quotes. Modules
    may stand in the middle of logs and mails, with a prefix on each line. Instruction lines without their module are read as a
    partial module. Other inputs are workload files of network simulators, XLA's memory reports, and with the extra [xla]
    serialized HLO (.pb), StableHLO and recorded profiles (.xplane.pb).

    Begin with `hlo-inspect summary INPUT`, or `hlo-inspect FILE` for short.
    """
