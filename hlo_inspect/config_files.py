"""Files that may hold the configuration of a project; found without parsing, since most commands run without one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hlo_inspect.lazy_pattern import lazy_pattern

PYPROJECT, OWN_FILE = "pyproject.toml", "hlo-inspect.toml"

_TABLE = lazy_pattern(rb"^[^#\n]*\btool[\"']?[ \t]*+\.[ \t]*+[\"']?hlo-inspect|^[ \t]*+\[[ \t]*+tool[ \t]*+\]", re.MULTILINE)
_MAX_BYTES = 1 << 20
"""Bytes of a `pyproject.toml` that are searched: a larger one is no configuration that a command would read."""


def config_files(folder: Path) -> Iterator[Path]:
    """Yield the files that may hold a configuration, from a folder upwards; in one folder `hlo-inspect.toml` first."""
    for above in (folder, *folder.parents):
        for name in (OWN_FILE, PYPROJECT):
            path = above / name
            if path.is_file() and (name == OWN_FILE or has_table(path)):
                yield path


def is_of_other_user(path: Path) -> bool:
    """Return True if neither the user of this process nor root owns a file. Systems without owners have no other users."""
    return hasattr(os, "getuid") and path.stat().st_uid not in {os.getuid(), 0}


def has_table(path: Path) -> bool:
    """Return True if a `pyproject.toml` may have the table `[tool.hlo-inspect]`. An unreadable one is none of ours."""
    with suppress(OSError), path.open("rb") as stream:
        return _TABLE.search(stream.read(_MAX_BYTES)) is not None
    return False
