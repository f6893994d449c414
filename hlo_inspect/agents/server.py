"""The server of `mcp`: answers of commands over the Model Context Protocol, on standard input and output.

A tool runs a command line in a process of its own, and answers with what the command prints. It reads the folders of the server
and writes nothing. This process keeps the protocol, which the SDK moves to private copies of the standard streams.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec

from hlo_inspect.agents.admission import limited
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
_LAST_SECONDS = 2.0
"""The longest wait for a client that has ended the input and reads no answer."""


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

    with tempfile.TemporaryDirectory(prefix="hlo-inspect-") as scratch:
        anyio.run(_serve, folders, module, commands, seconds, scratch)


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
    async with stdio_server() as streams:
        try:
            async with limited(*streams) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
        finally:
            calls.end()
            _end_soon(scratch)


def _end_soon(scratch: str) -> None:
    """End this process in `_LAST_SECONDS` at the latest: an answer that nobody reads can be under way."""

    def end() -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(0)

    timer = threading.Timer(_LAST_SECONDS, end)
    timer.daemon = True
    timer.start()
