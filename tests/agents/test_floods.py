"""A client of `mcp` that floods, cancels, stops reading, or goes away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.extras("mcp")
ROOT = Path(__file__).parents[2]
FLOOD_SECONDS, END_SECONDS, MOST_GROWN = 4.0, 30.0, 24 << 20
FIRST: list[dict[str, Any]] = [
    {
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    },
    {"method": "notifications/initialized"},
]
Lines = Callable[[int], list[dict[str, Any]]]


def call(number: int) -> dict[str, Any]:
    arguments = {"path": "dump.txt", "max_chars": 40_000}
    return {"id": number, "method": "tools/call", "params": {"name": "summary", "arguments": arguments}}


def cancel(number: object) -> dict[str, Any]:
    return {"method": "notifications/cancelled", "params": {"requestId": number}}


def encoded(messages: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


@contextmanager
def server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    shutil.copy(ROOT / "tests/data/cpu/scan_fsdp.after.txt", folder / "dump.txt")
    with subprocess.Popen(
        [sys.executable, "-m", "hlo_inspect", "mcp"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(encoded(FIRST))
            assert b'"id":0' in process.stdout.readline()
            yield process
        finally:
            process.kill()


def flood(process: subprocess.Popen[bytes], lines: Lines) -> int:
    """Write for a while and read nothing; return the growth of the server's memory in bytes."""
    assert process.stdin is not None
    before, end = resident(process.pid), time.monotonic() + FLOOD_SECONDS
    os.set_blocking(process.stdin.fileno(), False)
    number, rest = 0, b""
    while time.monotonic() < end and process.poll() is None:
        while len(rest) < 1 << 16:
            number += 1
            rest += encoded(lines(number))
        try:
            rest = rest[os.write(process.stdin.fileno(), rest) :]
        except BlockingIOError:
            time.sleep(0.05)
    return resident(process.pid) - before


def resident(process: int) -> int:
    """Return the bytes of memory of a process; 0 on systems other than Linux."""
    status = Path(f"/proc/{process}/status")
    text = status.read_text() if status.exists() else ""
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("VmRSS")), 0)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(lambda number: [call(number)], id="calls"),
        pytest.param(lambda _: [call(1)], id="calls of one number"),
        pytest.param(lambda number: [call(number), cancel(number)], id="cancelled calls"),
        pytest.param(lambda number: [{"id": number, "method": "tools/list"}], id="lists"),
        pytest.param(lambda _: [cancel([1])], id="cancellations of no number"),
    ],
)
def test_a_flood_grows_no_memory_and_the_server_ends_with_its_input(lines: Lines, tmp_path: Path) -> None:
    with server(tmp_path) as process:
        assert flood(process, lines) < MOST_GROWN
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(END_SECONDS) == 0
    assert not list(tmp_path.glob("hlo-inspect-*"))  # its temporary files


def test_a_client_that_goes_away_is_no_error(tmp_path: Path) -> None:
    with server(tmp_path) as process:
        flood(process, lambda number: [call(number)])
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.wait(END_SECONDS) == 0
        assert process.stderr.read() == b""
