"""The instructions of a step, each with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.figure import Number, least
from hlo_inspect.graph.neighbourhood.expressions import fusion_expression
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, DEVICE_NUMBERS, NAMING
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.show.show_tables import shape_text
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

MOST_INSTRUCTIONS = 6_000
"""Above this number of instructions only parameters, loops and those with most bytes are listed."""
MOST_NEIGHBOURS = 16
"""At most this many operands and users are named."""
LONGEST_LINE = 4_000
"""At most this many characters of a line are kept: that of a constant can have megabytes."""

_HANDING_ON = NAMING | {"opt-barrier"}
_NO_NODES = _HANDING_ON | DEVICE_NUMBERS | {"constant", "after-all"}
_ALWAYS = frozenset({"parameter", "while"})
"""Opcodes that are always listed: they move no bytes by themselves, but people name them."""
RETURNED = "(returned)"


class _ListedInstruction(NamedTuple):
    """An instruction with the figures of its line and its neighbours."""

    view: View
    row: int
    computes: str
    operands: str
    users: str
    sign: str
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

    @property
    def text(self) -> str:
        """The line of the instruction, without the blanks before it; the end of a long line is cut."""
        mark, name, head, tail = self.view.rows[self.row]
        text = f"{mark}{self.sign}{name} = {head.lstrip()}({tail.rstrip()}"
        return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"


def _tables(context: Context, instructions: Sequence[tuple[View, int]]) -> Iterator[Table]:
    views = {view.computation.name: view for view, _ in instructions}
    around = {name: _Neighbours(view) for name, view in views.items()}
    rows = (_described(context, view, row, around[view.computation.name]) for view, row in instructions)
    yield _INSTRUCTIONS.of(rows)


_INSTRUCTIONS = TableSpec("instructions", "Instructions and their neighbours", on_page=False).with_columns(
    Column("name"),
    Column("opcode", get=lambda entry: entry.view.opcodes[entry.row]),
    Column("shape", width=24, get=lambda entry: shape_text(entry.view.shapes[entry.row])),
    Column("computes", optional=True, width=40, get=lambda entry: entry.computes or None),
    Column("operands", width=30),
    Column("used_by", width=30, get=attrgetter("users")),
    Column("computation", detail=7, get=attrgetter("view.computation.name")),
    Column("op_name", detail=6),
    Column("source"),
    Column("line", "number", detail=5, get=lambda entry: entry.view.lines[entry.row]),
    Column("text", detail=9, width=120),
)


def _rows(context: Context) -> list[tuple[View, int]]:
    """Return the rows of computations that run, in the order of the text."""
    running = [cost.view for cost in context.cost.running.values()]
    return [
        (view, row)
        for view in running
        for row, opcode in enumerate(view.opcodes)
        if opcode not in _NO_NODES and opcode not in ASYNC_ENDS
    ]


def _chosen(context: Context, rows: Sequence[tuple[View, int]]) -> Sequence[tuple[View, int]]:
    """Return the rows in their order; of too many only parameters and loops, then those with most bytes."""
    if len(rows) <= MOST_INSTRUCTIONS:
        return rows
    moved = {kernel.place: least(kernel.of_step("bytes")) for kernel in context.kernels.launched}

    def weight(position: tuple[View, int]) -> tuple[bool, Number]:
        view, row = position
        return view.opcodes[row] in _ALWAYS, moved.get((view.computation.name, view.lines[row], view.names[row]), 0)

    kept = sorted(range(len(rows)), key=lambda number: weight(rows[number]), reverse=True)[:MOST_INSTRUCTIONS]
    return [rows[number] for number in sorted(kept)]


def _described(context: Context, view: View, row: int, around: _Neighbours) -> _ListedInstruction:
    computes = ""
    if view.opcodes[row] == "fusion":
        fused = next((call.name for call in view.instruction(row).called if call.role == "fused"), "")
        computes = fusion_expression(context.views, fused, around.operands(row))
    operands, users = _listed(around.makers_of_operands(row)), _listed(around.users[row])
    return _ListedInstruction(view, row, computes, operands, users, around.sign, context)


class _Neighbours:
    """The rows that make the operands of each row of a computation, and the rows that use its result.

    Both step through rows that hand on values, along the same edges; calls are not followed. Neighbours of a row beyond
    `MOST_NEIGHBOURS` are not counted.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.sign = "%" if any("%" in tail for tail in view.tails) else ""
        """The sign before a name, which older texts do not print."""
        self._tuples: list[int | None] = []
        self._behind = [self._handed_on(row) for row in range(len(view.rows))]
        self._makers = self._find_makers()

    def _handed_on(self, row: int) -> Sequence[int]:
        """Return the earlier rows whose values a row hands on; none for a row that makes its own."""
        view, opcode = self._view, self._view.opcodes[row]
        hands_on = opcode in _HANDING_ON or opcode in ASYNC_ENDS
        behind = [operand for operand in view.operand_rows(row) if operand is not None and operand < row] if hands_on else []
        packed = self._tuples[behind[0]] if len(behind) == 1 else None
        self._tuples.append(row if opcode == "tuple" else packed if opcode == "opt-barrier" else None)
        if opcode == "get-tuple-element" and packed is not None:
            elements, number = view.operand_rows(packed), view.element_number(row)
            element = elements[number] if number is not None and number < len(elements) else None
            behind = behind if element is None or element >= packed else [element]
        return behind

    def _find_makers(self) -> list[Sequence[int]]:
        """Return, for each row, the rows that make its value or the values that it hands on."""
        makers_of_rows: list[Sequence[int]] = []
        for row, behind in enumerate(self._behind):
            makers: dict[int, None] = {} if behind else {row: None}
            for earlier in behind:
                if len(makers) > MOST_NEIGHBOURS:
                    break
                makers |= dict.fromkeys(makers_of_rows[earlier])
            makers_of_rows.append(tuple(makers)[: MOST_NEIGHBOURS + 1])
        return makers_of_rows

    def operands(self, row: int) -> list[str]:
        """Return the name of the maker of each operand; an operand with several makers has its own."""
        makers = (None if operand is None else self._makers[operand] for operand in self._view.operand_rows(row))
        names = self._view.names
        return [
            "?" if operand is None or made is None else names[made[0]] if len(made) == 1 else names[operand]
            for operand, made in zip(self._view.operand_rows(row), makers, strict=True)
        ]

    def makers_of_operands(self, row: int) -> dict[str, None]:
        """Return the names of the makers of the operands."""
        names: dict[str, None] = {}
        for operand in self._view.operand_rows(row):
            if len(names) > MOST_NEIGHBOURS:
                break
            names |= dict.fromkeys(["?"] if operand is None else [self._view.names[made] for made in self._makers[operand]])
        return names

    @cached_property
    def users(self) -> list[dict[str, None]]:
        """The names of the users of each row: from the last row to the first, since users come later."""
        view = self._view
        names_of_rows: list[dict[str, None]] = [{} for _ in view.rows]
        readers: list[list[int]] = [[] for _ in view.rows]
        for row, behind in enumerate(self._behind):
            for operand in behind or view.operand_rows(row):
                if operand is not None:
                    readers[operand].append(row)
        for row in range(len(view.rows) - 1, -1, -1):
            names = names_of_rows[row]
            if row == view.root:
                names[RETURNED] = None
            for user in readers[row]:
                if len(names) > MOST_NEIGHBOURS:
                    break
                names |= (
                    dict(islice(names_of_rows[user].items(), MOST_NEIGHBOURS + 1))
                    if self._behind[user]
                    else {view.names[user]: None}
                )
        return names_of_rows


def _listed(names: Mapping[str, None]) -> str:
    """Return the names as text; of many only the first."""
    few = list(names)[:MOST_NEIGHBOURS]
    return ", ".join(few) + (", …" if len(names) > len(few) else "")


class Instructions(Pass):
    """List the instructions of a step that run as kernels, bring in parameters or run loops, with operands and users.

    No command of its own: the page of `report` leads from a name to its instruction. Instructions that only name or pass on
    arrays are skipped.
    """

    name = "instructions"
    uses_profile = True
    wants = KERNEL_WANTS
    tables = (_INSTRUCTIONS,)

    def run(self, context: Context) -> Section:
        rows = _rows(context)
        chosen = _chosen(context, rows)
        note = (
            f"instructions: {len(chosen):,} of {len(rows):,} are listed: parameters, loops, and the largest by bytes accessed"
        )
        return Section({}, _tables(context, chosen), notes=[note] if len(chosen) < len(rows) else [])
