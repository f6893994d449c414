"""The optimizer of a module: its regions, their weights, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer.flow import Flow
from hlo_inspect.analysis.optimizer.graph import Index, Input, Place
from hlo_inspect.analysis.optimizer.match import Matcher, Weight
from hlo_inspect.analysis.optimizer.sites import Region, Result, find_sites
from hlo_inspect.analysis.optimizer.steps import STEPS
from hlo_inspect.analysis.parameters import Interface
from hlo_inspect.analysis.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.shapes import ArrayShape, array_leaves

MAX_NESTING = 3  # loops in loops over steps


@dataclass(slots=True)
class Optimizer:
    """`weights` by region and output; `parameters` tells which entry parameter an input of a region comes from."""

    flow: Flow
    weights: list[Weight] = field(default_factory=list)
    matchers: list[Matcher] = field(default_factory=list)
    parameters: dict[Input, tuple[int, Index]] = field(default_factory=dict)


def find_optimizer(module: Module, interface: Interface, views: Views | None = None) -> Optimizer:
    """What updates weights in a module that was read with its graph."""
    flow = Flow(module.computations, STEPS, views)
    found = Optimizer(flow)
    frame = flow.region(module.entry.name) if module.entry is not None else None
    if frame is None:
        return found
    inputs = {(frame, leaf.number, leaf.index): leaf.shape for leaf in interface.parameters}
    found.parameters = {(at, number, index): (number, index) for at, number, index in inputs}
    results = [
        Result(o.index, o.shape, (frame, o.alias.parameter, _index(o.alias.parameter_index, o.index, o.alias.output_index)))
        if o.alias
        else Result(o.index, o.shape, None)
        for o in interface.outputs
    ]
    _match_region(found, frame, inputs, results, MAX_NESTING)
    return found


def _index(parameter: Index, output: Index, aliased: Index) -> Index:
    """The index in the parameter of an output that lies in the tuple that is aliased."""
    return parameter + output[len(aliased) :]


def _match_region(found: Optimizer, frame: int, inputs: dict[Input, ArrayShape], results: list[Result], nesting: int) -> None:
    region = find_sites(found.flow, frame, inputs, results)
    matcher = Matcher(found.flow, region)
    found.matchers.append(matcher)
    weights = matcher.weights()
    found.weights += weights
    if not weights and nesting:
        for body in _loops_over_steps(found.flow, region):
            _match_body(found, body, nesting - 1)


def _loops_over_steps(flow: Flow, region: Region) -> list[Place]:
    """The loops whose results are results of the region."""
    loops: dict[Place, None] = {}
    for node in region.results:
        place = flow.graph.places.get(node)
        statement = flow.statement(place) if place is not None else None
        if place is not None and statement is not None and statement.opcode == "while":
            loops[place[0], place[1], ()] = None
    return list(loops)


def _match_body(found: Optimizer, loop: Place, nesting: int) -> None:
    """Takes the body of a loop as a step: each element of its state succeeds itself."""
    flow = found.flow
    statement = flow.statement(loop)
    frame = flow.region(statement.word("body")) if statement is not None else None
    if statement is None or frame is None:
        return
    root = flow.statement(flow.root(frame, ()))
    leaves = array_leaves(root.shape if root is not None else None)
    inputs = {(frame, 0, index): shape for index, shape in leaves}
    for name, first in statement.operands[:1]:
        for index, _ in leaves:
            node = flow.node((loop[0], name, first + index))
            source = flow.graph.sources.get(node)
            if source in found.parameters:
                found.parameters[frame, 0, index] = found.parameters[source]
    _match_region(found, frame, inputs, [Result(index, shape, (frame, 0, index)) for index, shape in leaves], nesting)
