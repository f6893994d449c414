"""XLA's warnings around a module, joined with its collectives.

The partitioner prints an instruction as it was before partitioning. Some collectives that replicate its tensor keep its
op_name. Of several with it count those of the same source, and of these the gathers whose operand has the printed size. Others
have the op_name of their users: they are found by their operand. It has the printed shape, or is a shard of it, and its
op_name is that of the printed operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.memory.array_flow import ArrayFlow
from hlo_inspect.graph.frames import MAX_STEPS
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import CompilerWarning, Module
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.op_names import Origin, origin_of
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern

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


def join_warnings(module: Module, collectives: Sequence[Collective], flow: ArrayFlow | None) -> list[JoinedWarning]:
    """Return the warnings around a module in the order of the log, merged if equal. `flow` follows arrays through its graph."""
    groups: dict[CompilerWarning, list[CompilerWarning]] = {}
    for warning in module.warnings:
        groups.setdefault(warning._replace(line=0, seconds=None), []).append(warning)
    return _shared_out([_joined(module, warnings, collectives, flow) for warnings in groups.values()])


def _shared_out(joined: list[JoinedWarning]) -> list[JoinedWarning]:
    """Divide the collectives that several warnings have in common among them, in the order of the log.

    Operations of one line have one op_name and one source. If there are fewer collectives than warnings, XLA merged some.
    """
    sharing: dict[tuple[int, ...], list[int]] = {}
    for row, warning in enumerate(joined):
        if warning.collectives:
            sharing.setdefault(tuple(map(id, warning.collectives)), []).append(row)
    for rows in sharing.values():
        common = joined[rows[0]].collectives or ()
        for number, row in enumerate(rows if 1 < len(rows) <= len(common) else ()):
            part = common[len(common) * number // len(rows) : len(common) * (number + 1) // len(rows)]
            joined[row] = joined[row]._replace(collectives=part)
    return joined


def _joined(
    module: Module, warnings: Sequence[CompilerWarning], collectives: Sequence[Collective], flow: ArrayFlow | None
) -> JoinedWarning:
    instruction = _printed(warnings[0].instruction)
    if instruction is None or not warnings[0].to_sharding:
        return JoinedWarning(warnings, instruction, _origin(module, instruction), None)
    origin = _origin(module, instruction)
    of_name = [collective for collective in collectives if collective.origin.op_name == origin.op_name != ""]
    of_name = [collective for collective in of_name if collective.origin == origin] or of_name
    size = instruction.shape.bytes if instruction.shape is not None else None
    of_name = [c for c in of_name if (c.kind, c.operand_bytes) == ("all-gather", size)] or of_name
    of_operand = None if flow is None else [c for c in collectives if _reads(c, instruction, flow)]
    return JoinedWarning(warnings, instruction, origin, of_name or of_operand)


def _origin(module: Module, instruction: Instruction | None) -> Origin:
    return origin_of(instruction.attr("metadata") if instruction is not None else None, module.frames)


def _printed(text: str) -> Instruction | None:
    """Read the instruction of a log line; None if it is truncated before its operands."""
    if not text:
        return None
    module = next(read_modules(TextSource("", iter([f"printed {{\n{text}\n}}\n"])), Wants(graph=True)), None)
    computation = None if module is None else next(iter(module.computations.values()), None)
    return View(computation).instruction_at(0) if computation is not None and computation.opcodes else None


def _reads(collective: Collective, printed: Instruction, flow: ArrayFlow) -> bool:
    """Return True if a collective reads an array of the printed shape, or a shard of it, made by the printed operand."""
    operand = next(iter(printed.operands), None)
    if operand is None or not operand.name:
        return False
    made_under = "/" + _NUMBERS.sub("", operand.name)
    return any(op_name.endswith(made_under) and _is_shard(shape, printed.shape) for op_name, shape in _read(collective, flow))


def _read(collective: Collective, flow: ArrayFlow) -> Iterator[tuple[str, Shape | None]]:
    """Yield op_name and shape of the array that a collective reads, and of the arrays that it comes from."""
    start = collective.start
    place = flow.place_of_name(start.computation.name, start.name)
    place = flow.frames.operand(place, 0) if place is not None else None
    for _ in range(MAX_STEPS):
        if place is None or place[1] < 0:
            return
        yield flow.frames[place[0]].view.op_name(place[1]), flow.frames.shape(place)
        place = flow.source(place)


def _is_shard(shape: Shape | None, whole: Shape | None) -> bool:
    """Return True if an array has the element type of another, and its number of elements or an integer part of it."""
    if not isinstance(shape, ArrayShape) or not isinstance(whole, ArrayShape) or shape.dtype != whole.dtype:
        return False
    return bool(shape.elements and whole.elements and whole.elements % shape.elements == 0)
