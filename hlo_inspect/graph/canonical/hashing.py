"""Hashes that are the same in every process, on every platform, and in every version of Python."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b


def text_hash(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def numbers_hash(numbers: Sequence[int]) -> int:
    """64 bits of numbers that are below 2 ** 64, in their order."""
    packed = struct.pack(f"<{len(numbers)}Q", *numbers)
    return int.from_bytes(blake2b(packed, digest_size=8).digest(), "little")
