"""Sizes of the folder, and of what the page loads before it can read a dump."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from hlo_inspect.report.units import format_value

_LATER = ("examples/", "licenses.txt", "report.html", "pyodide/numpy-")
"""Files that the page loads when they are needed."""


def loaded_first(folder: Path) -> list[Path]:
    """Return the files that the page loads before it can read a dump."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in files if not path.relative_to(folder).as_posix().startswith(_LATER)]


def size_lines(folder: Path) -> Iterator[str]:
    """Yield the size of the folder, then that of each file that is loaded first, whole and compressed as servers do."""
    whole = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    yield f"{folder}: {format_value(whole, 'bytes')}"
    total = packed = 0
    for path in loaded_first(folder):
        data = path.read_bytes()
        compressed = min(len(gzip.compress(data, 6)), len(data))
        total, packed = total + len(data), packed + compressed
        yield f"  {path.relative_to(folder)}: {_pair(len(data), compressed)}"
    yield f"  loaded first: {_pair(total, packed)}"


def _pair(size: int, compressed: int) -> str:
    return f"{format_value(size, 'bytes')}, compressed {format_value(compressed, 'bytes')}"
