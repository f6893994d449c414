"""The tables of `show` around an instruction: its neighbours, the paths between two, and pictures of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.neighbourhood.instruction_graph import InstructionGraph
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.neighbourhood.neighbourhood import MAX_NEIGHBOURS, Neighbour, Neighbourhood
from hlo_inspect.graph.neighbourhood.paths import InstructionPaths
from hlo_inspect.hlo.values.shapes import Shape
from hlo_inspect.passes.instruction_rows import phase_column
from hlo_inspect.passes.show.show_tables import Describer, InstructionRow, instructions_table, shape_text
from hlo_inspect.report.table import Column, Table, number_of
from hlo_inspect.report.table_spec import TableSpec

_LONGEST_WAY, _WAY_ENDS = 12, 5
"""A longer way is written with its first and last instructions."""


# -- neighbours --------------------------------------------------------------------------------------------------------------


def tables_around(context: Context, around: Neighbourhood) -> Iterator[Table]:
    """Yield the instructions before and after it, and both as a picture."""
    describer = Describer(context, around.graph)
    feeds = _described(around, describer, around.feeds)
    reads = _described(around, describer, around.reads)
    for table, rows in ((_FEEDS, feeds), (_READS, reads)):
        yield table.of(rows, title=_title(table.title, around, len(rows)), on_page=around.depth > 0)
    yield from _direct(around)
    yield _parameter_paths_table(context, around)
    asked = describer.describe(around.place)
    sides = [(around.place, asked, "asked")]
    for side, neighbours, rows in (("feeds", around.feeds, feeds), ("reads", around.reads, reads)):
        sides += [(around.graph.places[neighbour.number], row, side) for neighbour, row in zip(neighbours, rows, strict=True)]
    yield from _picture(sides, around.edges)


class _DirectRow(NamedTuple):
    """An operand with its position, or a user, as the text has it."""

    number: int
    name: str | None
    shape: Shape | None
    opcode: str = ""
    line: int = 0


_SHAPE = Column("shape", get=lambda row: shape_text(row.shape))
_OPERANDS = TableSpec("operands", "Operands", on_page=False).with_columns(
    Column("number", "number", meaning="position among the operands"),
    Column("name"),
    _SHAPE,
)
_USERS = TableSpec("users", "Users", on_page=False).with_columns(
    Column("name"),
    Column("opcode"),
    _SHAPE,
    Column("line", "number"),
)


def _direct(around: Neighbourhood) -> Iterator[Table]:
    """Yield the operands and the users as the text has them."""
    view, row = around.view, around.row
    operands = enumerate(view.operands(row))
    yield _OPERANDS.of([_DirectRow(number, operand.name, view.operand_shape(row, number)) for number, operand in operands])
    users = view.users[row]
    yield _USERS.of([_DirectRow(u, view.names[u], view.shapes[u], view.opcodes[u], view.lines[u]) for u in users])


def _title(words: str, around: Neighbourhood, count: int) -> str:
    more = " or more" if count >= MAX_NEIGHBOURS else ""
    return f"{words}, within {number_of(around.depth, 'step')}: {count:,}{more} instruction{'' if count == 1 else 's'}"


def _described(around: Neighbourhood, describer: Describer, neighbours: Sequence[Neighbour]) -> list[InstructionRow]:
    graph = around.graph

    def name(number: int | None) -> str:
        return around.name if number is None else graph.name(number)

    return [describer.describe(graph.places[neighbour.number], neighbour.steps, name(neighbour.by)) for neighbour in neighbours]


def _spec_of_neighbours(name: str, title: str, by: str, meaning: str) -> TableSpec:
    columns = (
        Column("steps", "number", get=attrgetter("distance")),
        Column("name"),
        Column("opcode", detail=1),
        Column("shape", detail=1, width=24),
        Column("bytes", "bytes", detail=6, get=attrgetter("size")),
        Column(by, detail=1, meaning=meaning, get=attrgetter("by")),
        Column("expression", detail=7, width=40, optional=True, get=lambda row: row.expression or None),
        phase_column(attrgetter("phase"), detail=2),
        Column("computation", detail=8),
        Column("op_name", detail=9),
        Column("source", detail=3),
        Column("line", "number"),
    )
    return TableSpec(name, title).with_columns(*columns)


_FEEDS = _spec_of_neighbours("feeds", "Operands and their operands", "into", "instruction that reads it")
_READS = _spec_of_neighbours("reads", "Users and their users", "of", "instruction whose result it reads")


def _parameter_paths_table(context: Context, around: Neighbourhood) -> Table:
    own = around.graph.number(around.place)
    paths = [[*path, own] if own is not None and path[-1] != own else path for path in around.parameter_paths]
    rows = [_PathRow(context, around.graph, path) for path in paths]
    return _WAYS.of(rows, title=f"{_WAYS.title} from parameters", on_page=False)


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
    yield _WAYS.of([_PathRow(context, paths.graph, path) for path in paths.shortest])
    describer, places = Describer(context, paths.graph), paths.graph.places
    ends = {*paths.starts, *paths.goals}
    sides = [
        (places[number], describer.describe(places[number]), "asked" if places[number] in ends else "way")
        for number in paths.joined
    ]
    yield from _picture(sides, paths.edges)


class _PathRow(NamedTuple):
    context: Context
    graph: InstructionGraph
    path: Sequence[int]

    @property
    def lines(self) -> str:
        return " → ".join(str(self.graph.line(number)) for number in self.path)


_WAYS = TableSpec("ways", "Shortest paths").with_columns(
    Column("steps", "number", get=lambda row: len(row.path) - 1),
    Column("way", meaning="instructions of the path", get=lambda row: path_text(*row)),
    Column("lines", detail=9, meaning="lines of these instructions"),
)


# -- pictures ---------------------------------------------------------------------------------------------------------------


def _picture(
    sides: Sequence[tuple[RowPlace, InstructionRow, str]], edges: Sequence[tuple[RowPlace, RowPlace]]
) -> Iterator[Table]:
    """Yield the tables of a picture: the instructions, the nearest first, and the edges between them."""
    nodes: dict[RowPlace, _Node] = {}
    for place, row, side in sides:
        nodes.setdefault(place, _Node(len(nodes), row, side))
    yield _GRAPH_NODES.of(nodes.values())
    yield _GRAPH_EDGES.of(
        [(nodes[source].number, nodes[target].number) for source, target in edges if source in nodes and target in nodes]
    )


class _Node(NamedTuple):
    number: int
    instruction: InstructionRow
    side: str


_GRAPH_NODES = TableSpec("graph_nodes", "Instructions of the picture", on_page=False).with_columns(
    Column("node", "number", get=attrgetter("number")),
    Column("name", get=attrgetter("instruction.name")),
    Column("opcode", get=attrgetter("instruction.opcode")),
    Column("shape", get=attrgetter("instruction.shape")),
    Column("expression", optional=True, get=lambda node: node.instruction.expression or None),
    phase_column(attrgetter("instruction.phase")),
    Column("computation", get=attrgetter("instruction.computation")),
    Column("side"),
    Column("steps", "number", get=attrgetter("instruction.distance")),
    Column("line", "number", get=attrgetter("instruction.line")),
)
_GRAPH_EDGES = TableSpec("graph_edges", "Arrays of the picture", on_page=False).with_columns(
    Column("source", "number", get=itemgetter(0)), Column("target", "number", get=itemgetter(1))
)

TABLES = (_FEEDS, _READS, _OPERANDS, _USERS, _WAYS, _GRAPH_NODES, _GRAPH_EDGES)
