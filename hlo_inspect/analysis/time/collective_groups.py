"""Who takes part in the collectives of a program, as ids of devices."""

from __future__ import annotations

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.devices import DeviceCounts, GroupMode
from hlo_inspect.analysis.mesh import device_groups
from hlo_inspect.analysis.time.placement import Placement, Spread, spreads
from hlo_inspect.analysis.time.ways import UnknownTimeError
from hlo_inspect.hlo.device_groups import DeviceGroups, DeviceListError, DevicePairs, Groups


class CollectiveGroups:
    """The groups and pairs of collectives; `UnknownTimeError` where the text does not tell them, and once they name more than
    `most` devices in all.
    """

    def __init__(self, counts: DeviceCounts, most: int) -> None:
        self.counts = counts
        self._most = most
        self._spreads: dict[object, set[Spread]] = {}
        self._ids = 0

    def listed(self, collective: Collective) -> Groups:
        """The groups, each a list of devices. They are written out each time."""
        groups = collective.groups
        self._ids += groups.count if isinstance(groups, DeviceGroups) and groups.count else self.counts.of_slice or 0
        if self._ids > self._most:
            raise UnknownTimeError(f"the groups of the module name devices more than {self._most:,} times")
        try:
            listed = groups.groups if isinstance(groups, DeviceGroups) else ()
            return device_groups(listed, collective.mode, self.counts)
        except DeviceListError as error:
            raise UnknownTimeError(str(error)) from error

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
        step = (self.counts.partitions or 1) if collective.mode is GroupMode.CROSS_REPLICA else 1
        return [(source * step, target * step) for source, target in collective.pairs.pairs if source != target]
