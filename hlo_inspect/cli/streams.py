"""Standard streams, which can be closed, full, or pipes without a reader; errors on them, and exit statuses."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from hlo_inspect.errors import HloInspectError

FAILED, USAGE, UNREADABLE, INTERRUPTED = 1, 2, 3, 130


def tell(message: str) -> None:
    """Write a message to standard error. If that is closed or full, the exit status says enough."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)


def reported(error: HloInspectError) -> int:
    """Print an error and return its exit status."""
    from hlo_inspect.errors import UsageError

    tell(f"hlo-inspect: {error}")
    return USAGE if isinstance(error, UsageError) else UNREADABLE


def silence(stream: TextIO | None) -> None:
    """Point a standard stream at the null device, so that its buffer does not fail at exit."""
    try:
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):  # not a file, so nothing is buffered
        return
