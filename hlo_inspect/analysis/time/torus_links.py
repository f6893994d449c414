"""Collectives over the links of a torus of chips."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.time.links import (
    TorusAxis,
    Way,
    along_torus,
    hops,
    known,
    most_crowded,
    slowest,
    torus_axes,
    with_model,
)
from hlo_inspect.analysis.time.placement import CollectiveGroups, NodeSpread, Placement, UnknownTimeError, best_shapes, extents
from hlo_inspect.lazy_pattern import lazy_pattern

_WITHIN_A_CHIP = "its devices are cores of one chip, and no source states the bandwidth between them"
_MOST_STEPS = 1 << 18
"""So many steps from chip to chip are looked at for the most crowded link; longer lists of pairs have one array on each."""
_COLOURS = lazy_pattern(r"colors:(\d{1,2})\b", re.ASCII)


class TorusLinks:
    """The links of a torus. Without a topology that the user names, groups are taken to lie where they are the fastest."""

    def __init__(self, profile: HardwareProfile, placement: Placement, groups: CollectiveGroups, link: Link) -> None:
        self._profile = profile
        self._placement = placement
        self._groups = groups
        self._link = link
        self._boxes: dict[int, list[list[TorusAxis]]] = {}
        self._along: dict[object, list[list[TorusAxis]]] = {}

    def among(self, collective: Collective, whole: float) -> Way:
        """A collective of groups over an array of `whole` bytes."""
        spread = self._over_chips(collective)
        if spread.nodes == 1:
            raise UnknownTimeError(_WITHIN_A_CHIP)
        link = self._link
        bandwidth = known(link.link_bandwidth, self._profile, link) * float(spread.part)
        if collective.kind == "all-to-all":
            whole *= spread.most
        colours = _colours(collective)
        ways = []
        for axes in self._ways_to_lie(collective, spread.nodes):
            bound = along_torus(collective.kind, whole, axes, bandwidth)
            modelled = max(bound, along_torus(collective.kind, whole, axes, bandwidth, colours))
            ways.append(with_model(link, bound, self._profile, seconds=modelled, steps=hops(collective.kind, axes)))
        return slowest(ways) if self._placement.shape else min(ways, key=lambda way: way.bound)

    def _over_chips(self, collective: Collective) -> NodeSpread:
        """How the groups lie over chips, where a device is a part of one."""
        on_a_chip, devices = self._profile.devices_per_chip, collective.group_size or 1
        if on_a_chip == 1:
            return NodeSpread(devices, devices, 1, 1, Fraction(1))
        found = self._groups.spreads(collective, Placement(), on_a_chip)
        if len(found) > 1:
            raise UnknownTimeError("its groups lie in different ways over the chips, of which a device is a part")
        (spread,) = found
        return spread

    def _ways_to_lie(self, collective: Collective, chips: int) -> list[list[TorusAxis]]:
        """The axes of the groups: one way for each of them where the placement is known, else all ways that fit in."""
        if not self._placement.shape:
            if chips not in self._boxes:
                self._boxes[chips] = self._all_boxes(chips)
            return self._boxes[chips]
        key = (collective.groups, collective.mode)
        if key not in self._along:
            self._along[key] = self._along_axes(collective)
        return self._along[key]

    def _along_axes(self, collective: Collective) -> list[list[TorusAxis]]:
        """How the groups lie in the topology that the user names, each way once."""
        found: dict[tuple[TorusAxis, ...], None] = {}
        for group in self._groups.listed(collective):
            runs = extents(sorted({device // self._profile.devices_per_chip for device in group}), self._placement)
            if runs is None:
                raise UnknownTimeError("its groups do not lie along axes of the topology")
            found[tuple(torus_axes(runs, self._placement.shape, self._link))] = None
        return [list(axes) for axes in found]

    def _all_boxes(self, chips: int) -> list[list[TorusAxis]]:
        link = self._link
        if link.devices is not None:
            sizes = link.devices.axes
        elif link.count is not None:
            sizes = (chips,) * (int(link.count.value) // 2)
        else:
            raise UnknownTimeError(f"the profile {self._profile.name} does not say how large {link.name} is")
        boxes = best_shapes(chips, sizes)
        if not boxes:
            large = "x".join(map(str, sizes))
            raise UnknownTimeError(f"a group over {chips:,} chips does not fit in the {large} of {link.name}")
        return [[TorusAxis(side, 1, link.wraps(side)) for side in box if side > 1] for box in boxes]

    def permute(self, pairs: Sequence[tuple[int, int]], size: int) -> Way:
        """Arrays of `size` bytes from one device to another."""
        on_a_chip, link, shape = self._profile.devices_per_chip, self._link, self._placement.shape
        chips = [(source // on_a_chip, target // on_a_chip) for source, target in pairs]
        chips = [(source, target) for source, target in chips if source != target]
        if not chips:
            raise UnknownTimeError(_WITHIN_A_CHIP)
        crowd, way = 1, 1
        if shape and len(chips) * sum(shape) <= _MOST_STEPS:
            places = [(self._placement.coordinates(source), self._placement.coordinates(target)) for source, target in chips]
            crowd, way = most_crowded(places, shape, link)
        return with_model(link, size * crowd / known(link.link_bandwidth, self._profile, link), self._profile, steps=way)


def _colours(collective: Collective) -> float | None:
    """In how many directions TPU's compiler sends at a time, by its own words."""
    for part in collective.configs():
        debug = part.get("debug")
        match = _COLOURS.search(debug) if isinstance(debug, str) else None
        if match is not None:
            return float(max(1, int(match[1])))
    return None
