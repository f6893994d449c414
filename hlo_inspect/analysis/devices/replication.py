"""Copies of entry parameters: on how many devices the same part of an array is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hlo_inspect.analysis.devices.participants import DeviceCounts
from hlo_inspect.graph.parameters import ParameterLeaf

MAX_PARTITIONS = 1 << 14
"""Limit of partitions whose copies are counted: a sharding of more is not written out."""

Copies = Mapping[str, int | None]
"""The number of devices that hold the same part of an array, by the text of its sharding; None if the text does not tell."""


def count_copies(leaves: Iterable[ParameterLeaf], counts: DeviceCounts) -> Copies:
    """Count the copies of each sharding of these arrays; nothing if a sharding has one device.

    Replicas of a program hold arrays of their own. The text does not say if those are equal, so they do not count.
    """
    devices = counts.sharded or 1
    shardings = {leaf.sharding.text: leaf.sharding for leaf in leaves if leaf.sharding is not None}
    groups = {text: sharding.copies(devices) for text, sharding in shardings.items()} if 1 < devices <= MAX_PARTITIONS else {}
    return {text: max(map(len, parts), default=None) if parts is not None else None for text, parts in groups.items()}
