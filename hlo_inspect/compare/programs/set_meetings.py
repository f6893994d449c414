"""The collectives of one module on all ranks as they are: whether they hang, and the devices that meet in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.compare.programs.meetings import Decision, DeviceOrder, Steps, decide
from hlo_inspect.compare.programs.module_set import SetPrograms
from hlo_inspect.compare.programs.rank_sets import RankText

Assignment = tuple[tuple[str, ...], ...]
"""The devices of the replicas of each partition, as the options of a compile list them."""


class RankDevices(NamedTuple):
    """The devices of each rank; None if unknown, with a `reason`. Programs that `are_local` run on devices of one rank each."""

    devices: Mapping[int, frozenset[int]] | None
    are_local: bool = False
    reason: str = ""


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
        return _divided_devices(self._programs.ranks.size, self._programs.usual.order.devices, assignments, processes)

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


# -- the devices of each rank --------------------------------------------------------------------------------------------------


def _divided_devices(
    ranks: int, count: int | None, assignments: Mapping[int, Assignment | None], processes: int | None = None
) -> RankDevices:
    """Return the devices of `ranks` ranks, among which `count` devices are divided in order of rank.

    `assignments` are those that the ranks' options state. They give the order of the devices, and differ if each rank runs the
    program for itself. `processes` is the number of processes that the options state, if any.
    """
    stated = {rank: flat for rank, assignment in assignments.items() if assignment and (flat := _flat(assignment)) is not None}
    devices = [device for flat in stated.values() for device in flat]
    if len(stated) > 1 and len(set(devices)) == len(devices):
        return RankDevices(None, are_local=True)
    orders = set(stated.values()) or {tuple(range(count or 0))}
    reason = _division_fault(ranks, count, orders, processes)
    if reason or count is None:
        return RankDevices(None, reason=reason)
    order = next(iter(orders))
    positions = sorted(range(count), key=order.__getitem__)
    size = count // ranks
    return RankDevices({rank: frozenset(positions[rank * size : (rank + 1) * size]) for rank in range(ranks)})


def _division_fault(ranks: int, count: int | None, orders: Collection[tuple[int, ...]], processes: int | None) -> str:
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
