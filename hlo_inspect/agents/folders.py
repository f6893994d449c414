"""The folders that a server may read, and the paths within them. A path is checked after its symbolic links are resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path

from hlo_inspect.errors import Location, UsageError
from hlo_inspect.remote_files import is_address


class Folders:
    """Folders with real paths. Relative paths are those of the working directory, then those of each folder."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self.paths = tuple(_real_folder(name) for name in names)

    def resolve(self, text: str) -> str:
        """Return the path to hand to a command. Raise UsageError if it leads out of the folders, or if there is no such file.

        The message is the same for both, so that it does not tell which files exist.
        """
        if is_address(text):
            raise UsageError(f"{text}: remote addresses are refused; this server reads local files")
        candidates = [text, *(str(Path(name) / text) for name in self._names)]
        for candidate in candidates:
            if self.holds(candidate) and is_plain(candidate):
                return candidate
        if has_magic(text) and ".." not in Path(text).parts:
            for candidate in candidates:
                if self._holds_matches(candidate):
                    return candidate
        raise UsageError("is outside of the folders of this server, or does not exist", Location(text))

    def holds(self, path: str) -> bool:
        """Return True if the path, with its symbolic links resolved, is within a folder."""
        return is_within(path, self.paths)

    def _holds_matches(self, pattern: str) -> bool:
        """Return True if a pattern has matches, all of them within the folders."""
        if not self.holds(str(Path(*_before_magic(Path(pattern).parts)))):
            return False
        matches = glob(pattern, recursive=True)  # noqa: PTH207 - an absolute pattern has no folder to start in
        return bool(matches) and all(self.holds(match) and is_plain(match) for match in matches)


def _before_magic(parts: Sequence[str]) -> Iterator[str]:
    for part in parts:
        if has_magic(part):
            return
        yield part


def _real_folder(name: str) -> Path:
    try:
        path = Path(name).resolve(strict=True)
    except (OSError, ValueError) as error:
        raise UsageError("is no folder that can be read", Location(name)) from error
    if not path.is_dir():
        raise UsageError("is a file; a server reads folders", Location(name))
    return path


def is_plain(path: str) -> bool:
    """Return True for a file or a folder: the opening of a pipe waits for its writer, and that of a device may act."""
    return os.path.isfile(path) or os.path.isdir(path)  # noqa: PTH112, PTH113 - False for an impossible name


def is_within(path: str, folders: Iterable[Path]) -> bool:
    """Return True if the path, with its symbolic links resolved, is in one of the folders, which are real paths."""
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return False
    return any(real == folder or folder in real.parents for folder in folders)
