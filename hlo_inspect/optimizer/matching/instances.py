"""Weights of the units that the rules did not see: those of the first unit of their group, with their own arrays and leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.matching.step_expressions import OtherArrays
from hlo_inspect.optimizer.matching.units import Group, Unit, Units
from hlo_inspect.optimizer.matching.weight_matching import Matcher
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep


def match_units(flow: Dataflow, step: TrainingStep) -> tuple[Matcher, list[Weight]]:
    """Match the arrays of a step. The rules see the first unit of a group, and all units if its answer may not hold for them."""
    units = Units(flow, step)
    while True:
        matcher = Matcher(flow, step, units.others)
        weights = matcher.weights()
        groups = units.groups
        seen = [group for group in groups if not _holds_for_all(matcher, group, weights)]
        if groups and _reads_states(matcher, units):
            seen = groups
        if not seen:
            break
        units.split(seen)
    instances = [weight for group in groups for weight in _instances(matcher, group, weights)]
    order = {id(array): number for number, array in enumerate(step.arrays)}
    return matcher, sorted(weights + instances, key=lambda weight: order[id(weight.array)])


def _reads_states(matcher: Matcher, units: Units) -> bool:
    """Return True if a gradient may depend on the states of another unit: rules look for these among all arrays."""
    changed = {id(array) for array in matcher.candidates.changed_by_gradients}
    states = 0
    for group in units.groups:
        numbers = [number for number, array in enumerate(group.first.arrays) if id(array) not in changed]
        for unit in (group.first, *group.others):
            for number in numbers:
                states |= units.own(unit.arrays[number])
    return bool(matcher.candidates.read & states)


def _holds_for_all(matcher: Matcher, group: Group, weights: Iterable[Weight]) -> bool:
    """Return True if the answer about the first unit holds for the others.

    It has no weights, and rules were not asked. Or the form of the updates alone shows an optimizer, the step trains, and no
    rule read the operands of a leaf.
    """
    own = {id(array) for array in group.first.arrays}
    asked = [match for array in group.first.arrays if (match := matcher.matches.get(array.new)) is not None]
    found = [weight for weight in weights if id(weight.array) in own]
    if not asked:
        return not found
    if len(found) < len({match.proposal.update.array.new for match in asked}) or not matcher.shows_training:
        return False
    is_clear = all(match.proposal.is_unmistakable and match.proposal.claim is not None for match in asked)
    arrays = [array for weight in found for array in (*weight.arrays, *weight.counters, weight.copy) if array is not None]
    is_closed = all(weight.claim is not None for weight in found) and all(
        id(array) in own or array.shape.elements == 1 for array in arrays
    )
    return is_clear and is_closed and not matcher.expressions.reductions.has_opened(group.first.nodes)


def _instances(matcher: Matcher, group: Group, weights: Iterable[Weight]) -> Iterator[Weight]:
    """Yield the weights of the other units of a group."""
    own = {id(array) for array in group.first.arrays}
    for weight in [weight for weight in weights if id(weight.array) in own]:
        claim, forms = weight.claim, matcher.expressions.forms
        sums = (claim.rate, claim.gradient) if claim is not None else ()
        atoms = forms.atoms_with(sums, set(group.first.nodes))
        for unit in group.others:
            nodes = dict(zip(group.first.nodes, unit.nodes, strict=True))
            slices = dict(zip(group.first.slices, unit.slices, strict=True))
            instance = _instance(weight, group.first, unit)
            if instance.claim is not None:
                translate = forms.translator(atoms, nodes, slices)
                instance.claim.rate, instance.claim.gradient = map(translate, sums)
            yield instance


def _instance(weight: Weight, first: Unit, unit: Unit) -> Weight:
    """Return a weight with the arrays of another unit."""
    counterparts = {id(old): new for old, new in zip(first.arrays, unit.arrays, strict=True)}

    def own(array: StateArray) -> StateArray:
        return counterparts.get(id(array), array)

    claim = weight.claim
    if claim is not None:
        roles = {role: own(array) for role, array in claim.roles.items()}
        claim = replace(claim, roles=roles, extra=list(map(own, claim.extra)))
    return replace(
        weight,
        array=own(weight.array),
        claim=claim,
        copy=own(weight.copy) if weight.copy is not None else None,
        counters=list(map(own, weight.counters)),
        accumulators=list(map(own, weight.accumulators)),
        averages=list(map(own, weight.averages)),
        first=weight,
    )
