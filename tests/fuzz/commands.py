"""Every command over a text that may be damaged, as users run it, with files, options and an exit status; in this process."""

from __future__ import annotations

import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

from hlo_inspect.cli.main import run
from hlo_inspect.passes import PASSES

ARGUMENTS: dict[str, list[str]] = {
    **{pass_.name: ["{new}"] for pass_ in PASSES},
    "list": ["{new}"],
    "check": ["{new}", "--assert", "cost.flops > 0"],
    "diff": ["{old}", "{new}"],
    "history": ["{dump}", "*"],
    "normalize": ["{new}"],
    "report": ["{new}"],
    "show": ["{new}", "{line}", "--depth", "3"],
}
"""Arguments of each command. `new` is the damaged text, `old` the whole one, `line` a line of the damaged one.

The directory is a dump in which a compiler pass turned the whole text into the damaged one.
"""

STATUSES = frozenset({0, 1, 2, 3})
LAYOUT = {ord(char): None for char in "\n\u00a0"}
"""Unprintable characters that pages may have: they keep a number and its unit together."""


class Files:
    """The whole text and the damaged one as files, for as long as it is entered."""

    def __init__(self, old: bytes, new: bytes) -> None:
        self._texts = old, new
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self) -> Files:
        root = Path(self._folder.__enter__())
        old, new = self._texts
        dump, stem = root / "dump", "module_0001.jit_step"
        dump.mkdir()
        for path, text in {
            root / "old.txt": old,
            root / "new.txt": new,
            dump / f"{stem}.before_optimizations.txt": old,
            dump / f"{stem}.0001.simplification.after_algsimp.before_dce.txt": new,
            dump / f"{stem}.after_optimizations.txt": old,
        }.items():
            path.write_bytes(text)
        self._places = {"old": root / "old.txt", "new": root / "new.txt", "dump": dump, "line": new.count(b"\n") // 2 + 1}
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, command: str) -> int:
        """Run a command. Raise ValueError for an output that no input may cause; errors of the command pass through."""
        arguments = [argument.format_map(self._places) for argument in ARGUMENTS[command]]
        out, errors = StringIO(), StringIO()
        with mock.patch.dict(os.environ, {"HLO_INSPECT_DEBUG": "1"}), redirect_stdout(out), redirect_stderr(errors):
            status = run([command, *arguments])
        if status not in STATUSES:
            raise ValueError(f"{command} ends with status {status}")
        if status == 3 and not errors.getvalue().strip():
            raise ValueError(f"{command} does not say why it ends with status 3")
        if not (out.getvalue() + errors.getvalue()).translate(LAYOUT).isprintable():
            raise ValueError(f"a control character in what {command} prints")
        return status
