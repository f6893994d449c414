"""The command `mcp`: a server of the Model Context Protocol."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import SectionedCommand


@click.command("mcp", cls=SectionedCommand)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, shell_complete=completion.files)
def mcp(folders: tuple[str, ...]) -> int:
    """Serve the questions of `skill` over the Model Context Protocol, on standard input and output.

    The tools are summary, memory, collectives, params, time, top, optimizer, lint, show, diff, check, measured and query.

    The server reads local files within the folders, by default the working directory, and writes nothing. Symbolic links that
    lead out of the folders and remote addresses are refused. An answer has a limit of characters, and is framed as data: it
    quotes the dump. Needs the extra [mcp].
    """
    from hlo_inspect.agents.server import serve
    from hlo_inspect.cli.commands import COMMANDS
    from hlo_inspect.cli.main import run

    serve(folders or (".",), run, COMMANDS)
    return 0
