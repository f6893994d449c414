"""The command line in this process, with the streams, directory and exit status of a separate process.

Start, signals, pipes and encodings need real processes. All other tests run about a hundred times faster this way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

from hlo_inspect.cli.main import run


def call(*arguments: str | Path, given: bytes = b"", folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run `hlo-inspect` with these arguments and this standard input in a directory, off a terminal."""
    output, errors = (TextIOWrapper(BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    stdin, before = sys.stdin, Path.cwd()
    sys.stdin = TextIOWrapper(BytesIO(given), encoding="utf-8")
    os.chdir(folder or before)
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            status = run([*map(str, arguments)])
    except SystemExit as end:  # raised after shell completions
        status = int(end.code or 0)
    finally:
        output.flush()
        errors.flush()
        os.chdir(before)
        sys.stdin = stdin
    return subprocess.CompletedProcess(arguments, status, output.buffer.getvalue(), errors.buffer.getvalue())


def call_text(*arguments: str | Path, given: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `hlo-inspect` as `call` does, with text instead of bytes."""
    done = call(*arguments, given=given.encode(), folder=folder)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def answer_and_lines(*arguments: object, status: int = 0) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON of a command that ends with this status, and the lines of its standard error."""
    done = call_text(*map(str, arguments), "--format", "json")
    assert done.returncode == status, done.stderr
    return dict(json.loads(done.stdout)), done.stderr.splitlines()


def answer(*arguments: object, status: int = 0) -> dict[str, Any]:
    """Return the JSON of a command that ends with this status."""
    return answer_and_lines(*arguments, status=status)[0]
