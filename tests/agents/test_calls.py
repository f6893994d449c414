"""Calls of a server that never end: limit, cancellation, other requests meanwhile, and the end of the input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.extras("mcp")
ROOT = Path(__file__).parents[2]
START = """
from hlo_inspect.agents.server import serve
from hlo_inspect.cli.commands import COMMANDS
serve(["."], "tests.agents.stuck_process", COMMANDS, {seconds})
"""


class Client:
    """A client that writes and reads lines, of a server whose tool `summary` never answers."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._note = folder / "process"
        self.server = subprocess.Popen(
            [sys.executable, "-c", START.format(seconds=seconds)],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        information = {"name": "test", "version": "1"}
        self.send("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=information)
        assert self.read()["id"] == 0
        self.send("notifications/initialized")

    def send(self, method: str, number: int | None = None, **parameters: object) -> None:
        assert self.server.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        self.server.stdin.write(json.dumps(message if number is None else {**message, "id": number}) + "\n")
        self.server.stdin.flush()

    def call(self, tool: str, number: int) -> None:
        self.send("tools/call", number, name=tool, arguments={"path": "."})

    def read(self) -> dict[str, Any]:
        assert self.server.stdout is not None
        return dict(json.loads(self.server.stdout.readline()))

    def stuck_process(self) -> int:
        """Wait until a call has begun, and return its process."""
        while not self._note.exists():
            assert self.server.poll() is None
            time.sleep(0.01)
        return int(self._note.read_text(encoding="ascii"))

    def end(self) -> None:
        for stream in (self.server.stdin, self.server.stdout):
            assert stream is not None
            stream.close()
        self.server.kill()
        self.server.wait()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    client = Client(tmp_path, 3600)
    yield client
    client.end()


def wait_for_end(process: int) -> None:
    """Wait until a process is gone."""
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{process}/stat").exists() and ") Z " in Path(f"/proc/{process}/stat").read_text(encoding="utf-8"):
            return
        time.sleep(0.01)


def test_others_are_answered_while_a_call_is_stuck_and_it_can_be_cancelled(client: Client) -> None:
    client.call("summary", 1)
    process = client.stuck_process()
    client.send("ping", 2)
    assert client.read()["id"] == 2
    client.call("lint", 3)
    assert client.read()["result"]["content"][0]["text"] == "answer of lint"
    client.send("notifications/cancelled", requestId=1)
    wait_for_end(process)
    client.send("ping", 4)
    assert client.read()["id"] == 4


def test_a_stuck_call_ends_with_the_input(client: Client) -> None:
    client.call("summary", 1)
    process = client.stuck_process()
    assert client.server.stdin is not None
    client.server.stdin.close()
    assert client.server.wait() == 0
    wait_for_end(process)


def test_a_process_that_ends_is_an_error_and_the_next_call_has_another(client: Client) -> None:
    client.call("top", 1)
    result = client.read()["result"]
    assert result["isError"]
    assert result["content"][0]["text"] == "top ended without an answer: exit status 7"
    client.call("lint", 2)
    assert not client.read()["result"]["isError"]


def test_the_time_limit_ends_a_call(tmp_path: Path) -> None:
    client = Client(tmp_path, 0.5)
    client.call("summary", 1)
    result = client.read()["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("summary took more than 0.5 s and was ended")
    client.end()


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    """The first 32 of 100 requests are admitted; an answer that is read admits one more, and a cancellation another."""
    import anyio

    from hlo_inspect.agents.admission import MOST_OPEN, limited

    def item(**fields: object) -> SimpleNamespace:
        return SimpleNamespace(message=SimpleNamespace(**fields))

    async def flood() -> list[int]:
        write, incoming = anyio.create_memory_object_stream[Any](200)
        outgoing, read = anyio.create_memory_object_stream[Any](0)
        for number in range(100):
            write.send_nowait(item(method="ping", id=number, params=None))
        counts, admitted = [], []
        async with (
            limited(incoming, outgoing, lambda: False, lambda: None) as (requests, answers),
            anyio.create_task_group() as group,
        ):

            async def take() -> None:
                async for request in requests:
                    admitted.append(request)
                    group.start_soon(answers.send, item(id=request.message.id))

            group.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            counts.append(len(admitted))
            assert (await read.receive()).message.id == 0
            await anyio.wait_all_tasks_blocked()
            counts.append(len(admitted))
            group.cancel_scope.cancel()
        return counts

    with ThreadPoolExecutor(1) as threads:  # a browser of another test may have an event loop in this one
        assert threads.submit(anyio.run, flood).result() == [MOST_OPEN, MOST_OPEN + 1]
