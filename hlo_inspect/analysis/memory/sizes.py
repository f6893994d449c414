"""How many bytes a value takes on a platform, with what tiles and tables add."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.hlo.shapes import ArrayShape, Shape, TupleShape

ENTRY_ALIGNMENT = 1024
"""TPU: elements of an array without tiles are rounded up to so many."""

_SCALAR_SPACES = frozenset({2, 4, 6})


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a platform. `table_alignment` is what a tuple's table is rounded up to."""

    platform: Platform

    def bytes(self, shape: Shape | None) -> int | None:
        """What a value of this shape takes; a tuple is its table. `None` where a size is not known."""
        if shape is None:
            return None
        if isinstance(shape, TupleShape):
            return self.table(len(shape.elements))
        if shape.dtype == "token":
            return 0
        return self._array(shape)

    def table(self, elements: int) -> int:
        """The index table of a tuple."""
        platform = self.platform
        return -(-elements * platform.pointer_bytes // platform.table_alignment) * platform.table_alignment

    def _array(self, shape: ArrayShape) -> int | None:
        plain = shape.padded_bytes
        layout = shape.layout
        if (
            not self.platform.is_tpu
            or not plain
            or (layout is not None and (layout.tiles or layout.memory_space in _SCALAR_SPACES))
        ):
            return plain
        elements = shape.elements
        if not elements or shape.bytes is None:
            return plain
        return shape.bytes * (-(-elements // ENTRY_ALIGNMENT) * ENTRY_ALIGNMENT) // elements
