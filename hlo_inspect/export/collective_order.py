"""Order of collectives in a text without a schedule: only the flow of values and control predecessors fix it."""

from __future__ import annotations

from itertools import pairwise

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import InputError, Location
from hlo_inspect.export.row_actions import awaited_rows
from hlo_inspect.export.step_plan import StepProgram
from hlo_inspect.graph.view import View


def require_order(context: Context, program: StepProgram) -> None:
    """Raise InputError if two communications of a computation do not depend on each other."""
    graph = context.call_graph
    holders = {position[0] for position, own in program.at.items() if any(not part.reason for part in own)}
    communicating: set[str] = set()
    for name in reversed(graph.order):  # callees before their callers
        if name in holders or any(call.callee in communicating for call in graph.calls[name]):
            communicating.add(name)
    for name in graph.order:
        view = context.views.for_computation(name) if name in context.views.computations else None
        if view is None or name not in communicating:
            continue
        rows = [row for row in range(len(view.names)) if _communicates(view, row, program, communicating)]
        for earlier, later in pairwise(rows):
            if not _depends(view, later, earlier):
                first, second = view.names[earlier], view.names[later]
                message = f"the text is no schedule, and the order of {first} and {second} is open; export a scheduled text"
                raise InputError(message, Location(context.module.path, view.lines[later]))


def _communicates(view: View, row: int, program: StepProgram, communicating: set[str]) -> bool:
    """Return True if a row starts a communication, or runs a computation that does."""
    own = program.at.get((view.computation.name, view.lines[row], view.names[row]), ())
    return any(not part.reason for part in own) or any(callee.name in communicating for callee in view.called_at(row))


def _depends(view: View, row: int, on: int) -> bool:
    """Return True if a row waits for another row, through any others."""
    waiting, seen = [row], {row}
    while waiting:
        for operand in awaited_rows(view, waiting.pop()):
            if operand == on:
                return True
            if operand > on and operand not in seen:
                seen.add(operand)
                waiting.append(operand)
    return False
