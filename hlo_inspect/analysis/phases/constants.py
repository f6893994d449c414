"""Phases of values that depend on no input. Tables made before a loop are such values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from hlo_inspect.analysis.phases.component_facts import FROM_INPUT, ComponentFacts
from hlo_inspect.analysis.provenance import PHASE_ORDER
from hlo_inspect.graph.flow import Bits, FlowRule, mark, no_bits

_KNOWN = range(len(PHASE_ORDER) - 1)
"""Places of the phases in the order of a step, without the last: it is unknown."""
_OF_USER = 8
_CONSTANT = 1 << 16
_OWN_BITS = {phase: 1 << place if place in _KNOWN else 0 for place, phase in enumerate(PHASE_ORDER)}


def _of_users(bits: int) -> int:
    return bits << _OF_USER


def _rules() -> list[FlowRule]:
    """Return the rules that give operands the first phase of a node: of a constant that of its users, if one has a phase."""
    rules: list[FlowRule] = []
    for place in _KNOWN:
        own, earlier = 1 << place, (1 << place) - 1
        gives = _of_users(own)
        rules += [
            FlowRule(has=_CONSTANT | _of_users(own), lacks=_of_users(earlier), gives=gives),
            FlowRule(has=_CONSTANT | own, lacks=earlier | _of_users(2**_OF_USER - 1), gives=gives),
            FlowRule(has=own, lacks=earlier | _CONSTANT, gives=gives),
        ]
    return rules


def give_constants_phases(facts: ComponentFacts, phases: list[str]) -> None:
    """Give nodes that depend on no input the first phase among their users."""
    component_of = facts.parts.component_of
    constants = facts.flow.nodes_with(facts.bits, 0, FROM_INPUT)
    bits = _own_phases(component_of, len(facts.kinds), phases)
    mark(bits, constants, _CONSTANT)
    facts.flow.back(bits, rules=_rules())
    first = {part: _first(bits[part] >> _OF_USER) for part in constants if bits[part] & _of_users(2**_OF_USER - 1)}
    for node, part in _nodes_of(component_of, first):
        phases[node] = first[part]


def _first(places: int) -> str:
    """Return the first of the phases whose places are bits."""
    return PHASE_ORDER[(places & -places).bit_length() - 1]


def _own_phases(component_of: Sequence[int], count: int, phases: Sequence[str]) -> Bits:
    """Return the phases of the nodes of each component, as bits."""
    own = map(_OWN_BITS.__getitem__, phases)
    if isinstance(component_of, range):
        return array("Q", own)
    bits = no_bits(count)
    for part, bit in zip(component_of, own, strict=True):
        bits[part] |= bit
    return bits


def _nodes_of(component_of: Sequence[int], parts: dict[int, str]) -> Iterable[tuple[int, int]]:
    """Return the nodes of some components, each with its component."""
    if isinstance(component_of, range):
        return zip(parts, parts, strict=True)
    return [(node, part) for node, part in enumerate(component_of) if part in parts]
