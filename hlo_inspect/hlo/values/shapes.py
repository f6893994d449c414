"""Shapes: `f32[8,128]{1,0:T(8,128)S(1)}`, tuples of them, tokens.

Sizes follow `ShapeUtil::ByteSizeOfElements`: elements × byte width, or packed if the layout gives the bits of an element. A
dimension bounded by `<=n` counts n; a dimension of unknown size (`?`) makes every size None. Types narrower than a byte take
one byte an element unless the layout packs them (`E(4)`): `s4[8]{0}` has 8 bytes, `s4[8]{0:E(4)}` 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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

_SPACE_NAMES = {0: "HBM", 1: "VMEM", 3: "CMEM", HOST_SPACE: "host"}
"""Memory spaces of TPU; 0 and 5 are those of every platform."""

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
    """An array, token or opaque. `dimensions` are bounds, None for unbounded ones; `dynamic` marks those that can shrink."""

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
    def memory_space(self) -> int:
        """The number of the memory space, `S(1)` in the layout; 0 for the default memory."""
        return 0 if self.layout is None else self.layout.memory_space

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


def space_name(space: int) -> str:
    """Return the name of a memory space."""
    return _SPACE_NAMES.get(space, f"memory space {space}")


def subshape(shape: Shape, index: Iterable[int]) -> Shape | None:
    """Return the shape at a shape index; None if there is none."""
    for i in index:
        if not isinstance(shape, TupleShape) or i >= len(shape.elements):
            return None
        shape = shape.elements[i]
    return shape


def _tiled(dims: list[int], tile: tuple[int | None, ...]) -> list[int]:
    """Return the dimensions after one level of tiling: the most minor ones divided by the tile, rounded up, then the tile."""
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


def on_host(shape: Shape | None) -> bool:
    """Return True if an array is in host memory."""
    return isinstance(shape, ArrayShape) and shape.memory_space == HOST_SPACE


def array_leaves(shape: Shape | None) -> list[tuple[tuple[int, ...], ArrayShape]]:
    """Return the arrays of a shape with their shape indices; none for an unknown shape."""
    return list(shape.leaves()) if shape is not None else []


def leaf_indices(shape: Shape) -> list[tuple[int, ...]]:
    """Return the index of each subshape that is no tuple: tokens, which `array_leaves` leaves out, too."""
    if isinstance(shape, ArrayShape):
        return [()]
    return [(number, *index) for number, element in enumerate(shape.elements) for index in leaf_indices(element)]


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
