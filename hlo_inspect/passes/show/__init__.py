"""An instruction as text: its kind, operands and users, and the paths between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.fusion_contents import OPCODES
from hlo_inspect.analysis.memory.array_sources import ArraySource
from hlo_inspect.analysis.memory.buffer_life import find_lives
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, printed
from hlo_inspect.errors import UsageError
from hlo_inspect.graph.loops import Loop
from hlo_inspect.graph.neighbourhood.expressions import fusion_expression
from hlo_inspect.graph.neighbourhood.instruction_graph import InstructionGraph, callers, graph_around
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace, find_rows
from hlo_inspect.graph.neighbourhood.neighbourhood import Neighbourhood
from hlo_inspect.graph.neighbourhood.paths import InstructionPaths
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.graph.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction, operands_end
from hlo_inspect.hlo.values.device_groups import DeviceGroups
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT, UNKNOWN, origin_of, scope_of
from hlo_inspect.hlo.values.shapes import Shape, array_leaves, total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.instruction_rows import CALL_STACKS, stacks_of
from hlo_inspect.passes.params import index_text
from hlo_inspect.passes.show import neighbour_tables
from hlo_inspect.passes.show import reshard_table as reshards
from hlo_inspect.passes.show import show_tables as tables
from hlo_inspect.passes.show import source_line_table as source_lines
from hlo_inspect.passes.show.neighbour_tables import path_tables, path_text, tables_around
from hlo_inspect.passes.show.reshard_table import CollectiveReshards
from hlo_inspect.passes.show.show_tables import (
    InstructionFigures,
    instructions_table,
    named_operands,
    operand_names,
    shape_text,
)
from hlo_inspect.passes.show.source_line_table import (
    LineFigures,
    asks_for_source,
    by_cost,
    find_source_lines,
    source_lines_table,
    source_rows,
)
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Table, number_of


class Show(Pass):
    """Show one instruction: its operands, users and source line; or a source line; or the paths between two.

    NAME is an instruction as other commands name it, LINE its line in the input. PATTERN is an opcode, or a text in which *
    stands for any text; it is matched with names, opcodes and op_names. If several instructions match, they are listed.

    A source line or file, as `gen.py:160` or `train/*.py`, lists its instructions, with their cost, sent bytes and bytes at the
    peak.

    Operands and users are shown up to --depth steps away. A step leads from an array to an array computed from it. Tuples,
    calls, bitcasts and the ends of asynchronous pairs do not count as steps. A fusion is one instruction, shown with its root
    expression. The state of a loop depends on its initial values and on the result of the body. For each operand the page
    shows the shortest path from a parameter. --path A B shows the shortest paths from A to B.

    An all-gather or all-to-all of a dump directory shows the two shardings that disagree, by the text before partitioning.

    --format dot and mermaid draw the page, svg too with the extra [graph]. --quick skips live ranges, and phases
    that op_names do not decide.
    """

    name = "show"
    takes_name = True
    asks_phases = True
    findings_of = "none"
    uses_profile = True
    formats = ("dot", "svg", "mermaid")
    wants = KERNEL_WANTS | phases.WANTS | Wants(opcodes=OPCODES, operands=OPCODES, entry=True, graph=True, checked=True)
    tables = (*tables.TABLES, *neighbour_tables.TABLES, *source_lines.TABLES, *reshards.TABLES, CALL_STACKS)

    def run(self, context: Context) -> Section:
        query = context.request
        if query.name is None:
            raise UsageError("show needs an instruction: give its name, its line or a pattern")
        if query.to is None and asks_for_source(context, query.name):
            return _source_section(context, find_source_lines(context, query.name))
        places = find_rows(context.module, context.views, query.name)
        if query.to is not None:
            paths = InstructionPaths(context.module, context.views, places, find_rows(context.module, context.views, query.to))
            return Section({}, path_tables(context, paths), _notes(paths.graph), path_rows(context, paths))
        if len(places) > 1:
            graph = graph_around(context.module, context.views, places, callers(context.views))
            return Section({}, [instructions_table(context, places, graph)], _notes(graph), several_block(context, places))
        around = Neighbourhood(context.module, context.views, places[0], query.depth)
        about = None if query.quick else (around.line, around.name)
        reshards = CollectiveReshards.of(context, around.instruction)
        rows = instruction_block(context, around, reshards)
        return Section({}, _tables(context, around, reshards), [*_notes(around.graph), *reshards.notes], rows, about=about)


def _source_section(context: Context, lines: Sequence[LineFigures]) -> Section:
    """Return the section of source lines: their sums, and their instructions, the most expensive first."""
    places = by_cost(context, [place for line in lines for place in line.places])
    graph = graph_around(context.module, context.views, places, callers(context.views))
    tables = (source_lines_table(context, lines), instructions_table(context, places, graph))
    return Section({}, tables, _notes(graph), source_rows(lines))


def _notes(graph: InstructionGraph) -> list[str]:
    return [] if graph.is_whole else ["show: the module has too many calls to follow; some paths are missing"]


def _tables(context: Context, around: Neighbourhood, reshards: CollectiveReshards) -> Iterator[Table]:
    yield instructions_table(context, [around.place], around.graph)
    yield from reshards.tables()
    yield from tables_around(context, around)
    yield from stacks_of([] if around.instruction is None else [around.instruction.attr("metadata")], context.module.frames)


_MOST_PATHS, _MOST_OUTPUTS = 3, 8
_MOST_NAMED, _MOST_FRAMES, _MOST_BUFFERS = 6, 4, 3
_MOST_IDS = 1024
_LEFT_OUT = frozenset(
    {
        "async_execution_thread", "backend_config", "body", "branch_computations", "calls", "channel_id", "condition",
        "control-predecessors", "false_computation", "frontend_attributes", "kind", "metadata", "origin",
        "output_to_operand_aliasing", "replica_groups", "sharding", "source_target_pairs", "to_apply", "true_computation",
        "use_global_device_ids",
    }
)  # fmt: skip
_LONGEST_ATTRIBUTE, _LONGEST_NAME = 100, 300


def instruction_block(context: Context, around: Neighbourhood, reshards: CollectiveReshards) -> Iterator[HeadlineRow]:
    """Yield the facts of one instruction that the text and the analyses know; empty rows are left out."""
    view, row = around.view, around.row
    yield HeadlineRow("", (f"{around.name}: {_title(around)}",))
    yield HeadlineRow("result", tuple(_shape_words(view.shapes[row])))
    if view.operand_rows(row):
        yield HeadlineRow("operands", (_operands_text(view, row, list(named_operands(view, around.place, around.graph))),))
    labelled = (*_text_rows(context, around), ("reshards", reshards.words()), *_step_rows(context, around))
    for label, parts in (*labelled, *_neighbour_rows(context, around)):
        said = tuple(parts)
        if any(said):
            yield HeadlineRow(label, said)


def _title(around: Neighbourhood) -> str:
    """Return the opcode, the line, and the computation that holds the instruction."""
    computation = around.place.computation
    opcode = around.view.opcodes[around.row]
    kind = around.instruction.attr("kind") if around.instruction is not None and opcode == "fusion" else None
    if around.is_in_entry:
        place = f"the entry {computation}"
    else:
        callers = [f"{caller.name} (line {caller.line})" for caller in around.callers]
        place = computation + (f", which {_listed(callers, 3)} call{'s' if len(callers) == 1 else ''}" if callers else "")
    return f"{opcode}{f' {kind}' if kind else ''} on line {around.line}, in {place}"


def _text_rows(context: Context, around: Neighbourhood) -> Iterator[tuple[str, Parts]]:
    """Yield the rows of the instruction's own line."""
    instruction = around.instruction
    if instruction is None:
        return
    if instruction.opcode == "constant":
        yield "value", _said(_short(instruction.literal))
    if instruction.opcode == "parameter" and not around.is_in_entry:
        yield "number", _said(instruction.literal)
    for attribute, callees in groupby(instruction.called, lambda called: called.attribute):
        called = list(callees)
        if called[0].role == "fused":
            names = operand_names(around.view, around.place, around.graph)
            yield "computes", _said(fusion_expression(context.views, called[0].name, names))
        else:
            yield attribute.replace("_", " ").removesuffix(" computations"), _said(_listed([callee.name for callee in called]))
    yield "attributes", _said(_attributes_text(instruction))
    predecessors = instruction.attr("control-predecessors")
    yield "waits for", _said(_listed(predecessors or ()))


