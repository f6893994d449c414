"""The instructions of a step, each with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.graph.neighbourhood.expressions import FusionExpressions
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, DEVICE_NUMBERS, NAMING
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.show.tables import shape_text
from hlo_inspect.report.model import Column, Section, Table

MOST_INSTRUCTIONS = 6_000
"""Of more instructions parameters, loops and those that move most bytes are listed."""
MOST_NEIGHBOURS = 16
"""At most this many operands and users are named."""

_HANDING_ON = NAMING | {"opt-barrier"}
_NO_NODES = _HANDING_ON | DEVICE_NUMBERS | {"constant", "after-all"}
_ALWAYS = frozenset({"parameter", "while"})
"""What moves no bytes by itself and is asked for by its name."""
RETURNED = "(returned)"


class Instructions(Pass):
    """The instructions of a step that run as kernels, bring parameters in or run loops, each with its operands and users.

    No command of its own: the page of `report` leads from a name to its instruction. What only names or hands on arrays is
    stepped through.
    """

    name = "instructions"
    uses_profile = True
    wants = KERNEL_WANTS
    specs = ()

    def run(self, context: Context) -> Section:
        rows = _rows(context)
        chosen = _chosen(context, rows)
        note = f"instructions: {len(chosen):,} of {len(rows):,} are listed: parameters, loops and those that move most bytes"
        return Section({}, _tables(context, chosen), notes=[note] if len(chosen) < len(rows) else [])


class _ListedInstruction(NamedTuple):
    """One instruction with what its line says and what is around it."""

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
        return printed(self.context.labels_of(self.view, self.row).source)


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
    around = {name: _Neighbours(view) for name, view in views.items()}
    expressions = FusionExpressions(context.views)
    rows = (_described(context, view, row, around[view.computation.name], expressions) for view, row in found)
    yield Table.of("instructions", "Instructions and their neighbours", columns, rows, on_page=False)


def _rows(context: Context) -> list[tuple[View, int]]:
    """The rows of what runs itself, in the order of the text."""
    running = [one.view for one in context.cost.running.values()]
    return [
        (view, row)
        for view in running
        for row, opcode in enumerate(view.opcodes)
        if opcode not in _NO_NODES and opcode not in ASYNC_ENDS
    ]


def _chosen(context: Context, rows: Sequence[tuple[View, int]]) -> Sequence[tuple[View, int]]:
    """The rows, in their order; of too many parameters and loops first, then those that move most."""
    if len(rows) <= MOST_INSTRUCTIONS:
        return rows
    moved = {kernel.place: kernel.of_step("bytes").least for kernel in context.kernels.launched}

    def weight(at: tuple[View, int]) -> tuple[bool, int]:
        view, row = at
        return view.opcodes[row] in _ALWAYS, moved.get((view.computation.name, view.lines[row], view.names[row]), 0)

    kept = sorted(range(len(rows)), key=lambda number: weight(rows[number]), reverse=True)[:MOST_INSTRUCTIONS]
    return [rows[number] for number in sorted(kept)]


def _described(
    context: Context, view: View, row: int, around: _Neighbours, expressions: FusionExpressions
) -> _ListedInstruction:
    computes = ""
    if view.opcodes[row] == "fusion":
        fused = next((one.name for one in view.instruction(row).called if one.role == "fused"), "")
        computes = expressions.of(fused, around.operands(row))
    return _ListedInstruction(view, row, computes, _listed(around.makers_of_operands(row)), _listed(around.users[row]), context)


class _Neighbours:
    """Which rows of a computation make what each reads, and which read what each makes. Both step through what hands on, along
    the same edges; calls are not followed. Of many neighbours of a row those beyond `MOST_NEIGHBOURS` are not counted.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._tuples: list[int | None] = []
        self._behind = [self._handed_on(row) for row in range(len(view.rows))]
        self._makers = self._find_makers()

    def _handed_on(self, row: int) -> Sequence[int]:
        """The earlier rows whose values a row hands on; none for a row that makes its own."""
        view, opcode = self._view, self._view.opcodes[row]
        hands_on = opcode in _HANDING_ON or opcode in ASYNC_ENDS
        behind = [one for one in view.operand_rows(row) if one is not None and one < row] if hands_on else []
        packed = self._tuples[behind[0]] if len(behind) == 1 else None
        self._tuples.append(row if opcode == "tuple" else packed if opcode == "opt-barrier" else None)
        if opcode == "get-tuple-element" and packed is not None:
            elements, number = view.operand_rows(packed), view.element_number(row)
            element = elements[number] if number is not None and number < len(elements) else None
            behind = behind if element is None or element >= packed else [element]
        return behind

    def _find_makers(self) -> list[Sequence[int]]:
        """The rows that make what each row is or hands on."""
        found: list[Sequence[int]] = []
        for row, behind in enumerate(self._behind):
            makers: dict[int, None] = {} if behind else {row: None}
            for one in behind:
                if len(makers) > MOST_NEIGHBOURS:
                    break
                makers |= dict.fromkeys(found[one])
            found.append(tuple(makers)[: MOST_NEIGHBOURS + 1])
        return found

    def operands(self, row: int) -> list[str]:
        """The name of what makes each operand; of what several make its own."""
        makers = (None if one is None else self._makers[one] for one in self._view.operand_rows(row))
        names = self._view.names
        return [
            "?" if one is None or made is None else names[made[0]] if len(made) == 1 else names[one]
            for one, made in zip(self._view.operand_rows(row), makers, strict=True)
        ]

    def makers_of_operands(self, row: int) -> dict[str, None]:
        """The names of what makes the operands."""
        found: dict[str, None] = {}
        for one in self._view.operand_rows(row):
            if len(found) > MOST_NEIGHBOURS:
                break
            found |= dict.fromkeys(["?"] if one is None else [self._view.names[made] for made in self._makers[one]])
        return found

    @cached_property
    def users(self) -> list[dict[str, None]]:
        """The names of what reads each row: from the last row to the first, since users come later."""
        view = self._view
        found: list[dict[str, None]] = [{} for _ in view.rows]
        readers: list[list[int]] = [[] for _ in view.rows]
        for row, behind in enumerate(self._behind):
            for one in behind or view.operand_rows(row):
                if one is not None:
                    readers[one].append(row)
        for row in range(len(view.rows) - 1, -1, -1):
            names = found[row]
            if row == view.root:
                names[RETURNED] = None
            for user in readers[row]:
                if len(names) > MOST_NEIGHBOURS:
                    break
                names |= (
                    dict(islice(found[user].items(), MOST_NEIGHBOURS + 1)) if self._behind[user] else {view.names[user]: None}
                )
        return found


def _listed(names: Mapping[str, None]) -> str:
    """Names, of many the first."""
    few = list(names)[:MOST_NEIGHBOURS]
    return ", ".join(few) + (", …" if len(names) > len(few) else "")
