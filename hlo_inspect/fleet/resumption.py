"""The inputs that a store has already: those of the same path, size, time of change and ETag are not read again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from hlo_inspect.errors import InputError
from hlo_inspect.fleet.inputs import FleetInput, stored_path
from hlo_inspect.fleet.parts import decode
from hlo_inspect.fleet.schema import MODULES
from hlo_inspect.fleet.store import Store
from hlo_inspect.remote_files import FileVersion

_COLUMNS = ("input", "input_bytes", "changed", "etag", "status")
_FAILED = frozenset({"unreadable", "lost"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KnownInputs:
    """Hashes of the inputs in a store. With `retries_failed`, failed ones are not among them."""

    def __init__(self, store: Store, *, retries_failed: bool) -> None:
        self._hashes: set[bytes] = set()
        self.damaged: list[InputError] = []
        """Errors of damaged parts: their inputs are read again."""
        failed: set[bytes] = set()
        good: set[bytes] = set()
        for path in store.parts_of(MODULES):
            try:
                for name, size, changed, etag, status in decode(MODULES, store.read(path), path, _COLUMNS):
                    microseconds = (changed - _EPOCH) // timedelta(microseconds=1) if changed is not None else None
                    found_in = failed if status in _FAILED else good
                    found_in.add(_hash(name, FileVersion(size, microseconds, etag)))
            except InputError as error:
                self.damaged.append(error)
        self._hashes = good if retries_failed else good | failed

    def holds(self, file: FleetInput) -> bool:
        """Return True if the store has this version of the input."""
        return _hash(stored_path(file.path), file.version) in self._hashes


def path_hash(path: str) -> bytes:
    """Return the hash of a path or address."""
    return blake2b(path.encode(errors="surrogatepass"), digest_size=16).digest()


def _hash(path: str, version: FileVersion) -> bytes:
    return path_hash("\0".join(map(str, (path, *version))))
