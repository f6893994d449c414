"""Collectives over links within nodes, and the network between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.time import nccl
from hlo_inspect.analysis.time.links import (
    PERMUTE,
    Way,
    between_nodes,
    bus_factor,
    known,
    no_model,
    slowest,
    with_model,
    within_node,
)
from hlo_inspect.analysis.time.placement import CollectiveGroups, NodeSpread, Placement, UnknownTimeError

NVIDIA = "NVIDIA"
"""The maker whose GPUs send by NCCL."""


class NodeLinks:
    """The links of a machine whose `near` level joins the devices of a node."""

    def __init__(self, profile: HardwareProfile, placement: Placement, groups: CollectiveGroups, near: Link) -> None:
        self._profile = profile
        self._placement = placement
        self._groups = groups
        self._near = near

    def _per_node(self) -> int:
        """The devices that the nearest links join."""
        if self._placement.per_node is not None:
            return self._placement.per_node
        near = self._near
        joined = int(near.devices.value) if near.devices is not None else self._profile.devices_per_node
        if joined is None:
            missing = f"the profile {self._profile.name} does not say how many devices {near.name} joins"
            raise UnknownTimeError(f"{missing}: name them with --devices-per-node")
        return joined * self._profile.devices_per_chip

    def _far(self) -> Link:
        networks = self._profile.networks
        if len(networks) < 2:
            raise UnknownTimeError(f"its devices are on several nodes, and the profile {self._profile.name} states no network")
        return networks[1]

    def among(self, collective: Collective, whole: float) -> Way:
        """A collective of groups over an array of `whole` bytes."""
        per_node = self._per_node()
        spreads = self._groups.spreads(collective, self._placement, per_node)
        return slowest([self._by_spread(collective, whole, spread, per_node) for spread in spreads if spread.devices > 1])

    def _by_spread(self, collective: Collective, whole: float, spread: NodeSpread, per_node: int) -> Way:
        kind, near, shared = collective.kind, self._near, whole * self._profile.devices_per_chip
        levels = []
        if spread.most > 1:
            inside = shared * spread.most / spread.devices if kind == "all-to-all" else shared
            levels.append((near.name, known(within_node(kind, inside, spread.most, near), self._profile, near)))
        far = self._far() if spread.nodes > 1 else None
        if far is not None:
            levels.append((far.name, known(between_nodes(kind, shared, spread, per_node, far), self._profile, far)))
        if self._profile.maker != NVIDIA:
            estimate = self._rings(kind, shared, spread, far)
        elif spread.nodes == 1 and nccl.is_one_shot(collective):
            estimate = nccl.one_shot_seconds(whole, spread.devices, near)
        else:
            estimate = nccl.seconds(kind, whole, spread, near, far)
        reason = no_model(self._profile, [near, far] if far is not None else [near]) if estimate is None else ""
        return Way(tuple(levels), estimate, reason)

    def _rings(self, kind: str, whole: float, spread: NodeSpread, far: Link | None) -> float | None:
        """The time of a ring over all devices: as long as its slowest links take, and a latency for each of its steps."""
        used = [self._near] if far is None else [self._near, far] if spread.most > 1 else [far]
        factor, seconds, latency = bus_factor(kind, spread.devices), 0.0, 0.0
        for link in used:
            if link.send_bandwidth is None or link.efficiency is None or link.latency is None:
                return None
            width = spread.fewest if link is far else 1
            seconds = max(seconds, whole * factor / (link.send_bandwidth * link.efficiency * width))
            latency = max(latency, link.latency)
        return seconds + (1 if kind == "all-to-all" else round(factor * spread.devices)) * latency

    def permute(self, pairs: Sequence[tuple[int, int]], size: int) -> Way:
        """Arrays of `size` bytes from one device to another."""
        per_node, shared = self._per_node(), size * self._profile.devices_per_chip
        nodes = [(self._placement.node(source, per_node), self._placement.node(target, per_node)) for source, target in pairs]
        leaving = Counter(source for source, target in nodes if source != target)
        ways = []
        if leaving.total() < len(nodes):
            near = self._near
            ways.append(self._hop(near, known(within_node(PERMUTE, shared, 2, near), self._profile, near), size))
        if leaving:
            far = self._far()
            seconds = shared * max(leaving.values()) / (known(far.send_bandwidth, self._profile, far) * per_node)
            ways.append(self._hop(far, seconds, size))
        return slowest(ways)

    def _hop(self, link: Link, bound: float, size: int) -> Way:
        """Data that goes over one level, by the links of one device."""
        bandwidth = link.link_bandwidth if link.topology == "mesh" else link.send_bandwidth
        way = with_model(link, bound, self._profile, seconds=size / bandwidth if bandwidth else None)
        extra = nccl.SIMPLE.ring[0] if self._profile.maker == NVIDIA else 0.0
        return way._replace(estimate=way.estimate + extra) if way.estimate is not None else way
