"""The outline of a module, by which a profile nests executions and separates runs."""

from __future__ import annotations

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.module_analyses import ModuleAnalyses
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, CONTROL_FLOW, TABLE
from hlo_inspect.profiler.outline import ProgramOutline

_UPDATES = frozenset(name for name, opcode in TABLE.items() if opcode.half == "update")


def outline_of(context: ModuleAnalyses) -> ProgramOutline:
    """Return the outline of a module that was read with its graph."""
    names = list(context.module.computations)
    numbers = {name: number for number, name in enumerate(names)}
    views = [context.views.for_computation(name) for name in names]
    computations = {name: number for number, view in enumerate(views) for name in view.names}
    direct = [_called_by_containers(view, numbers) for view in views]
    reached: dict[int, frozenset[int]] = {}
    inside = {}
    for view in views:
        for row in _containers(view):
            called = {numbers[callee.name] for callee in view.called(row) if callee.name in numbers}
            inside[view.names[row]] = frozenset().union(*(_reach(number, direct, reached) for number in called))
    entry = numbers[context.module.entry.name] if context.module.entry is not None else -1
    starts = {name: start for view in views for name, start in _starts(view)}
    return ProgramOutline(computations, entry, inside, starts, frozenset(map(executed_name, context.collectives)))


def executed_name(collective: Collective) -> str:
    """Return the name by which the executions of a collective are recorded."""
    return collective.start.name


def _containers(view: View) -> list[int]:
    return [row for row, opcode in enumerate(view.opcodes) if opcode in CONTROL_FLOW]


def _called_by_containers(view: View, numbers: dict[str, int]) -> set[int]:
    return {numbers[callee.name] for row in _containers(view) for callee in view.called(row) if callee.name in numbers}


def _reach(number: int, direct: list[set[int]], reached: dict[int, frozenset[int]]) -> frozenset[int]:
    """Return a computation with those that it calls, directly or through others."""
    if number not in reached:
        seen, waiting = {number}, [number]
        while waiting:
            new = direct[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[number] = frozenset(seen)
    return reached[number]


def _starts(view: View) -> list[tuple[str, str]]:
    """Return each done of a computation with its start."""
    pairs = []
    for row, opcode in enumerate(view.opcodes):
        if opcode in ASYNC_ENDS and TABLE[opcode].half == "done":
            before = view.operand_row(row, 0)
            start = view.origin(before, _UPDATES) if before is not None else None
            if start is not None:
                pairs.append((view.names[row], view.names[start]))
    return pairs
