"""The layout of a store: a directory, local or remote, of parts that never change.

* `store.json`: the version of the schema
* `modules/RUN-NUMBER.parquet`: a row for each module
* `findings/RUN-NUMBER.parquet`: a row for each finding
* `tables/NAME/RUN-NUMBER.parquet`: a row for each row of a report's table

A part is written whole and renamed. RUN is the name of one run, NUMBER counts its parts, so no two runs write one file. The
part of `modules` is written last: rows of other parts without a row of `modules` belong to a killed run, and count nowhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from hlo_inspect.atomic_files import TEMPORARY, remove_unfinished, write_whole
from hlo_inspect.errors import InputError, Location, UsageError, reading
from hlo_inspect.fleet.parts import Encoding, StoreRow, encode
from hlo_inspect.fleet.schema import FINDINGS, MODULES, STORE_SCHEMA, TABLES, stored_tables
from hlo_inspect.remote_files import check_replaces, is_address, is_remote_directory, open_remote, remote_entries

_MARK = "store.json"
_ENDINGS = (".parquet", ".jsonl")


class Store:
    """A store at a path or address."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") if is_address(root) else str(Path(root))

    def create(self) -> None:
        """Make the store unless it is there, else remove what killed runs left half-written.

        Raise UsageError for another directory, or a store of a newer schema.
        """
        if is_address(self.root):
            check_replaces(self.root)
        if self.is_marked():
            if not is_address(self.root):
                for folder in (".", MODULES, FINDINGS, *(_folder(table) for table in stored_tables())):
                    remove_unfinished(Path(self._path(folder)))
            return
        is_occupied = any(True for _ in chain(self._files("."), self._folders()))
        if is_occupied and not self.is_marked():  # another run may have made it meanwhile
            raise UsageError("is a directory with other files and no store; name an empty or new one", Location(self.root))
        self._write(_MARK, json.dumps({"schema_version": STORE_SCHEMA}).encode() + b"\n")

    def check(self) -> None:
        """Raise InputError unless this is a store, UsageError if its schema is newer."""
        if not self.is_marked():
            raise InputError("is no store: `hlo-inspect collect` writes one", Location(self.root))

    def write(self, name: str, rows: Mapping[str, Sequence[StoreRow]], encoding: Encoding) -> None:
        """Write the rows of one part of a run, those of `modules` last."""
        for relation in sorted(rows, key=lambda relation: relation == MODULES):
            if rows[relation]:
                self._write(f"{_folder(relation)}/{name}.{encoding}", encode(relation, rows[relation], encoding))

    def parts_of(self, relation: str) -> Iterator[str]:
        """Yield the paths of the parts of a relation by name."""
        return (path for path in self._files(_folder(relation)) if path.endswith(_ENDINGS))

    def read(self, path: str) -> bytes:
        """Return the bytes of a file of the store. Raise InputError if it cannot be read."""
        with reading(path), open_remote(path) if is_address(path) else Path(path).open("rb") as stream:
            return stream.read()

    def fault(self, path: str) -> InputError:
        """Return the error of a part that cannot be read, or is truncated or no part."""
        try:
            self.read(path)
        except InputError as error:
            return error
        return InputError("is a damaged part of the store; remove it and collect its inputs again", Location(path))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if is_address(self.root) else str(Path(self.root, name))

    def _write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        if not is_address(path):
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"cannot be written: {error.strerror or error}", Location(path)) from error
        write_whole(path, data)

    def is_marked(self) -> bool:
        """Return True if the mark of a store is there. Raise UsageError if its schema is newer."""
        try:
            with open_remote(self._path(_MARK)) if is_address(self.root) else Path(self._path(_MARK)).open("rb") as stream:
                mark = json.loads(stream.read(1 << 16))
            version = int(mark["schema_version"])
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", Location(self.root)) from error
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(f"is no store: {_MARK} makes no sense", Location(self.root)) from error
        if version > STORE_SCHEMA:
            message = f"is a store of schema {version}; this version reads schema {STORE_SCHEMA}: update hlo-inspect"
            raise UsageError(message, Location(self.root))
        return True

    def _folders(self) -> Iterator[str]:
        if not is_address(self.root) and Path(self.root).is_dir():
            yield from (entry.name for entry in os.scandir(self.root) if entry.is_dir())

    def _files(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files of a folder, by name; none if there is no such folder."""
        path = self._path(folder) if folder != "." else self.root
        try:
            if is_address(path):
                entries = remote_entries(path) if is_remote_directory(path) else ()
                names = [entry.address for entry in entries if not entry.is_folder]
            else:
                names = sorted(entry.path for entry in os.scandir(path) if _is_file(entry))
        except (FileNotFoundError, NotADirectoryError):
            return iter(())
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", Location(path)) from error
        return (name for name in names if not name.rpartition("/")[2].startswith(TEMPORARY))


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Return True for a file, and for a link to itself: who reads it tells so."""
    try:
        return entry.is_file()
    except OSError:
        return True


def _folder(relation: str) -> str:
    return relation if relation in (MODULES, FINDINGS) else f"{TABLES}/{relation}"
