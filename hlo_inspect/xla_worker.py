"""Process of jaxlib, since some inputs abort it: both ends of its pipes.

The process is `python -m hlo_inspect.xla_worker`. A task is one line of JSON, `{"task": NAME, "size": N}`, and N bytes; its
answer is one line of JSON, `{"error": MESSAGE or null, "size": N}`, and N bytes of HLO text. The first line, before any task,
says which jaxlib this is and which of its functions are missing. What jaxlib logs goes to a file, which is read for the reason
of an abort only.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

LOG_BYTES = 1 << 16
"""Bytes of the end of a log that are read."""

_FATAL = re.compile(r"^F\d{4} [^\]\n]*\] (.*)$", re.ASCII | re.MULTILINE)
_NO_REASON = ("*** ", "    @ ", "WARNING: All log messages before")


class XlaError(Exception):
    """Message of XLA instead of a result."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class XlaAbortError(XlaError):
    """XLA's process did not survive a task: the signal that ended it, and the reason if one was logged."""


class Worker:
    """Running process. `greeting` is its first answer; after an abort it takes no tasks."""

    def __init__(self) -> None:
        import subprocess  # few runs need them
        import tempfile

        self._log = cast("IO[bytes]", tempfile.TemporaryFile("ab+"))  # noqa: SIM115 - closed with the process
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "hlo_inspect.xla_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._tasks = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        try:
            self.greeting = self._answer()
        except XlaAbortError as error:
            self.greeting = {"error": error.message}

    def ask(self, task: str, data: bytes | memoryview) -> str:
        """Return the text that XLA makes of `data`. Raise XlaError if it refuses the data, XlaAbortError if it aborts."""
        self._log.truncate(0)
        with suppress(OSError):  # it can end before it has read everything
            self._tasks.write(json.dumps({"task": task, "size": len(data)}).encode() + b"\n")
            self._tasks.write(data)
            self._tasks.flush()
        answer = self._answer()
        if answer["error"] is not None:
            raise XlaError(answer["error"])
        text = self._answers.read(answer["size"])
        if len(text) < answer["size"]:
            raise self._abort()
        return text.decode()

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        with suppress(OSError):  # the rest of the buffer
            self._tasks.close()
        self._answers.close()
        self._process.wait()
        self._log.close()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise self._abort()
        return dict(json.loads(line))

    def _abort(self) -> XlaAbortError:
        """Make the error for a process that has ended: the last fatal line of its log, else its last line."""
        status = self._process.wait()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        log = self._log.read().decode(errors="backslashreplace")
        lines = _FATAL.findall(log) or [line for line in log.splitlines() if line.strip() and not line.startswith(_NO_REASON)]
        return XlaAbortError(f"{_signal_name(status)}: {lines[-1].strip()}" if lines else _signal_name(status))


def _signal_name(status: int) -> str:
    """Name the signal or exit status that ended a process."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in {item.value for item in signal.Signals} else f"signal {-status}"
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name


_MODULES = ("_hlo", "_jax", "xla_extension")  # where jaxlib has kept its classes of HLO: from 0.10 on, from 0.6 on, before
_WITHOUT_SHAPE = re.compile(
    r"^[ \t]*+(?:ROOT\s++)?%?[A-Za-z_][\w.\-]*+\s*+=\s*+[a-z][a-z0-9\-]*+\s*+\(", re.ASCII | re.MULTILINE
)


def _jaxlib(name: str) -> Any:  # noqa: ANN401 - jaxlib has no types
    """Return a function or class of jaxlib. Raise LookupError if this jaxlib lacks it."""
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
    """Parse HLO text; return nothing, or XLA's print with all constants and inferred shapes if the text leaves shapes out."""
    text = data.decode()
    module = _jaxlib("hlo_module_from_text")(text)
    if not _WITHOUT_SHAPE.search(text):
        return ""
    options = _jaxlib("HloPrintOptions")()
    options.print_large_constants = True
    return str(module.to_string(options))


def print_proto(data: bytes) -> str:
    """Return the text of an `HloModuleProto`, without large constants."""
    return str(_jaxlib("HloModule").from_serialized_hlo_module_proto(data).to_string())


def print_mlir(data: bytes) -> str:
    """Convert StableHLO, as text or bytecode, to HLO text."""
    module = data if data.startswith(b"ML\xefR") else data.decode(errors="backslashreplace")
    computation = _jaxlib("mlir").mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)
    return str(computation.as_hlo_module().to_string())


TASKS: dict[str, Callable[[bytes], str]] = {"check": check, "proto": print_proto, "mlir": print_mlir}
NEEDED = ("hlo_module_from_text", "HloModule", "HloPrintOptions", "mlir")


def greeting() -> dict[str, Any]:
    """Return the first message of the process: version and missing functions of jaxlib, or the error of its import."""
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
    """Run a task and return its answer: the text, or the message of XLA's error."""
    try:
        return None, TASKS[task](data).encode()
    except Exception as error:  # whatever XLA raises is its answer
        return str(error) or type(error).__name__, b""


def serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    """Answer one task after the other until the input ends."""
    answers.write(json.dumps(greeting()).encode() + b"\n")
    answers.flush()
    while line := tasks.readline():
        task = json.loads(line)
        error, text = answer(task["task"], tasks.read(task["size"]))
        answers.write(json.dumps({"error": error, "size": len(text)}).encode() + b"\n" + text)
        answers.flush()


def prepare() -> None:
    """Let aborts leave no core file, and let the system kill this process first when memory runs out, if it can."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")


def main() -> None:
    prepare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process decides
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that jaxlib prints gets between the answers
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
