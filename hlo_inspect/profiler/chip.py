"""The chip that ran a program, as the stats of its plane name it: a TPU by its type, a GPU by its capabilities."""

from __future__ import annotations

from typing import NamedTuple


class ProfiledChip(NamedTuple):
    """Type, or vendor, compute capability, multiprocessors and bytes of memory; 0 or empty if a profile leaves one out."""

    type: str = ""
    vendor: str = ""
    capability: tuple[int, int] = (0, 0)
    cores: int = 0
    memory: int = 0


NO_CHIP = ProfiledChip()
