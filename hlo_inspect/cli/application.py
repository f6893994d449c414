"""The command line as click has it: the group of all commands."""

from __future__ import annotations

import click

from hlo_inspect.cli.commands import COMMANDS, find_command
from hlo_inspect.version import __version__


class _Commands(click.Group):
    """Imports a command when it runs; for the list of all nothing is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_command(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from hlo_inspect.errors import did_you_mean

            message = error.message.removesuffix(".") + (did_you_mean(args[0], COMMANDS) or ".")
            raise click.UsageError(message, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="hlo-inspect")
def cli() -> None:
    """Read XLA's HLO text dumps and answer in tables.

    INPUT is a file (.gz, .bz2, .xz and .zst too), - for standard input, a directory of dumps or other HLO texts, or a pattern
    in quotes. Modules are found in logs and mails, behind prefixes of their lines too, and lines that are quoted of one are
    read as a part of it. Workload files of network simulators and XLA's files about memory are inputs too, and with the extra
    [xla] serialized HLO (.pb) and StableHLO.
    """
