"""The inputs that a store has already: those of the same path, size, time of change and ETag are not read again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hlo_inspect.errors import InputError
from hlo_inspect.fleet.inputs import FleetInput, absolute
from hlo_inspect.fleet.parts import connect, literal
from hlo_inspect.fleet.schema import MODULES
from hlo_inspect.fleet.store import Store
from hlo_inspect.remote_files import FileVersion

if TYPE_CHECKING:
    import duckdb

_FAILED = frozenset({"unreadable", "lost"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KnownInputs:
    """Hashes of the inputs in a store. With `retries_failed`, failed ones are not among them."""

    def __init__(self, store: Store, *, retries_failed: bool) -> None:
        self._store = store
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._hashes: set[bytes] = set()
        self.damaged: list[InputError] = []
        """Errors of damaged parts: their inputs are read again."""
        for path in store.parts_of(MODULES):
            try:
                rows = self._of_parquet(path) if path.endswith(".parquet") else self._of_lines(path)
            except InputError as error:
                self.damaged.append(error)
                continue
            for name, size, changed, etag, status in rows:
                if not (retries_failed and status in _FAILED):
                    self._hashes.add(_hash(name, FileVersion(size, changed, etag)))

    def holds(self, file: FleetInput) -> bool:
        """Return True if the store has this version of the input."""
        return _hash(absolute(file.path), file.version) in self._hashes

    def _of_parquet(self, path: str) -> list[tuple[Any, ...]]:
        """Return path, size, microseconds of the change, ETag and status of inputs. Raise InputError if the part is damaged."""
        if self._connection is None:
            self._connection = connect(self._store.root, threads=1)
        import duckdb

        columns = "input, input_bytes, epoch_us(changed), etag, status"
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(
                f"SELECT {columns} FROM read_parquet({literal(path)})"  # noqa: S608 - columns of our own
            ).fetchall()
        except duckdb.Error as error:
            raise self._store.fault(path) from error
        return rows

    def _of_lines(self, path: str) -> list[tuple[Any, ...]]:
        """Return the same of a part of JSON lines, without DuckDB, which need not be installed."""
        lines = self._store.read(path).splitlines()
        try:
            return list(map(_input_of_line, lines))
        except (ValueError, AttributeError, TypeError, OverflowError, KeyError) as error:
            raise self._store.fault(path) from error


def path_hash(path: str) -> bytes:
    """Return the hash of a path or address."""
    return blake2b(path.encode(errors="backslashreplace"), digest_size=16).digest()


def _hash(path: str, version: FileVersion) -> bytes:
    return path_hash("\0".join(map(str, (path, *version))))


def _input_of_line(line: bytes) -> tuple[Any, ...]:
    row = json.loads(line)
    changed = row.get("changed")
    microseconds = (datetime.fromisoformat(changed) - _EPOCH) // timedelta(microseconds=1) if changed else None
    return row["input"], row.get("input_bytes"), microseconds, row.get("etag"), row["status"]
