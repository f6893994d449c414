"""The table of loops, for every page that shows what runs inside of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.calls import NOTHING, Bounds
from hlo_inspect.graph.loops import Loop
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.op_names import origin_of
from hlo_inspect.passes.base import bounded
from hlo_inspect.report.model import Column, Table


class _InsideOfLoop(NamedTuple):
    """What runs inside of a loop in one step."""

    collectives: Bounds
    wire_bytes: Bounds
    flops: Bounds
    bytes_accessed: Bounds


_NOTHING = _InsideOfLoop(NOTHING, NOTHING, NOTHING, NOTHING)


class _Row(NamedTuple):
    """A loop, the loop that it is in, how often its body runs in one step, and the figures of all runs."""

    loop: Loop
    parent: str
    runs: Bounds
    source: str
    inside: _InsideOfLoop


_FIRST = (
    Column("loop", get=lambda row: row.loop.instruction.name),
    Column("parent", detail=2, get=lambda row: row.parent),
    Column("trip_count", "count", get=lambda row: row.loop.trip_count),
    bounded("runs", "count", lambda row: row.runs, summed=False),
)
_COST = (
    bounded("flops", "flops", attrgetter("inside.flops"), summed=False),
    bounded("bytes_accessed", "bytes", attrgetter("inside.bytes_accessed"), 1, summed=False),
)
_LAST = (
    bounded("collectives", "count", attrgetter("inside.collectives"), 2, summed=False),
    bounded("executed_wire_bytes", "bytes", attrgetter("inside.wire_bytes"), 1, summed=False),
    Column("known_from", detail=3, get=lambda row: row.loop.source or f"not known: it {row.loop.reason}"),
    Column("source", detail=2, get=lambda row: row.source),
    Column("line", "number", detail=4, get=lambda row: row.loop.instruction.line),
)


def loops(context: Context, *, with_cost: bool = False) -> Table:
    """One row a loop: what runs in it in one step, inner loops included; FLOPs and bytes where the whole graph was read."""
    columns = (*_FIRST, *(_COST if with_cost else ()), *_LAST)
    return Table.of("loops", "Loops, with what runs inside of them in one step", columns, _rows(context, with_cost=with_cost))


def _rows(context: Context, *, with_cost: bool) -> Iterator[_Row]:
    graph = context.call_graph
    inside = _inside(context, with_cost=with_cost) if graph.loops else {}
    for loop in graph.loops:
        instruction = loop.instruction
        parent = next(graph.loops_around(instruction.computation.name), None)
        source = origin_of(instruction.attr("metadata"), context.module.frames).source
        yield _Row(loop, parent.name if parent is not None else "", graph.runs_of_loop(loop), source, inside[instruction])


def _inside(context: Context, *, with_cost: bool) -> dict[Instruction, _InsideOfLoop]:
    """The figures of each loop: those of the computations that it is the innermost loop of, and those of the loops directly
    inside of it, which are complete before the computation that holds the loop comes.
    """
    graph = context.call_graph
    alike: dict[_InsideOfLoop, _InsideOfLoop] = {}  # one object for all that are equal: a large module has many loops
    own: dict[str, _InsideOfLoop] = {}
    for computation, amounts in _amounts(context, with_cost=with_cost):
        figures = _plus(own.get(computation, _NOTHING), amounts)
        own[computation] = alike.setdefault(figures, figures)
    inside = dict.fromkeys([loop.instruction for loop in graph.loops], _NOTHING)
    held: defaultdict[str, list[Instruction]] = defaultdict(list)
    for instruction in inside:
        held[instruction.computation.name].append(instruction)
    for computation in reversed(graph.order):
        around = next(graph.loops_around(computation), None)
        if around is not None:
            for more in (own.get(computation, _NOTHING), *map(inside.__getitem__, held[computation])):
                figures = _plus(inside[around], more)
                inside[around] = alike.setdefault(figures, figures)
    return inside


def _plus(before: _InsideOfLoop, more: _InsideOfLoop) -> _InsideOfLoop:
    return _InsideOfLoop(*map(Bounds.plus, before, more))


def _amounts(context: Context, *, with_cost: bool) -> Iterator[tuple[str, _InsideOfLoop]]:
    """A computation, and what something in it adds to the figures of the loops round it."""
    graph = context.call_graph
    for collective in context.collectives:
        name = collective.inner.computation.name
        if not collective.is_point_to_point:
            sent = Bounds(0, None) if collective.wire_bytes is None else Bounds.exactly(collective.wire_bytes)
            runs = graph.runs(name)
            yield name, _InsideOfLoop(runs, sent.times(runs), NOTHING, NOTHING)
    for kernel in context.kernels.found if with_cost else ():
        figures = _InsideOfLoop(NOTHING, NOTHING, kernel.of_step("flops"), kernel.of_step("bytes"))
        yield kernel.place[0], figures
