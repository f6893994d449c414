"""The files that an answer about a dump is read from."""

from __future__ import annotations

from pathlib import Path

from hlo_inspect.analysis.memory.sidecars import files_beside


def files_of_dump(path: str) -> list[str | Path]:
    """The file of that name and those about memory that XLA wrote beside it."""
    return [path, *files_beside(path)]
