"""Instructions in words: what a page says of one line of the text in a few short lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.buffer_life import find_lives
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.op_names import UNKNOWN, origin_of, scope_of
from hlo_inspect.analysis.parameters import ParameterLeaf
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.device_groups import DeviceGroups
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.operands import operands_end
from hlo_inspect.hlo.shapes import Shape, array_leaves, total
from hlo_inspect.report.model import Amount

Words = Iterator[str | Amount]

MOST_NAMED, MOST_FRAMES, MOST_BUFFERS = 6, 4, 3
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


def shape_text(shape: Shape | None) -> str:
    """A shape; of a tuple of many arrays the first ones and how many more there are."""
    leaves = array_leaves(shape)
    if shape is None:
        return "?"
    if len(leaves) <= 3:
        return str(shape)
    return f"({', '.join(str(leaf) for _, leaf in leaves[:2])} and {len(leaves) - 2} more)"


def shape_words(shape: Shape | None) -> Words:
    """A shape with its bytes."""
    yield shape_text(shape)
    if shape is not None:
        yield ", "
        yield Amount(total(leaf.array_bytes for _, leaf in array_leaves(shape)), "bytes")


def listed(texts: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first of several texts, and how many more there are."""
    return with_rest(texts[:most], len(texts))


def with_rest(shown: Sequence[str], count: int) -> str:
    """Texts, and how many more of all there are."""
    more = count - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def operands_text(view: View, row: int, named: Sequence[tuple[str, str]]) -> str:
    """The operands with their shapes; `named` has the name of each, and of what makes it where it only hands that on."""
    shapes = [shape_text(view.operand_shape(row, number)) for number in range(min(len(named), MOST_NAMED))]
    shown = [f"{name}{f' (of {maker})' if maker else ''} {shape}" for (name, maker), shape in zip(named, shapes, strict=False)]
    return with_rest(shown, len(named))


def attributes_text(instruction: Instruction) -> str:
    """The attributes that say what an instruction does, as they are printed."""
    try:
        found = list(tokens.attributes(instruction.tail, operands_end(instruction.tail) + 1))
    except tokens.ScanError:
        return ""
    shown = [f"{name}={short(text)}" for name, text in found if name not in _LEFT_OUT]
    return ", ".join(shown)


def short(text: str, longest: int = _LONGEST_ATTRIBUTE) -> str:
    """The beginning of a long text."""
    return text if len(text) <= longest else f"{text[:longest]}…"


# -- communication ----------------------------------------------------------------------------------------------------------


def groups_text(collective: Collective, axis: str | None) -> str:
    """The device groups of a collective: `4 groups of 2 devices along d0: {{0,4},{1,5},{2,6},{3,7}}`."""
    along = f" along {axis}" if axis is not None else ""
    if collective.kind == "collective-permute":
        return f"pairs of devices{along}: {short(collective.source_target_pairs)}"
    members = collective.participants
    if members.size is None:
        return f"groups of an unknown size{along}: {short(collective.replica_groups)}"
    if members.listed is None:
        return f"one group of all {members.size} devices{along}"
    listed = members.listed  # compact groups are of one size: nothing has to be written out
    number = max(listed.count // max(listed.sizes), 1) if members.uniform else len(listed.groups)
    at_most = "" if members.uniform else "up to "
    groups = f"{number} group{'s' if number > 1 else ''} of {at_most}{members.size} devices"
    return f"{groups}{along}: {_printed_groups(collective, listed)}"


def _printed_groups(collective: Collective, groups: DeviceGroups) -> str:
    """The groups as they are printed; written out where they name axes of a mesh, which mean nothing outside of the text."""
    if groups.mesh is None:
        return short(collective.replica_groups)
    if groups.count > _MOST_IDS:
        return f"of a mesh of {groups.count} devices"
    return short("{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups.groups) + "}")


def collective_words(collective: Collective, axis: str | None) -> Words:
    """What a collective does: groups, reduction, whether it is asynchronous, and what one device sends."""
    if not collective.is_point_to_point:
        yield groups_text(collective, axis)
    if collective.reduction:
        yield f"; reduces by {collective.reduction}"
    if collective.is_async:
        yield "; asynchronous"
    if not collective.is_point_to_point:
        yield "; takes "
        yield Amount(collective.operand_bytes, "bytes")
        yield ", sends "
        yield Amount(collective.wire_bytes, "bytes")


# -- how often and for what -------------------------------------------------------------------------------------------------


def runs_words(context: Context, computation: str) -> Words:
    """How often a computation runs in one run of the program, and in which loops."""
    graph = context.call_graph
    bounds = graph.runs(computation)
    yield Amount(bounds.exact, "count", at_least=bounds.least)
    yield " in one run of the program"
    loops = list(graph.loops_around(computation))
    if loops:
        yield f", in the loop {' in '.join(f'{loop.name} (line {loop.line})' for loop in loops)}"


def phase_text(context: Context, instruction: Instruction) -> str:
    """The phase and where it comes from; empty where it is unknown."""
    found = context.phases.of(instruction)
    if found.phase == UNKNOWN:
        return ""
    told = {"name": ", by its op_name", "graph": ", by the graph of values"}.get(found.phase_from, "")
    return f"{found.phase}{told}{f'; also for {found.also_phase}' if found.also_phase else ''}"


def scope_text(instruction: Instruction) -> str:
    """The op_name as a path of scopes."""
    metadata = instruction.attr("metadata")
    if metadata is None:
        return ""
    return short(" / ".join(scope_of(metadata.op_name).path) or metadata.op_name, _LONGEST_NAME)


def source_text(context: Context, instruction: Instruction) -> str:
    """The line of the program, and the calls that led to it, innermost first."""
    found = origin_of(instruction, context.module.frames)
    if not found.stack:
        return found.source
    frames = [f"{frame.place} in {frame.function}" if frame.function else frame.place for frame in found.stack[:MOST_FRAMES]]
    more = len(found.stack) - len(frames)
    stack = f"{' < '.join(frames)}{f' and {more} more' if more else ''}"
    return stack if found.source == found.stack[0].place else f"{found.source}, by way of {stack}"


# -- memory -----------------------------------------------------------------------------------------------------------------


def parameter_text(context: Context, leaf: ParameterLeaf) -> str:
    """What a parameter is to the program: its path, its role, how it is divided, and whether it is donated."""
    parts = [f"number {leaf.number}"]
    if leaf.path:
        parts.append(leaf.path)
    role = context.optimizer.roles.get((leaf.number, leaf.index)) if not context.query.quick else None
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


def buffer_words(device: DeviceMemory, name: str, line: int) -> Words:
    """The buffers of what an instruction returns: their bytes, and from when to when they live; nothing where it has none."""
    lives = [life for life in find_lives(device, name) if device.place(device.values.times[life.live.value]).line == line]
    lives.sort(key=lambda life: life.live.bytes, reverse=True)
    for number, life in enumerate(lives[:MOST_BUFFERS]):
        yield "; " if number else ""
        yield Amount(life.live.bytes, "bytes")
        yield f" live from {life.start} to {life.end}"
        if device.peak_time is not None and life.start <= device.peak_time <= life.end:
            yield ", at the peak too"
    rest = lives[MOST_BUFFERS:]
    if rest:
        yield f"; {len(rest):,} more of "
        yield Amount(sum(life.live.bytes for life in rest), "bytes")
    if lives:
        yield f" (the schedule goes from 0 to {device.schedule.end})"
