"""The process of a call of `mcp`: `python -m hlo_inspect.cli.tool_process` runs the command line within folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from hlo_inspect.agents.answers import Tools
from hlo_inspect.agents.folders import Folders
from hlo_inspect.agents.guard import Guard
from hlo_inspect.cli.main import run
from hlo_inspect.worker_process import run_tasks


@cache
def _tools(folders: Sequence[str], scratch: str) -> Tools:
    checked = Folders(folders)
    return Tools(checked, Guard(checked, scratch), run)


def call(data: bytes, folders: Sequence[str], scratch: str) -> str:
    """Answer the call of a tool: its name and its values."""
    name, values = json.loads(data)
    return json.dumps(_tools(tuple(folders), scratch).call(name, values))


def _greeting() -> dict[str, Any]:
    return {"error": None}


if __name__ == "__main__":
    run_tasks({"call": call}, _greeting)
