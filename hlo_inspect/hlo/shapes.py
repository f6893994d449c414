"""Shapes: `f32[8,128]{1,0:T(8,128)S(1)}`, tuples of them, tokens.

Sizes follow `ShapeUtil::ByteSizeOfElements`: elements × byte width, or packed when the layout gives the element's bits. A
dimension bounded by `<=n` counts n; one of unknown size (`?`) makes every size `None`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from hlo_inspect.hlo import dtypes, scan

MAX_NESTING = 100
MAX_ELEMENTS = 2**63 - 1  # XLA refuses more
_MAX_DIGITS = 19  # an int64; longer numbers are refused before Python converts them

_SPACE = re.compile(r"\s*+", re.ASCII)
_ARRAY = re.compile(r"([a-z][a-z0-9]*)\s*\[([^\]\[{}()]*)\]", re.ASCII)
_LAYOUT = re.compile(r"\s*+\{(\s*+(?:[0-9:](?:[^{}]|\{[^{}]*+\})*+)?)\}", re.ASCII)  # else a brace opens something else
_DIMENSION = re.compile(rf"\s*(?:(<=)?\s*(\d{{1,{_MAX_DIGITS}}})|(\?))\s*", re.ASCII)
_TILE = re.compile(r"\(([^()]*)\)")
_FIELD = re.compile(r"(SC|[DTLESPM])((?:\((?:[^()]|\([^()]*\))*\))+)|#\((\w+)\)|\*\((\w+)\)", re.ASCII)


class ShapeError(ValueError):
    """Text that is no shape; `position` is the 0-based index into it."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class UnknownTypeError(ShapeError):
    """A shape of an element type that XLA does not have."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in memory.

    `minor_to_major` numbers the dimensions; `tiles` hold their dimensions, `None` for one that is combined with the next
    (`*`); `element_bits` is 0 for the natural width; `tail_padding` the multiple to which elements are rounded up.
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int | None, ...], ...] = ()
    element_bits: int = 0
    memory_space: int = 0
    tail_padding: int = 1


@dataclass(frozen=True)
class ArrayShape:
    """An array, token or opaque. `dimensions` holds bounds, `None` for an unbounded one; `dynamic` tells which can shrink."""

    dtype: str
    dimensions: tuple[int | None, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None

    @property
    def is_array(self) -> bool:
        return self.dtype not in dtypes.NOT_ARRAYS

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
        """Bytes of the elements without padding; 0 for a token, a pointer for an opaque; `None` where it cannot be known."""
        if not self.is_array:
            return dtypes.POINTER_BYTES if self.dtype == "opaque" else 0
        return self._stored(self.elements)

    @cached_property
    def array_bytes(self) -> int | None:
        """Bytes of the array; 0 for what is none."""
        return self.bytes if self.is_array else 0

    @cached_property
    def padded_bytes(self) -> int | None:
        """Bytes with the layout's tiles and tail padding, as `ShapeUtil::ArraySize` counts them."""
        if self.layout is None or not self.is_array or self.elements is None:
            return self.bytes
        dims = [d or 0 for d in self.dimensions]
        order = self.layout.minor_to_major
        physical = [dims[i] for i in reversed(order)] if sorted(order) == list(range(len(dims))) else dims
        for tile in self.layout.tiles:
            physical = _tiled(physical, tile)
        elements = math.prod(physical)
        return self._stored(-(-elements // self.layout.tail_padding) * self.layout.tail_padding)

    def _stored(self, elements: int | None) -> int | None:
        if elements is None or self.dtype not in dtypes.BITS:
            return None
        if self.layout is not None and self.layout.element_bits:
            return (elements * self.layout.element_bits + 7) // 8
        return elements * dtypes.byte_width(self.dtype)

    def leaves(self) -> Iterator[tuple[tuple[int, ...], ArrayShape]]:
        if self.is_array:
            yield (), self

    def __str__(self) -> str:
        """The shape without its layout, as in a computation's signature."""
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
        """Each array below, with its shape index (outermost first); tokens and empty tuples are none."""
        for i, element in enumerate(self.elements):
            for index, leaf in element.leaves():
                yield (i, *index), leaf

    @cached_property
    def bytes(self) -> int | None:
        """Bytes of all elements; the tuple's own index table is not counted."""
        return total(element.bytes for element in self.elements)

    @cached_property
    def array_bytes(self) -> int | None:
        """Bytes of the arrays among the elements, at any depth."""
        return total(element.array_bytes for element in self.elements)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"({', '.join(map(str, self.elements))})"


Shape = ArrayShape | TupleShape


def total(sizes: Iterable[int | None]) -> int | None:
    """The sum, or `None` as soon as one of the sizes is unknown."""
    known = 0
    for size in sizes:
        if size is None:
            return None
        known += size
    return known


def subshape(shape: Shape, index: Iterable[int]) -> Shape | None:
    """The shape at a shape index, `None` where the index leads nowhere."""
    for i in index:
        if not isinstance(shape, TupleShape) or i >= len(shape.elements):
            return None
        shape = shape.elements[i]
    return shape


def _tiled(dims: list[int], tile: tuple[int | None, ...]) -> list[int]:
    """Dimensions after one level of tiling: the most minor ones divided by the tile, rounded up, followed by the tile
    itself.
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


def parse_shape(text: str) -> Shape:
    """The shape that `text` spells; `ShapeError` when it is none."""
    text = scan.without_comments(text)
    flat = _flat_tuple(text)
    if flat is not None:
        return flat
    shape, end = scan_shape(text, 0)
    end = _skip(text, end)
    if end != len(text):
        raise ShapeError(f"unexpected text after the shape: {text[end : end + 20]!r}", end)
    return shape


def _flat_tuple(text: str) -> TupleShape | None:
    """A tuple of arrays as printers write it: thousands of elements are not rare, and few different ones among them."""
    if not text.startswith("(") or not text.endswith(")"):
        return None
    try:
        return TupleShape(tuple([_whole_array(part) for part in text[1:-1].split(", ")]))
    except ShapeError:
        return None  # the long way tells what is wrong, and where


@lru_cache(maxsize=1 << 14)
def _whole_array(text: str) -> ArrayShape:
    shape, end = _scan_array(text, 0)
    if end != len(text):
        raise ShapeError("more than an array", end)
    return shape


def scan_shape(text: str, start: int, depth: int = 0) -> tuple[Shape, int]:
    """The shape that starts at `start` in a text without comments, and the index after it."""
    if depth > MAX_NESTING:
        raise ShapeError(f"tuples nested deeper than {MAX_NESTING}", start)
    start = _skip(text, start)
    if text.startswith("(", start):
        return _scan_tuple(text, start + 1, depth)
    if text.startswith("b(", start):  # a buffer counts as what it holds
        shape, end = scan_shape(text, start + 2, depth + 1)
        end = _skip(text, end)
        if not text.startswith(")", end):
            raise ShapeError("a buffer's shape is not closed", end)
        return shape, end + 1
    return _scan_array(text, start)


def _scan_tuple(text: str, position: int, depth: int) -> tuple[TupleShape, int]:
    elements: list[Shape] = []
    position = _skip(text, position)
    while not text.startswith(")", position):
        if elements:
            if not text.startswith(",", position):
                raise ShapeError("expected ',' or ')' in a tuple shape", position)
            position += 1
        element, position = scan_shape(text, position, depth + 1)
        elements.append(element)
        position = _skip(text, position)
    return TupleShape(tuple(elements)), position + 1


def _scan_array(text: str, start: int) -> tuple[ArrayShape, int]:
    match = _ARRAY.match(text, start)
    if match is None:
        raise ShapeError("expected a shape", start)
    end = match.end()
    if text.startswith("sparse{", end):  # 2019's sparse arrays give the number of elements kept
        end = text.find("}", end) + 1
    layout = _LAYOUT.match(text, end)
    try:
        return _array(match[1], match[2], layout[1] if layout else None), layout.end() if layout else end
    except ShapeError as error:
        raise type(error)(str(error), start + error.position) from None


@lru_cache(maxsize=1 << 14)
def _array(dtype: str, dimensions: str, layout: str | None) -> ArrayShape:
    """The same few shapes occur all over a module: each is parsed once."""
    if dtype not in dtypes.BITS and dtype not in dtypes.NOT_ARRAYS:
        raise UnknownTypeError(f"unknown element type {dtype!r}", 0)
    sizes, dynamic = _dimensions(dimensions, len(dtype) + 1)
    return ArrayShape(dtype, sizes, dynamic, None if layout is None else parse_layout(layout))


def _dimensions(text: str, start: int) -> tuple[tuple[int | None, ...], tuple[bool, ...]]:
    sizes: list[int | None] = []
    dynamic: list[bool] = []
    for part in text.split(",") if text.strip() else ():
        match = _DIMENSION.fullmatch(part)
        if match is None:
            raise ShapeError(f"{part[:20]!r} is no dimension", start)
        sizes.append(int(match[2]) if match[2] else None)
        dynamic.append(bool(match[1] or match[3]))
    return tuple(sizes), tuple(dynamic) if any(dynamic) else ()


def parse_layout(text: str, start: int = 0) -> Layout:
    """What stands between a layout's braces: `1,0:T(8,128)(2,1)S(1)`. Fields of no consequence for sizes are passed over."""
    order, _, fields = text.partition(":")
    minor_to_major = _integers(order, start)
    values: dict[str, int] = {}
    tiles: list[tuple[int | None, ...]] = []
    for match in _FIELD.finditer("".join(fields.split())):
        if match[1] == "T":
            tiles += [_tile(t, start) for t in _TILE.findall(match[2])]
        elif match[1] in {"E", "S", "L"}:
            numbers = _integers(match[2].strip("()"), start)
            values[match[1]] = numbers[0] if numbers else 0
    return Layout(minor_to_major, tuple(tiles), values.get("E", 0), values.get("S", 0), values.get("L", 0) or 1)


def _tile(text: str, start: int) -> tuple[int | None, ...]:
    tile = tuple(None if part.strip() == "*" else next(iter(_integers(part, start)), 0) for part in text.split(","))
    if 0 in tile:
        raise ShapeError(f"a tile of size 0: {text!r}", start)
    return tile


def _integers(text: str, start: int) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) <= _MAX_DIGITS for part in parts):
        raise ShapeError(f"{text[:20]!r} is no list of integers", start)
    return tuple(map(int, parts))


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def array_leaves(shape: Shape | None) -> list[tuple[tuple[int, ...], ArrayShape]]:
    """The arrays of a shape with their shape index; of an unknown shape none."""
    return list(shape.leaves()) if shape is not None else []
