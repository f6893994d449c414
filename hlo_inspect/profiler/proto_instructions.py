"""The instructions of a serialized module, by name and dimensions: what tells if a text is of the same program."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.hlo.input.foreign_text import fields
from hlo_inspect.profiler.programs import integers

Dimensions = tuple[tuple[int, ...], ...]
"""The dimensions of each array of a shape."""


def proto_instructions(proto: memoryview) -> dict[str, dict[str, Dimensions]]:
    """Return the instructions of each computation of an `HloModuleProto`."""
    computations = {}
    for number, value in fields(proto):
        if number == 3 and isinstance(value, memoryview):
            name, rows = "", {}
            for inner, part in fields(value):
                if inner == 1 and isinstance(part, memoryview):
                    name = bytes(part).decode(errors="replace")
                elif inner == 2 and isinstance(part, memoryview):
                    instruction, dimensions = _instruction(part)
                    rows[instruction] = dimensions
            computations[name] = rows
    return computations


def _instruction(data: memoryview) -> tuple[str, Dimensions]:
    name = ""
    dimensions: list[tuple[int, ...]] = []
    for number, value in fields(data):
        if number == 1 and isinstance(value, memoryview):
            name = bytes(value).decode(errors="replace")
        elif number == 3 and isinstance(value, memoryview):
            dimensions += _arrays(value)
            break
    return name, tuple(dimensions)


def _arrays(shape: memoryview) -> Iterator[tuple[int, ...]]:
    """Yield the dimensions of each array of a `ShapeProto`, without recursion."""
    waiting = [shape]
    while waiting:
        elements = [value for number, value in fields(waiting[-1]) if number == 4 and isinstance(value, memoryview)]
        current = waiting.pop()
        if elements:
            waiting += reversed(elements)
        elif not any(number == 2 and value == _TUPLE for number, value in fields(current)):
            yield tuple(integers(current, 3))


_TUPLE = 13
"""Element type of a tuple."""
