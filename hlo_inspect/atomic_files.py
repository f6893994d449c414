"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from hlo_inspect.errors import Location, UsageError
from hlo_inspect.remote_files import check_replaces, is_address, write_remote

TEMPORARY = ".hlo-inspect-"
"""Beginning of the names of files that are not whole yet."""


@contextmanager
def atomic_writer(name: str) -> Iterator[TextIO]:
    """Open a temporary file that replaces `name` on success; on failure or interruption `name` keeps its content.

    Pipes and devices are written directly, remote objects at the end. Raise UsageError if the file cannot be written.
    """
    with _atomic_bytes(name) as stream:
        text = TextIOWrapper(stream, encoding="utf-8", newline="")
        try:
            yield text
            text.flush()
        finally:
            text.detach()


def write_whole(name: str, data: bytes) -> None:
    """Write a file or remote object that appears whole or not at all. Raise UsageError if it cannot be written."""
    with _atomic_bytes(name) as stream:
        stream.write(data)


@contextmanager
def _atomic_bytes(name: str) -> Iterator[BinaryIO]:
    try:
        if is_address(name):
            check_replaces(name)
            content = BytesIO()
            yield content
            write_remote(name, content.getvalue())
            return
        if Path(name).exists() and not Path(name).is_file():
            with Path(name).open("wb") as stream:
                yield stream
            return
        path = Path(os.path.realpath(name))
        import secrets

        temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(6)}.part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
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
