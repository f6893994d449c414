"""The commands, in one explicit list: the passes, and others, each imported when it runs."""

from __future__ import annotations

import os
from importlib import import_module

import click

from hlo_inspect.passes import PASSES, PASSES_OF_COMMANDS, WORKLOAD, find_pass, workload_pass
from hlo_inspect.version import __version__

OVERVIEW = "summary"
"""Command of a file without a command."""

GROUPS: dict[str, dict[str, str]] = {
    "Begin": {
        "summary": "Show one page: the program, its costs and what looks wrong.",
        "report": "Write one HTML file with pictures and tables.",
        "lint": "List what looks wrong, the largest saving first.",
    },
    "Ask": {
        "list": "List the modules: one row each, the largest first.",
        "params": "List parameters: role, sharding, donated or why not.",
        "collectives": "List collectives: bytes sent, mesh axis, runs and source line.",
        "time": "Show the time of a step by part, and its bottleneck.",
        "top": "List kernels by cost, with shape and source line.",
        "memory": "Show if it fits, what is live at the peak, the largest arrays.",
        "optimizer": "Show rule and constants of the optimizer, weights and moments.",
        "cost": "Count FLOPs and bytes by opcode, phase and source line.",
        "fusions": "List fusions by kind, root and content.",
        "custom-calls": "List custom calls by target, with the work of each.",
        "show": "Show an instruction, a line of Python, or a path between two.",
        "measured": "Show measured times of a step beside its bound.",
        "compile": "Compile a program for a target, and show its summary.",
    },
    "Compare": {
        "diff": "Compare two dumps: what changed for the step, then why.",
        "history": "Show which compiler pass changed the module.",
        "bisect": "Find the compiler passes, flags or version behind a fault.",
        "recompiles": "Show why each function was compiled again.",
        "ranks": "Compare the programs of all ranks: which deviates, who hangs.",
        "remesh": "Compile the program of a dump for other meshes.",
        "normalize": "Print the module with canonical names, for git diff.",
        "fingerprint": "Print hashes of program, schedule and cache key.",
    },
    "CI": {
        "check": "Check facts against a policy: exit status 1 when one fails.",
    },
    "Fleets": {
        "collect": "Keep the facts of any number of dumps in a store.",
        "query": "Ask a store, or one dump as tables, with SQL.",
    },
    "Other": {
        "export": "Write a step as input of a network simulator.",
        WORKLOAD: "Read or convert a workload file of a network simulator.",
        "profiles": "List the hardware profiles, or show one with its sources.",
        "rules": "List the findings that exist.",
        "rule": "Show what a finding means, why it matters and how to fix it.",
        "skill": "Print a SKILL.md for agents.",
        "mcp": "Serve these answers over the Model Context Protocol.",
        "help": "Show this page, a command's help, or the shared options.",
    },
}
"""Commands by group, each with its line in the list of commands."""

COMMANDS: dict[str, str] = {name: line for commands in GROUPS.values() for name, line in commands.items()}
_LONGEST = max(map(len, COMMANDS))

_FILES = {"list": "of_pass", **dict.fromkeys(("profiles", "rules", "rule"), "reference")}
"""The files of commands that are not called like them."""
_BUILTIN = frozenset({"list", "compile", "help"})
"""Commands whose names Python has for functions of its own."""


def find_command(name: str) -> click.Command | None:
    """Return the command of a name or alias; None if there is none."""
    if name in COMMANDS and name not in PASSES_OF_COMMANDS:
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
                return OVERVIEW, find_command(OVERVIEW), args

            message = error.message.removesuffix(".") + (did_you_mean(args[0], COMMANDS) or ".")
            raise click.UsageError(message, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{_LONGEST}}", line) for name, line in commands.items()])


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

    Begin with `hlo-inspect summary INPUT`, or `hlo-inspect FILE` for short. `hlo-inspect help options` has the options that
    commands share.
    """
