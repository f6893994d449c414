"""Regular expressions of users: of `--module`, of filters, of configurations and of clients of a server.

Python's engine goes back, so that an expression of ten characters can take years. Expressions have a limit of length, and one
of processor time that holds for all matches of an expression together.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hlo_inspect.errors import UsageError

MAX_CHARS = 1_000
MAX_SECONDS = 5.0
_SHOWN = 60
_LEAST_SECONDS = 1e-3
"""The time of an expression whose time is over: 0 would be none."""


class UserPattern:
    """Compiled expression. `search` raises UsageError after `MAX_SECONDS` of processor time.

    The limit needs signals: it holds in the main thread of systems that have interval timers.
    """

    def __init__(self, expression: str) -> None:
        """Compile an expression. Raise re.error if it is none, UsageError if it is too long or nested too deeply."""
        self.pattern = expression
        if len(expression) > MAX_CHARS:
            raise UsageError(f"{self._shown} is longer than {MAX_CHARS:,} characters, the limit of a regular expression")
        try:
            self._pattern = re.compile(expression)
        except (RecursionError, OverflowError) as error:
            raise UsageError(f"{self._shown} is nested too deeply for a regular expression") from error
        self._left = MAX_SECONDS

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text. Raise UsageError if the time of the expression is over."""
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return self._pattern.search(text)
        with self._limited():
            return self._pattern.search(text)

    @property
    def _shown(self) -> str:
        return repr(self.pattern if len(self.pattern) <= _SHOWN else f"{self.pattern[:_SHOWN]}…")

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Interrupt the block when the time is over: Python's engine looks for signals while it matches."""
        before = signal.signal(signal.SIGVTALRM, self._interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, self._left)
        try:
            yield
        finally:
            self._left = signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0] or _LEAST_SECONDS
            signal.signal(signal.SIGVTALRM, before or signal.SIG_DFL)

    def _interrupt(self, _signal: int, _frame: object) -> None:
        message = f"{self._shown} takes more than {MAX_SECONDS:g} s to match: write it without a repeat within a repeat"
        raise UsageError(message)
