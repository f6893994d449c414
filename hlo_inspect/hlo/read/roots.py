"""Whether a computation gives what is said of it: where no instruction is marked ROOT, the last one is the root, and a line
that is missing makes another instruction the last one.

What is said is the computation's own signature (`(p: f32[2]) -> f32[2]`), which XLA's parser holds against the root too, the
result in the header's `entry_computation_layout`, and the shape of the fusion, call or while that runs the computation. Where
all of that agrees, the shape of the last instruction is the root's by chance: a reducer of which the sum is missing ends with a
parameter. XLA marks the root of every computation that it prints, so that a computation without one among others that have
theirs has lost a line, in a text whose header is XLA's.
"""

from __future__ import annotations

import re

from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.rows import Rows
from hlo_inspect.hlo.values.shapes import Shape, ShapeError, TupleShape, parse_shape
from hlo_inspect.lazy_pattern import lazy_pattern

_GIVING = {"calls": "fusion", "to_apply": "call", "body": "while"}
"""The attributes that name a computation whose root is the instruction's result, by opcode."""

_CALLEE = lazy_pattern(rf", ({'|'.join(_GIVING)})=%?([A-Za-z_][\w.\-]*+)", re.ASCII)


class RootCheck:
    """Notes roots that disagree, of the computations of one module in which none is marked."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._unmarked: dict[str, tuple[Shape, str, int]] = {}
        self._agreeing: dict[str, tuple[str, int]] = {}
        self._count = 0

    def end(self, computation: Computation, signature: str, name: str, shape: Shape | None, line: int) -> None:
        """After the last row of a computation that marks none: its first line, and name, shape and line of the last one."""
        self._count += 1
        self._agreeing[computation.name] = name, line
        if shape is None:
            return
        stated = _stated_result(signature)
        of = "its signature"
        if stated is None and computation.is_entry and self._module.header.entry_layout is not None:
            stated, of = self._module.header.entry_layout[1], "entry_computation_layout"
        if stated is None:
            self._unmarked[computation.name] = shape, name, line
        elif not compatible(stated, shape):
            self._note(computation.name, name, line, shape, of, stated)

    def check_callers(self, rows: Rows) -> None:
        """Compares the roots that no signature states with the instructions that run their computations."""
        if not self._unmarked:
            return
        for row, head, tail in zip(rows.names, rows.column.heads, rows.tails, strict=True):
            for attribute, callee in _CALLEE.findall(tail):
                known = self._unmarked.get(callee)
                if known is None or head.opcode != _GIVING[attribute]:
                    continue
                shape, name, line = known
                stated = head.shape
                if stated is not None and not compatible(stated, shape):
                    self._unmarked.pop(callee)
                    self._note(callee, name, line, shape, f"its caller {row}", stated)

    def finish(self, computations: int) -> None:
        """At the end of a module of so many computations: those without a root, where most have one as XLA prints them."""
        if not self._module.header.prints_counts or 2 * self._count >= computations:
            return
        for computation, (name, line) in self._agreeing.items():
            message = (
                f"no instruction of {computation} is marked ROOT, and most computations here have one: {name} is taken for it"
            )
            self._module.note("HI015", message, line, computation)

    def _note(self, computation: str, name: str, line: int, shape: Shape, of: str, stated: Shape) -> None:
        self._agreeing.pop(computation, None)
        last = f"the last instruction of {computation}, which marks no ROOT, is {name} of {_short(shape)}"
        self._module.note("HI014", f"{last}; {of} says {_short(stated)}", line, computation)


def _stated_result(first_line: str) -> Shape | None:
    """The shape behind the arrow of a computation's first line."""
    _, arrow, result = first_line.rpartition("->")
    if not arrow:
        return None
    try:
        return parse_shape(result.strip().removesuffix("{").strip())
    except ShapeError:
        return None


def compatible(one: Shape, other: Shape) -> bool:
    """Whether two shapes are the same but for layouts and for dimensions that can shrink, as `ShapeUtil::Compatible` says."""
    waiting = [(one, other)]
    while waiting:
        first, second = waiting.pop()
        if isinstance(first, TupleShape) and isinstance(second, TupleShape) and len(first.elements) == len(second.elements):
            waiting += zip(first.elements, second.elements, strict=True)
        elif not _same_array(first, second):
            return False
    return True


def _same_array(one: Shape, other: Shape) -> bool:
    if isinstance(one, TupleShape) or isinstance(other, TupleShape):
        return False
    return (one.dtype, one.dimensions) == (other.dtype, other.dimensions)


def _short(shape: Shape) -> str:
    text = str(shape)
    return text if len(text) <= 60 else f"{text[:60]}…"
