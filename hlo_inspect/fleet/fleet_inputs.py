"""The inputs of a collection: files, directories, patterns and addresses, one at a time, each with its version.

A directory is listed folder by folder, a large folder in batches. The files of a folder are those that any command reads of it;
below a folder with dumps of XLA, other texts do not count, because they stand beside the dumps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import HloInspectError, InputError, Location, UsageError, reading
from hlo_inspect.hlo.input.dump_directory import (
    PIPE_FAULT,
    DirectoryFile,
    chosen_addresses,
    expanded,
    is_directory,
    is_pipe,
    may_be_text,
    module_of,
)
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_files import FileVersion, inner_path, is_address, remote_entries, remote_version

_SHARD = lazy_pattern(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)
_FIELD = lazy_pattern(r"\{([A-Za-z_]\w*)\}|(\*\*)|(\*)|(\?)", re.ASCII)
READINGS = 3
"""An input that changes while it is read is read so often."""
BATCH_FILES = 10_000
"""Entries of a folder that are held at a time, unless a module has more files."""


class FleetInput(NamedTuple):
    """A file to read, with its version when it was listed. If it changes meanwhile, it may be read `readings` times.

    `note`, `may_hold` and `hosts` are those of a `DirectoryFile`.
    """

    path: str
    version: FileVersion
    note: str | None = None
    may_hold: bool = False
    hosts: tuple[Path, ...] = ()
    readings: int = READINGS


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
    with reading(path):
        if is_address(path):
            return remote_version(path)
        status = Path(path).stat()
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
    for item in _batches(path):
        if isinstance(item, HloInspectError):
            yield item
            continue
        try:
            for file in chosen_addresses(path, item, stage):
                is_empty = False
                name = str(file.source)
                if shard.holds(name):
                    yield _with_version(name, file, item[name])
        except UsageError as error:
            refusal = error
        except InputError:
            continue  # a folder without dumps or texts
    if is_empty:
        what = "is a directory without XLA dumps (module_NNNN.….txt or .hlo.pb) or other texts"
        yield refusal or InputError(what, Location(path))


class _Entry(NamedTuple):
    """A file or folder of a listing. `version` is that of a file, if the listing has it. `fault`: why it cannot be read."""

    path: str
    is_folder: bool
    version: FileVersion | None = None
    fault: str = ""


def _batches(root: str) -> Iterator[dict[str, FileVersion | None] | HloInspectError]:
    """Yield the files of each folder that may count, with the versions that the listing has; a large folder in batches."""
    todo = [(root, False)]
    while todo:
        folder, has_dumps_above = todo.pop()
        folders: list[str] = []
        faults: list[InputError] = []
        try:
            entries = _relistable(partial(_entries, folder))
            has_dumps = has_dumps_above or any(_module_of(entry.path) for entry in entries() if not entry.is_folder)
            yield from _files_together(entries(), has_dumps, folders, faults)
        except OSError as error:
            yield InputError(f"cannot be read: {error.strerror or error}", Location(folder))
            continue
        yield from faults
        todo += [(below, has_dumps) for below in reversed(folders)]


def _entries(folder: str) -> Iterator[_Entry]:
    """Yield files and folders directly below a folder, by name."""
    if is_address(folder):
        yield from (_Entry(entry.address, entry.is_folder, entry.version) for entry in remote_entries(folder))
        return
    last, is_last = "", False
    while not is_last:  # a folder of any size is sorted a batch at a time
        with os.scandir(folder) as scanned:
            entries = nsmallest(BATCH_FILES, (entry for entry in scanned if entry.name > last), key=attrgetter("name"))
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield _Entry(entry.path, is_folder=True)
                elif entry.is_file():
                    yield _Entry(entry.path, is_folder=False)
                elif is_pipe(entry) and may_be_text(entry.name):
                    yield _Entry(entry.path, is_folder=False, fault=PIPE_FAULT)
            except OSError as error:
                yield _Entry(entry.path, is_folder=False, fault=f"cannot be read: {error.strerror or error}")
            last = entry.name
        is_last = len(entries) < BATCH_FILES


def _relistable(entries: Callable[[], Iterator[_Entry]]) -> Callable[[], Iterator[_Entry]]:
    """Return a function that lists again. The entries of a small folder are kept instead."""
    listed = entries()
    kept = list(islice(listed, BATCH_FILES))
    return entries if next(listed, None) is not None else lambda: iter(kept)


def _files_together(
    entries: Iterable[_Entry], has_dumps: bool, folders: list[str], faults: list[InputError]
) -> Iterator[dict[str, FileVersion | None]]:
    """Yield the files in batches that divide no module. Beside dumps, only dumps count.

    Add the folders to `folders`, and to `faults` the errors of entries that cannot be read.
    """
    batch: dict[str, FileVersion | None] = {}
    last = None
    for entry in entries:
        module = _module_of(entry.path)
        if entry.is_folder:
            folders.append(entry.path)
        elif entry.fault:
            faults.append(InputError(entry.fault, Location(entry.path)))
        elif module is not None or not has_dumps:
            if len(batch) >= BATCH_FILES and (module is None or module != last):
                yield batch
                batch = {}
            batch[entry.path] = entry.version
            last = module
    if batch:
        yield batch


def _module_of(path: str) -> tuple[str, str] | None:
    return module_of(inner_path(path).rpartition("/")[2])


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
        if text != text.encode(errors="replace").decode():
            raise UsageError(f"{option} is UTF-8, which {text!r} is not")
        values[name] = value
    return values
