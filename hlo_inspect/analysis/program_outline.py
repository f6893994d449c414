"""The outline of a module, by which a profile nests executions and separates runs."""

from __future__ import annotations

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.module_analyses import ModuleAnalyses
from hlo_inspect.graph.orders import operands_first
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
    containers = [[row for row, opcode in enumerate(view.opcodes) if opcode in CONTROL_FLOW] for view in views]
    called = [[_called(view, row, numbers) for row in rows] for view, rows in zip(views, containers, strict=True)]
    direct = [set().union(*of_rows) for of_rows in called]
    inside = {
        view.names[row]: frozenset(operands_first(of_row, direct.__getitem__))
        for view, rows, of_rows in zip(views, containers, called, strict=True)
        for row, of_row in zip(rows, of_rows, strict=True)
    }
    entry = numbers[context.module.entry.name] if context.module.entry is not None else -1
    starts = {name: start for view in views for name, start in _starts(view)}
    return ProgramOutline(computations, entry, inside, starts, frozenset(map(executed_name, context.collectives)))


def executed_name(collective: Collective) -> str:
    """Return the name by which the executions of a collective are recorded."""
    return collective.start.name


def _called(view: View, row: int, numbers: dict[str, int]) -> set[int]:
    return {numbers[callee.name] for callee in view.called_at(row) if callee.name in numbers}


def _starts(view: View) -> list[tuple[str, str]]:
    pairs = []
    for row, opcode in enumerate(view.opcodes):
        if opcode in ASYNC_ENDS and TABLE[opcode].half == "done":
            before = view.operand_row(row, 0)
            start = view.origin(before, _UPDATES) if before is not None else None
            if start is not None:
                pairs.append((view.names[row], view.names[start]))
    return pairs
