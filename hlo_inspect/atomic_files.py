"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from hlo_inspect.errors import Location, UsageError


@contextmanager
def atomic_writer(name: str) -> Iterator[TextIO]:
    """Open a temporary file that replaces `name` on success; on failure or interruption `name` keeps its content.

    Pipes and devices are written directly. Raise UsageError if the file cannot be written.
    """
    try:
        if Path(name).exists() and not Path(name).is_file():
            with Path(name).open("w", encoding="utf-8", newline="") as stream:
                yield stream
            return
        path = Path(os.path.realpath(name))
        import secrets

        temporary = path.with_name(f".hlo-inspect-{secrets.token_hex(6)}.part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
                yield stream
                stream.flush()
                os.fsync(descriptor)
            with suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # a path may hold a NUL
        raise UsageError(f"cannot be written: {getattr(error, 'strerror', None) or error}", Location(name)) from error
