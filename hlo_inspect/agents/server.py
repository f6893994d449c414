"""The server of `mcp`: answers of commands over the Model Context Protocol, on standard input and output.

A tool runs a command line in a process of its own, and answers with what the command prints. It reads the folders of the server
and writes nothing. This process keeps the protocol, which the SDK moves to private copies of the standard streams.
"""

from __future__ import annotations

import logging
import os
import select
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

from hlo_inspect.agents.admission import LAST_SECONDS, limited
from hlo_inspect.agents.calls import Calls
from hlo_inspect.agents.folders import Folders
from hlo_inspect.agents.tools import CAUTION, TOOLS
from hlo_inspect.errors import MissingExtraError, UsageError
from hlo_inspect.version import __version__

NAME = "hlo-inspect"
INSTRUCTIONS = (
    "Answers questions about HLO text dumps of XLA in short tables; call summary first. `?` is an unknown value, never 0, and "
    f"`>=` a lower bound. Figures are of one step, and of one device if the first line says per-device shapes. {CAUTION}"
)


def serve(folders: Sequence[str], module: str, commands: Mapping[str, str], seconds: float) -> None:
    """Serve until standard input ends; `commands` has the line of each command.

    `module` is that of the process of a call, and `seconds` its time limit.

    Raise UsageError for a folder that cannot be read, MissingExtraError without the SDK.
    """
    if find_spec("mcp") is None or version("mcp").startswith(("0.", "1.")):
        raise MissingExtraError("mcp needs the extra [mcp]: pip install 'mcp>=2'")
    Folders(folders)  # refuses those that cannot be read
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("mcp speaks on standard input and output, of which one is closed")
    import anyio

    logging.getLogger("mcp").addHandler(logging.NullHandler())  # else it prints what a client sends, which may read no messages
    with tempfile.TemporaryDirectory(prefix="hlo-inspect-") as scratch:
        try:
            anyio.run(_serve, folders, module, commands, seconds, scratch)
        except* (BrokenPipeError, anyio.BrokenResourceError):
            pass  # the client has gone


async def _serve(folders: Sequence[str], module: str, commands: Mapping[str, str], seconds: float, scratch: str) -> None:
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    async def list_tools(_context: object, _request: object) -> ListToolsResult:
        hints = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
        listed = [
            Tool(name=tool.command, description=tool.description(commands), input_schema=tool.schema, annotations=hints)
            for tool in TOOLS
        ]
        return ListToolsResult(tools=listed)

    async def call_tool(_context: object, request: CallToolRequestParams) -> CallToolResult:
        answer = await calls.call(request.name, request.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=answer.text)], is_error=answer.is_error)

    calls = Calls(module, folders, scratch, seconds)
    server = Server(NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)
    has_hung_up = _hang_up_of(sys.stdin.fileno())
    async with stdio_server() as (incoming, outgoing):
        try:
            async with limited(incoming, outgoing, has_hung_up, partial(_end, scratch)) as (admitted, answers):
                await server.run(admitted, answers, server.create_initialization_options())
        finally:
            calls.end()
            _end_soon(scratch)


def _hang_up_of(stream: int) -> Callable[[], bool]:
    """Return the function that says if the other end of a pipe is closed, whether or not all of it has been read."""
    if not hasattr(select, "poll"):
        return lambda: False
    poll = select.poll()
    poll.register(os.dup(stream), select.POLLHUP)  # the SDK takes the stream itself away
    return lambda: any(events & select.POLLHUP for _, events in poll.poll(0))


def _end_soon(scratch: str) -> None:
    """End this process in `LAST_SECONDS` at the latest: an answer that nobody reads can be under way."""
    timer = threading.Timer(LAST_SECONDS, _end, [scratch])
    timer.daemon = True
    timer.start()


def _end(scratch: str) -> None:
    """End this process whatever its threads wait for; those of calls end with it."""
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)
