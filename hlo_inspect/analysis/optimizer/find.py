"""The optimizer of a module: its regions, their weights, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer.flow import Flow, Index
from hlo_inspect.analysis.optimizer.match import Matcher, Weight
from hlo_inspect.analysis.optimizer.reach import Input
from hlo_inspect.analysis.optimizer.sites import Region, Result, find_sites
from hlo_inspect.analysis.optimizer.steps import STEPS
from hlo_inspect.analysis.parameters import Interface
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.shapes import ArrayShape, array_leaves

MAX_NESTING = 3  # loops in loops over steps


@dataclass(slots=True)
class Optimizer:
    """`weights` by region and output."""

    flow: Flow
    weights: list[Weight] = field(default_factory=list)
    matchers: list[Matcher] = field(default_factory=list)


def find_optimizer(module: Module, interface: Interface) -> Optimizer:
    """What updates weights in a module that was read with its graph."""
    flow = Flow(module.computations, STEPS)
    found = Optimizer(flow)
    frame = flow.region(module.entry.name) if module.entry is not None else None
    if frame is None:
        return found
    inputs = {(frame, leaf.number, leaf.index): leaf.shape for leaf in interface.parameters}
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


def _loops_over_steps(flow: Flow, region: Region) -> list[str]:
    """The bodies of the loops whose results are results of the region."""
    bodies: dict[str, None] = {}
    for site in region.sites:
        if flow.graph.ops[site.new] == "opaque":
            statement = flow.statement(flow.graph.attributes[site.new])  # type: ignore[arg-type]
            if statement is not None and statement.opcode == "while":
                bodies[statement.word("body")] = None
    return list(bodies)


def _match_body(found: Optimizer, computation: str, nesting: int) -> None:
    """Takes the body of a loop as a step: each element of its state succeeds itself."""
    frame = found.flow.region(computation)
    if frame is None:
        return
    root = found.flow.statement(found.flow.root(frame, ()))
    leaves = array_leaves(root.shape if root is not None else None)
    inputs = {(frame, 0, index): shape for index, shape in leaves}
    _match_region(found, frame, inputs, [Result(index, shape, (frame, 0, index)) for index, shape in leaves], nesting)
