"""The standard streams, each of which can be closed, full, or a pipe that nobody reads any more."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def tell(message: str) -> None:
    """Writes a message and a line end to standard error. One that is closed or full takes none: the exit status says enough."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)


def silence(stream: TextIO | None) -> None:
    """Points a standard stream at nothing, so that what is still buffered does not fail at exit."""
    try:
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):  # it is no file, so that nothing is buffered
        return
