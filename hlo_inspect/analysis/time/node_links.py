"""Collectives within nodes and over the network between them, by NCCL's own model.

Source: `src/graph/tuning.cc` and `src/graph/topo.h` of NCCL 2.28: time = latency + bytes / bandwidth, the least over
algorithms and protocols. A ring has one step less than devices, an all-reduce twice that; a tree has the depth of its nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.time.links import LinkTime, known, network_bound, no_model, node_share, slowest, with_model
from hlo_inspect.analysis.time.placement import CollectiveGroups, NodeSpread, Placement, UnknownTimeError
from hlo_inspect.hlo.collective_kinds import CollectiveKind

US = 1e-6


class Protocol(NamedTuple):
    """Seconds of a protocol: before the first step, of a step over NVLink, and of one over a network.

    `ring` has the seconds of rings, `tree` the seconds of trees. `share` is the share of the bandwidth that is left for data.
    """

    ring: tuple[float, float, float]
    tree: tuple[float, float, float]
    share: float


LL = Protocol((6.6 * US, 0.6 * US, 2.7 * US), (6.8 * US, 0.6 * US, 5.0 * US), 0.5)
LL128 = Protocol((14.0 * US, 1.9 * US, 4.0 * US), (14.0 * US, 1.25 * US, 8.5 * US), 0.92)
SIMPLE = Protocol((8.4 * US, 3.4 * US, 14.0 * US), (8.4 * US, 4.0 * US, 14.0 * US), 1.0)

REDUCING_LATENCY = 25 * US
"""Latency of an all-reduce that the switches of NVLink add up."""
_ONE_SHOT_LAUNCH, _ONE_SHOT_BARRIER = 1 * US, 1.5 * US
MAX_ONE_SHOT = 256 * 1024
"""Bytes up to which XLA sends an all-reduce to every device at once (`TRITON_ONE_SHOT`)."""


def nccl_seconds(kind: CollectiveKind, whole: float, spread: NodeSpread, near: Link, far: Link | None) -> float | None:
    """Return the estimate for an array of `whole` bytes over the links `near` of nodes, and `far` between them.

    Return None if the profile does not state the efficiency of the links.
    """
    near_bandwidth = _reached_bandwidth(near, 1)
    far_bandwidth = _reached_bandwidth(far, spread.fewest) if far is not None and spread.nodes > 1 else math.inf
    if near_bandwidth is None or far_bandwidth is None or near.latency is None:
        return None
    bandwidth = min(near_bandwidth if spread.most > 1 else math.inf, far_bandwidth)
    if kind.is_exchange:  # sent to each other device at once
        hop = SIMPLE.ring[1 if spread.nodes == 1 else 2]
        return SIMPLE.ring[0] + hop + whole * (spread.devices - 1) / spread.devices / bandwidth
    least = min(_protocols(kind, whole, spread, near, bandwidth))
    if kind.rounds == 2 and spread.nodes == 1 and near.reduces and near.reduction_efficiency and near.send_bandwidth:
        least = min(least, REDUCING_LATENCY + whole / (near.send_bandwidth * near.reduction_efficiency))
    return least


def _protocols(kind: CollectiveKind, whole: float, spread: NodeSpread, near: Link, bandwidth: float) -> Iterator[float]:
    rounds = kind.rounds
    sent = whole * kind.share_sent(spread.devices)
    between = rounds * (spread.nodes - 1)
    local_steps = rounds * (spread.devices - 1) - between
    for protocol in (LL, LL128, SIMPLE):
        reached = bandwidth * protocol.share
        if protocol is LL and near.low_latency_bandwidth is not None:
            reached = min(reached, near.low_latency_bandwidth)
        start, step, far_step = protocol.ring
        yield start + local_steps * step + between * far_step + sent / reached
        if rounds == 2 and spread.nodes > 1:
            start, step, far_step = protocol.tree
            latency = start + 2 * ((spread.most - 1) * step + math.log2(spread.nodes) * far_step)
            yield latency + 2 * whole / (reached * _OF_TREES)


_OF_TREES = 0.92


def is_one_shot(collective: Collective) -> bool:
    """Return True if XLA's own kernel does an all-reduce."""
    if collective.kind != "all-reduce" or (collective.operand_bytes or 0) > MAX_ONE_SHOT:
        return False
    return any(part.get("kernel_strategy") == "TRITON_ONE_SHOT" for part in collective.configs())


def one_shot_seconds(size: float, devices: int, near: Link) -> float | None:
    """Return XLA's time of a one-shot all-reduce: launch, bytes and a barrier.

    Each device sends its array to all others in one kernel (`gpu_collective_performance_model.cc`).
    """
    bandwidth = _reached_bandwidth(near, 1)
    if bandwidth is None:
        return None
    return _ONE_SHOT_LAUNCH + (devices - 1) * size / bandwidth + _ONE_SHOT_BARRIER


