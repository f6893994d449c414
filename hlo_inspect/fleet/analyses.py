"""Analyses that equal texts repeat. Threads of a process that collect for one run share them."""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from hlo_inspect.fleet.reading import ModuleFigures

CACHE_ROWS = 200_000
"""Rows of analyses that are kept for equal texts."""


class Analyses:
    """Analyses by digest. `claims` is the folder in which child processes claim the digests that they analyze."""

    def __init__(self) -> None:
        self.claims = tempfile.mkdtemp(prefix="hlo-inspect-")
        self._lock = Lock()
        self._users = 0
        self._rows = 0
        self._by_digest: OrderedDict[str, list[ModuleFigures]] = OrderedDict()

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
        return self._by_digest.get(digest)

    def keep(self, digest: str, modules: list[ModuleFigures]) -> None:
        """Keep an analysis for equal texts; drop the oldest ones above `CACHE_ROWS`, which are then analyzed again."""
        with self._lock:
            self._rows += _row_count(modules) - _row_count(self._by_digest.get(digest, []))
            self._by_digest[digest] = modules
            while self._rows > CACHE_ROWS and len(self._by_digest) > 1:
                dropped, oldest = self._by_digest.popitem(last=False)
                self._rows -= _row_count(oldest)
                Path(self.claims, dropped).unlink(missing_ok=True)

    def release_claims_of(self, path: str) -> list[str]:
        """Let another process analyze what the process of an input had claimed when it died. Return these digests."""
        released = []
        for claim in Path(self.claims).iterdir():
            if claim.read_text(encoding="utf-8", errors="surrogateescape") == path and claim.name not in self._by_digest:
                claim.unlink(missing_ok=True)
                released.append(claim.name)
        return released


def _row_count(modules: list[ModuleFigures]) -> int:
    return sum(1 + len(module.findings) + sum(map(len, (module.tables or {}).values())) for module in modules)
