"""The devices of each rank of a job, by their positions in a program: replica × partitions + partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

Assignment = tuple[tuple[str, ...], ...]
"""The devices of the replicas of each partition, as the options of a compile list them."""


class RankDevices(NamedTuple):
    """The devices of each rank; None if unknown, with a `reason`. Programs that `are_local` run on devices of one rank each."""

    devices: Mapping[int, frozenset[int]] | None
    are_local: bool = False
    reason: str = ""


def find_devices(
    ranks: int, count: int | None, assignments: Mapping[int, Assignment | None], processes: int | None = None
) -> RankDevices:
    """Return the devices of `ranks` ranks, among which `count` devices are divided in order of rank.

    `assignments` are those that the ranks' options state. They give the order of the devices, and differ if each rank runs the
    program for itself. `processes` is the number of processes that the options state, if any.
    """
    stated = {rank: flat for rank, assignment in assignments.items() if assignment and (flat := _flat(assignment)) is not None}
    if len(stated) > 1 and _are_disjoint(stated):
        return RankDevices(None, are_local=True)
    orders = set(stated.values()) or {tuple(range(count or 0))}
    reason = _fault(ranks, count, orders, processes)
    if reason or count is None:
        return RankDevices(None, reason=reason)
    order = next(iter(orders))
    positions = sorted(range(count), key=order.__getitem__)
    size = count // ranks
    return RankDevices({rank: frozenset(positions[rank * size : (rank + 1) * size]) for rank in range(ranks)})


def _fault(ranks: int, count: int | None, orders: Collection[tuple[int, ...]], processes: int | None) -> str:
    """Return why the devices of ranks are unknown; empty if they are known."""
    if count is None:
        return "the number of devices is unknown"
    if processes is not None and processes > 1 and processes != ranks:
        return f"the options state {processes:,} processes, not {ranks:,}"
    if count % ranks:
        return f"{count:,} devices are not divided by {ranks:,} ranks"
    if len(orders) > 1:
        return "the ranks' options state other devices"
    stated = len(next(iter(orders)))
    return f"the options state {stated:,} devices, the text {count:,}" if stated != count else ""


def _flat(assignment: Assignment) -> tuple[int, ...] | None:
    """Return the devices in order of replica, then partition; None if they are no table of distinct numbers."""
    replicas = len(assignment[0])
    if any(len(devices) != replicas for devices in assignment):
        return None
    texts = [devices[replica] for replica in range(replicas) for devices in assignment]
    if not all(text.isascii() and text.isdecimal() and len(text) < 10 for text in texts):
        return None
    flat = tuple(map(int, texts))
    return flat if len(set(flat)) == len(flat) else None


def _are_disjoint(orders: Mapping[int, tuple[int, ...]]) -> bool:
    return len({device for order in orders.values() for device in order}) == sum(map(len, orders.values()))