def _step_rows(context: Context, around: Neighbourhood) -> Iterator[tuple[str, Parts]]:
    """Yield the rows of a step: groups, runs, figures, phase, parameter, outputs and memory."""
    instruction = around.instruction
    if instruction is None:
        return
    for collective, axis in zip(context.collectives, context.axes, strict=True):
        if instruction.line in {collective.start.line, collective.inner.line}:
            yield "groups", _collective_words(collective, axis)
            break
    if around.place.computation in context.call_graph.calls:
        yield "runs", _runs_words(context, around.place.computation)
    yield from InstructionFigures(context).words(around.place)
    yield "phase", _said(_phase_text(context, instruction))
    for leaf in context.shardings.interface.parameters:
        if leaf.instruction is not None and leaf.line == instruction.line:
            yield "parameter", _said(_parameter_text(context, leaf))
    outputs = [index_text(index) for index in around.outputs]
    yield "output", _said(f"of the program at {_listed(outputs, _MOST_OUTPUTS)}" if outputs else "")
    device = context.memory.device if not context.request.quick else None
    if device is not None:
        yield "memory", _buffer_words(device, around.name, around.line)
    yield "op_name", _said(_scope_text(instruction))
    yield "source", _said(_source_text(context, instruction))
    if not context.request.quick:
        yield "elements", _said(_elements_text(context, around, instruction.shape))


