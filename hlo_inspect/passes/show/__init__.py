"""One instruction: what it is, what feeds it, what reads it, and the ways between two of them."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.fusions import OPCODES
from hlo_inspect.analysis.phases import phases
from hlo_inspect.errors import UsageError
from hlo_inspect.graph.neighbourhood.neighbourhood import InstructionGraph, Neighbourhood, Ways, callers, graph_around
from hlo_inspect.graph.neighbourhood.selection import find_rows
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.instruction_rows import stacks_of
from hlo_inspect.passes.show.tables import instructions_table, neighbour_tables, way_tables
from hlo_inspect.passes.show.words import instruction_block, several_block, ways_block
from hlo_inspect.report.model import Section, Table


class Show(Pass):
    """One instruction: what it is, what feeds it, what reads it, which line of Python made it; the ways between two.

    NAME is an instruction as other commands name it, LINE its line in the input, PATTERN an opcode, or a text with *, which
    stands for any text, of names, opcodes and op_names. Where several instructions fit they are listed.

    What feeds and reads an instruction is shown to --depth steps. A step is from an array to one that is made of it: tuples,
    calls, bitcasts and the ends of asynchronous pairs are stepped through, a fusion is one instruction with the expression of
    its root, and the state of a loop is made of its initial values and of what the body returns. The way from the parameters
    is the shortest one from the nearest parameter, by each operand. --path A B shows the shortest ways from A to B.

    --format dot and mermaid draw what is shown, svg too with the extra [graph]. With --quick live ranges are left out, and
    phases that names leave open.
    """

    name = "show"
    takes_name = True
    asks_phases = True
    findings_of = "none"
    uses_profile = True
    formats = ("dot", "svg", "mermaid")
    wants = KERNEL_WANTS | phases.WANTS | Wants(opcodes=OPCODES, operands=OPCODES, entry=True, graph=True, checked=True)
    specs = ()

    def run(self, context: Context) -> Section:
        query = context.request
        if query.name is None:
            raise UsageError("show asks about an instruction: give its name, its line or a pattern")
        found = find_rows(context.module, context.views, query.name)
        if query.to is not None:
            ways = Ways(context.module, context.views, found, find_rows(context.module, context.views, query.to))
            return Section({}, way_tables(context, ways), _notes(ways.graph), ways_block(context, ways))
        if len(found) > 1:
            graph = graph_around(context.module, context.views, found, callers(context.views))
            return Section({}, [instructions_table(context, found, graph)], _notes(graph), several_block(context, found))
        around = Neighbourhood(context.module, context.views, found[0], query.depth)
        about = None if query.quick else (around.line, around.name)
        return Section({}, _tables(context, around), _notes(around.graph), instruction_block(context, around), about=about)


def _notes(graph: InstructionGraph) -> list[str]:
    return [] if graph.is_whole else ["show: the text has more calls than are followed; some ways are missing"]


def _tables(context: Context, around: Neighbourhood) -> Iterator[Table]:
    yield instructions_table(context, [around.place], around.graph)
    yield from neighbour_tables(context, around)
    yield from stacks_of([] if around.instruction is None else [around.instruction.attr("metadata")], context.module.frames)
