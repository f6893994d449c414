"""How long NCCL takes for a collective, by the model that it chooses its own algorithm and protocol with.

Source: `src/graph/tuning.cc` and `src/graph/topo.h` of NCCL 2.28: time = latency + bytes / bandwidth, the least over algorithms
and protocols. A ring has as many steps as devices less one, an all-reduce twice as many; a tree has the depth of its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.hardware import Link
from hlo_inspect.analysis.time.links import bus_factor
from hlo_inspect.analysis.time.placement import NodeSpread
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, opcodes_that_are

US = 1e-6


class Protocol(NamedTuple):
    """Seconds before the first step, of a step over NVLink and over a network: of rings, then of trees. `share` is what of the
    bandwidth is left for data.
    """

    ring: tuple[float, float, float]
    tree: tuple[float, float, float]
    share: float


LL = Protocol((6.6 * US, 0.6 * US, 2.7 * US), (6.8 * US, 0.6 * US, 5.0 * US), 0.5)
LL128 = Protocol((14.0 * US, 1.9 * US, 4.0 * US), (14.0 * US, 1.25 * US, 8.5 * US), 0.92)
SIMPLE = Protocol((8.4 * US, 3.4 * US, 14.0 * US), (8.4 * US, 4.0 * US, 14.0 * US), 1.0)

REDUCING_LATENCY = 25 * US
"""Of an all-reduce that the switches of NVLink add up."""
_RINGS = opcodes_that_are("global-ids") & {*COLLECTIVE_KINDS} | {"collective-broadcast"}
_ONE_SHOT_LAUNCH, _ONE_SHOT_BARRIER = 1 * US, 1.5 * US
MAX_ONE_SHOT = 256 * 1024
"""Bytes up to which XLA sends an all-reduce to every device at once (`TRITON_ONE_SHOT`)."""


def seconds(kind: str, whole: float, spread: NodeSpread, near: Link, far: Link | None) -> float | None:
    """The model's time for an array of `whole` bytes over the links `near` of nodes and, where it leaves them, `far`. `None`
    where the profile does not say what the links reach.
    """
    near_bandwidth = _reached(near, 1)
    far_bandwidth = _reached(far, spread.fewest) if far is not None and spread.nodes > 1 else math.inf
    if near_bandwidth is None or far_bandwidth is None or near.latency is None:
        return None
    bandwidth = min(near_bandwidth if spread.most > 1 else math.inf, far_bandwidth)
    if kind not in _RINGS:  # sent to each other device at once
        hop = SIMPLE.ring[1 if spread.nodes == 1 else 2]
        return SIMPLE.ring[0] + hop + whole * (spread.devices - 1) / spread.devices / bandwidth
    least = min(_protocols(kind, whole, spread, near, bandwidth))
    if kind == "all-reduce" and spread.nodes == 1 and near.reduces and near.reduction_efficiency and near.send_bandwidth:
        least = min(least, REDUCING_LATENCY + whole / (near.send_bandwidth * near.reduction_efficiency))
    return least


def _protocols(kind: str, whole: float, spread: NodeSpread, near: Link, bandwidth: float) -> Iterator[float]:
    """The time by each algorithm and protocol."""
    rounds = 2 if kind == "all-reduce" else 1
    sent = whole * bus_factor(kind, spread.devices)
    between = rounds * (spread.nodes - 1)
    inside = rounds * (spread.devices - 1) - between
    for protocol in (LL, LL128, SIMPLE):
        reached = bandwidth * protocol.share
        if protocol is LL and near.low_latency_bandwidth is not None:
            reached = min(reached, near.low_latency_bandwidth)
        start, step, far_step = protocol.ring
        yield start + inside * step + between * far_step + sent / reached
        if kind == "all-reduce" and spread.nodes > 1:
            start, step, far_step = protocol.tree
            latency = start + 2 * ((spread.most - 1) * step + math.log2(spread.nodes) * far_step)
            yield latency + 2 * whole / (reached * _OF_TREES)


_OF_TREES = 0.92


def is_one_shot(collective: Collective) -> bool:
    """Whether XLA's own kernel does an all-reduce."""
    if collective.kind != "all-reduce" or (collective.operand_bytes or 0) > MAX_ONE_SHOT:
        return False
    return any(part.get("kernel_strategy") == "TRITON_ONE_SHOT" for part in collective.configs())


def one_shot_seconds(size: float, devices: int, near: Link) -> float | None:
    """XLA's time for an all-reduce in one kernel of its own, in which each device sends its array to all others: launch, bytes
    and a barrier (`gpu_collective_performance_model.cc`).
    """
    bandwidth = _reached(near, 1)
    if bandwidth is None:
        return None
    return _ONE_SHOT_LAUNCH + (devices - 1) * size / bandwidth + _ONE_SHOT_BARRIER


def _reached(link: Link, devices: int) -> float | None:
    """Bytes/s that so many devices of a node reach over their links of a level."""
    if link.send_bandwidth is None or link.efficiency is None:
        return None
    return link.send_bandwidth * link.efficiency * devices
