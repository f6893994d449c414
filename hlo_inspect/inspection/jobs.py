"""The same work on many things in several processes, with the results in the order of the things.

    with Jobs(4, start) as jobs:                # each process calls `start` once, and its result for each thing
        for results, failure in jobs.in_order(things): ...

`start`, the things and their lists of results must be picklable. A process begins a thing only if few results wait already.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, Generic, TypeVar, cast

from hlo_inspect.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")

PARENT_CHECK_S = 0.2
"""Seconds between two checks that the parent process lives."""

AHEAD = 4
"""Things per process that are begun before the first of them is done."""


class _End:
    """The end of the things."""


_END = _End()


class LostProcessError(Exception):
    """A process ended in the middle of its work, for example for lack of memory."""


class Jobs(Generic[T, R]):
    """Worker processes of a `with` block."""

    def __init__(self, count: int, start: Callable[[], Callable[[T], Iterable[R]]], *, has_threads: bool = False) -> None:
        """`has_threads`: this process runs threads, which a fork would not copy. Raise UsageError in a browser."""
        if sys.platform == "emscripten":
            raise UsageError("-j and `collect` need processes, which a browser does not have")
        self._count = count
        self._start = start
        self._context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" and not has_threads else "spawn")
        self._processes: dict[Connection, Any] = {}

    def __enter__(self) -> Jobs[T, R]:
        return self

    def __exit__(self, *_: object) -> None:
        for connection, process in self._processes.items():
            process.kill()  # a stopped process takes no other signal
            process.join()
            connection.close()
        self._processes = {}

    def in_order(self, things: Iterable[T]) -> Iterator[tuple[list[R], Exception | None]]:
        """Yield for each thing its results, and the exception that was raised after them or None."""
        coming = enumerate(things)
        working: dict[Connection, int] = {}
        done: dict[int, tuple[list[R], Exception | None]] = {}
        following, is_last = 0, False
        while True:
            while not is_last and len(working) < self._count and len(working) + len(done) < self._count * AHEAD:
                number, thing = next(coming, (-1, None))
                is_last = number < 0
                if not is_last:
                    working[self._begin(working, cast("T", thing))] = number
            if following in done:
                yield done.pop(following)
                following += 1
                continue
            if not working:
                return
            for ready in wait(list(working)):
                connection = cast("Connection", ready)
                done[working.pop(connection)] = self._received(connection)

    def as_completed(self, things: Iterator[T | None]) -> Iterator[tuple[T, list[R], Exception | None]]:
        """Yield each thing with its results and the exception after them, as soon as it is done.

        None among `things` means that the next one depends on results which are not there yet.
        """
        working: dict[Connection, T] = {}
        is_last = False
        while True:
            while not is_last and len(working) < self._count:
                thing = next(things, _END)
                is_last = thing is _END
                if thing is None or isinstance(thing, _End):
                    break
                begun: T = thing
                working[self._begin(working, begun)] = begun
            if not working:
                return
            for ready in wait(list(working)):
                connection = cast("Connection", ready)
                yield (working.pop(connection), *self._received(connection))

    def _begin(self, working: Iterable[Connection], thing: T) -> Connection:
        """Send a thing to an idle process, to a new one if that process has ended meanwhile."""
        while True:
            connection = self._idle(working)
            try:
                connection.send(thing)
            except OSError:
                self._processes.pop(connection).join()
                connection.close()
            else:
                return connection

    def _idle(self, working: Iterable[Connection]) -> Connection:
        """Return the connection to an idle process; start a process if there is none."""
        for connection in self._processes:
            if connection not in working:
                return connection
        pipe: tuple[Connection, Connection] = self._context.Pipe()
        ours, theirs = pipe
        others = [ours, *self._processes] if self._context.get_start_method() == "fork" else []
        process = self._context.Process(target=_serve, args=(theirs, others, self._start), daemon=True)
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def _received(self, connection: Connection) -> tuple[list[R], Exception | None]:
        try:
            return connection.recv()  # type: ignore[no-any-return]  # what the process sent
        except EOFError:
            process = self._processes.pop(connection)
            process.join()
            return [], LostProcessError(f"the process that worked on it ended with status {process.exitcode}")


def _serve(connection: Connection, others: Iterable[Connection], start: Callable[[], Callable[[Any], Iterable[Any]]]) -> None:
    """Work until the connection closes. Ignore interruptions: the process that started this one handles them."""
    gc.freeze()  # what a fork copied is the parent's: closing a database without its threads ends the process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    for other in others:  # an open copy would hide the end of that process
        other.close()
    work = start()
    while True:
        try:
            thing = connection.recv()
        except EOFError:
            return
        results: list[Any] = []
        failure = None
        try:
            results.extend(work(thing))
        except Exception as error:
            failure = error
        try:
            connection.send((results, failure))
        except OSError:  # the parent process ended
            return


def _end_with(parent: int) -> None:
    """End this process soon after its parent, also in the middle of its work."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os._exit(1)
