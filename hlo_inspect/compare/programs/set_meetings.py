"""The collectives of one module on all ranks as they are: whether they hang, and the devices that meet in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from hlo_inspect.compare.programs.meetings import Decision, DeviceOrder, Steps, decide
from hlo_inspect.compare.programs.module_set import SetPrograms
from hlo_inspect.compare.programs.rank_devices import RankDevices, find_devices
from hlo_inspect.compare.programs.ranks import RankText


class SetMeetings:
    """The meetings of the devices of all ranks in one module."""

    def __init__(self, programs: SetPrograms) -> None:
        self._programs = programs

    @cached_property
    def are_local(self) -> bool:
        """True if each rank runs the module on devices of its own. If all assignments differ, two of them tell."""
        texts = {text.assignment: text for text in self._programs.texts.values()}
        if len(texts) < 2 or b"" in texts:
            return False
        all_differ = len(texts) == len(self._programs.texts)
        return self._find_devices(list(texts.values())[: 2 if all_differ else None]).are_local

    @cached_property
    def _devices(self) -> RankDevices:
        """The devices of each rank, by the options of one text for each assignment."""
        return self._find_devices({text.assignment: text for text in self._programs.texts.values() if text.assignment}.values())

    def _find_devices(self, texts: Iterable[RankText]) -> RankDevices:
        settings = {text.rank: self._programs.reader.settings(text) for text in texts}
        assignments = {rank: own.devices for rank, own in settings.items()}
        processes = next((own.process_count for own in settings.values()), None)
        return find_devices(self._programs.ranks.size, self._programs.usual.order.devices, assignments, processes)

    @cached_property
    def decision(self) -> Decision:
        """The decision if the ranks hang in this module, all as they are."""
        programs = self._programs
        steps = self._steps()
        if len(steps) == programs.ranks.size and len(set(steps.values())) == 1:
            return Decision(hangs=False)
        if self.are_local:
            return Decision(hangs=False)
        faults = [program.order.fault for program in programs.programs.values() if program.order.fault]
        if faults:
            return Decision(None, f"the order of collectives is unknown: {faults[0]}")
        if programs.skipped:
            return Decision(None, f"{programs.ranks.named(programs.skipped)} cannot be compared")
        devices = self._devices
        if devices.devices is None:
            return Decision(None, devices.reason)
        return decide([DeviceOrder(devices.devices[rank], own) for rank, own in steps.items()])

    def _steps(self) -> Mapping[int, Steps]:
        """Return the collectives of each rank, numbered as those of the majority; none for a rank without the module."""
        programs = self._programs
        usual = programs.usual.order.steps
        of_digest = {digest: deviation.steps for digest, deviation in programs.deviations.items()}
        steps: dict[int, Steps] = {rank: of_digest.get(text.digest, usual) for rank, text in programs.comparable.items()}
        return steps | dict.fromkeys(programs.lacking, ())
