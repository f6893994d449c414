"""The process in which jaxlib runs, since some inputs abort it: `python -m hlo_inspect.xla_worker`, which `xla` starts.

A task is one line of JSON, `{"task": NAME, "size": N}`, and N bytes on standard input; its answer is one line of JSON,
`{"error": MESSAGE or null, "size": N}`, and N bytes of HLO text on standard output. The first line, before any task, says which
jaxlib this is and which of its functions are missing. What jaxlib logs goes to standard error.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

_MODULES = ("_hlo", "_jax", "xla_extension")  # where jaxlib has kept its classes of HLO: from 0.10 on, from 0.6 on, before
_WITHOUT_SHAPE = re.compile(
    r"^[ \t]*+(?:ROOT\s++)?%?[A-Za-z_][\w.\-]*+\s*+=\s*+[a-z][a-z0-9\-]*+\s*+\(", re.ASCII | re.MULTILINE
)


def _jaxlib(name: str) -> Any:  # noqa: ANN401 - jaxlib has no types
    """A function or class of jaxlib. `LookupError` where this jaxlib does not have it."""
    for module in _MODULES:
        try:
            return getattr(import_module(f"jaxlib.{module}"), name)
        except ModuleNotFoundError as error:
            if error.name != f"jaxlib.{module}":
                raise
        except AttributeError:
            continue
    raise LookupError(name)


def check(data: bytes) -> str:
    """Parses HLO text. The answer is empty, or what XLA prints of a module in which shapes are left out: with all constants,
    and with the shapes that XLA infers.
    """
    text = data.decode()
    module = _jaxlib("hlo_module_from_text")(text)
    if not _WITHOUT_SHAPE.search(text):
        return ""
    options = _jaxlib("HloPrintOptions")()
    options.print_large_constants = True
    return str(module.to_string(options))


def print_proto(data: bytes) -> str:
    """The text of an `HloModuleProto`, without large constants."""
    return str(_jaxlib("HloModule").from_serialized_hlo_module_proto(data).to_string())


def print_mlir(data: bytes) -> str:
    """The text of the module that StableHLO stands for, given as text or bytecode."""
    module = data if data.startswith(b"ML\xefR") else data.decode(errors="backslashreplace")
    computation = _jaxlib("mlir").mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    return str(computation.as_hlo_module().to_string())


TASKS: dict[str, Callable[[bytes], str]] = {"check": check, "proto": print_proto, "mlir": print_mlir}
NEEDED = ("hlo_module_from_text", "HloModule", "HloPrintOptions", "mlir")


def greeting() -> dict[str, Any]:
    """What the other side has to know before it asks."""
    try:
        version = import_module("jaxlib").__version__
        missing = [name for name in NEEDED if not _has(name)]
    except Exception as error:  # an import that fails can raise anything
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": None, "version": version, "missing": missing}


def _has(name: str) -> bool:
    try:
        _jaxlib(name)
    except LookupError:
        return False
    return True


def answer(task: str, data: bytes) -> tuple[str | None, bytes]:
    """The message of what XLA refuses, or the text that it answers."""
    try:
        return None, TASKS[task](data).encode()
    except Exception as error:  # whatever XLA raises is its answer
        return str(error) or type(error).__name__, b""


def serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    """Answers one task after the other, until no more come."""
    answers.write(json.dumps(greeting()).encode() + b"\n")
    answers.flush()
    while line := tasks.readline():
        task = json.loads(line)
        error, text = answer(task["task"], tasks.read(task["size"]))
        answers.write(json.dumps({"error": error, "size": len(text)}).encode() + b"\n" + text)
        answers.flush()


def main() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an abort leaves no core file
    except (ImportError, OSError, ValueError):  # not on this platform
        pass
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process decides
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that jaxlib prints gets between the answers
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
