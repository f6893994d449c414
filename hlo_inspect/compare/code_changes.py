"""Object files and generated kernels beside two texts: equal texts may have other code, as of another machine or flag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.dump_directory import stage_of
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import HeadlineRow
from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec

_KINDS = {
    "object files": lazy_pattern(r".*\.(?:o|cubin|hsaco|fatbin)", re.DOTALL),
    "LLVM modules": lazy_pattern(r".*\.(?:ll|bc)", re.DOTALL),
    "PTX files": lazy_pattern(r".*\.ptx", re.DOTALL),
    "thunk sequences": lazy_pattern(r"thunk_sequence\w*\.txt", re.ASCII),
}
"""Kinds of files with generated code, by their names without the start that all files of a module share."""
_START = lazy_pattern(r"(?:\d+\.)?module_\d{4,18}\.", re.ASCII)


class CodeChange(NamedTuple):
    """The files of one kind: their number on both sides together, how many differ, and the bytes of those."""

    kind: str
    files: int
    different: int
    old_bytes: int
    new_bytes: int


CODE_FILES = TableSpec("code_files", "Generated code beside the texts").with_columns(
    Column("kind", width=16, meaning="object files, LLVM modules, PTX files or thunk sequences"),
    Column("files", "count", meaning="files of OLD and NEW, those of one name once"),
    Column("different", "count", meaning="files whose bytes differ, or that one side lacks"),
    Column("old_bytes", "bytes", meaning="bytes of these files of OLD"),
    Column("new_bytes", "bytes", meaning="bytes of these files of NEW"),
)


def code_changes(old: Context | None, new: Context | None) -> list[CodeChange]:
    """Compare the files of each kind that both sides have."""
    if old is None or new is None:
        return []
    sides = _code_files(old), _code_files(new)
    return [_compared(kind, sides[0][kind], sides[1][kind]) for kind in _KINDS if sides[0][kind] and sides[1][kind]]


def _code_files(context: Context) -> Mapping[str, Mapping[str, Path]]:
    """Return the files of a module by kind, then by name without module; none of a remote dump, or of an unreadable folder."""
    files: dict[str, dict[str, Path]] = {kind: {} for kind in _KINDS}
    path = Path(context.module.path)
    start = _START.match(path.name) if stage_of(context.module.path) else None
    if start is not None:
        try:
            entries = list(path.parent.iterdir())
        except OSError:
            return files
        for file in entries:
            if file.name.startswith(start[0]):
                name = file.name[start.end() :].removeprefix(f"{context.module.name}.")
                kind = next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(name)), None)
                if kind is not None:
                    files[kind][name] = file
    return files


def _compared(kind: str, old: Mapping[str, Path], new: Mapping[str, Path]) -> CodeChange:
    names = old.keys() | new.keys()
    different = [name for name in names if _content(old.get(name)) != _content(new.get(name))]
    sizes = (sum(len(_content(side.get(name)) or b"") for name in different) for side in (old, new))
    return CodeChange(kind, len(names), len(different), *sizes)


def _content(path: Path | None) -> bytes | None:
    """Return the bytes of a file; None if it is missing or cannot be read."""
    try:
        return path.read_bytes() if path is not None else None
    except OSError:
        return None


def code_headline(changes: list[CodeChange]) -> Iterator[HeadlineRow]:
    """Yield a line: `1 of 1 object files differ, 1,400 → 2,840 B`; of equal files too, as they are more than the texts."""
    words = [
        f"{change.different:,} of {change.files:,} {change.kind} differ, {change.old_bytes:,} → {change.new_bytes:,} B"
        if change.different
        else f"{change.files:,} of {change.files:,} {change.kind} equal"
        for change in changes
    ]
    if words:
        yield HeadlineRow("code", ("; ".join(words),))
