"""Removal of redundant phis: phis at which only one value arrives.

Follows `PhiGraph::Optimize` (xla/service/hlo_phi_graph.cc): a phi of one value and itself is that value. Phis of each other and
of one value are that value too; strongly connected components find them in linear time. See Braun et al., "Simple and Efficient
Construction of Static Single Assignment Form" (CC 2013).
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo_inspect.graph.orders import strong_components

MAX_DEPTH = 16
"""Nesting of loops up to which redundant phis are removed. Deeper phis stay, and may take memory of their own."""


def without_redundant_phis(inputs: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """Return the value of each redundant phi. `inputs` holds for each phi the values that arrive at it."""
    replacements: dict[int, int] = {}
    waiting: list[tuple[Mapping[int, tuple[int, ...]], int]] = [(inputs, 0)]
    while waiting:
        among, depth = waiting.pop()
        for component in _components(among):
            members = set(component)
            arriving = {phi: {_resolve(replacements, value) for value in inputs[phi]} for phi in component}
            arriving_from_outside = set().union(*arriving.values()) - members
            if len(arriving_from_outside) == 1:
                replacements.update(dict.fromkeys(component, arriving_from_outside.pop()))
            elif len(component) > 1 and depth < MAX_DEPTH:
                inner = {phi: inputs[phi] for phi in component if arriving[phi] <= members}
                if inner:
                    waiting.append((inner, depth + 1))
    return {phi: _resolve(replacements, phi) for phi in replacements}


def _resolve(replacements: dict[int, int], value: int) -> int:
    """Return the value that replaces another in the end."""
    last = value
    while last in replacements:
        last = replacements[last]
    while value != last:
        replacements[value], value = last, replacements[value]
    return last


def _components(inputs: Mapping[int, tuple[int, ...]]) -> list[list[int]]:
    """Return the strongly connected components, each after the components whose values arrive at it."""
    numbers = {phi: number for number, phi in enumerate(inputs)}
    component_of, count = strong_components(
        [[numbers[member] for member in ones if member in numbers] for ones in inputs.values()]
    )
    components: list[list[int]] = [[] for _ in range(count)]
    for phi, component in zip(inputs, component_of, strict=True):
        components[component].append(phi)
    return components
