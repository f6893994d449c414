"""Computations that are passed over although they may be parts of loops.

A condition stands before its loop, and whether a trip count has to be worked out is known only when the loop is read: compilers
print most of them. Until then the text of what may be a condition, or may count, is kept compressed, if it is short.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_BLOCK_CHARS = 1 << 18


class SkippedComputation(NamedTuple):
    """The text of a computation, which starts on `line`."""

    name: str
    root_opcode: str
    line: int
    text: str


class SkippedComputations:
    """Computations of different names. `root_opcodes` are the opcodes of their roots, by name."""

    def __init__(self) -> None:
        self.root_opcodes: dict[str, str] = {}
        self._waiting: list[SkippedComputation] = []
        self._chars = 0
        self._blocks: list[bytes] = []

    def add(self, skipped: SkippedComputation) -> None:
        self.root_opcodes[skipped.name] = skipped.root_opcode
        self._waiting.append(skipped)
        self._chars += len(skipped.text)
        if self._chars >= _BLOCK_CHARS:
            self._compress()

    def _compress(self) -> None:
        import json  # few texts have so many of them
        import zlib

        self._blocks.append(zlib.compress(json.dumps(self._waiting).encode("ascii"), 1))
        self._waiting = []
        self._chars = 0

    def taken(self) -> Iterator[SkippedComputation]:
        """All of them, which are not kept any more."""
        blocks, waiting = self._blocks, self._waiting
        self._blocks, self._waiting, self._chars = [], [], 0
        self.root_opcodes = {}
        if blocks:
            import json
            import zlib

            for block in blocks:
                yield from map(SkippedComputation._make, json.loads(zlib.decompress(block)))
        yield from waiting
