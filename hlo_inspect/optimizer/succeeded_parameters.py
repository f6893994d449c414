"""The entry parameters of which an output is the new value, by data flow: what a step can donate without a loss.

In a step that updates weights these are the arrays of its training state. In any other program they are the arrays that it
writes a part of and returns, such as the cache of a decode step: dynamic-update-slices and scatters, also in the body of a
loop; and those whose new values take no matrix product, no reduction and no other device. An output that is only of a
parameter's shape, as in a forward pass, is not its new value.
"""

from __future__ import annotations

from hlo_inspect.graph.parameters import Interface
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.optimizer.operations import IN_PLACE
from hlo_inspect.optimizer.overview import Overview

_NOT_LOCAL = frozenset({*COLLECTIVE_KINDS, "opaque"})


def succeeded_parameters(module: Module, overview: Overview, interface: Interface) -> set[tuple[int, ShapeIndex]]:
    """Numbers and indices of those parameters."""
    if overview.rows:
        return _state(overview) - _resharded(overview)
    frames = overview.updates.flow.frames
    frame = frames.open(module.entry.name) if module.entry is not None else None
    if frame is None:
        return set()
    written = (frames.carried_input(frames.root(frame, output.index), IN_PLACE) for output in interface.outputs)
    return {source[1:] for source in written if source is not None} | (_local(overview) - _resharded(overview))


def _state(overview: Overview) -> set[tuple[int, ShapeIndex]]:
    """The training state: what rules say, and where one does not explain an update all that outputs succeed by data flow."""
    if all(row.rule != "unknown" for row in overview.rows):
        return set(overview.roles)
    parameters = overview.updates.parameters
    sources = (array.source for step in overview.updates.steps for array in step.arrays)
    return {parameters[source] for source in sources if source in parameters}


def _resharded(overview: Overview) -> set[tuple[int, ShapeIndex]]:
    """The parameters whose new values come back in another shape, which cannot take their buffers."""
    parameters = overview.updates.parameters
    arrays = (array for step in overview.updates.steps for array in step.arrays if array.is_resharded)
    return {parameters[array.source] for array in arrays if array.source in parameters}


def _local(overview: Overview) -> set[tuple[int, ShapeIndex]]:
    """What outputs succeed without matrix products, reductions and other devices."""
    graph, parameters = overview.updates.flow.graph, overview.updates.parameters
    arrays = [array for step in overview.updates.steps[:1] for array in step.arrays]
    others: set[int] = set()  # nodes that hold what is not local
    for node in graph.below([array.new for array in arrays]):
        if graph.ops[node] in _NOT_LOCAL or not others.isdisjoint(graph.args[node]):
            others.add(node)
    return {parameters[array.source] for array in arrays if array.new not in others and array.source in parameters}
