"""`help`: the list of commands, the help of one, and the options that commands share."""

from __future__ import annotations

import click

from hlo_inspect.cli.commands import COMMANDS, OVERVIEW, find_command
from hlo_inspect.cli.options import OWN_OPTIONS, SectionedCommand

OPTIONS = "options"
"""Topic of the options that commands share."""


@click.command("help", cls=SectionedCommand)
@click.argument("topic", metavar="[COMMAND|options]", required=False)
@click.pass_context
def help_command(context: click.Context, topic: str | None) -> int:
    """Show the list of commands, the help of one, or with `options` the options that commands share."""
    click.echo(_text(context.find_root(), topic))
    return 0


def _text(root: click.Context, topic: str | None) -> str:
    if topic is None:
        return root.get_help()
    if topic == OPTIONS:
        return _shared_options(root)
    command = find_command(topic)
    if command is None:
        from hlo_inspect.errors import did_you_mean

        raise click.UsageError(f"there is no command {topic!r}{did_you_mean(topic, (*COMMANDS, OPTIONS))}", root)
    return command.get_help(click.Context(command, info_name=command.name, parent=root))


def _shared_options(root: click.Context) -> str:
    """Return the options that commands share by section: `summary` takes those of all sections."""
    command = find_command(OVERVIEW)
    formatter = root.make_formatter()
    if not isinstance(command, SectionedCommand):
        return ""
    context = click.Context(command, info_name=command.name, parent=root)
    formatter.write_text("Options that commands share. `hlo-inspect COMMAND --help` names those that a command takes.")
    for name, options in command.options_by_section(context).items():
        if name == OWN_OPTIONS:
            continue
        with formatter.section(name):
            formatter.write_dl(list(filter(None, (option.get_help_record(context) for option in options))))
    return formatter.getvalue().rstrip("\n")
