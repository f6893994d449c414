"""Memory that an optimizer's state could save: by donating its buffers, and by sharding its copies.

State is moments, other arrays that an optimizer keeps, and master weights; scalars are left out. State counts as replicated if
the devices that hold the same state share another, read-only parameter, such as the batch in data parallel training. Sharding
over n devices leaves each of them one part of n (ZeRO-1; Rajbhandari et al. 2020, arXiv:1910.02054).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hlo_inspect.analysis.devices.participants import MAX_PARTITIONS, DeviceCounts, parts_among
from hlo_inspect.graph.parameters import Interface, ParameterLeaf, fitting
from hlo_inspect.hlo.values.device_groups import Groups
from hlo_inspect.hlo.values.shapes import on_host
from hlo_inspect.optimizer.overview import Overview

MAX_SHARDINGS = 20  # of parameters that are only read, and of state
KINDS = ("first moment", "second moment", "master weight", "accumulator")

State = list[tuple[ParameterLeaf, str]]
"""Parameters with their kind of state."""


class UndonatedState(NamedTuple):
    """State that could be donated, and the bytes that this would save."""

    members: State
    saved: int


class ReplicatedState(NamedTuple):
    """State that is equal on `parts` devices among which parameter `among` is sharded.

    `saved` are the bytes that each of them would save if the state were sharded too.
    """

    members: State
    parts: int
    among: int
    saved: int


def undonated_state(overview: Overview, interface: Interface) -> UndonatedState:
    """Return the state whose buffers could be donated."""
    kinds = {(leaf.number, leaf.index): role for leaf, role in _state(overview, interface)}
    on_device = (leaf for leaf in interface.parameters if not on_host(leaf.shape))
    candidates = [leaf for leaf in on_device if leaf.could_be_donated and (leaf.number, leaf.index) in kinds]
    kept = [(leaf, kinds[leaf.number, leaf.index]) for leaf in fitting(candidates, interface.outputs)]
    return UndonatedState(kept, sum(leaf.shape.bytes or 0 for leaf, _ in kept))


def bytes_of_a_device(interface: Interface, counts: DeviceCounts, *, per_device: bool) -> int:
    """Return the bytes of the entry's parameters on each device.

    `per_device` is True if the text's shapes are those of one device.
    """
    tiles: dict[str, int] = {}
    total = 0
    for leaf in interface.parameters:
        text = "" if per_device else _text(leaf)
        if text not in tiles:
            copies = _copies(leaf, counts.partitions or 1) if text and len(tiles) < MAX_SHARDINGS else None
            tiles[text] = len(copies) if copies is not None else 1
        total += -(-(leaf.shape.bytes or 0) // tiles[text])
    return total


def _state(overview: Overview, interface: Interface) -> State:
    parameters = overview.parameters
    roles = {parameters.get(array.source): "other state" for array in overview.states}
    for key, role in overview.roles.items():
        roles[key] = next((kind for kind in KINDS if role.replace("_", " ").startswith(kind)), role)
    leaves = [leaf for leaf in interface.parameters if leaf.shape.elements != 1]
    roles_of_leaves = [(leaf, roles.get((leaf.number, leaf.index))) for leaf in leaves]
    return [(leaf, role) for leaf, role in roles_of_leaves if role in {*KINDS, "other state"} and role is not None]


def replicated_state(
    overview: Overview, interface: Interface, counts: DeviceCounts, *, per_device: bool
) -> list[ReplicatedState]:
    """Return the state that devices replicate and could shard, one entry for each number of devices and parameter.

    `per_device` is True if the text's shapes are those of one device.
    """
    state = _state(overview, interface)
    partitions = (counts.sharded or 1) if state else 1
    if not 1 < partitions <= MAX_PARTITIONS:
        return []
    read = {_text(leaf): leaf for leaf in reversed(_read_only_parameters(overview, interface))}
    copies_of_leaves = [(leaf, _copies(leaf, partitions)) for leaf in list(read.values())[-MAX_SHARDINGS:]]
    divided = [(leaf, copies) for leaf, copies in copies_of_leaves if copies is not None]
    spreads: dict[str, _Spread | None] = {}
    groups: dict[tuple[int, int], State] = {}
    saved: Counter[tuple[int, int]] = Counter()
    for leaf, role in state:
        text = _text(leaf)
        if text not in spreads and len(spreads) < MAX_SHARDINGS:
            spreads[text] = _spread(_copies(leaf, partitions), divided)
        spread = spreads.get(text)
        if spread is not None and leaf.shape.bytes is not None:
            size = leaf.shape.bytes if per_device else leaf.shape.bytes // spread.tiles
            key = spread.parts, spread.among
            groups.setdefault(key, []).append((leaf, role))
            saved[key] += size - -(-size // spread.parts)
    return [ReplicatedState(members, *key, saved[key]) for key, members in groups.items()]


def _text(leaf: ParameterLeaf) -> str:
    return leaf.sharding.text if leaf.sharding is not None else ""


def _copies(leaf: ParameterLeaf, partitions: int) -> Groups | None:
    """Group the partitions that hold the same part of an array; None if its sharding does not tell."""
    return leaf.sharding.copies(partitions) if leaf.sharding is not None else None


class _Spread(NamedTuple):
    """A state in `tiles`, each of them on devices among which parameter `among` is divided into `parts`."""

    parts: int
    among: int
    tiles: int


def _spread(copies: Groups | None, divided: list[tuple[ParameterLeaf, Groups]]) -> _Spread | None:
    if copies is None:
        return None
    parts, number = max([(parts_among(copies, others), -leaf.number) for leaf, others in divided], default=(1, 0))
    return _Spread(parts, -number, len(copies)) if parts > 1 else None


def _read_only_parameters(overview: Overview, interface: Interface) -> list[ParameterLeaf]:
    """Return the parameters that the step reads and neither updates nor donates."""
    updated = {overview.parameters.get(array.source) for step in overview.steps for array in step.arrays}
    return [leaf for leaf in interface.parameters if not leaf.donated and (leaf.number, leaf.index) not in updated]
