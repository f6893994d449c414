"""Values of a step by the nodes that make them: a set of nodes for an array, a tuple of values for a tuple."""

from __future__ import annotations

from collections.abc import Iterable

StepValue = frozenset[int] | tuple["StepValue", ...]
"""Numbers of nodes whose end makes the value available; a tuple has a value for each element."""

READY: frozenset[int] = frozenset()
"""Value that is there when the step begins."""


def nodes_behind(values: Iterable[StepValue]) -> frozenset[int]:
    """Return the nodes that make all parts of these values. Parts that tuples share are visited once."""
    waiting = list(values)
    if len(waiting) == 1 and isinstance(waiting[0], frozenset):  # as most
        return waiting[0]
    nodes: set[int] = set()
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, frozenset):
            nodes |= value
        elif id(value) not in seen:
            seen.add(id(value))
            waiting.extend(value)
    return frozenset(nodes)


def element(value: StepValue, index: int | None) -> StepValue:
    """Return an element of a value; of a value without elements, or of an unknown index, the whole."""
    if isinstance(value, tuple) and index is not None and index < len(value):
        return value[index]
    return value if isinstance(value, frozenset) else nodes_behind([value])
