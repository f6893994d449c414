"""Shapes: their parsed parts, and sizes computed by hand."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.values.shape_text import parse_shape
from hlo_inspect.hlo.values.shapes import BITS, NOT_ARRAYS, ArrayShape, Layout, TupleShape, array_leaves, subshape, total


def array(text: str) -> ArrayShape:
    shape = parse_shape(text)
    assert isinstance(shape, ArrayShape)
    return shape


@pytest.mark.parametrize(
    ("text", "dtype", "dimensions", "layout"),
    [
        ("f32[]", "f32", (), None),
        ("f32[]{}", "f32", (), Layout()),
        ("f32[8,128]", "f32", (8, 128), None),
        ("f32[8,128]{1,0}", "f32", (8, 128), Layout((1, 0))),
        ("f32[ 10, 10 ] {1, 0}", "f32", (10, 10), Layout((1, 0))),
        ("f32[2,/*minor*/3]/*here*/{0,1}", "f32", (2, 3), Layout((0, 1))),
        ("f32\t[\n2\r] { 0 }", "f32", (2,), Layout((0,))),
        ("s4[9]{0:E(4)}", "s4", (9,), Layout((0,), element_bits=4)),
        ("f32[]{:S(2)}", "f32", (), Layout(memory_space=2)),
        ("f32[256]{0:T(256)S(1)}", "f32", (256,), Layout((0,), ((256,),), memory_space=1)),
        ("bf16[9,9]{1,0:T(8,128)(2,1)}", "bf16", (9, 9), Layout((1, 0), ((8, 128), (2, 1)))),
        (
            "s8[8,8]{0,1:T(*,128)(4,1)L(1024)E(8)S(5)}",
            "s8",
            (8, 8),
            Layout((0, 1), ((None, 128), (4, 1)), element_bits=8, memory_space=5, tail_padding=1024),
        ),
        (
            "f32[4]{0:D(C+~)T(4)L(2)#(u32)*(u64)E(32)S(3)SC(0:1,2)P((f32[4]{0}))M(1)}",
            "f32",
            (4,),
            Layout((0,), ((4,),), element_bits=32, memory_space=3, tail_padding=2),
        ),
        ("f32[4,4]{1,0:SC(1:16,32)}", "f32", (4, 4), Layout((1, 0))),
        ("f32[4] { 0 : T ( 8 , 4 ) (2) S\n(1) }", "f32", (4,), Layout((0,), ((8, 4), (2,)), memory_space=1)),
        ("f32[10]sparse{5}", "f32", (10,), None),
        ("token[]", "token", (), None),
        ("opaque[]", "opaque", (), None),
        ("b(f32[4]{0})", "f32", (4,), Layout((0,))),
        ("pred[0,4]", "pred", (0, 4), None),
    ],
)
def test_array_shapes(text: str, dtype: str, dimensions: tuple[int, ...], layout: Layout | None) -> None:
    shape = array(text)
    assert (shape.dtype, shape.dimensions, shape.layout) == (dtype, dimensions, layout)


def test_dynamic_dimensions() -> None:
    shape = array("f32[<=8,4,?]{2,1,0}")
    assert shape.dimensions == (8, 4, None)
    assert shape.dynamic == (True, False, True)
    assert str(shape) == "f32[<=8,4,?]"
    assert array("f32[8]").dynamic == ()


@pytest.mark.parametrize(("name", "bits"), BITS.items())
def test_an_element_takes_whole_bytes_unless_packed(name: str, bits: int) -> None:
    assert array(f"{name}[9]{{0}}").bytes == 9 * {1: 1, 2: 1, 4: 1, 6: 1}.get(bits, bits // 8)
    assert array(f"{name}[9]{{0:E({bits})}}").bytes == {1: 2, 2: 3, 4: 5, 6: 7}.get(bits, 9 * bits // 8)


@pytest.mark.parametrize(
    ("text", "elements", "size"),
    [
        ("f32[]", 1, 4),
        ("f32[0,4]", 0, 0),
        ("c128[2]", 2, 32),
        ("f32[<=8,4]", 32, 128),
        ("f32[?,4]", None, None),
        ("token[]", 1, 0),
        ("opaque[]", 1, 8),
        ("s1[7]{0:E(1)}", 7, 1),
        ("u4[3,3]{1,0:E(4)}", 9, 5),
        ("f32[9223372036854775807]", 2**63 - 1, 4 * (2**63 - 1)),
        ("f32[9223372036854775807,2]", None, None),
        ("f32[9223372036854775807,9223372036854775807,0]", None, None),
    ],
)
def test_sizes(text: str, elements: int | None, size: int | None) -> None:
    shape = array(text)
    assert (shape.elements, shape.bytes) == (elements, size)


@pytest.mark.parametrize(
    ("text", "padded"),
    [
        ("f32[10,10]{1,0}", 400),  # no tiles, no padding
        ("f32[10,10]{1,0:T(8,128)}", 16 * 128 * 4),
        ("f32[10,300]{1,0:T(8,128)}", 16 * 384 * 4),
        ("f32[300,10]{0,1:T(8,128)}", 16 * 384 * 4),  # the major dimension is 1: rows of 10
        ("bf16[10,10]{1,0:T(8,128)(2,1)}", 16 * 128 * 2),  # pairs of rows fit into the tile of 8
        ("bf16[4096,2048]{1,0:T(8,128)(2,1)}", 4096 * 2048 * 2),
        ("f32[3,10,10]{2,1,0:T(8,128)}", 3 * 16 * 128 * 4),
        ("f32[3]{0:T(128)}", 512),
        ("f32[3]{0:T(8,128)}", 8 * 128 * 4),  # fewer dimensions than the tile: one row
        ("f32[]{:T(128)}", 512),
        ("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", 56 * 37 * 2 * 3 * 4),  # 2*7*8 = 112 by 2; 11*10 = 110 by 3
        ("s4[10,10]{1,0:T(8,128)E(4)}", 16 * 128 // 2),
        ("f32[0,10]{1,0:T(8,128)}", 0),
        ("f32[5]{0:L(4)}", 8 * 4),
        ("f32[?,10]{1,0:T(8,128)}", None),
        ("f32[10,10]{1,7:T(8,128)}", 16 * 128 * 4),  # not a permutation
        ("f32[10,300]{0,0:T(8,128)}", 16 * 384 * 4),
        ("token[]", 0),
    ],
)
def test_padded_sizes(text: str, padded: int | None) -> None:
    assert array(text).padded_bytes == padded


def test_tuple_shapes() -> None:
    shape = parse_shape("(f32[2]{0}, (s32[], token[]), (), /*index=3*/opaque[])")
    assert isinstance(shape, TupleShape)
    assert len(shape.elements) == 4
    assert str(shape) == "(f32[2], (s32[], token[]), (), opaque[])"
    assert shape.bytes == 8 + 4 + 0 + 8
    assert [(index, str(leaf)) for index, leaf in array_leaves(shape)] == [((0,), "f32[2]"), ((1, 0), "s32[]")]
    assert parse_shape("( )") == TupleShape()
    assert parse_shape("(f32[?], f32[2])").bytes is None


def test_subshapes() -> None:
    shape = parse_shape("(f32[2], (s32[], (pred[3], u8[5])))")
    subshapes = {index: subshape(shape, index) for index in [(), (0,), (1, 1, 1), (2,), (0, 0), (1, 1, 2)]}
    assert subshapes == {
        (): shape,
        (0,): ArrayShape("f32", (2,)),
        (1, 1, 1): ArrayShape("u8", (5,)),
        (2,): None,
        (0, 0): None,
        (1, 1, 2): None,
    }


def test_array_leaves_of_none_an_array_and_a_token() -> None:
    assert array_leaves(None) == []
    assert array_leaves(parse_shape("f32[3]")) == [((), ArrayShape("f32", (3,)))]
    assert array_leaves(parse_shape("token[]")) == []


def test_a_total_with_an_unknown_part_is_unknown() -> None:
    assert total([]) == 0
    assert total([1, 2, 3]) == 6
    assert total([1, None, 3]) is None


# -- element types, against the table of XLA's `primitive_util`: bits as stored, spelled out here one by one ------------------

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
def test_bits_and_bytes_of_each_element_type(name: str, bits: int, width: int) -> None:
    assert BITS[name] == bits
    assert ArrayShape(name, (1,)).bytes == width


def test_each_array_type_has_a_number_of_bits() -> None:
    assert set(BITS) == set(ARRAY_TYPES)


def test_tokens_and_opaque_values_are_no_arrays() -> None:
    assert frozenset({"token", "opaque"}) == NOT_ARRAYS
    assert NOT_ARRAYS.isdisjoint(BITS)


@pytest.mark.parametrize("name", ["tuple", "buffer", "F32", "s3", ""])
def test_an_unknown_element_type_has_no_size(name: str) -> None:
    assert ArrayShape(name, (1,)).bytes is None
