"""Element types and their widths, as XLA's `primitive_util` has them.

A type narrower than a byte is stored one element a byte, unless the layout says otherwise (`E(4)`): `s4[8]{0}` holds 8 bytes,
`s4[8]{0:E(4)}` 4.
"""

from __future__ import annotations

_BITS_TO_NAMES = {
    1: "s1 u1",
    2: "s2 u2",
    4: "s4 u4 f4e2m1fn",
    6: "f6e3m2fn f6e2m3fn",
    8: "pred s8 u8 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e3m4 f8e8m0fnu",
    16: "s16 u16 f16 bf16",
    32: "s32 u32 f32",
    64: "s64 u64 f64 c64",
    128: "c128",
}

BITS: dict[str, int] = {name: bits for bits, names in _BITS_TO_NAMES.items() for name in names.split()}
"""Stored bits of one element of each array type."""

POINTER_BYTES = 8
"""What XLA counts for one entry of a tuple's index table and for an opaque value."""

NOT_ARRAYS = frozenset({"token", "opaque"})
"""Spelled like an array (`token[]`), but without elements."""


def byte_width(dtype: str) -> int:
    """Bytes of one element of an array type without a packed layout; `KeyError` for an unknown one."""
    return (BITS[dtype] + 7) // 8
