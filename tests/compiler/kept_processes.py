"""Processes of the compiler that serve several tests: starting one takes most of the time of a small compile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from hlo_inspect.compiler import compiler
from hlo_inspect.worker_process import WorkerProcess

_FREE: defaultdict[str, list[_KeptProcess]] = defaultdict(list)
"""Processes that serve nobody, by how they were started."""


class _KeptProcess(WorkerProcess):
    """Process that waits for the next compiler after it is closed, unless it has ended."""

    key = ""
    is_killed = False

    def kill(self) -> None:
        self.is_killed = True
        super().kill()

    def close(self) -> None:
        if self._process.poll() is None and not self.is_killed:
            _FREE[self.key].append(self)
        else:
            super().close()


def _kept_process(*arguments: object) -> _KeptProcess:
    key = repr(arguments)
    if _FREE[key]:
        return _FREE[key].pop()
    process = _KeptProcess(*arguments)  # type: ignore[arg-type]  # those of WorkerProcess
    process.key = key
    return process


@pytest.fixture(scope="session")
def _closed_at_the_end() -> Iterator[None]:
    yield
    for processes in _FREE.values():
        for process in processes:
            WorkerProcess.close(process)


@pytest.fixture(autouse=True)
def kept_processes(_closed_at_the_end: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compilers of the same installation and environment take turns with one process."""
    monkeypatch.setattr(compiler, "WorkerProcess", _kept_process)
