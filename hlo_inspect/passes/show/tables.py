"""The tables of `show`: instructions with their costs, the neighbours of one, and the paths between two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.graph.neighbourhood.expressions import FusionExpressions, scalar_text
from hlo_inspect.graph.neighbourhood.instruction_graph import InstructionGraph
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.neighbourhood.neighbourhood import MAX_NEIGHBOURS, Neighbour, Neighbourhood
from hlo_inspect.graph.neighbourhood.paths import InstructionPaths
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.shapes import Shape, array_leaves, total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.collectives.tables import sites
from hlo_inspect.passes.cost.times import bytes_name
from hlo_inspect.passes.instruction_rows import phase_column
from hlo_inspect.passes.top import kernels_table
from hlo_inspect.report.model import Amount, Parts, sentence
from hlo_inspect.report.table import Column, Table, Value, lower_bound, number_of

_LONGEST_WAY, _WAY_ENDS = 12, 5
"""A longer way is written with its first and last instructions."""


# -- one instruction --------------------------------------------------------------------------------------------------------


class _InstructionRow(NamedTuple):
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


class _Describer:
    """Rows of instructions. The operands of a fusion have the names of their makers."""

    def __init__(self, context: Context, graph: InstructionGraph) -> None:
        self._context = context
        self._graph = graph
        self._expressions = FusionExpressions(context.views)

    def describe(self, place: RowPlace, distance: int = 0, by: str = "") -> _InstructionRow:
        context = self._context
        view = context.views.for_computation(place.computation)
        labels = context.labels_of(view, place.row)
        shape = view.shapes[place.row]
        return _InstructionRow(
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
        return self._expressions.for_computation(callee, operand_names(view, place, self._graph))


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

    def _share(self, row: Mapping[str, Value]) -> tuple[Value, str]:
        """Return the share of a kernel as `top` shows it, and of what it is a share."""
        if row.get("step_share") is not None:
            return row["step_share"], "the step's estimate"
        name = next(column.page_name for column in self._kernels.columns if column.name == "share")
        return row["share"], _WHOLES[name]

    @staticmethod
    def _time(row: Mapping[str, Value], profile: str) -> Parts:
        """Yield the times of a kernel or a collective; nothing if none is known."""
        bound = lower_bound(row.get("bound_s"))
        if bound is None:
            return
        yield from sentence("bound {} on {}", Amount(bound, "seconds"), profile)
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
    describer, figures = _Describer(context, graph), InstructionFigures(context)
    calls = context.call_graph
    runs_of = {name: calls.runs(name) if name in calls.calls else None for name in {place.computation for place in places}}
    rows = [(describer.describe(place), figures.kernel_row(place), runs_of[place.computation]) for place in places]
    has_fusions = any(row[0].expression for row in rows)
    is_unique = len({row[0].name for row in rows}) == len(rows)
    columns = (
        Column("name", get=lambda row: row[0].name),
        Column("opcode", detail=2, get=lambda row: row[0].opcode),
        Column("shape", detail=1, width=20, get=lambda row: row[0].shape),
        Column("bytes", "bytes", detail=3, get=lambda row: row[0].size),
        Column(
            "expression",
            detail=1 if has_fusions else 9,
            width=40,
            optional=True,
            get=lambda row: row[0].expression or None,
        ),
        Column("computation", detail=4 if is_unique else 1, get=lambda row: row[0].computation),
        bounded("runs", "count", lambda row: row[2], 3, optional=True, summed=False),
        Column("flops", "flops", detail=3, optional=True, get=lambda row: row[1].get("flops")),
        Column(
            "accessed_bytes",
            "bytes",
            detail=3,
            optional=True,
            page_name=bytes_name(context),
            get=lambda row: row[1].get("bytes"),
        ),
        Column(
            "bound_s",
            "seconds",
            detail=3,
            optional=True,
            bounded=True,
            get=lambda row: row[1].get("bound_s"),
        ),
        phase_column(lambda row: row[0].phase, detail=2),
        Column("op_name", detail=6, get=lambda row: row[0].op_name),
        Column("source", detail=4, get=lambda row: row[0].source),
        Column("line", "number", get=lambda row: row[0].line),
    )
    return Table.of("show", "Instructions", columns, rows, on_page=len(places) > 1, page_rows=40)


# -- round one ---------------------------------------------------------------------------------------------------------------


def neighbour_tables(context: Context, around: Neighbourhood) -> Iterator[Table]:
    """Yield the instructions before and after it, and both as a picture."""
    describer = _Describer(context, around.graph)
    feeds = _described(around, describer, around.feeds)
    reads = _described(around, describer, around.reads)
    yield _neighbours(
        "feeds", _title("Operands and their operands", around, len(feeds)), "into", feeds, on_page=around.depth > 0
    )
    yield _neighbours("reads", _title("Users and their users", around, len(reads)), "of", reads, on_page=around.depth > 0)
    yield from _direct(around)
    yield _parameter_paths_table(context, around)
    asked = describer.describe(around.place)
    sides = [(around.place, asked, "asked")]
    for side, neighbours, rows in (("feeds", around.feeds, feeds), ("reads", around.reads, reads)):
        sides += [(around.graph.places[neighbour.number], row, side) for neighbour, row in zip(neighbours, rows, strict=True)]
    yield from _picture(sides, around.edges)


def _direct(around: Neighbourhood) -> Iterator[Table]:
    """Yield the operands and the users as the text has them."""
    view, row = around.view, around.row
    named = [(operand.name, view.operand_shape(row, number)) for number, operand in enumerate(view.operands(row))]
    columns = (
        Column("number", "number", get=lambda item: item[0]),
        Column("name", get=lambda item: item[1][0]),
        Column("shape", get=lambda item: shape_text(item[1][1])),
    )
    yield Table.of("operands", "Operands", columns, list(enumerate(named)), on_page=False)
    users = (
        Column("name", get=lambda user: view.names[user]),
        Column("opcode", get=lambda user: view.opcodes[user]),
        Column("shape", get=lambda user: shape_text(view.shapes[user])),
        Column("line", "number", get=lambda user: view.lines[user]),
    )
    yield Table.of("users", "Users", users, view.users[row], on_page=False)


def _title(words: str, around: Neighbourhood, count: int) -> str:
    more = " or more" if count >= MAX_NEIGHBOURS else ""
    return f"{words}, within {number_of(around.depth, 'step')}: {count:,}{more} instruction{'' if count == 1 else 's'}"


def _described(around: Neighbourhood, describer: _Describer, neighbours: Sequence[Neighbour]) -> list[_InstructionRow]:
    graph = around.graph

    def name(number: int | None) -> str:
        return around.name if number is None else graph.name(number)

    return [describer.describe(graph.places[neighbour.number], neighbour.steps, name(neighbour.by)) for neighbour in neighbours]


def _neighbours(name: str, title: str, by: str, rows: Sequence[_InstructionRow], *, on_page: bool) -> Table:
    columns = (
        Column("steps", "number", get=lambda row: row.distance),
        Column("name", get=lambda row: row.name),
        Column("opcode", detail=1, get=lambda row: row.opcode),
        Column("shape", detail=1, width=24, get=lambda row: row.shape),
        Column("bytes", "bytes", detail=6, get=lambda row: row.size),
        Column(by, detail=1, get=lambda row: row.by),
        Column("expression", detail=7, width=40, optional=True, get=lambda row: row.expression or None),
        phase_column(lambda row: row.phase, detail=2),
        Column("computation", detail=8, get=lambda row: row.computation),
        Column("op_name", detail=9, get=lambda row: row.op_name),
        Column("source", detail=3, get=lambda row: row.source),
        Column("line", "number", get=lambda row: row.line),
    )
    return Table.of(name, title, columns, rows, on_page=on_page)


def _parameter_paths_table(context: Context, around: Neighbourhood) -> Table:
    own = around.graph.number(around.place)
    paths = [[*path, own] if own is not None and path[-1] != own else path for path in around.parameter_paths]
    return _paths_table(context, around.graph, "Shortest paths from parameters", paths, on_page=False)


# -- ways -------------------------------------------------------------------------------------------------------------------


def path_text(context: Context, graph: InstructionGraph, path: Sequence[int]) -> str:
    """Return a path as `param 2 weights['w1'] → convert.3 → all-gather.1`; the middle of a long one is left out."""
    names = [_name(context, graph, number) for number in path]
    if len(names) > _LONGEST_WAY:
        left_out = len(names) - 2 * _WAY_ENDS
        names = [*names[:_WAY_ENDS], f"… {left_out} more …", *names[-_WAY_ENDS:]]
    return " → ".join(names)


def _name(context: Context, graph: InstructionGraph, number: int) -> str:
    place, view = graph.places[number], graph.view(number)
    entry = context.module.entry
    if view.opcodes[place.row] != "parameter" or entry is None or place.computation != entry.name:
        return graph.name(number)
    parameter = view.parameter_number(place.row)
    path = next((leaf.path for leaf in context.interface.parameters if leaf.number == parameter), "")
    return f"param {parameter} {path or graph.name(number)}"


def path_tables(context: Context, paths: InstructionPaths) -> Iterator[Table]:
    """Yield the two ends, the shortest paths, and a picture of all."""
    yield replace(
        instructions_table(context, [*paths.starts, *paths.goals], paths.graph),
        on_page=len(paths.starts) + len(paths.goals) > 2,
    )
    yield _paths_table(context, paths.graph, "Shortest paths", paths.shortest, on_page=True)
    describer, places = _Describer(context, paths.graph), paths.graph.places
    ends = {*paths.starts, *paths.goals}
    sides = [
        (places[number], describer.describe(places[number]), "asked" if places[number] in ends else "way")
        for number in paths.joined
    ]
    yield from _picture(sides, paths.edges)


def _paths_table(
    context: Context, graph: InstructionGraph, title: str, paths: Sequence[Sequence[int]], *, on_page: bool
) -> Table:
    columns = (
        Column("steps", "number", get=lambda path: len(path) - 1),
        Column("way", get=lambda path: path_text(context, graph, path)),
        Column("lines", detail=9, get=lambda path: " → ".join(str(graph.line(number)) for number in path)),
    )
    return Table.of("ways", title, columns, paths, on_page=on_page)


# -- pictures ---------------------------------------------------------------------------------------------------------------


def _picture(
    sides: Sequence[tuple[RowPlace, _InstructionRow, str]], edges: Sequence[tuple[RowPlace, RowPlace]]
) -> Iterator[Table]:
    """Yield the tables of a picture: the instructions, the nearest first, and the edges between them."""
    nodes: dict[RowPlace, tuple[int, _InstructionRow, str]] = {}
    for place, row, side in sides:
        nodes.setdefault(place, (len(nodes), row, side))
    columns = (
        Column("node", "number", get=lambda node: node[0]),
        Column("name", get=lambda node: node[1].name),
        Column("opcode", get=lambda node: node[1].opcode),
        Column("shape", get=lambda node: node[1].shape),
        Column("expression", optional=True, get=lambda node: node[1].expression or None),
        phase_column(lambda node: node[1].phase),
        Column("computation", get=lambda node: node[1].computation),
        Column("side", get=lambda node: node[2]),
        Column("steps", "number", get=lambda node: node[1].distance),
        Column("line", "number", get=lambda node: node[1].line),
    )
    yield Table.of("graph_nodes", "Instructions of the picture", columns, list(nodes.values()), on_page=False)
    joined = [(nodes[source][0], nodes[target][0]) for source, target in edges if source in nodes and target in nodes]
    ends = (Column("source", "number", get=lambda edge: edge[0]), Column("target", "number", get=lambda edge: edge[1]))
    yield Table.of("graph_edges", "Arrays of the picture", ends, joined, on_page=False)
