"""A folder of files that appears as a whole: it is written beside its place and then renamed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from hlo_inspect.errors import Location, UsageError

_SHOWN = 3


def require_own(folder: Path, is_own: Callable[[str], bool]) -> None:
    """Raise UsageError if the folder is a file, or holds files that an export of this module does not write."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError("is a file; an export needs a folder", Location(str(folder)))
    others = sorted(entry.name for entry in folder.iterdir() if not is_own(entry.name))
    if others:
        more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
        names = ", ".join(others[:_SHOWN])
        raise UsageError(f"holds other files: {names}{more}; name an empty or a new folder", Location(str(folder)))


def write_folder(folder: Path, files: Iterable[tuple[str, bytes, tuple[str, ...]]]) -> None:
    """Write files by name and content, with further names of the same content, which are hard links if possible.

    The folder is replaced as a whole; on failure or interruption it stays as it was. Raise UsageError if it cannot be written.
    """
    target = Path(os.path.realpath(folder))
    marker = secrets.token_hex(6)
    temporary, old = (target.with_name(f".hlo-inspect-{marker}.{end}") for end in ("part", "old"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        try:
            for name, content, others in files:
                (temporary / name).write_bytes(content)
                for other in others:
                    _link(temporary / name, temporary / other)
            _replace(temporary, target, old)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except (OSError, ValueError) as error:  # a path may hold a NUL
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot be written: {reason}", Location(str(folder))) from error


def _link(source: Path, name: Path) -> None:
    """Give a file a second name, or copy it if the file system has no hard links or not that many."""
    try:
        name.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, name)


def _replace(temporary: Path, target: Path, old: Path) -> None:
    """Put the new folder in the place of the old one."""
    with suppress(FileNotFoundError):
        target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
