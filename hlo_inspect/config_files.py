"""Files that may hold the configuration of a project; found without parsing, since most commands run without one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hlo_inspect.lazy_pattern import lazy_pattern

PYPROJECT, OWN_FILE = "pyproject.toml", "hlo-inspect.toml"

_TABLE = lazy_pattern(rb"^[^#\n]*\btool[\"']?\s*\.\s*[\"']?hlo-inspect|^\s*\[\s*tool\s*\]", re.MULTILINE)


def config_files(folder: Path) -> Iterator[Path]:
    """Yield the files that may hold a configuration, from a folder upwards; in one folder `hlo-inspect.toml` first."""
    for above in (folder, *folder.parents):
        for name in (OWN_FILE, PYPROJECT):
            path = above / name
            if path.is_file() and (name == OWN_FILE or has_table(path)):
                yield path


def has_table(path: Path) -> bool:
    """Return True if a `pyproject.toml` may have the table `[tool.hlo-inspect]`. An unreadable one is none of ours."""
    with suppress(OSError):
        return _TABLE.search(path.read_bytes()) is not None
    return False
