"""Shapes: `f32[8,128]{1,0:T(8,128)S(1)}`, tuples of them, tokens.

Sizes follow `ShapeUtil::ByteSizeOfElements`: elements × byte width, or packed if the layout gives the bits of an element. A
dimension bounded by `<=n` counts n; a dimension of unknown size (`?`) makes every size None. Types narrower than a byte take
one byte an element unless the layout packs them (`E(4)`): `s4[8]{0}` has 8 bytes, `s4[8]{0:E(4)}` 4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.lazy_pattern import lazy_pattern

# -- element types, from XLA's `primitive_util` -----------------------------------------------------------------------------

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
"""Bytes that XLA counts for an entry of a tuple's index table and for an opaque value."""

HOST_SPACE = 5
"""The memory space of host memory."""

NOT_ARRAYS = frozenset({"token", "opaque"})
"""Types spelled like an array (`token[]`), but without elements."""

TYPE_NAMES = "|".join(sorted({*BITS, *NOT_ARRAYS}, key=len, reverse=True))
"""Pattern of all type names."""


# -- shapes -----------------------------------------------------------------------------------------------------------------

MAX_ELEMENTS = 2**63 - 1  # XLA refuses more


class Layout(NamedTuple):
    """The layout of an array in memory.

    `minor_to_major` numbers the dimensions. `tiles` hold sizes; None (`*`) combines a dimension with the next one.
    `element_bits` is 0 for the natural width. Elements are rounded up to a multiple of `tail_padding`.
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int | None, ...], ...] = ()
    element_bits: int = 0
    memory_space: int = 0
    tail_padding: int = 1


@dataclass(frozen=True)
class ArrayShape:
    """An array, token or opaque.

    `dimensions`: bounds; None for an unbounded dimension. `dynamic`: True for each dimension that can shrink.
    """

    dtype: str
    dimensions: tuple[int | None, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None

    @cached_property
    def elements(self) -> int | None:
        product = 1
        for size in self.dimensions:
            if size is None or product > MAX_ELEMENTS:
                return None
            product *= size
        return product if product <= MAX_ELEMENTS else None

    @cached_property
    def bytes(self) -> int | None:
        """Bytes of the elements without padding; 0 for a token, `POINTER_BYTES` for an opaque; None if unknown."""
        if self.dtype in NOT_ARRAYS:
            return POINTER_BYTES if self.dtype == "opaque" else 0
        return self._stored(self.elements)

    @cached_property
    def array_bytes(self) -> int | None:
        """Bytes of the array; 0 for a token or an opaque."""
        return 0 if self.dtype in NOT_ARRAYS else self.bytes

    @cached_property
    def padded_bytes(self) -> int | None:
        """Bytes with the layout's tiles and tail padding, as in `ShapeUtil::ArraySize`."""
        if self.layout is None or self.dtype in NOT_ARRAYS or self.elements is None:
            return self.bytes
        dims = [d or 0 for d in self.dimensions]
        order = self.layout.minor_to_major
        physical = [dims[i] for i in reversed(order)] if sorted(order) == list(range(len(dims))) else dims
        for tile in self.layout.tiles:
            physical = _tiled(physical, tile)
        elements = math.prod(physical)
        return self._stored(-(-elements // self.layout.tail_padding) * self.layout.tail_padding)

    def _stored(self, elements: int | None) -> int | None:
        if elements is None or self.dtype not in BITS:
            return None
        if self.layout is not None and self.layout.element_bits:
            return (elements * self.layout.element_bits + 7) // 8
        return elements * ((BITS[self.dtype] + 7) // 8)

    @property
    def extent(self) -> tuple[int, int]:
        """The depth of nested tuples, 0, and the number of shapes, 1."""
        return 0, 1

    @property
    def arrays(self) -> int:
        """1 for an array, 0 for a token or an opaque."""
        return 0 if self.dtype in NOT_ARRAYS else 1

    def leaves(self) -> Iterator[tuple[tuple[int, ...], ArrayShape]]:
        if self.dtype not in NOT_ARRAYS:
            yield (), self

    def __str__(self) -> str:
        """Return the shape without its layout, as in a computation's signature."""
        return self._text

    @cached_property
    def _text(self) -> str:
        dynamic = self.dynamic or (False,) * len(self.dimensions)
        dims = ("?" if d is None else f"<={d}" if dyn else str(d) for d, dyn in zip(self.dimensions, dynamic, strict=True))
        return f"{self.dtype}[{','.join(dims)}]"


@dataclass(frozen=True)
class TupleShape:
    """A tuple of shapes, possibly empty."""

    elements: tuple[Shape, ...] = ()

    def leaves(self) -> Iterator[tuple[tuple[int, ...], ArrayShape]]:
        """Yield each array at any depth with its shape index (outermost first); skip tokens and empty tuples."""
        for i, element in enumerate(self.elements):
            for index, leaf in element.leaves():
                yield (i, *index), leaf

    @cached_property
    def bytes(self) -> int | None:
        """Bytes of all elements, without the tuple's own index table."""
        return total(element.bytes for element in self.elements)

    @cached_property
    def array_bytes(self) -> int | None:
        """Bytes of the arrays among the elements, at any depth."""
        return total(element.array_bytes for element in self.elements)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The depth of nested tuples, and the number of shapes at any depth, itself included."""
        extents = [element.extent for element in self.elements]
        return 1 + max([depth for depth, _ in extents], default=0), 1 + sum([count for _, count in extents])

    @cached_property
    def arrays(self) -> int:
        """The number of arrays, at any depth."""
        return sum([element.arrays for element in self.elements])

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


Shape = ArrayShape | TupleShape


def total(sizes: Iterable[int | None]) -> int | None:
    """Sum the sizes; return None if one is unknown."""
    result = 0
    for size in sizes:
        if size is None:
            return None
        result += size
    return result


def subshape(shape: Shape, index: Iterable[int]) -> Shape | None:
    """Return the shape at a shape index; None if there is none."""
    for i in index:
        if not isinstance(shape, TupleShape) or i >= len(shape.elements):
            return None
        shape = shape.elements[i]
    return shape


def _tiled(dims: list[int], tile: tuple[int | None, ...]) -> list[int]:
    """Return the dimensions after one level of tiling.

    The most minor dimensions are divided by the tile, rounded up, and followed by the tile itself.
    """
    dims = [1] * (len(tile) - len(dims)) + dims
    outer, inner = dims[: len(dims) - len(tile)], dims[len(dims) - len(tile) :]
    counts, sizes, carried = [], [], 1
    for size, step in zip(inner, tile, strict=True):
        if step is None:  # combined with the next more minor dimension
            carried *= size
            continue
        counts.append(-(-size * carried // step))
        sizes.append(step)
        carried = 1
    return outer + counts + sizes


def array_leaves(shape: Shape | None) -> list[tuple[tuple[int, ...], ArrayShape]]:
    """Return the arrays of a shape with their shape indices; none for an unknown shape."""
    return list(shape.leaves()) if shape is not None else []


def distinct_arrays(shape: Shape | None) -> list[ArrayShape]:
    """Return the arrays, tokens and opaques of a shape, each object once: a module shares equal arrays."""
    arrays: list[ArrayShape] = []
    waiting = [shape] if shape is not None else []
    while waiting:
        element = waiting.pop()
        if isinstance(element, ArrayShape):
            arrays.append(element)
        else:
            waiting += dict(zip(map(id, element.elements), element.elements, strict=True)).values()
    return arrays


MAX_NESTING = 100
MAX_KEPT = 1 << 16
"""Bound on cached texts of shapes; a module has a few hundred."""

_MAX_DIGITS = 19  # an int64; Python never converts longer numbers
_SPACE = lazy_pattern(r"\s*+", re.ASCII)
_ARRAY = lazy_pattern(r"([a-z][a-z0-9]*)\s*\[([^\]\[{}()]*)\]", re.ASCII)
_LAYOUT = lazy_pattern(r"\s*+\{(\s*+(?:[0-9:](?:[^{}]|\{[^{}]*+\})*+)?)\}", re.ASCII)  # else a brace opens something else
_DIMENSION = lazy_pattern(rf"\s*(?:(<=)?\s*(\d{{1,{_MAX_DIGITS}}})|(\?))\s*", re.ASCII)
_INTEGERS = rf"\d{{1,{_MAX_DIGITS}}}(?:,\d{{1,{_MAX_DIGITS}}})*+"
_PRINTED_ARRAY = lazy_pattern(rf"([a-z][a-z0-9]*+)\[({_INTEGERS})?+\](?:\{{({_INTEGERS})\}})?+", re.ASCII)
_TILE = lazy_pattern(r"\(([^()]*)\)")
_FIELD = lazy_pattern(r"(SC|[DTLESPM])((?:\((?:[^()]|\([^()]*\))*\))+)|#\((\w+)\)|\*\((\w+)\)", re.ASCII)


class ShapeError(ValueError):
    """Text that is not a shape; `position` is a 0-based index into it."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class UnknownTypeError(ShapeError):
    """A shape of an element type that XLA does not have."""


class ShapeTable:
    """The shapes of a module; each text is parsed once."""

    def __init__(self) -> None:
        self._arrays: dict[str, ArrayShape] = {}
        self._known: dict[str, Shape | None] = {}

    def parse(self, text: str) -> Shape:
        """Parse a shape. Raise ShapeError if the text is not a shape."""
        cached = self._arrays.get(text)
        if cached is not None:
            return cached
        printed = _PRINTED_ARRAY.fullmatch(text)
        if printed is not None and printed[1] in BITS:
            dtype, sizes, order = printed.groups()
            layout = Layout(tuple(map(int, order.split(",")))) if order else None
            array = ArrayShape(dtype, tuple(map(int, sizes.split(","))) if sizes else (), layout=layout)
            if len(self._arrays) < MAX_KEPT:
                self._arrays[text] = array
            return array
        if "/" in text:
            text = tokens.without_comments(text)
        flat = _flat_tuple(text, self._arrays)
        if flat is not None:
            return flat
        shape, end = scan_shape(text, 0, self._arrays)
        end = _skip(text, end)
        if end != len(text):
            raise ShapeError(f"unexpected text after the shape: {text[end : end + 20]!r}", end)
        return shape

    def get(self, text: str) -> Shape | None:
        """Parse a shape; return None if the text is not a shape."""
        if text in self._known:
            return self._known[text]
        try:
            shape = self.parse(text)
        except ShapeError:
            shape = None
        if len(self._known) < MAX_KEPT:
            self._known[text] = shape
        return shape


def parse_shape(text: str) -> Shape:
    """Parse a shape without a table. Raise ShapeError if the text is not a shape."""
    return ShapeTable().parse(text)


def _flat_tuple(text: str, arrays: dict[str, ArrayShape]) -> TupleShape | None:
    """Parse a tuple of arrays as printers write it; return None for any other text.

    Tuples of thousands of elements, few of them different, are common.
    """
    if not text.startswith("(") or not text.endswith(")"):
        return None
    elements = []
    for part in map(str.lstrip, text[1:-1].split(", ")):  # a comment became blanks
        element = arrays.get(part)
        if element is None:
            try:
                element, end = _scan_array(part, 0, arrays)
            except ShapeError:
                return None  # the general parser reports the fault and its place
            if end != len(part):
                return None
        elements.append(element)
    return TupleShape(tuple(elements))


def scan_shape(text: str, start: int, arrays: dict[str, ArrayShape] | None = None, depth: int = 0) -> tuple[Shape, int]:
    """Return the shape at `start` in a text without comments, and the index after it.

    Raise ShapeError if there is none.
    """
    if depth > MAX_NESTING:
        raise ShapeError(f"tuples are nested more than {MAX_NESTING} deep", start)
    arrays = {} if arrays is None else arrays
    start = _skip(text, start)
    if text.startswith("(", start):
        return _scan_tuple(text, start + 1, arrays, depth)
    if text.startswith("b(", start):  # a buffer counts as its contents
        shape, end = scan_shape(text, start + 2, arrays, depth + 1)
        end = _skip(text, end)
        if not text.startswith(")", end):
            raise ShapeError("the shape of a buffer is not closed", end)
        return shape, end + 1
    return _scan_array(text, start, arrays)


def _scan_tuple(text: str, position: int, arrays: dict[str, ArrayShape], depth: int) -> tuple[TupleShape, int]:
    elements: list[Shape] = []
    position = _skip(text, position)
    while not text.startswith(")", position):
        if elements:
            if not text.startswith(",", position):
                raise ShapeError("expected ',' or ')' in a tuple shape", position)
            position += 1
        element, position = scan_shape(text, position, arrays, depth + 1)
        elements.append(element)
        position = _skip(text, position)
    return TupleShape(tuple(elements)), position + 1


def _scan_array(text: str, start: int, arrays: dict[str, ArrayShape]) -> tuple[ArrayShape, int]:
    match = _ARRAY.match(text, start)
    if match is None:
        raise ShapeError("expected a shape", start)
    end = match.end()
    if text.startswith("sparse{", end):  # sparse arrays of 2019 state their number of stored elements
        end = text.find("}", end) + 1
    layout = _LAYOUT.match(text, end)
    end = layout.end() if layout else end
    spelled = text[start:end]
    array = arrays.get(spelled)
    if array is None:
        try:
            array = _array(match[1], match[2], layout[1] if layout else None)
        except ShapeError as error:
            raise type(error)(str(error), start + error.position) from None
        if len(arrays) < MAX_KEPT:
            arrays[spelled] = array
    return array, end


def _array(dtype: str, dimensions: str, layout: str | None) -> ArrayShape:
    if dtype not in BITS and dtype not in NOT_ARRAYS:
        raise UnknownTypeError(f"unknown element type {dtype!r}", 0)
    sizes, dynamic = _dimensions(dimensions, len(dtype) + 1)
    return ArrayShape(dtype, sizes, dynamic, None if layout is None else parse_layout(layout))


def _dimensions(text: str, start: int) -> tuple[tuple[int | None, ...], tuple[bool, ...]]:
    sizes: list[int | None] = []
    dynamic: list[bool] = []
    for part in text.split(",") if text.strip() else ():
        match = _DIMENSION.fullmatch(part)
        if match is None:
            raise ShapeError(f"{part[:20]!r} is not a dimension", start)
        sizes.append(int(match[2]) if match[2] else None)
        dynamic.append(bool(match[1] or match[3]))
    return tuple(sizes), tuple(dynamic) if any(dynamic) else ()


def parse_layout(text: str) -> Layout:
    """Parse the text in a layout's braces, `1,0:T(8,128)(2,1)S(1)`, without fields that do not affect sizes.

    Raise ShapeError if it is wrong.
    """
    order, _, fields = text.partition(":")
    minor_to_major = _integers(order)
    values: dict[str, int] = {}
    tiles: list[tuple[int | None, ...]] = []
    for match in _FIELD.finditer("".join(fields.split())):
        if match[1] == "T":
            tiles += map(_tile, _TILE.findall(match[2]))
        elif match[1] in {"E", "S", "L"}:
            numbers = _integers(match[2].strip("()"))
            values[match[1]] = numbers[0] if numbers else 0
    return Layout(minor_to_major, tuple(tiles), values.get("E", 0), values.get("S", 0), values.get("L", 0) or 1)


def _tile(text: str) -> tuple[int | None, ...]:
    tile = tuple(None if part.strip() == "*" else next(iter(_integers(part)), 0) for part in text.split(","))
    if 0 in tile:
        raise ShapeError(f"a tile has size 0: {text!r}", 0)
    return tile


def _integers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) <= _MAX_DIGITS for part in parts):
        raise ShapeError(f"{text[:20]!r} is not a list of integers", 0)
    return tuple(map(int, parts))


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
