"""What memory depends on in a chip and its compiler, of texts for TPUs, also of those that do not show their generation.

It was measured on texts compiled for v4, v5e, v5p, v6e and TPU7x by libtpu 0.0.42 to 0.0.52: what a tuple's table is rounded
up to, and whether temporaries may lie in allocations of other things.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo_inspect.analysis.tpu_marks import estimated_cycles, tpu_marks
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.shapes import ArrayShape

_TABLE_OF_EARLIER, _TABLE_OF_LATER = 512, 32
_LATER = frozenset({"tpu-v5p", "tpu-v6e", "tpu-7x"})
_PRODUCTS_A_CYCLE = 65536
"""What the four matrix units of v5e multiply and add in a cycle; those of v6e and TPU7x do twice as much."""
_USUAL = frozenset((*range(1820, 1840), *range(2110, 2140)))
"""What most such kernels of v5e, and of v5p and v6e, have."""
_SMALL = 4096
"""Bytes of an array of which the time to read or write it hardly counts."""


class TpuChip(NamedTuple):
    """`table_alignment` is 32 on chips whose two cores work as one and on those that came later (v5p, v6e, TPU7x), 512 on v4
    and v5e. `is_recent`: compiled by libtpu 0.0.46 or newer, about 2026.
    """

    table_alignment: int
    is_recent: bool


def find_chip(module: Module, views: Views) -> TpuChip:
    """What is known of the chip."""
    marks = tpu_marks(module)
    is_later = _seems_later(module, views) if marks.generation is None else marks.generation in _LATER
    return TpuChip(_TABLE_OF_LATER if is_later else _TABLE_OF_EARLIER, marks.is_recent)


def _seems_later(module: Module, views: Views) -> bool:
    """Whether a chip whose generation is not certain came after v5e. Later ones show by how many cycles XLA estimates for
    kernels that do next to nothing: 1800 to 1950 on v5e, 2100 to 2310 on later ones; and by products of matrices that v5e is
    too slow for.
    """
    votes = 0
    products: dict[str, int] = {}
    for name, computation in module.computations.items():
        for index, tail in enumerate(computation.rows.tails):
            cycles = estimated_cycles(tail)
            if cycles is not None:
                votes += _vote(views.of(name), index, cycles)
            if "dim_labels=" in tail and "window=" not in tail:
                products[name] = max(products.get(name, 0), _products(views.of(name), index))
    return votes > 0 or _multiplies_faster(module, views, products)


def _products(view: View, index: int) -> int:
    """How many numbers a product of two matrices multiplies, 0 where that is not known."""
    result, labels = view.shapes[index], view.instruction(index).attr("dim_labels")
    kernel = view.operand_shape(index, 1) if len(view.operand_rows(index)) == 2 else None
    if labels is None or not isinstance(result, ArrayShape) or not isinstance(kernel, ArrayShape):
        return 0
    at = labels.kernel.find("o")
    outputs = kernel.dimensions[at] if 0 <= at < len(kernel.dimensions) else None
    return (result.elements or 0) * (kernel.elements or 0) // outputs if outputs else 0


def _multiplies_faster(module: Module, views: Views, products: Mapping[str, int]) -> bool:
    """Whether a fusion is estimated to multiply more in a cycle than v5e can. `products` is by fused computation."""
    for name, computation in module.computations.items():
        for index, tail in enumerate(computation.rows.tails):
            cycles = estimated_cycles(tail)
            if cycles is None or "calls=" not in tail:
                continue
            fused = views.of(name).instruction(index).callee("calls")
            if products.get(fused or "", 0) > _PRODUCTS_A_CYCLE * cycles:
                return True
    return False


def _vote(view: View, index: int, cycles: int) -> int:
    """How much a kernel tells: above 0 for a chip later than v5e, below for v5e."""
    if not 1800 <= cycles < 2320 or 1950 <= cycles < 2100:
        return 0
    shapes = [view.shapes[index], *[view.shapes[row] for row in view.operand_rows(index) if row is not None]]
    is_small = all(isinstance(shape, ArrayShape) and (shape.padded_bytes or 0) <= _SMALL for shape in shapes)
    weight = 3 if is_small else 1 if cycles in _USUAL else 0
    return weight if cycles >= 2100 else -weight
