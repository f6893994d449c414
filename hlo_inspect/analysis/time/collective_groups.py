"""Who takes part in the collectives of a program, as ids of devices."""

from __future__ import annotations

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.devices import DeviceCounts, GroupMode
from hlo_inspect.analysis.mesh import device_groups
from hlo_inspect.analysis.time.placement import Placement, Spread, spreads
from hlo_inspect.analysis.time.ways import UnknownTimeError
from hlo_inspect.hlo.device_groups import DeviceGroups, DeviceListError, DevicePairs, Groups

MOST_IDS = 1 << 21
"""So many ids of devices are looked at in all groups of a module."""


class CollectiveGroups:
    """The groups and pairs of collectives; `UnknownTimeError` where the text does not tell them."""

    def __init__(self, counts: DeviceCounts) -> None:
        self._counts = counts
        self._groups: dict[object, Groups] = {}
        self._spreads: dict[object, set[Spread]] = {}
        self._ids = 0

    def listed(self, collective: Collective) -> Groups:
        """The groups, each a list of devices."""
        groups = collective.groups
        key = (groups, collective.mode)
        if key not in self._groups:
            try:
                listed = groups.groups if isinstance(groups, DeviceGroups) else ()
                found = device_groups(listed, collective.mode, self._counts)
            except DeviceListError as error:
                raise UnknownTimeError(str(error)) from error
            self._ids += sum(map(len, found))
            if self._ids > MOST_IDS:
                raise UnknownTimeError(f"groups name devices more than {MOST_IDS:,} times")
            self._groups[key] = found
        return self._groups[key]

    def spreads(self, collective: Collective, placement: Placement, per_node: int) -> set[Spread]:
        """How the groups lie over nodes of so many devices."""
        key = (collective.groups, collective.mode, placement, per_node)
        if key not in self._spreads:
            self._spreads[key] = spreads(self.listed(collective), placement, per_node)
        return self._spreads[key]

    def pairs(self, collective: Collective) -> list[tuple[int, int]]:
        """Who sends to whom, without those that send to themselves."""
        if not isinstance(collective.pairs, DevicePairs):
            raise UnknownTimeError("the text does not say which device sends to which")
        step = (self._counts.partitions or 1) if collective.mode is GroupMode.CROSS_REPLICA else 1
        return [(source * step, target * step) for source, target in collective.pairs.pairs if source != target]
