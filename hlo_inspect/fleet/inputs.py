"""The inputs of a collection: files, directories, patterns and addresses, one at a time, each with its version.

A directory is listed folder by folder. The files of a folder are those that any command reads of it; below a folder with dumps
of XLA, other texts do not count, because they stand beside the dumps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import HloInspectError, InputError, Location, UsageError
from hlo_inspect.hlo.input.dump_directory import DirectoryFile, chosen_files, expanded, files_by_module, is_directory
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_files import FileVersion, inner_path, is_address, remote_folders, remote_version

_SHARD = lazy_pattern(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)
_FIELD = lazy_pattern(r"\{([A-Za-z_]\w*)\}|(\*\*)|(\*)|(\?)", re.ASCII)


class FleetInput(NamedTuple):
    """A file to read, with its version when it was listed. If it `is_forced`, it is analyzed even if an equal text was.

    `note`, `may_hold` and `hosts` are those of a `DirectoryFile`.
    """

    path: str
    version: FileVersion
    note: str | None = None
    may_hold: bool = False
    hosts: tuple[Path, ...] = ()
    is_forced: bool = False


class Shard(NamedTuple):
    """A part of the inputs: those whose paths hash to `number`, from 1 to `shards`."""

    number: int = 1
    shards: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `3/64`. Raise UsageError if that is no shard."""
        match = _SHARD.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"--shard is N/COUNT from 1/COUNT to COUNT/COUNT, for example 3/64; not {text!r}")
        return cls(int(match[1]), int(match[2]))

    def holds(self, path: str) -> bool:
        """Return True if the path belongs to the shard."""
        digest = blake2b(path.encode(errors="surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest) % self.shards == self.number - 1


def find_inputs(arguments: Iterable[str], stage: str | None, shard: Shard) -> Iterator[FleetInput | HloInspectError]:
    """Yield the inputs of the shard, and an error for each argument or folder that cannot be read."""
    for argument in arguments:
        if argument == "-":
            yield UsageError("collect reads files, directories and addresses; standard input has no name to keep")
            continue
        try:
            for source in expanded(argument):
                yield from _of_source(str(source), stage, shard)
        except HloInspectError as error:
            yield error


def file_version(path: str) -> FileVersion:
    """Return the version of a file or object. Raise InputError if it cannot be read."""
    try:
        if is_address(path):
            return remote_version(path)
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", Location(path)) from error
    return FileVersion(status.st_size, status.st_mtime_ns // 1000)


def absolute(path: str) -> str:
    """Return the path that a store keeps: an address as it is, else an absolute path."""
    return path if is_address(path) else os.path.abspath(path)  # noqa: PTH100 - also of a pattern


def _of_source(source: str, stage: str | None, shard: Shard) -> Iterator[FleetInput | HloInspectError]:
    path = absolute(source)
    if not is_directory(source):
        if shard.holds(path):
            yield _with_version(path, DirectoryFile(Path(path)))
        return
    is_empty, refusal = True, None
    for item in _folders(path):
        if isinstance(item, HloInspectError):
            yield item
            continue
        files, has_dumps_above = item
        try:
            for file in _chosen(path, sorted(files), stage, has_dumps_above):
                is_empty = False
                name = str(file.source)
                if shard.holds(name):
                    yield _with_version(name, file, files[name])
        except UsageError as error:
            refusal = error
    if is_empty:
        what = "is a directory without XLA dumps (module_NNNN.….txt or .hlo.pb) or other texts"
        yield refusal or InputError(what, Location(path))


_Folder = tuple[dict[str, FileVersion | None], bool]
"""The files of a folder with their versions if the listing has them; True if a folder above has dumps."""


def _folders(root: str) -> Iterator[_Folder | HloInspectError]:
    if is_address(root):
        yield from _remote_folders(root)
        return
    todo = [(root, False)]
    while todo:
        folder, has_dumps_above = todo.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            yield InputError(f"cannot be read: {error.strerror or error}", Location(folder))
            continue
        files: dict[str, FileVersion | None] = {entry.path: None for entry in entries if entry.is_file()}
        below = has_dumps_above or bool(files_by_module(map(Path, files)))
        todo += [(entry.path, below) for entry in reversed(entries) if entry.is_dir(follow_symlinks=False)]
        yield files, has_dumps_above


def _remote_folders(root: str) -> Iterator[_Folder | HloInspectError]:
    dumps: list[str] = []
    try:
        for listed in remote_folders(root):
            files: dict[str, FileVersion | None] = {file.address: file.version for file in listed}
            if files:
                folder = inner_path(next(iter(files))).rpartition("/")[0]
                has_dumps_above = any(folder.startswith(f"{other}/") for other in dumps)
                if files_by_module(Path(inner_path(address)) for address in files):
                    dumps.append(folder)
                yield files, has_dumps_above
    except OSError as error:
        yield InputError(f"cannot be read: {error.strerror or error}", Location(root))


def _chosen(root: str, paths: Sequence[str], stage: str | None, has_dumps_above: bool) -> Iterator[DirectoryFile]:
    """Yield the files of one folder that are read."""
    names = {Path(inner_path(path)): path for path in paths}
    if has_dumps_above and not files_by_module(names):
        return
    try:
        for file in chosen_files(Path(root), list(names), stage):
            yield file._replace(address=names[file.path])
    except InputError:
        return  # a folder without dumps or texts


def _with_version(path: str, file: DirectoryFile, version: FileVersion | None = None) -> FleetInput | HloInspectError:
    try:
        return FleetInput(path, version or file_version(path), file.note, file.may_hold, file.hosts)
    except InputError as error:
        return error


def label_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of paths with labels in braces, as `dumps/{build}/{rank}/*`. Raise UsageError if it has none."""
    parts: list[str] = []
    end = 0
    pattern = absolute(text)
    try:
        for match in _FIELD.finditer(pattern):
            parts.append(re.escape(pattern[end : match.start()]))
            parts.append(f"(?P<{match[1]}>[^/]+)" if match[1] else ".*" if match[2] else "[^/]*" if match[3] else "[^/]")
            end = match.end()
        compiled = re.compile("".join((*parts, re.escape(pattern[end:]), "(?:/.*)?")), re.DOTALL)
    except re.error as error:
        raise UsageError(f"--label-from {text!r}: {error}") from error
    if not compiled.groupindex:
        raise UsageError(f"--label-from needs a label in braces, for example 'dumps/{{build}}/*'; not {text!r}")
    return compiled


def parse_assignments(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Parse values of an option of the form NAME=VALUE. Raise UsageError if `=` or the name is missing."""
    values = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise UsageError(f"{option} is NAME=VALUE, for example {option} build=123; not {text!r}")
        values[name] = value
    return values
