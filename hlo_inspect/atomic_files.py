"""Files and folders that are replaced as a whole: they are written beside their place and then renamed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from hlo_inspect.errors import Location, UsageError, first_few
from hlo_inspect.remote_files import check_replaces, is_address, write_remote

TEMPORARY = ".hlo-inspect-"
"""Beginning of the names of files that are not whole yet."""

_SHOWN = 3
"""Files that an error names."""


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
def _as_usage_error(name: str) -> Iterator[None]:
    """Raise UsageError if the block cannot write the file or folder `name`."""
    try:
        yield
    except (OSError, ValueError) as error:  # a path may hold a NUL
        raise UsageError(f"cannot be written: {getattr(error, 'strerror', None) or error}", Location(name)) from error


def _temporary(path: Path, end: str) -> Path:
    """Return an unused path beside another one."""
    import secrets  # few commands write a file

    return path.with_name(f"{TEMPORARY}{secrets.token_hex(6)}.{end}")


@contextmanager
def _atomic_bytes(name: str) -> Iterator[BinaryIO]:
    with _as_usage_error(name):
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
        temporary, descriptor = _locked_temporary(path)
        lock = os.dup(descriptor)  # until the file is renamed
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
        finally:
            os.close(lock)


def _locked_temporary(path: Path) -> tuple[Path, int]:
    """Create a locked file beside another one; return its path and descriptor."""
    while True:
        temporary = _temporary(path, "part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if not _lock(descriptor) or os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # `remove_unfinished` had the lock first


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder. Those that a process still writes are locked, and stay."""
    for path in folder.glob(f"{TEMPORARY}*.part"):
        with suppress(OSError):  # another process may have removed it
            descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor):
                    path.unlink()
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file. Return False if another process has it, or if the system has no locks."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


# -- folders ----------------------------------------------------------------------------------------------------------------


def require_own(folder: Path, is_own: Callable[[str], bool]) -> None:
    """Raise UsageError if the folder is a file, or holds files that an export of this module does not write."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError("is a file; an export needs a folder", Location(str(folder)))
    others = sorted(entry.name for entry in folder.iterdir() if not is_own(entry.name))
    if others:
        names = first_few(others, _SHOWN)
        raise UsageError(f"holds other files: {names}; name an empty or a new folder", Location(str(folder)))


def write_folder(folder: Path, files: Iterable[tuple[str, bytes, tuple[str, ...]]]) -> None:
    """Write files by name and content, with further names of the same content, which are hard links if possible.

    The folder is replaced as a whole; on failure or interruption it stays as it was. Raise UsageError if it cannot be written.
    """
    import shutil

    target = Path(os.path.realpath(folder))
    temporary, old = _temporary(target, "part"), _temporary(target, "old")
    with _as_usage_error(str(folder)):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        try:
            for name, content, others in files:
                (temporary / name).write_bytes(content)
                for other in others:
                    _link(temporary / name, temporary / other)
            _replace_folder(target, temporary, old)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _replace_folder(folder: Path, new: Path, old: Path) -> None:
    """Put a new folder in the place of the present one, which becomes `old`."""
    with suppress(FileNotFoundError):
        folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise


def _link(source: Path, name: Path) -> None:
    """Give a file a second name, or copy it if the file system has no hard links or not that many."""
    from shutil import copyfile

    try:
        name.hardlink_to(source)
    except OSError:
        copyfile(source, name)
