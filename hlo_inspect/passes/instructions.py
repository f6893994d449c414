"""The instructions of a step, each with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.calls import place
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.kernels import is_end
from hlo_inspect.analysis.cost.labels import NOT_PRINTED
from hlo_inspect.analysis.cost.wants import WANTS
from hlo_inspect.analysis.neighbourhood.expressions import FusionExpressions
from hlo_inspect.analysis.view import View
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.instruction_words import shape_text
from hlo_inspect.report.model import Column, Section, Table

MOST_INSTRUCTIONS = 6_000
"""Of more instructions parameters, loops and those that move most bytes are listed."""
MOST_NEIGHBOURS = 16
"""So many operands and users are named."""

_HANDING_ON = frozenset({"bitcast", "get-tuple-element", "opt-barrier"})
_NO_NODES = _HANDING_ON | {"tuple", "constant", "after-all", "partition-id", "replica-id"}
_ALWAYS = frozenset({"parameter", "while"})
"""What moves no bytes by itself and is asked for by its name."""
RETURNED = "(returned)"


class Instructions(Pass):
    """The instructions of a step that run as kernels, bring parameters in or run loops, each with its operands and users.

    No command of its own: the page of `report` leads from a name to its instruction. What only names or hands on arrays is
    stepped through.
    """

    name = "instructions"
    wants = WANTS
    specs = ()

    def run(self, context: Context) -> Section:
        rows = _rows(context)
        chosen = _chosen(context, rows)
        note = f"instructions: {len(chosen):,} of {len(rows):,} are listed: parameters, loops and those that move most bytes"
        return Section({}, _tables(context, chosen), notes=[note] if len(chosen) < len(rows) else [])


class _Neighbours(NamedTuple):
    """One instruction with what its line says and what stands round it."""

    view: View
    row: int
    computes: str
    operands: str
    users: str
    context: Context

    @property
    def name(self) -> str:
        return self.view.names[self.row]

    @property
    def op_name(self) -> str:
        return self.context.labels_of(self.view, self.row).op_name

    @property
    def source(self) -> str:
        source = self.context.labels_of(self.view, self.row).source
        return "" if source == NOT_PRINTED else source


def _tables(context: Context, found: Sequence[tuple[View, int]]) -> Iterator[Table]:
    columns = (
        Column("name", get=lambda one: one.name),
        Column("opcode", get=lambda one: one.view.opcodes[one.row]),
        Column("shape", width=24, get=lambda one: shape_text(one.view.shapes[one.row])),
        Column("computes", optional=True, width=40, get=lambda one: one.computes or None),
        Column("operands", width=30, get=lambda one: one.operands),
        Column("used_by", width=30, get=lambda one: one.users),
        Column("computation", detail=7, get=lambda one: one.view.computation.name),
        Column("op_name", detail=6, get=lambda one: one.op_name),
        Column("source", get=lambda one: one.source),
        Column("line", "number", detail=5, get=lambda one: one.view.lines[one.row]),
    )
    views = {view.computation.name: view for view, _ in found}
    around = {name: (_makers(view), _users(view)) for name, view in views.items()}
    expressions = FusionExpressions(context.views)
    rows = (_described(context, view, row, *around[view.computation.name], expressions) for view, row in found)
    yield Table.of("instructions", "Instructions and their neighbours", columns, rows, on_page=False)


def _rows(context: Context) -> list[tuple[View, int]]:
    """The rows of what runs itself, in the order of the text."""
    running = [one.view for one in context.cost.running.values()]
    return [
        (view, row)
        for view in running
        for row, opcode in enumerate(view.opcodes)
        if opcode not in _NO_NODES and not is_end(opcode)
    ]


def _chosen(context: Context, rows: Sequence[tuple[View, int]]) -> Sequence[tuple[View, int]]:
    """The rows, in their order; of too many parameters and loops first, then those that move most."""
    if len(rows) <= MOST_INSTRUCTIONS:
        return rows
    moved = {place(kernel.instruction): kernel.of_step("bytes").least for kernel in context.kernels.found}

    def weight(at: tuple[View, int]) -> tuple[bool, int]:
        view, row = at
        return view.opcodes[row] in _ALWAYS, moved.get((view.computation.name, view.lines[row], view.names[row]), 0)

    kept = sorted(range(len(rows)), key=lambda number: weight(rows[number]), reverse=True)[:MOST_INSTRUCTIONS]
    return [rows[number] for number in sorted(kept)]


def _described(
    context: Context,
    view: View,
    row: int,
    makers: Sequence[int],
    users: Sequence[Mapping[str, None]],
    expressions: FusionExpressions,
) -> _Neighbours:
    operands = ["?" if operand is None else view.rows[makers[operand]][1] for operand in view.operand_rows(row)]
    computes = ""
    if view.opcodes[row] == "fusion":
        fused = next((one.name for one in view.instruction(row).called if one.role == "fused"), "")
        computes = expressions.of(fused, operands)
    return _Neighbours(view, row, computes, _listed(dict.fromkeys(operands)), _listed(users[row]), context)


def _makers(view: View) -> list[int]:
    """The row that makes the value of each row: another one where a row only hands on what comes before it."""
    found: list[int] = []
    for row, opcode in enumerate(view.opcodes):
        behind = view.operand_rows(row) if opcode in _HANDING_ON or is_end(opcode) else ()
        before = behind[0] if len(behind) == 1 else None
        found.append(row if before is None or before >= row else found[before])
    return found


def _users(view: View) -> list[dict[str, None]]:
    """The names of what reads each row, through what hands it on: from the last row to the first, since users come later."""
    found: list[dict[str, None]] = [{} for _ in view.rows]
    for row in range(len(view.rows) - 1, -1, -1):
        names = found[row]
        if row == view.root:
            names[RETURNED] = None
        for user in view.users[row]:
            if len(names) > MOST_NEIGHBOURS:
                break
            opcode = view.opcodes[user]
            if user > row and (opcode in _HANDING_ON or opcode == "tuple" or is_end(opcode)):
                names |= found[user]
            else:
                names[view.names[user]] = None
    return found


def _listed(names: Mapping[str, None]) -> str:
    """Names, of many the first."""
    few = list(names)[:MOST_NEIGHBOURS]
    return ", ".join(few) + (", …" if len(names) > len(few) else "")
