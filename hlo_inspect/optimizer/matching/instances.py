"""Weights of the units that the rules did not see: those of the first unit of their group, with their own arrays and leaves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.matching.units import Group, Units
from hlo_inspect.optimizer.matching.weight_matching import Matcher
from hlo_inspect.optimizer.matching.weights import Part, Weight, inputs_read
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep


def match_units(flow: Dataflow, step: TrainingStep) -> tuple[Matcher, list[Weight]]:
    """Match the arrays of a step.

    The rules see the first unit of each group. They see all units of a group if that answer may not hold for the others.
    """
    units = Units(flow, step)
    while True:
        matcher = Matcher(flow, step, units.others)
        weights = matcher.weights()
        groups = units.groups
        split = [group for group in groups if not _holds_for_all(matcher, units, group, weights)]
        if groups and _reads_states(matcher, units):
            split = groups
        if not split:
            break
        units.split(split)
    own = {id(weight.array): weight for group in groups for weight in _instances(group, weights)}
    own |= {id(weight.array): weight for weight in weights}
    return matcher, [own[id(array)] for array in step.arrays if id(array) in own]


def _reads_states(matcher: Matcher, units: Units) -> bool:
    """Return True if a gradient may depend on the states of another unit: rules look for these among all arrays."""
    candidates = matcher.candidates
    others = {id(array) for array in (*candidates.changed_by_gradients, *candidates.without_gradient)}
    states = 0
    for group in units.groups:
        numbers = [number for number, array in enumerate(group.first.arrays) if id(array) not in others]
        for unit in (group.first, *group.others):
            for number in numbers:
                states |= units.own(unit.arrays[number])
    return bool(candidates.read & states)


def _holds_for_all(matcher: Matcher, units: Units, group: Group, weights: Sequence[Weight]) -> bool:
    """Return True if the answer about the first unit of a group holds for the others.

    If rules were not asked, the weights of all units are frozen, if there are any. Else the step has to train, and the form of
    each update alone to show an optimizer. No rule may have read the operands of a leaf: these are not in the key.
    """
    own = {id(array): number for number, array in enumerate(group.first.arrays)}
    asked = {array.new: matcher.matches[array.new].proposal for array in group.first.arrays if array.new in matcher.matches}
    own_weights = [weight for weight in weights if id(weight.array) in own]
    arrays = [array for weight in own_weights for array in (*weight.arrays, *weight.counters, weight.copy or weight.array)]
    if not all(id(array) in own or array.shape.elements == 1 for array in arrays):
        return False
    if not asked:
        numbers = [own[id(weight.array)] for weight in own_weights]
        read = inputs_read(matcher.expressions, [weight for weight in weights if not weight.is_frozen]) if own_weights else 0
        is_read = all(read & units.own(unit.arrays[number]) for unit in group.others for number in numbers)
        return is_read and all(weight.is_frozen for weight in own_weights)
    return (
        matcher.shows_training
        and len(own_weights) == len(asked)
        and all(proposal.is_unmistakable for proposal in asked.values())
        and all(weight.claim is not None for weight in own_weights)
        and not matcher.expressions.reductions.has_opened(group.first.nodes)
    )


def _instances(group: Group, weights: Iterable[Weight]) -> Iterator[Weight]:
    """Yield the weights of the other units of a group."""
    first = group.first
    own = {id(array) for array in first.arrays}
    own_weights = [weight for weight in weights if id(weight.array) in own]
    for unit in group.others if own_weights else ():
        arrays = {id(old): new for old, new in zip(first.arrays, unit.arrays, strict=True)}
        nodes = dict(zip(first.nodes, unit.nodes, strict=True))
        parts = dict(zip(map(_part, first.slices), map(_part, unit.slices), strict=True))
        yield from (_instance(weight, arrays, nodes, parts) for weight in own_weights)


def _part(attribute: Hashable) -> SliceDimension | None:
    """Return the range that a slice takes of a flattened array."""
    part = attribute[0] if isinstance(attribute, tuple) and len(attribute) == 1 else None
    return part if isinstance(part, SliceDimension) else None


def _instance(weight: Weight, arrays: Mapping[int, StateArray], nodes: Mapping[int, int], parts: Mapping[Part, Part]) -> Weight:
    """Return a weight with other arrays, by the ids of its own, and other nodes and parts."""

    def own(old: Iterable[StateArray]) -> list[StateArray]:
        return [arrays.get(id(array), array) for array in old]

    claim = weight.claim
    if claim is not None:
        claim = replace(claim, roles=dict(zip(claim.roles, own(claim.roles.values()), strict=True)), extra=own(claim.extra))
    return replace(
        weight,
        array=arrays[id(weight.array)],
        claim=claim,
        copy=arrays[id(weight.copy)] if weight.copy is not None else None,
        counters=own(weight.counters),
        accumulators=own(weight.accumulators),
        averages=own(weight.averages),
        states=own(weight.states),
        first=weight,
        nodes=nodes,
        parts=parts,
    )
