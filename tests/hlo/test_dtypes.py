"""Element types against the table of XLA's `primitive_util`: bits as stored, spelled out here one by one."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import dtypes

ARRAY_TYPES = {
    "pred": (8, 1),
    "s1": (1, 1),
    "s2": (2, 1),
    "s4": (4, 1),
    "s8": (8, 1),
    "s16": (16, 2),
    "s32": (32, 4),
    "s64": (64, 8),
    "u1": (1, 1),
    "u2": (2, 1),
    "u4": (4, 1),
    "u8": (8, 1),
    "u16": (16, 2),
    "u32": (32, 4),
    "u64": (64, 8),
    "f4e2m1fn": (4, 1),
    "f6e2m3fn": (6, 1),
    "f6e3m2fn": (6, 1),
    "f8e3m4": (8, 1),
    "f8e4m3": (8, 1),
    "f8e4m3b11fnuz": (8, 1),
    "f8e4m3fn": (8, 1),
    "f8e4m3fnuz": (8, 1),
    "f8e5m2": (8, 1),
    "f8e5m2fnuz": (8, 1),
    "f8e8m0fnu": (8, 1),
    "f16": (16, 2),
    "bf16": (16, 2),
    "f32": (32, 4),
    "f64": (64, 8),
    "c64": (64, 8),
    "c128": (128, 16),
}


@pytest.mark.parametrize(("name", "bits", "width"), [(name, *sizes) for name, sizes in ARRAY_TYPES.items()])
def test_bits_and_bytes(name: str, bits: int, width: int) -> None:
    assert dtypes.BITS[name] == bits
    assert dtypes.byte_width(name) == width


def test_there_is_no_other_array_type() -> None:
    assert set(dtypes.BITS) == set(ARRAY_TYPES)


def test_tokens_and_opaque_values_are_no_arrays() -> None:
    assert frozenset({"token", "opaque"}) == dtypes.NOT_ARRAYS
    assert dtypes.NOT_ARRAYS.isdisjoint(dtypes.BITS)


@pytest.mark.parametrize("name", ["tuple", "buffer", "F32", "s3", "token", ""])
def test_what_is_no_array_type_has_no_width(name: str) -> None:
    with pytest.raises(KeyError):
        dtypes.byte_width(name)
