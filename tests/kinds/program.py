"""Command lines of hlo-inspect in a process whose table of opcodes has one more row.

    python -m tests.kinds.program ROW < command lines as JSON

It prints exit status and text of each line as JSON. An empty ROW leaves the table as it is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

OPCODES = "hlo_inspect.hlo.opcodes"
AFTER = "# the host\n"
"""The line of the table after the collectives."""


def add_row(row: str) -> None:
    """Import the module of opcodes with one more row, before anything that reads it is imported."""
    spec = importlib.util.find_spec(OPCODES)
    assert spec is not None
    assert spec.origin is not None
    assert OPCODES not in sys.modules
    text = Path(spec.origin).read_text(encoding="utf-8")
    assert text.count(AFTER) == 1
    module = sys.modules[OPCODES] = ModuleType(OPCODES)
    exec(compile(text.replace(AFTER, f"{row}\n{AFTER}"), spec.origin, "exec"), module.__dict__)  # noqa: S102 - the text of the package


def answer(arguments: list[str]) -> tuple[int, str]:
    """Return exit status and text of a command line; status -1 and a traceback for an internal error."""
    from hlo_inspect.cli.main import run

    out = StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(out):
            status = run(arguments)
    except Exception:  # HLO_INSPECT_DEBUG lets internal errors through
        return -1, traceback.format_exc()
    return status, out.getvalue()


def main() -> None:
    os.environ["HLO_INSPECT_DEBUG"] = "1"
    if sys.argv[1]:
        add_row(sys.argv[1])
    sys.stdout.write(json.dumps([answer(arguments) for arguments in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