def _neighbour_rows(context: Context, around: Neighbourhood) -> Iterator[tuple[str, Parts]]:
    """Yield the users, and the paths that lead to the instruction."""
    view = around.view
    yield "used by", _said(_listed([view.names[user] for user in view.users[around.row]]))
    for number, path in enumerate(around.parameter_paths[:_MOST_PATHS]):
        yield "and from" if number else "from", _said(f"{path_text(context, around.graph, path)} → {around.name}")


def _said(text: str) -> Parts:
    if text:
        yield text


# -- several ----------------------------------------------------------------------------------------------------------------


def several_block(context: Context, places: Sequence[RowPlace]) -> Iterator[HeadlineRow]:
    """Say that several instructions fit."""
    names = {context.views.for_computation(place.computation).names[place.row] for place in places}
    what = f"are called {next(iter(names))}" if len(names) == 1 else f"match {context.request.name!r}"
    yield HeadlineRow("", (Amount(len(places), "count", "instruction"), f" {what}; give the line of one for details"))


def path_rows(context: Context, paths: InstructionPaths) -> Iterator[HeadlineRow]:
    """Say if there is a path, and its length."""
    asked, to = context.request.name, context.request.to
    if not paths.shortest:
        yield HeadlineRow("", (f"no path from {asked} to {to}, nor from {to} to {asked}",))
        return
    if paths.is_backwards:
        yield HeadlineRow("", (f"no path from {asked} to {to}; from {to} to {asked}:",))
    steps = len(paths.shortest[0]) - 1
    yield HeadlineRow("shortest", (Amount(steps, "count", "step"), f": {path_text(context, paths.graph, paths.shortest[0])}"))
    yield HeadlineRow("all paths", (Amount(len(paths.joined), "count", "instruction"), " on these paths"))


# -- texts ---------------------------------------------------------------------------------------------------------------


def _shape_words(shape: Shape | None) -> Parts:
    """Yield a shape with its bytes."""
    size = Amount(total(leaf.array_bytes for _, leaf in array_leaves(shape)), "bytes")
    yield from sentence("{}, {}", shape_text(shape), size) if shape is not None else (shape_text(shape),)


def _listed(texts: Sequence[str], most: int = _MOST_NAMED) -> str:
    """Return the first of several texts, and the number of the others."""
    return _with_rest(texts[:most], len(texts))


