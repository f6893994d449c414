"""XLA's warnings around a module, joined with its collectives.

The partitioner prints an instruction as it was before partitioning. Some collectives that replicate its tensor keep its
op_name. Others have that of their users: they are found by their operand. It has the printed shape, or is a shard of it, and
its op_name is that of the printed operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import CompilerWarning, Module
from hlo_inspect.hlo.opcodes import NAMING, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.op_names import Origin, origin_of
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_MOVES = 8
"""Limit of moves, such as copies and transposes, between a collective and the array that it reads."""

_MOVES = NAMING | opcodes_that_are("relayout") | (opcodes_that_give("part") - opcodes_that_are("collective"))
_NUMBERS = lazy_pattern(r"(?:\.\d+)+$", re.ASCII)


class JoinedWarning(NamedTuple):
    """Equal warnings of a log.

    `instruction` is the one that XLA prints, None if it prints none. `collectives` are those that it became; None if that is
    unknown, because the log names no instruction or the graph was not read.
    """

    warnings: Sequence[CompilerWarning]
    instruction: Instruction | None
    origin: Origin
    collectives: Sequence[Collective] | None

    @property
    def first(self) -> CompilerWarning:
        return self.warnings[0]


def join_warnings(module: Module, collectives: Sequence[Collective], views: Views | None) -> list[JoinedWarning]:
    """Return the warnings around a module in the order of the log, merged if equal. `views` are those of its graph."""
    groups: dict[CompilerWarning, list[CompilerWarning]] = {}
    for warning in module.warnings:
        groups.setdefault(warning._replace(line=0, seconds=None), []).append(warning)
    return [_joined(module, warnings, collectives, views) for warnings in groups.values()]


def _joined(
    module: Module, warnings: Sequence[CompilerWarning], collectives: Sequence[Collective], views: Views | None
) -> JoinedWarning:
    instruction = _printed(warnings[0].instruction)
    if instruction is None or not warnings[0].to_sharding:
        return JoinedWarning(warnings, instruction, _origin(module, instruction), None)
    origin = _origin(module, instruction)
    of_name = [collective for collective in collectives if collective.origin.op_name == origin.op_name != ""]
    of_operand = None if views is None else [c for c in collectives if _reads(c, instruction, views)]
    return JoinedWarning(warnings, instruction, origin, of_name or of_operand)


def _origin(module: Module, instruction: Instruction | None) -> Origin:
    return origin_of(instruction.attr("metadata") if instruction is not None else None, module.frames)


def _printed(text: str) -> Instruction | None:
    """Read the instruction of a log line; None if it is truncated before its operands."""
    if not text:
        return None
    source = TextSource("", iter([f"printed {{\n{text}\n}}\n"]))
    module = next(read_modules(source, Wants(graph=True)), None)
    computation = None if module is None else next(iter(module.computations.values()), None)
    return View(computation).instruction_at(0) if computation is not None and computation.opcodes else None


def _reads(collective: Collective, printed: Instruction, views: Views) -> bool:
    """Return True if a collective reads an array of the printed shape, or a shard of it, made by the printed operand."""
    operand = next(iter(printed.operands), None)
    if operand is None or not operand.name:
        return False
    made_under = "/" + _NUMBERS.sub("", operand.name)
    return any(
        view.op_name(row).endswith(made_under) and _is_shard(view.shapes[row], printed.shape)
        for view, row in _sources(collective, views)
    )


def _sources(collective: Collective, views: Views) -> Iterator[tuple[View, int]]:
    """Yield the array that a collective reads, and those before it as long as the data only moves."""
    view = views.for_computation(collective.start.computation.name)
    row = view.index(collective.start.name)
    for _ in range(MAX_MOVES):
        row = view.operand_row(row, 0) if row is not None and view.operand_rows(row) else None
        if row is None:
            return
        yield view, row
        if view.opcodes[row] not in _MOVES:
            return


def _is_shard(shape: Shape | None, whole: Shape | None) -> bool:
    """Return True if an array has the element type of another, and its number of elements or an integer part of it."""
    if not isinstance(shape, ArrayShape) or not isinstance(whole, ArrayShape) or shape.dtype != whole.dtype:
        return False
    return bool(shape.elements and whole.elements and whole.elements % shape.elements == 0)
