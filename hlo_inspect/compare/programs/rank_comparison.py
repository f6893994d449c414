"""The deviations of one module on all ranks of a job from the program that most ranks run, and whether they hang."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import NamedTuple

from hlo_inspect.compare.programs.deviations import HARMLESS, VERDICTS, RankVerdict
from hlo_inspect.compare.programs.first_difference import NO_DIFFERENCE, InstructionDifference, contrast
from hlo_inspect.compare.programs.meetings import Decision, DeviceOrder, Steps, decide
from hlo_inspect.compare.programs.module_set import JobRanks, RankReader, SetPrograms
from hlo_inspect.compare.programs.rank_sets import Miscount, ModuleSet, RankText, majority
from hlo_inspect.compare.setting_changes import incomparable_settings, setting_changes
from hlo_inspect.errors import first_few
from hlo_inspect.report.table import number_of

_MOST_CHANGES = 3
"""Limit of flags that a detail names."""


@dataclass(frozen=True, slots=True)
class RankDeviation:
    """A rank that does not run the program of the majority.

    `first` is the first instruction that deviates. `waits` names the collective at which it hangs, and `source` its line of
    Python; both are empty if there is none.
    """

    module: str
    rank: int
    verdict: RankVerdict
    hangs: bool | None
    path: str
    detail: str = ""
    first: InstructionDifference = NO_DIFFERENCE
    waits: str = ""
    source: str = ""

    @property
    def deviates(self) -> bool:
        """True unless only names or choices of autotuning differ."""
        return self.verdict not in HARMLESS


@dataclass(frozen=True, slots=True)
class ComparedSet:
    """The result for one module. `majority` is the hash of its program, None if no rank has a whole text of it.

    `skipped` are the ranks that cannot be compared, `truncated` those whose text is cut off.
    """

    name: str
    ranks: int
    programs: int = 0
    majority: str | None = None
    names_differ: bool = False
    skipped: Sequence[int] = ()
    truncated: Sequence[int] = ()
    deviations: list[RankDeviation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def deviating(self) -> int:
        """The number of ranks that deviate."""
        return len({deviation.rank for deviation in self.deviations if deviation.deviates})

    @property
    def verdict(self) -> RankVerdict | None:
        """The gravest verdict; None if all texts are equal."""
        verdicts: list[RankVerdict] = [deviation.verdict for deviation in self.deviations]
        return min(verdicts, key=VERDICTS.index, default="names" if self.names_differ else None)


def miscount_deviation(miscount: Miscount, ranks: JobRanks) -> RankDeviation:
    """Return the deviation of a rank with another number of modules of one name."""
    detail = contrast("modules of this name:", f"{miscount.modules:,}", f"{miscount.usual:,}")
    return RankDeviation(miscount.module, miscount.rank, "count", None, ranks.paths[miscount.rank], detail)


def compare_set(module_set: ModuleSet, ranks: JobRanks, reader: RankReader) -> ComparedSet:
    """Compare one module on all ranks. Each distinct text is read once."""
    programs = SetPrograms(module_set, ranks, reader)
    if not programs.comparable:
        skipped, truncated = programs.skipped, programs.truncated
        return ComparedSet(programs.name, len(programs.texts), skipped=skipped, truncated=truncated, notes=programs.notes)
    comparison = SetComparison(programs)
    deviations = list(comparison.deviations())
    return ComparedSet(
        programs.name,
        len(programs.texts),
        len(set(programs.identities.values())),
        programs.usual.identity[0],
        len(programs.programs) > 1,
        programs.skipped,
        programs.truncated,
        deviations,
        [*programs.notes, *comparison.notes(deviations)],
    )


class SetComparison:
    """Comparison of one module on all ranks."""

    def __init__(self, programs: SetPrograms) -> None:
        self._programs = programs
        self._meetings = SetMeetings(programs)
        self._changes: dict[tuple[bytes, bytes], str] = {}
        self._unknown_settings: dict[str, list[int]] = {}

    def deviations(self) -> Iterator[RankDeviation]:
        """Yield the deviations of all ranks."""
        if self._programs.is_extra:
            yield from self._extra()
            return
        yield from self._missing()
        for rank, text in sorted(self._programs.comparable.items()):
            yield from self._deviation(rank, text)

    def notes(self, deviations: list[RankDeviation]) -> Iterator[str]:
        """Yield the reason if it is unknown whether ranks hang."""
        if any(deviation.hangs is None for deviation in deviations):
            yield f"whether {self._programs.name} hangs is unknown: {self._meetings.decision.reason}"
        for reason, ranks in self._unknown_settings.items():
            yield f"{self._programs.name} of {self._programs.ranks.named(ranks)}: {reason}"

    def _extra(self) -> Iterator[RankDeviation]:
        """Yield the ranks that alone have the module."""
        waits, source = self._first_collective
        hangs = self._meetings.decision.hangs if waits else False
        detail = f"{number_of(len(self._programs.lacking), 'rank')} without it"
        for rank, text in sorted(self._programs.texts.items()):
            yield RankDeviation(self._programs.name, rank, "extra", hangs, text.path, detail, NO_DIFFERENCE, waits, source)

    def _missing(self) -> Iterator[RankDeviation]:
        """Yield the ranks that lack the module. The others wait for them in its collectives, unless these are local."""
        if not self._programs.lacking:
            return
        waits, source = self._first_collective
        hangs = bool(waits) and self._meetings.decision.hangs is not False
        count = len(self._programs.usual.order.collectives)
        detail = f"{number_of(count, 'collective')} on the other ranks" if count else "no collectives"
        for rank in self._programs.lacking:
            path = self._programs.ranks.paths[rank]
            yield RankDeviation(self._programs.name, rank, "missing", hangs, path, detail, NO_DIFFERENCE, waits, source)

    @cached_property
    def _first_collective(self) -> tuple[str, str]:
        """Name and line of Python of the first collective of the majority; empty if there is none."""
        first = self._programs.usual.order.first
        return (first.name, first.source) if first is not None else ("", "")

    def _deviation(self, rank: int, text: RankText) -> Iterator[RankDeviation]:
        """Yield the deviation of a rank that has the module, if there is one."""
        deviation = self._programs.deviations.get(text.digest)
        verdict = deviation.verdict if deviation is not None else "names"
        changes = self._setting_changes(text)
        if deviation is None or verdict == "names" or (verdict == "algorithm" and changes):
            if changes:
                yield RankDeviation(self._programs.name, rank, "flags", False, text.path, changes)
            return
        hangs = self._meetings.decision.hangs if verdict in ("order", "collective") else False
        detail = "; ".join(filter(None, (deviation.detail, changes, self._origin(text) if verdict != "algorithm" else "")))
        waits = (deviation.waits.name, deviation.waits.source) if deviation.waits is not None else ("", "")
        yield RankDeviation(self._programs.name, rank, verdict, hangs, text.path, detail, deviation.first, *waits)

    def _origin(self, text: RankText) -> str:
        """Return whether a program deviates from the majority's before optimizations too; empty if that is unknown."""
        usual = self._programs.comparable[self._programs.usual_ranks[0]]
        keys = self._programs.reader.before(text), self._programs.reader.before(usual)
        if None in keys or not text.is_optimized:
            return ""
        if keys[0] == keys[1]:
            return "equal before optimizations"
        hang = "; on GPUs compiling may hang too" if "gpu" in PurePath(text.path).name else ""
        return f"differs before optimizations{hang}"

    # -- flags and options ----------------------------------------------------------------------------------------------------

    @cached_property
    def _usual_settings(self) -> RankText:
        """The text of the lowest rank with the settings that most ranks of the majority have."""
        comparable = self._programs.comparable
        keys = {rank: comparable[rank].settings for rank in self._programs.usual_ranks}
        usual = majority(keys)
        return comparable[next(rank for rank, key in keys.items() if key == usual)]

    def _setting_changes(self, text: RankText) -> str:
        """Describe the flags and options that differ from those of the majority; empty if none does."""
        usual = self._usual_settings
        is_local = text.assignment != usual.assignment and self._meetings.are_local
        key = text.settings, b"" if is_local else text.assignment
        if key == (usual.settings, usual.assignment) or (is_local and text.settings == usual.settings):
            return ""
        if key not in self._changes:
            settings = [self._programs.reader.settings(Path(each.path)) for each in (usual, text)]
            for reason in incomparable_settings(*settings)[:1]:
                self._unknown_settings.setdefault(reason, []).append(text.rank)
            changes = [change for change in setting_changes(*settings) if change.kind != "devices" or not is_local]
            parts = [contrast(f"{change.name}:", change.new, change.old) for change in changes]
            self._changes[key] = first_few(parts, _MOST_CHANGES, "; ", "; ")
        return self._changes[key]


# -- whether the ranks hang, all as they are ----------------------------------------------------------------------------------

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
        settings = {text.rank: self._programs.reader.settings(Path(text.path)) for text in texts}
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