def _with_rest(shown: Sequence[str], count: int) -> str:
    """Join texts, and add the number of those that are left out."""
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _operands_text(view: View, row: int, named: Sequence[tuple[str, str]]) -> str:
    """Return the operands with their shapes. `named` has each name, and the maker of a value that is only handed on."""
    shapes = [shape_text(view.operand_shape(row, number)) for number in range(min(len(named), _MOST_NAMED))]
    shown = [f"{name}{f' (of {maker})' if maker else ''} {shape}" for (name, maker), shape in zip(named, shapes, strict=False)]
    return _with_rest(shown, len(named))


def _attributes_text(instruction: Instruction) -> str:
    """Return the attributes that say what an instruction does, as they are printed."""
    try:
        attributes = list(tokens.attributes(instruction.tail, operands_end(instruction.tail) + 1))
    except tokens.ScanError:
        return ""
    shown = [f"{name}={_short(text)}" for name, text in attributes if name not in _LEFT_OUT]
    return ", ".join(shown)


def _short(text: str, longest: int = _LONGEST_ATTRIBUTE) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= longest else f"{text[:longest]}…"


# -- communication ----------------------------------------------------------------------------------------------------------


def _groups_text(collective: Collective, axis: str | None) -> str:
    """Return the device groups of a collective: `4 groups of 2 devices along d0: {{0,4},{1,5},{2,6},{3,7}}`."""
    along = f" along {axis}" if axis is not None else ""
    if collective.properties.names_pairs:
        return f"pairs of devices{along}: {_short(collective.source_target_pairs)}"
    members = collective.participants
    if members.size is None:
        return f"groups of an unknown size{along}: {_short(collective.replica_groups)}"
    if members.listed is None:
        return f"one group of all {members.size} devices{along}"
    listed = members.listed  # compact groups have one size and need not be expanded
    number = max(listed.count // max(listed.sizes), 1) if members.uniform else len(listed.groups)
    at_most = "" if members.uniform else "up to "
    groups = f"{number} group{'s' if number > 1 else ''} of {at_most}{members.size} devices"
    of_replicas = " (ids of replicas, each with all its partitions)" if max(listed.sizes) < members.size else ""
    return f"{groups}{along}: {_printed_groups(collective, listed)}{of_replicas}"


def _printed_groups(collective: Collective, groups: DeviceGroups) -> str:
    """Return the groups as printed, or written out if they name axes of a mesh, which mean nothing outside of the text."""
    if groups.mesh is None:
        return _short(collective.replica_groups)
    if groups.count > _MOST_IDS:
        return f"of a mesh of {groups.count} devices"
    return _short("{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups.groups) + "}")


def _collective_words(collective: Collective, axis: str | None) -> Parts:
    """Yield the figures of a collective: groups, reduction, asynchrony, and the bytes that one device sends."""
    if not collective.is_point_to_point:
        yield _groups_text(collective, axis)
    if collective.reduction:
        yield f"; reduces by {collective.reduction}"
    if collective.is_async:
        yield "; asynchronous"
    if not collective.is_point_to_point:
        amounts = Amount(collective.operand_bytes, "bytes"), Amount(collective.wire_bytes, "bytes")
        yield from sentence("; takes {}, sends {}", *amounts)


# -- how often and for what -------------------------------------------------------------------------------------------------


def _runs_words(context: Context, computation: str) -> Parts:
    """Yield the runs of a computation in a step, and its loops."""
    graph = context.call_graph
    bounds = graph.runs(computation)
    yield from sentence("{} in a step", Amount(bounds, "count"))
    loops = list(graph.loops_around(computation))
    if loops:
        yield f", in {' < '.join(_loop_text(loop) for loop in loops)}"


def _loop_text(loop: Loop) -> str:
    """Return a loop with its iterations: `while.3 (4 iterations, line 20)`."""
    iterations = number_of(loop.trip_count, "iteration") if loop.trip_count is not None else "? iterations"
    return f"{loop.instruction.name} ({iterations}, line {loop.instruction.line})"


def _phase_text(context: Context, instruction: Instruction) -> str:
    """Return the phase and its source; empty if it is unknown."""
    phase = context.phases.for_instruction(instruction)
    if phase.phase in {UNKNOWN, NOT_SOUGHT}:
        return ""
    source = {"name": ", by its op_name", "graph": ", by the graph of values"}.get(phase.phase_from, "")
    return f"{phase.phase}{source}{f'; also for {phase.also_phase}' if phase.also_phase else ''}"


def _scope_text(instruction: Instruction) -> str:
    """Return the op_name as a path of scopes."""
    metadata = instruction.attr("metadata")
    if metadata is None:
        return ""
    return _short(" / ".join(scope_of(metadata.op_name).path) or metadata.op_name, _LONGEST_NAME)


def _source_text(context: Context, instruction: Instruction) -> str:
    """Return the line of the program, and the calls that led to it, innermost first."""
    origin = origin_of(instruction.attr("metadata"), context.module.frames)
    if not origin.stack:
        return origin.source
    frames = [f"{frame.place} in {frame.function}" if frame.function else frame.place for frame in origin.stack[:_MOST_FRAMES]]
    more = len(origin.stack) - len(frames)
    stack = f"{' < '.join(frames)}{f' and {more} more' if more else ''}"
    return stack if origin.source == origin.stack[0].place else f"{origin.source}, inlined into {stack}"


def _elements_text(context: Context, around: Neighbourhood, shape: Shape | None) -> str:
    """Return the sources of a result's elements that are not the instruction's own, as `memory` shows them."""
    own = context.labels_of(around.view, around.row)
    sources = [context.array_sources.get((*around.place, index)) for index, _ in array_leaves(shape)]
    others = [source for source in sources if source is not None and source.labels.op_name != own.op_name]
    return _listed(list(dict.fromkeys(map(_element_text, others))))


def _element_text(source: ArraySource) -> str:
    if source.is_copy:
        return f"copied from parameter {source.parameter}{f', {source.path}' if source.path else ''}"
    scope = source.labels.scope
    return f"made at {printed(source.labels.source)}{f' in {scope}' if scope not in {NOT_PRINTED, NO_SCOPE} else ''}"


# -- memory -----------------------------------------------------------------------------------------------------------------


def _parameter_text(context: Context, leaf: ParameterLeaf) -> str:
    """Return the path of a parameter, its role, how it is divided, and if it is donated."""
    parts = [f"number {leaf.number}"]
    if leaf.path:
        parts.append(leaf.path)
    role = context.optimizer.roles.get((leaf.number, leaf.index)) if not context.request.quick else None
    if role is not None:
        parts.append(role.replace("_", " "))
    spec = context.partition_specs.text(leaf.sharding, None if leaf.index else leaf.instruction)
    if spec:
        parts.append(f"divided {spec}" if spec != "replicated" else spec)
    if leaf.alias is not None:
        parts.append(f"donated to output {{{','.join(map(str, leaf.alias.output_index))}}}")
    elif leaf.donor:
        parts.append("donated")
    else:
        parts.append(f"not donated: {leaf.kept_because}" if leaf.kept_because else "not donated")
    return ", ".join(parts)


def _buffer_words(device: DeviceMemory, name: str, line: int) -> Parts:
    """Yield the buffers of an instruction's result: their bytes and when they live; nothing if it has none."""
    lives = [life for life in find_lives(device, name) if device.place(device.values.times[life.live.value]).line == line]
    lives.sort(key=lambda life: life.live.bytes, reverse=True)
    for number, life in enumerate(lives[:_MOST_BUFFERS]):
        yield from sentence("; {}" if number else "{}", Amount(life.live.bytes, "bytes"))
        yield f" live from {life.start} to {life.end}"
        if device.peak_time is not None and life.start <= device.peak_time <= life.end:
            yield ", also at the peak"
    rest = lives[_MOST_BUFFERS:]
    if rest:
        yield from sentence(f"; {len(rest):,} more of {{}}", Amount(sum(life.live.bytes for life in rest), "bytes"))
    if lives:
        yield f" (schedule positions 0 to {device.schedule.end})"
