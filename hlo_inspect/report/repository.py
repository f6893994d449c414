"""Paths in the user's repository: formats for CI name no other files."""

from __future__ import annotations

from pathlib import Path

from hlo_inspect.lazy_pattern import lazy_pattern

_INSTALLED = lazy_pattern(r"(?:^|/)(?:site-packages|dist-packages|lib/python3[^/]*)/")
MAX_PARTS = 64
"""Longest path, in parts, that is sought: paths of a dump are untrusted."""


def find_root(folder: Path) -> Path:
    """Return the root of the repository that a folder is in: the nearest with `.git`, else the folder itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


class Repository:
    """Files below a root; none without one. A dump may be of another machine: `/app/train/step.py` is `train/step.py` here."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._paths: dict[str, str | None] = {}

    def relative(self, path: str) -> str | None:
        """Return the longest end of `path` that is a file below the root, with slashes; None if there is none."""
        if path not in self._paths:
            self._paths[path] = self._relative(path)
        return self._paths[path]

    def _relative(self, path: str) -> str | None:
        parts = path.replace("\\", "/").split("/")
        if self._root is None or _INSTALLED.search(path) or ".." in parts or len(parts) > MAX_PARTS:
            return None
        for start in range(len(parts)):
            tail = "/".join(part for part in parts[start:] if part not in ("", "."))
            try:
                if tail and (self._root / tail).is_file():
                    return tail
            except (OSError, ValueError):  # a part that no file system takes
                return None
        return None
