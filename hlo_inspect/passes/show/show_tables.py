"""The instructions of `show` with their costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.figure import Quantity
from hlo_inspect.graph.neighbourhood.expressions import fusion_expression, scalar_text
from hlo_inspect.graph.neighbourhood.instruction_graph import InstructionGraph
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.shapes import Shape, array_leaves, total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.collectives.collective_sites import sites
from hlo_inspect.passes.cost.step_facts import bytes_name
from hlo_inspect.passes.instruction_rows import phase_column
from hlo_inspect.passes.top import kernels_table
from hlo_inspect.report.model import Amount, Parts, sentence
from hlo_inspect.report.table import Column, Table, Value, lower_bound
from hlo_inspect.report.table_spec import TableSpec

# -- one instruction --------------------------------------------------------------------------------------------------------


class InstructionRow(NamedTuple):
    """An instruction as tables and pictures show it.

    `distance` counts the steps from the instruction of the request; `by` is the instruction one step nearer to it.
    """

    name: str
    opcode: str
    expression: str
    shape: str
    size: int | None
    computation: str
    phase: str
    op_name: str
    source: str
    line: int
    distance: int = 0
    by: str = ""


class Describer:
    """Rows of instructions. The operands of a fusion have the names of their makers."""

    def __init__(self, context: Context, graph: InstructionGraph) -> None:
        self._context = context
        self._graph = graph

    def describe(self, place: RowPlace, distance: int = 0, by: str = "") -> InstructionRow:
        context = self._context
        view = context.views.for_computation(place.computation)
        labels = context.labels_of(view, place.row)
        shape = view.shapes[place.row]
        return InstructionRow(
            view.names[place.row],
            view.opcodes[place.row],
            self.expression(place),
            shape_text(shape),
            None if shape is None else total(leaf.array_bytes for _, leaf in array_leaves(shape)),
            place.computation,
            labels.phase,
            labels.op_name,
            printed(labels.source),
            view.lines[place.row],
            distance,
            by,
        )

    def expression(self, place: RowPlace) -> str:
        """Return the expression that a fusion computes; empty for other instructions."""
        view = self._context.views.for_computation(place.computation)
        instruction = view.instruction_at(place.row) if view.opcodes[place.row] == "fusion" else None
        callee = instruction.callee("calls") if instruction is not None else None
        if callee is None:
            return ""
        return fusion_expression(self._context.views, callee, operand_names(view, place, self._graph))


def shape_text(shape: Shape | None) -> str:
    """Return the text of a shape; a tuple of many arrays has the first ones and the number of the others."""
    leaves = array_leaves(shape)
    if shape is None:
        return "?"
    if len(leaves) <= 3:
        return str(shape)
    return f"({', '.join(str(leaf) for _, leaf in leaves[:2])} and {len(leaves) - 2} more)"


def operand_names(view: View, place: RowPlace, graph: InstructionGraph) -> list[str]:
    """Return the names of the operands' makers, else of the operands; a number by its value."""
    rows = view.operand_rows(place.row)
    named = named_operands(view, place, graph)
    return [scalar_text(view, row) or maker or own for row, (own, maker) in zip(rows, named, strict=True)]


def named_operands(view: View, place: RowPlace, graph: InstructionGraph) -> Iterator[tuple[str, str]]:
    """Yield the name of each operand, and the maker of its value if the operand only hands it on, else ""."""
    rows = view.operand_rows(place.row)
    for operand, row in zip(view.operands(place.row), rows, strict=True):
        maker = graph.maker(RowPlace(place.computation, row)) if row is not None else None
        yield operand.name or "?", graph.name(maker) if maker is not None else ""


