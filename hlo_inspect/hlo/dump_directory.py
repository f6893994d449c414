"""XLA's dump directories (`--xla_dump_to`): which file to read of each module.

File names follow `FilenameFor` in xla/service/dump.cc: `[timestamp.]module_NNNN.name.stage.txt`, and `….hlo.pb` for serialized
HLO.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.hlo.source import Openable

_FILE = re.compile(
    r"(?:\d+\.)?module_(?P<number>\d{4,18})\.(?P<stem>.*)"
    r"\.(?:txt|hlo|(?P<serialized>hlo(?:_unoptimized_snapshot|_snapshot)?\.pb))(?:\.(?:gz|bz2|xz|zst))?",
    re.ASCII,
)
_SIDECAR = re.compile(
    r"-(?:buffer-assignment(?:-values)?|live-range|memory-usage-report)$"
    r"|(?:thunk_(?:sequence\w*|metadata)|execution_options|hlo_module_config|target_arguments|tpu_comp_env|transfer_stats"
    r"|basic_compiler_metadata|debug_options|after_codegen)$"
)
_PASS = re.compile(r"\.(\d{4,})\.[^.]*\.after_[^.]*(?:\.before_[^.]*)?$", re.ASCII)
_AFTER, _BEFORE = "after_optimizations", "before_optimizations"


def is_directory(source: Openable) -> bool:
    if not isinstance(source, str | os.PathLike) or (isinstance(source, str) and "\n" in source):
        return False
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):
        return False


def dump_files(directory: Openable, stage: str | None) -> Iterator[tuple[Path, str | None]]:
    """For each module of a dump directory the file to read, with a note where it is not the optimized one.

    `stage` is a part of the wanted file's name. Serialized HLO counts where there is no text of the same stage. `InputError`
    for a directory without dumps, `UsageError` for a stage that no file has.
    """
    root = Path(str(directory))
    modules: dict[tuple[int, Path, str], list[Path]] = {}  # processes that share a directory count alike
    for path, match in _dumps(root):
        name = match["stem"].partition(".")[0]
        modules.setdefault((int(match["number"]), path.parent, name), []).append(path)
    if not modules:
        raise InputError("is a directory without XLA dumps (module_NNNN.….txt or .hlo.pb)", Location(str(root)))
    if stage is None:
        yield from (_latest(files) for _, files in sorted(modules.items()))
        return
    found = [path for _, files in sorted(modules.items()) for path in files if stage in path.name]
    if not found:
        stages = sorted({_stem(path).rpartition(".")[2] for files in modules.values() for path in files})
        raise UsageError(f"no file of {root} has {stage!r} in its name; there are: {', '.join(stages)}")
    yield from ((path, None) for path in found)


def _dumps(root: Path) -> list[tuple[Path, re.Match[str]]]:
    """The files that hold a module, by name; of a stage that is there as text and serialized the text."""
    try:
        found = [(path, match) for path in sorted(root.rglob("*")) if (match := _FILE.fullmatch(path.name)) is not None]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", Location(str(root))) from error
    found = [(path, match) for path, match in found if not _SIDECAR.search(match["stem"])]
    texts = {(path.parent, match["number"], match["stem"]) for path, match in found if not match["serialized"]}
    return [
        (path, match)
        for path, match in found
        if not match["serialized"] or (path.parent, match["number"], match["stem"]) not in texts
    ]


def _stem(path: Path) -> str:
    match = _FILE.fullmatch(path.name)
    return match["stem"] if match else path.name


def _latest(files: list[Path]) -> tuple[Path, str | None]:
    optimized = [path for path in files if _stem(path).endswith(_AFTER)]
    if optimized:
        return optimized[-1], None
    passes = [path for path in files if _PASS.search(_stem(path))]
    before = [path for path in files if _stem(path).endswith(_BEFORE)]
    chosen = max(passes, key=_pass_number) if passes else (before or files)[-1]
    return chosen, f"{chosen.name}: the dump has no file after optimizations for this module"


def _pass_number(path: Path) -> int:
    match = _PASS.search(_stem(path))
    return int(match[1]) if match else -1