def _reached_bandwidth(link: Link, devices: int) -> float | None:
    """Return the bytes/s that `devices` devices of a node reach over their links of a level."""
    if link.send_bandwidth is None or link.efficiency is None:
        return None
    return link.send_bandwidth * link.efficiency * devices


NVIDIA = "NVIDIA"
"""The maker whose GPUs send by NCCL."""


class NodeLinks:
    """The links of a machine whose `near` level joins the devices of a node."""

    def __init__(self, profile: HardwareProfile, placement: Placement, groups: CollectiveGroups, near: Link) -> None:
        self._profile = profile
        self._placement = placement
        self._groups = groups
        self._near = near

    def _devices_per_node(self) -> int:
        """Return the number of devices that the nearest links join."""
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

    @staticmethod
    def way_of(collective: Collective) -> bool:
        """Return what decides the time of a collective beside its bytes and devices: whether XLA's own kernel does it."""
        return is_one_shot(collective)

    def groups_time(self, collective: Collective, whole: float) -> LinkTime:
        """Return the time of a collective of groups over an array of `whole` bytes."""
        per_node = self._devices_per_node()
        spreads = self._groups.spreads(collective, self._placement, per_node)
        return slowest([self._by_spread(collective, whole, spread, per_node) for spread in spreads if spread.devices > 1])

    def _by_spread(self, collective: Collective, whole: float, spread: NodeSpread, per_node: int) -> LinkTime:
        kind, near = collective.properties, self._near
        shared = whole * self._profile.devices_per_chip
        levels = []
        if spread.most > 1:
            local_bytes = shared * spread.most / spread.devices if kind.is_exchange else shared
            sent = local_bytes * node_share(kind, spread.most, near)
            levels.append((near.name, sent / known(near.send_bandwidth, self._profile, near)))
        far = self._far() if spread.nodes > 1 else None
        if far is not None:
            # over the adapters that other groups leave
            node = known(far.send_bandwidth, self._profile, far) * per_node * float(spread.part)
            levels.append((far.name, network_bound(kind, shared, spread, node)))
        if self._profile.maker != NVIDIA:
            estimate = self._rings(kind, shared, spread, far)
        elif spread.nodes == 1 and is_one_shot(collective):
            estimate = one_shot_seconds(whole, spread.devices, near)
        else:
            estimate = nccl_seconds(kind, whole, spread, near, far)
        reason = no_model(self._profile, [near, far] if far is not None else [near]) if estimate is None else ""
        return LinkTime(tuple(levels), estimate, reason)

    def _rings(self, kind: CollectiveKind, whole: float, spread: NodeSpread, far: Link | None) -> float | None:
        """Return the time of a ring over all devices: the time of its slowest links plus one latency per step."""
        used = [self._near] if far is None else [self._near, far] if spread.most > 1 else [far]
        factor, seconds, latency = kind.share_sent(spread.devices), 0.0, 0.0
        for link in used:
            if link.send_bandwidth is None or link.efficiency is None or link.latency is None:
                return None
            width = spread.fewest if link is far else 1
            seconds = max(seconds, whole * factor / (link.send_bandwidth * link.efficiency * width))
            latency = max(latency, link.latency)
        return seconds + (1 if kind.is_exchange else round(factor * spread.devices)) * latency

    def permute_time(self, pairs: Sequence[tuple[int, int]], size: int) -> LinkTime:
        """Return the time to send an array of `size` bytes from the first to the second device of each pair."""
        per_node, shared = self._devices_per_node(), size * self._profile.devices_per_chip
        nodes = [(self._placement.node(source, per_node), self._placement.node(target, per_node)) for source, target in pairs]
        leaving = Counter(source for source, target in nodes if source != target)
        link_times = []
        if leaving.total() < len(nodes):
            near = self._near
            seconds = shared / known(near.send_bandwidth, self._profile, near)
            link_times.append(self._hop(near, seconds, size))
        if leaving:
            far = self._far()
            seconds = shared * max(leaving.values()) / (known(far.send_bandwidth, self._profile, far) * per_node)
            link_times.append(self._hop(far, seconds, size))
        return slowest(link_times)

    def _hop(self, link: Link, bound: float, size: int) -> LinkTime:
        """Return the time of data that goes over one level, by the links of one device."""
        bandwidth = link.link_bandwidth if link.topology == "mesh" else link.send_bandwidth
        link_time = with_model(link, bound, self._profile, seconds=size / bandwidth if bandwidth else None)
        extra = SIMPLE.ring[0] if self._profile.maker == NVIDIA else 0.0
        return link_time._replace(estimate=link_time.estimate + extra) if link_time.estimate is not None else link_time
