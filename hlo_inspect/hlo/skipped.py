"""Computations that are passed over although they may be parts of loops.

A condition stands before its loop, and whether a trip count has to be worked out is known only when the loop is read: compilers
print most of them. Until then the text of what may be a condition, or may count, is kept compressed.
"""

from __future__ import annotations

from collections.abc import Iterator

_BLOCK_CHARS = 1 << 18


class SkippedComputations:
    """`root_opcodes` are the opcodes of their roots, by name; of several computations of one name the first is kept."""

    def __init__(self) -> None:
        self.root_opcodes: dict[str, str] = {}
        self._texts: list[tuple[str, int, str]] = []
        self._chars = 0
        self._blocks: list[bytes] = []

    def add(self, name: str, root_opcode: str, line: int, text: str) -> None:
        """Keeps the text of a computation, which starts on `line`."""
        if name in self.root_opcodes:
            return
        self.root_opcodes[name] = root_opcode
        self._texts.append((name, line, text))
        self._chars += len(text)
        if self._chars >= _BLOCK_CHARS:
            self._compress()

    def _compress(self) -> None:
        import json  # few texts have so many of them
        import zlib

        self._blocks.append(zlib.compress(json.dumps(self._texts).encode("ascii"), 1))
        self._texts = []
        self._chars = 0

    def taken(self) -> Iterator[tuple[str, int, str]]:
        """Name, line and text of each, which are not kept any more."""
        blocks, texts = self._blocks, self._texts
        self._blocks, self._texts, self._chars = [], [], 0
        self.root_opcodes = {}
        if blocks:
            import json
            import zlib

            for block in blocks:
                yield from json.loads(zlib.decompress(block))
        yield from texts
