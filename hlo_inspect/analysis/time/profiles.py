"""The accelerator whose figures times are worked out with: the one that a user names, else the one that the dump tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hlo_inspect.analysis.hardware import HardwareProfile, load_profile
from hlo_inspect.analysis.hardware_figures import Figure
from hlo_inspect.analysis.time.dumped_device import NOTHING_TELLS, dumped_device, tpu_marks
from hlo_inspect.analysis.time.placement import Placement
from hlo_inspect.analysis.time.what_if import FigureChange, changed
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.module import Module

_PEAKS = ("matmul.", "vector.", "memory.", "links.")
"""Figures that bounds rest on."""
_OF_A_DEVICE = ("matmul.", "vector.", "memory.", "on_chip.")


@dataclass(frozen=True, slots=True)
class AskedMachine:
    """What a user says of the machine: profiles, of which times are those of the first, changes of their figures, and where the
    devices of a program are.
    """

    profiles: tuple[HardwareProfile, ...] = ()
    changes: tuple[FigureChange, ...] = ()
    placement: Placement = field(default_factory=Placement)


class ProfileChoice(NamedTuple):
    """The profile that times are for, with what it was chosen by; `None` where nothing tells, with the reason in `notes`."""

    profile: HardwareProfile | None
    chosen_by: str
    notes: tuple[str, ...] = ()


def choose_profile(asked: AskedMachine, module: Module, read_whole: Callable[[], Module | None]) -> ProfileChoice:
    """The profile for a module, with the changes that a user asks for. Without one that the user names a module that was read
    with its graph tells it; `read_whole` gives any module with its graph. `UsageError` for a change of what it does not state.
    """
    if asked.profiles:
        profile, chosen_by = asked.profiles[0], "--profile"
    else:
        device = dumped_device(module) if module.wants.graph else NOTHING_TELLS
        if device.profile is None and asked.changes:
            raise UsageError("--what-if changes figures of a profile, and the dump does not name one: name it with --profile")
        if device.profile is None:
            return ProfileChoice(None, "", (device.told_by,))
        profile, chosen_by = load_profile(device.profile), device.told_by
    of_device, note = _of_a_device(profile, read_whole)
    notes = [note] if note else []
    others = [name for name in profile.not_primary if name.startswith(_PEAKS) and not name.startswith("links.host.")]
    others = [name for name in others if not name.startswith("links.") or name.endswith((".bandwidth", ".count"))]
    if others:
        command = f"`hlo-inspect profiles {profile.name}` lists them"
        notes.append(f"{len(others)} of its peaks are not from documents of the maker: {command}")
    return ProfileChoice(changed(of_device, asked.changes), chosen_by, tuple(notes))


def _of_a_device(profile: HardwareProfile, read_whole: Callable[[], Module | None]) -> tuple[HardwareProfile, str]:
    """The profile with the figures of what XLA sees as a device, where that is a part of the chip, and a note that says so."""
    on_chip, cores = profile.cores_per_chip, profile.cores_per_device
    if on_chip is None or cores is None or on_chip == 1:
        return profile, ""
    why = f"a device of {profile.title} is"
    if cores == on_chip:
        module = read_whole()
        marks = tpu_marks(module) if module is not None else None
        if marks is None or marks.is_split:
            return profile, ""
        cores, why = 1, "no kernel is split over the cores of a chip: a device is"
    share = on_chip // cores
    of_chip = {name: figure for name, figure in profile.figures.items() if name.startswith(_OF_A_DEVICE) and figure is not None}
    figures: dict[str, Figure | None] = {name: replace(figure, value=figure.value / share) for name, figure in of_chip.items()}
    whole = profile.figures["cores_per_device"]
    figures["cores_per_device"] = replace(whole, value=cores) if whole is not None else None
    part = "half a chip" if share == 2 else f"1/{share} of a chip"
    note = f"{why} {cores} of {on_chip} cores, so that its figures are those of {part}, and devices of a chip share its links"
    return replace(profile.with_figures(figures, ()), devices_per_chip=share), note
