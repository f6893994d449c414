"""Settings of the tests of fleets."""

from __future__ import annotations

import pytest

from hlo_inspect.fleet import run


@pytest.fixture(autouse=True)
def _parts_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write JSON lines unless a test or a store of several tests says otherwise: they need no import."""
    monkeypatch.setattr(run, "best_encoding", lambda: "jsonl")
