"""Process of its own for a library that can abort, or takes much time and memory: both ends of its pipes.

The process is `python -m MODULE`. A task is one line of JSON, `{"task": NAME, "size": N}` and its parameters, and N bytes; its
answer is one line of JSON, `{"error": MESSAGE or null, "size": N}`, and N bytes of text. The first line, before any task,
greets. What the library logs goes to a file, which is read for the reason of an abort only.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

LOG_BYTES = 1 << 16
"""Bytes of the end of a log that are read."""

_FATAL = re.compile(r"^F\d{4} [^\]\n]*\] (.*)$", re.ASCII | re.MULTILINE)
_NO_REASON = ("*** ", "    @ ", "WARNING: All log messages before")
_LOOK_AGAIN = 0.05
"""Seconds between two looks at a task that is limited."""

Task = Callable[..., str]
"""Function from the bytes of a task, and its parameters by name, to the text of its answer."""


class XlaError(Exception):
    """Message of XLA instead of a result."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class XlaAbortError(XlaError):
    """XLA's process did not survive a task: the signal that ended it, and the reason if one was logged."""


class XlaLimitError(XlaAbortError):
    """A task was ended because it needed more than its limit. `seconds` or `bytes` is the limit, the other None."""

    def __init__(self, seconds: float | None, size: int | None) -> None:
        super().__init__("more than its limit")
        self.seconds = seconds
        self.bytes = size


class Limits(NamedTuple):
    """The most seconds and bytes of memory that a task may need. The memory is that which Linux counts as resident."""

    seconds: float | None = None
    bytes: int | None = None


UNLIMITED = Limits()


class WorkerProcess:
    """Running process. `greeting` is its first answer; after an abort it takes no tasks.

    It is of this Python with these folders of packages, unless others are named.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
        folders: Sequence[str] | None = None,
    ) -> None:
        import subprocess  # few runs need them
        import tempfile

        self._log = cast("IO[bytes]", tempfile.TemporaryFile("ab+"))  # noqa: SIM115 - closed with the process
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in (sys.path if folders is None else folders))
        self._process = subprocess.Popen(  # noqa: S603 - a module of this package
            [python, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **(environment or {}), "PYTHONPATH": path},
        )
        self._tasks = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        try:
            self.greeting = self._answer(UNLIMITED)
        except XlaAbortError as error:
            self.greeting = {"error": error.message}

    def ask(self, task: str, data: bytes | memoryview, limits: Limits = UNLIMITED, **parameters: object) -> str:
        """Return the text that a task makes of `data`.

        Raise XlaError if XLA refuses the data, XlaAbortError if it aborts, XlaLimitError if it needs more than the limits.
        """
        self._log.truncate(0)
        with suppress(OSError):  # it can end before it has read everything
            self._tasks.write(json.dumps({"task": task, "size": len(data), **parameters}).encode() + b"\n")
            self._tasks.write(data)
            self._tasks.flush()
        answer = self._answer(limits)
        if answer["error"] is not None:
            raise XlaError(answer["error"])
        text = self._answers.read(answer["size"])
        if len(text) < answer["size"]:
            raise self._abort()
        return text.decode()

    @property
    def log(self) -> str:
        """The library's log of the last task."""
        self._log.seek(0)
        return self._log.read().decode(errors="backslashreplace")

    def kill(self) -> None:
        """Kill the process; a task that waits in another thread ends with XlaAbortError."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self.kill()
        with suppress(OSError):  # the rest of the buffer
            self._tasks.close()
        self._answers.close()
        self._process.wait()
        self._log.close()

    def _answer(self, limits: Limits) -> dict[str, Any]:
        if limits != UNLIMITED:
            self._watch(limits)
        line = self._answers.readline()
        if not line:
            raise self._abort()
        return dict(json.loads(line))

    def _watch(self, limits: Limits) -> None:
        """Wait for an answer. Kill the process and raise XlaLimitError if it needs more than the limits."""
        import select

        end = None if limits.seconds is None else time.monotonic() + limits.seconds
        while not select.select([self._answers], [], [], _LOOK_AGAIN)[0]:
            if end is not None and time.monotonic() > end:
                self.kill()
                raise XlaLimitError(limits.seconds, None)
            if limits.bytes is not None and resident_bytes(self._process.pid) > limits.bytes:
                self.kill()
                raise XlaLimitError(None, limits.bytes)

    def _abort(self) -> XlaAbortError:
        """Make the error for a process that has ended: the last fatal line of its log, else its last line."""
        status = self._process.wait()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        log = self._log.read().decode(errors="backslashreplace")
        lines = _FATAL.findall(log) or [line for line in log.splitlines() if line.strip() and not line.startswith(_NO_REASON)]
        return XlaAbortError(f"{_signal_name(status)}: {lines[-1].strip()}" if lines else _signal_name(status))


def resident_bytes(process: int) -> int:
    """Return the memory of a process by Linux's /proc; 0 on other systems."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _signal_name(status: int) -> str:
    """Name the signal or exit status that ended a process."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name if -status in {item.value for item in signal.Signals} else f"signal {-status}"
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name


# -- the other end ----------------------------------------------------------------------------------------------------------


def run_tasks(tasks: Mapping[str, Task], greeting: Callable[[], Mapping[str, Any]]) -> None:
    """Be the process: answer one task after the other until the input ends, or the process that started it."""
    _prepare()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that a library prints gets between the answers
    serve(sys.stdin.buffer, answers, tasks, greeting)


def serve(questions: BinaryIO, answers: BinaryIO, tasks: Mapping[str, Task], greeting: Callable[[], Mapping[str, Any]]) -> None:
    """Answer one task after the other until the input ends."""
    answers.write(json.dumps(greeting()).encode() + b"\n")
    answers.flush()
    while line := questions.readline():
        asked = json.loads(line)
        name, data = asked.pop("task"), questions.read(asked.pop("size"))
        error, text = _run(tasks[name], data, asked)
        answers.write(json.dumps({"error": error, "size": len(text)}).encode() + b"\n" + text)
        answers.flush()


def _run(task: Task, data: bytes, parameters: Mapping[str, Any]) -> tuple[str | None, bytes]:
    """Run a task and return its answer: the text, or the message of XLA's error."""
    try:
        return None, task(data, **parameters).encode()
    except Exception as error:  # whatever XLA raises is its answer
        return str(error) or type(error).__name__, b""


def _prepare() -> None:
    """Leave no core file, be the first to go when memory runs out, and end with the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process decides
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process as soon as another one is its parent."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
