"""The command `mcp`: a server of the Model Context Protocol."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import SectionedCommand


@click.command("mcp", cls=SectionedCommand)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, shell_complete=completion.files)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="End a call that takes longer.",
)
def mcp(folders: tuple[str, ...], timeout: float) -> int:
    """Serve the questions of `skill` over the Model Context Protocol, on standard input and output.

    The tools are summary, memory, collectives, params, time, top, optimizer, lint, show, diff, check, measured and query.

    The server reads local files within the folders, by default the working directory, and writes nothing. Symbolic links that
    lead out of the folders and remote addresses are refused. An answer has a limit of characters, and is framed as data: it
    quotes the dump. Each call runs in a process of its own, and a client can cancel it. Needs the extra [mcp].
    """
    from hlo_inspect.agents.server import serve
    from hlo_inspect.cli.commands import COMMANDS

    serve(folders or (".",), "hlo_inspect.cli.tool_process", COMMANDS, timeout)
    return 0
