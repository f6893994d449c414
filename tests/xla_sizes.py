"""Sizes that depend on the version of XLA, for the tests that hold figures against those of an older jaxlib."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost import operation

OLDER_ENTRY_BYTES = 8
"""Bytes that the cost analysis counted for an element of a tuple until jaxlib 0.10; since 0.11 they are 4."""


def count_tuples_as(jaxlib: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an element of a tuple have the bytes that this version of jaxlib counts."""
    if tuple(map(int, jaxlib.split(".")[:2])) < (0, 11):
        monkeypatch.setattr(operation, "TUPLE_ENTRY_BYTES", OLDER_ENTRY_BYTES)
