"""Values of constants that a text elides as `constant({...})`, from the StableHLO beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.settings.stablehlo import ElidedConstant, StableHlo
from hlo_inspect.hlo.values.shapes import ArrayShape

ELIDED = "{...}"
"""The literal of a constant whose values the text leaves out."""


def elided_constants(
    module: Module, views: Views, stablehlo: Callable[[], StableHlo | None]
) -> tuple[ElidedConstant, ...] | None:
    """Return the constants that the text elides, in the order of the StableHLO; None if that does not have them all.

    `stablehlo` reads it, if the text elides a constant.
    """
    dimensions = Counter(_elided_dimensions(views))
    if not dimensions:
        return ()
    read = stablehlo()
    constants = tuple(constant for constant in read.constants if dimensions[constant.dimensions]) if read is not None else ()
    stated = {constant.dimensions for constant in constants}
    return constants if stated.issuperset(dimensions) else None


def _elided_dimensions(views: Views) -> Iterator[tuple[int, ...]]:
    for view, row in views.rows_with({"constant"}):
        shape = view.shapes[row]
        if view.tails[row].startswith(ELIDED) and isinstance(shape, ArrayShape):
            yield tuple(size or 0 for size in shape.dimensions)


def hash_with_constants(program: str, constants: Sequence[ElidedConstant]) -> str:
    """Return the hash of a program and its elided constants; that of the program if there are none."""
    if not constants:
        return program
    text = "\n".join([program, *(constant.digest for constant in constants)])
    return blake2b(text.encode(), digest_size=16).hexdigest()
