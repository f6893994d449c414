"""Analyses that equal texts repeat. Threads of a process that collect for one run share them."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import zlib
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from hlo_inspect.fleet.reading import ModuleFigures

CACHE_BYTES = 1 << 26
"""Bytes of packed analyses that are kept for equal texts: a small module takes 400, and 13,000 as objects."""


class Analyses:
    """Analyses by digest. `claims` is the folder in which child processes claim the digests that they analyze."""

    def __init__(self) -> None:
        self.claims = tempfile.mkdtemp(prefix="hlo-inspect-")
        self._lock = Lock()
        self._users = 0
        self._bytes = 0
        self._by_digest: OrderedDict[str, bytes] = OrderedDict()

    def open(self) -> None:
        """Count a user."""
        with self._lock:
            self._users += 1

    def close(self) -> None:
        """Remove the folder of the claims with the last user."""
        with self._lock:
            self._users -= 1
            if not self._users:
                shutil.rmtree(self.claims, ignore_errors=True)

    def get(self, digest: str) -> list[ModuleFigures] | None:
        """Return the analysis of a text, None if there is none yet or no longer."""
        packed = self._by_digest.get(digest)
        if packed is None:
            return None
        modules: list[ModuleFigures] = pickle.loads(zlib.decompress(packed))  # noqa: S301 - packed by `keep`
        return modules

    def keep(self, digest: str, modules: list[ModuleFigures]) -> None:
        """Keep an analysis for equal texts; drop the oldest ones above `CACHE_BYTES`, which are then analyzed again."""
        packed = zlib.compress(pickle.dumps(modules), 1)
        with self._lock:
            self._bytes += len(packed) - len(self._by_digest.get(digest, b""))
            self._by_digest[digest] = packed
            while self._bytes > CACHE_BYTES and len(self._by_digest) > 1:
                dropped, oldest = self._by_digest.popitem(last=False)
                self._bytes -= len(oldest)
                Path(self.claims, dropped).unlink(missing_ok=True)

    def release_claims_of(self, path: str) -> list[str]:
        """Let another process analyze what the process of an input had claimed when it died. Return these digests."""
        released = []
        for claim in Path(self.claims).iterdir():
            if claim.read_text(encoding="utf-8", errors="surrogateescape") == path and claim.name not in self._by_digest:
                claim.unlink(missing_ok=True)
                released.append(claim.name)
        return released
