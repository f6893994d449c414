"""An error inside of one module on purpose: the reports of all other modules must be there."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from hlo_inspect.analysis.context import Context
from hlo_inspect.cli.main import run
from hlo_inspect.errors import DEBUG
from hlo_inspect.hlo.module import Module

Place = tuple[str, int]
"""Path and first line of a module."""


def fault_of_isolation(arguments: list[str]) -> str:
    """Run a pass as it is, then with an error in the first module; describe what is lost, or return an empty text."""
    whole, _ = places(arguments)
    if not whole:
        return ""
    make: Callable[..., None] = Context.__init__

    def fail(self: Context, module: Module, *rest: object, **options: object) -> None:
        if (module.path, module.first_line) == whole[0]:
            raise IndexError("thrown by the fuzzer")
        make(self, module, *rest, **options)

    with mock.patch.object(Context, "__init__", fail):
        kept, errors = places(arguments)
    lost = [place for place in whole[1:] if place not in kept]
    if lost:
        return f"{len(lost)} of {len(whole)} modules are lost by an internal error in the first"
    if whole[0] not in kept and "thrown by the fuzzer" not in errors:
        return "an internal error is not told"
    return ""


def places(arguments: list[str]) -> tuple[list[Place], str]:
    """Run a command with `--format jsonl`; return the places of its reports, and its messages."""
    out, errors = io.StringIO(), io.StringIO()
    variables = {name: value for name, value in os.environ.items() if name != DEBUG}
    with mock.patch.dict(os.environ, variables, clear=True), redirect_stdout(out), redirect_stderr(errors):
        run([*arguments, "--format", "jsonl"])
    inputs = [json.loads(line)["input"] for line in out.getvalue().splitlines()]
    return [(given["path"], given["first_line"]) for given in inputs], errors.getvalue()
