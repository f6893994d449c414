"""The accelerator whose figures times are worked out with: the one that a user names, else the one that the dump tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.analysis.time.placement import Placement
from hlo_inspect.analysis.time.what_if import FigureChange, changed


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


UNKNOWN_MACHINE = "nothing in the text tells the accelerator: name one with --profile"


def choose_profile(asked: AskedMachine) -> ProfileChoice:
    """The profile for a module, with the changes that a user asks for. `UsageError` for a change of what it does not state."""
    if not asked.profiles:
        return ProfileChoice(None, "", (UNKNOWN_MACHINE,))
    return ProfileChoice(changed(asked.profiles[0], asked.changes), "--profile")
