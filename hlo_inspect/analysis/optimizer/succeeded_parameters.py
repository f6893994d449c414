"""The entry parameters of which an output is the new value, by data flow: what a step can donate without a loss.

In a step that updates weights these are the arrays of its training state. In any other program they are the arrays that it
writes a part of and returns, such as the cache of a decode step: dynamic-update-slices and scatters, also in the body of a
loop; and those whose new values take no matrix product, no reduction and no other device. An output that is only of a
parameter's shape, as in a forward pass, is not its new value.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.frames import Frames
from hlo_inspect.analysis.optimizer.graph import Index, Place
from hlo_inspect.analysis.optimizer.overview import Overview
from hlo_inspect.analysis.parameters import Interface
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS

IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_NOT_LOCAL = frozenset({*COLLECTIVE_KINDS, "opaque"})
MAX_WRITES = 200  # parts that are written of one array
MAX_LOOPS = 3  # loops in loops


def succeeded_parameters(module: Module, overview: Overview, interface: Interface) -> set[tuple[int, Index]]:
    """Numbers and indices of those parameters."""
    if overview.rows:
        return _state(overview) - _resharded(overview)
    frames = overview.updates.flow.frames
    frame = frames.open(module.entry.name) if module.entry is not None else None
    if frame is None:
        return set()
    written = (_written(frames, frames.root(frame, output.index), MAX_LOOPS) for output in interface.outputs)
    return {one for one in written if one is not None} | (_local(overview) - _resharded(overview))


def _state(overview: Overview) -> set[tuple[int, Index]]:
    """The training state: what rules say, and where one does not explain an update all that outputs succeed by data flow."""
    if all(row.rule != "unknown" for row in overview.rows):
        return set(overview.roles)
    parameters = overview.updates.parameters
    sources = (array.source for matcher in overview.updates.matchers for array in matcher.step.arrays)
    return {parameters[source] for source in sources if source in parameters}


def _resharded(overview: Overview) -> set[tuple[int, Index]]:
    """The parameters whose new values come back in another shape, which cannot take their buffers."""
    parameters = overview.updates.parameters
    arrays = (array for matcher in overview.updates.matchers for array in matcher.step.arrays if array.is_resharded)
    return {parameters[array.source] for array in arrays if array.source in parameters}


def _local(overview: Overview) -> set[tuple[int, Index]]:
    """What outputs succeed without matrix products, reductions and other devices."""
    graph, parameters = overview.updates.flow.graph, overview.updates.parameters
    arrays = [array for matcher in overview.updates.matchers[:1] for array in matcher.step.arrays]
    others: set[int] = set()  # nodes that hold what is not local
    for node in graph.below([array.new for array in arrays]):
        if graph.ops[node] in _NOT_LOCAL or not others.isdisjoint(graph.args[node]):
            others.add(node)
    return {parameters[array.source] for array in arrays if array.new not in others and array.source in parameters}


def _written(frames: Frames, place: Place, loops: int) -> tuple[int, Index] | None:
    """The parameter of its computation that a value is, after parts of it were written; `None` where it is something else."""
    for _ in range(MAX_WRITES):
        place = frames.made_at(place)
        source = frames.input(place)
        if source is not None:
            return source[1:]
        opcode = frames.opcode(place)
        is_written = opcode in IN_PLACE or (opcode == "while" and loops > 0 and _is_carried(frames, place, loops))
        operands = frames.operands(place)[:1] if is_written else ()
        if not operands:
            return None
        frame, row, index = operands[0]
        place = (frame, row, index + place[2])
    return None


def _is_carried(frames: Frames, loop: Place, loops: int) -> bool:
    """Whether a loop writes parts of an element of its state."""
    body = frames.open(frames.callee(loop, "body"))
    return body is not None and _written(frames, frames.root(body, loop[2]), loops - 1) == (0, loop[2])