class InstructionFigures:
    """The costs of instructions in a step, from the table of kernels."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @cached_property
    def _kernels(self) -> Table:
        return kernels_table(self._context)

    @cached_property
    def _rows(self) -> dict[tuple[Value, Value], dict[str, Value]]:
        return {(record["line"], record["name"]): record for record in self._kernels.records_with_figures()}

    def kernel_row(self, place: RowPlace) -> Mapping[str, Value]:
        """Return the row of the kernel that an instruction is; empty if it is no kernel."""
        view = self._context.views.for_computation(place.computation)
        return self._rows.get((view.lines[place.row], view.names[place.row]), {})

    def sent(self, place: RowPlace) -> Value:
        """Return the bytes that a collective sends in all runs; None for other instructions."""
        view = self._context.views.for_computation(place.computation)
        return self._collectives.get((view.lines[place.row], view.names[place.row]), {}).get("executed_wire_bytes")

    @cached_property
    def _collectives(self) -> dict[tuple[Value, Value], dict[str, Value]]:
        return {(record["line"], record["name"]): record for record in sites(self._context).records_with_figures()}

    def words(self, place: RowPlace) -> Iterator[tuple[str, Parts]]:
        """Yield the work and time of all runs."""
        row, profile = self.kernel_row(place), self._context.on_machine.profile
        if not row:
            return
        yield "costs", self._work(row)
        if profile is not None:
            yield "time", self._time(self._collectives.get((row["line"], row["name"])) or row, profile.name)

    def _work(self, row: Mapping[str, Value]) -> Parts:
        flops, size = Amount(row["flops"], "flops"), Amount(row["bytes"], "bytes")
        accessed = bytes_name(self._context).removeprefix("bytes_").replace("_", " ")
        yield from sentence(f"{{}}, {{}} {accessed} in a step", flops, size)
        share, whole = self._share(row)
        if share is not None:
            yield from sentence(f", {{}} of {whole}", Amount(share, "share"))
        elif self._context.on_machine.known_step is not None:
            yield f", ? of {whole}"

    def _share(self, row: Mapping[str, Value]) -> tuple[Value, str]:
        """Return the share of a kernel as `top` shows it, and of what it is a share."""
        if "step_share" in row:
            return row["step_share"], "the step's estimate"
        name = next(column.page_name for column in self._kernels.columns if column.name == "share")
        return row["share"], _WHOLES[name]

    @staticmethod
    def _time(row: Mapping[str, Value], profile: str) -> Parts:
        """Yield the times of a kernel or a collective; nothing if none is known."""
        bound = row.get("bound_s")
        if bound is None:
            return
        yield from sentence("bound {} on {}", Amount(lower_bound(bound) or bound, "seconds"), profile)
        yield f", bound by {row['bound_by']}" if row.get("bound_by") else f", over {row['level']}" if row.get("level") else ""
        for name, words in _TIMES.items():
            if row.get(name) is not None:
                yield from sentence(words, Amount(row[name], "bytes_per_s" if name == "bus_bandwidth" else "seconds"))


_WHOLES = {
    "share_of_bound": "the bounds of all kernels",
    "share_of_flops": "the step's FLOPs",
    "share_of_bytes": "the step's bytes",
}
_TIMES = {
    "estimate_s": "; estimate {}",
    "bus_bandwidth": ", at {} of bus bandwidth",
    "estimate_exposed_s": "; {} of it exposed",
    "compiler_s": "; compiler's estimate {}",
}


def instructions_table(context: Context, places: Sequence[RowPlace], graph: InstructionGraph) -> Table:
    """Return one row per instruction. A page has the table if there are several."""
    describer, figures = Describer(context, graph), InstructionFigures(context)
    calls = context.call_graph
    runs_of = {name: calls.runs(name) if name in calls.calls else None for name in {place.computation for place in places}}
    rows = [_CountedRow(describer.describe(p), figures.kernel_row(p), runs_of[p.computation], figures.sent(p)) for p in places]
    is_unique = len({row.instruction.name for row in rows}) == len(rows)
    shown: dict[str, dict[str, Any]] = {
        "computation": {"detail": 4 if is_unique else 1},
        "accessed_bytes": {"page_name": bytes_name(context)},
    }
    return _INSTRUCTIONS.of(rows, columns=_INSTRUCTIONS.with_flags(shown), on_page=len(places) > 1)


class _CountedRow(NamedTuple):
    """An instruction with the row of its kernel, runs of its computation (None if that does not run), and bytes sent."""

    instruction: InstructionRow
    kernel: Mapping[str, Value]
    runs: Quantity | None
    sent: Value


_INSTRUCTIONS = TableSpec("show", "Instructions", page_rows=40).with_columns(
    Column("name", get=attrgetter("instruction.name")),
    Column("opcode", detail=2, get=attrgetter("instruction.opcode")),
    Column("shape", detail=2, width=20, get=attrgetter("instruction.shape")),
    Column("bytes", "bytes", detail=4, meaning="bytes of the result", get=attrgetter("instruction.size")),
    Column(
        "expression", width=40, detail=9, only_verbose=True, optional=True, get=lambda row: row.instruction.expression or None
    ),
    Column("computation", get=attrgetter("instruction.computation")),
    bounded("runs", "count", optional=True, summed=False),
    Column("flops", "flops", optional=True, get=lambda row: row.kernel.get("flops")),
    Column(
        "accessed_bytes",
        "bytes",
        optional=True,
        meaning="bytes read and written in one step",
        get=lambda row: row.kernel.get("bytes"),
    ),
    Column(
        "executed_wire_bytes",
        "bytes",
        optional=True,
        bounded=True,
        page_name="sent",
        meaning="bytes that one device sends in one step",
        get=attrgetter("sent"),
    ),
    Column("bound_s", "seconds", detail=1, optional=True, bounded=True, get=lambda row: row.kernel.get("bound_s")),
    Column("estimate_s", "seconds", optional=True, bounded=True, get=lambda row: row.kernel.get("estimate_s")),
    phase_column(attrgetter("instruction.phase"), detail=2),
    Column("op_name", detail=6, get=attrgetter("instruction.op_name")),
    Column("source", detail=4, get=attrgetter("instruction.source")),
    Column("line", "number", get=attrgetter("instruction.line")),
)

TABLES = (_INSTRUCTIONS,)
