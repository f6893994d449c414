"""What is known where an instruction stands: the instructions before it, and the computations before its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from hlo_inspect.hlo.shapes import Shape

NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class Known(NamedTuple):
    """An instruction that was read. `shape` is `None` where the text prints none. `attributes` are kept of what a later
    instruction has to agree with; `start` is the `async-start` that an asynchronous one goes back to.
    """

    opcode: str
    shape: Shape | None
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    start: Known | None = None


@dataclass
class Scope:
    """One computation while it is read.

    `computations` are those before it, with the number of their parameters; `wrapped` those that an `async-start` calls;
    `bodies` the extents of computations in place that wait to be read; `parameters` where each number stands. Round an input
    that is `single`, one instruction, each operand with a shape is a parameter,
    which are `created`.
    """

    computations: dict[str, int]
    wrapped: set[str]
    bodies: list[tuple[int, int]]
    instructions: dict[str, Known] = field(default_factory=dict)
    parameters: dict[int, int] = field(default_factory=dict)
    root: str | None = None
    last: Known | None = None
    single: bool = False
    created: int = 0
