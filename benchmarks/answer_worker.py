"""Answer command lines with the hlo-inspect of one tree: a process of `benchmarks.answers`.

It imports only `run` of the tree's `hlo_inspect.cli.main`, so that it works in other commits too. Each line of standard input
is a JSON object with a `folder` to work in and the `lines`; each line of standard output is the answers as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

from hlo_inspect.cli.main import run

OUT = "OUT"


def answer(arguments: list[str]) -> dict[str, Any]:
    """Run one command line, and return its status, its texts and the hashes of the files that it wrote."""
    output, errors = (TextIOWrapper(BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with tempfile.TemporaryDirectory() as out:
        own = [out + word.removeprefix(OUT) if word.startswith(f"{OUT}/") else word for word in arguments]
        with redirect_stdout(output), redirect_stderr(errors):
            status = run(own)
        files = {
            str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(Path(out).rglob("*"))
            if file.is_file()
        }
        return {"status": status, "output": _text(output, out), "errors": _text(errors, out), "files": files}


def _text(stream: TextIOWrapper, out: str) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, BytesIO)  # noqa: S101 - `answer` made it
    return raw.getvalue().decode(errors="replace").replace(out, OUT)


def main() -> None:
    """Answer until standard input ends. What others print to standard output goes to standard error."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for request in map(json.loads, sys.stdin):
        os.chdir(request["folder"])
        json.dump([answer(line) for line in request["lines"]], replies)
        replies.write("\n")
        replies.flush()


if __name__ == "__main__":
    main()
