"""Calls of tools in processes of their own: a call has a time limit, can be cancelled, and blocks no other."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hlo_inspect.agents.answers import Answer
from hlo_inspect.agents.tools import find_tool
from hlo_inspect.errors import UsageError
from hlo_inspect.worker_process import WorkerProcess, XlaAbortError, XlaError

MOST_PROCESSES = 4
"""Calls that run at the same time; others wait."""


class ToolProcess(WorkerProcess):
    """Process that answers calls, one after the other, with a folder of its own for temporary files."""

    def __init__(self, module: str, folders: Sequence[str], scratch: str) -> None:
        super().__init__(module)
        self._folders = list(folders)
        self._scratch = tempfile.mkdtemp(dir=scratch)

    def call(self, name: str, values: Mapping[str, Any]) -> Answer:
        """Return the answer of a tool. Raise XlaAbortError if the process ends meanwhile."""
        answer = self.ask("call", json.dumps([name, values]).encode(), folders=self._folders, scratch=self._scratch)
        return Answer(*json.loads(answer))

    def end(self) -> None:
        """Kill the process and remove its temporary files."""
        self.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


class Calls:
    """Calls within the folders of a server; `module` is that of the process, `seconds` the limit of a call."""

    def __init__(self, module: str, folders: Sequence[str], scratch: str, seconds: float) -> None:
        import anyio

        self._start = partial(ToolProcess, module, folders, scratch)
        self._seconds = seconds
        self._idle: list[ToolProcess] = []
        self._places = anyio.Semaphore(MOST_PROCESSES)

    async def call(self, name: str, values: Mapping[str, Any]) -> Answer:
        """Return the answer of a tool, or the sentence that says why there is none."""
        import anyio

        try:
            find_tool(name)
        except UsageError as error:
            return Answer(str(error), is_error=True)
        async with self._places:
            process = self._idle.pop() if self._idle else await anyio.to_thread.run_sync(self._start)
            try:
                with anyio.fail_after(self._seconds):
                    answer = await _in_thread(process, name, values)
            except TimeoutError:
                reason = f"took more than {self._seconds:g} s and was ended; ask for one module, or for less of it"
                return Answer(f"{name} {reason}", is_error=True)
            except XlaAbortError as error:
                await anyio.to_thread.run_sync(process.end)
                return Answer(f"{name} ended without an answer: {error.message}", is_error=True)
            except XlaError:  # a fault of this package, whose text may quote the dump
                await anyio.to_thread.run_sync(process.end)
                return Answer(f"{name} failed: internal error, please report it", is_error=True)
        self._idle.append(process)
        return answer

    def end(self) -> None:
        """End the processes that wait for calls. Those of cancelled calls have ended."""
        for process in self._idle:
            process.end()


async def _in_thread(process: ToolProcess, name: str, values: Mapping[str, Any]) -> Answer:
    """Wait for an answer in a thread. If the wait is cancelled, kill the process, which ends the thread too."""
    import anyio

    try:
        answer: Answer = await anyio.to_thread.run_sync(process.call, name, values, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        process.kill()
        raise
    return answer
