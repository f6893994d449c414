"""The folders that a server may read, and the paths within them. A path is checked after its symbolic links are resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path

from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.remote_files import is_address


class Folders:
    """Folders with real paths. Relative paths are those of the working directory, then those of each folder."""

    def __init__(self, names: Sequence[str]) -> None:
        self.paths = tuple(_real_folder(name) for name in names)

    def resolve(self, text: str) -> str:
        """Return the path to hand to a command. Raise UsageError if it leads out of the folders, InputError without a file."""
        if is_address(text):
            raise UsageError(f"{text}: remote addresses are refused; this server reads local files")
        candidates = [text, *(str(folder / text) for folder in self.paths)]
        for candidate in candidates:
            if self.holds(candidate) and os.path.exists(candidate):  # noqa: PTH110 - any text
                return candidate
        if has_magic(text):
            return self._pattern(text, candidates)
        if not any(map(self.holds, candidates)):
            raise self._outside(text)
        raise InputError("no such file or folder", Location(text))

    def holds(self, path: str) -> bool:
        """Return True if the path, with its symbolic links resolved, is within a folder."""
        return is_within(path, self.paths)

    def _pattern(self, text: str, candidates: Iterable[str]) -> str:
        """Return a pattern with matches. Raise UsageError if one of them, or the part before the pattern, is outside."""
        if ".." in Path(text).parts:
            raise UsageError(f"{text}: a pattern has no `..` on this server")
        for candidate in candidates:
            fixed = Path(*_before_magic(Path(candidate).parts))
            if not self.holds(str(fixed)):
                continue
            matches = glob(candidate, recursive=True)  # noqa: PTH207 - an absolute pattern has no folder to start in
            if not all(map(self.holds, matches)):
                raise self._outside(text)
            if matches:
                return candidate
        raise InputError("no file or folder of this server matches the pattern", Location(text))

    def _outside(self, text: str) -> UsageError:
        return UsageError(f"{text}: is outside of the folders of this server: {', '.join(map(str, self.paths))}")


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


def is_within(path: str, folders: Iterable[Path]) -> bool:
    """Return True if the path, with its symbolic links resolved, is in one of the folders, which are real paths."""
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return False
    return any(real == folder or folder in real.parents for folder in folders)
