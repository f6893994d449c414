"""Limit of the processor's time, for inputs that may never end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitError(BaseException):
    """An input took too long. No handler of the program catches it."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeLimitError after `seconds` of processor time, if the system can."""

    def expired(_number: int, _frame: FrameType | None) -> None:
        raise TimeLimitError(f"still reading after {seconds} s")

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
